//! Queries and their errors as bytes, for executing a query in another process.
//!
//! A bound query is sent as what it was bound from and bound again: the text, the
//! parameters, and the part of the context that belongs to the request. What belongs to the
//! container (computed properties, its spatial configuration) is known where its items are.

use std::sync::Arc;

use model::json;
use model::varint::{list, number, put_bytes, put_list, put_number, take, text};

use crate::context::{Context, UserFunctionError};
use crate::error::QueryError;
use crate::parameters::Parameters;
use crate::parser::QueryLimits;
use crate::query::{Bound, Query};

/// What a query was bound from.
#[derive(Clone, Debug)]
pub(crate) struct BoundText {
    pub(crate) text: String,
    pub(crate) parameters: Parameters,
    /// Whether it is executed over no rows.
    pub(crate) has_no_rows: bool,
}

impl Bound {
    /// Appends everything that is needed to bind the query elsewhere; false if it has no
    /// text of its own.
    pub fn encode(&self, out: &mut Vec<u8>) -> bool {
        let Some(own) = self.own_text() else { return false };
        let context = &self.program().context;
        out.extend(context.now_ticks.to_be_bytes());
        out.extend(context.seed.to_be_bytes());
        out.push(u8::from(own.has_no_rows));
        put_bytes(out, own.text.as_bytes());
        let parameters: Vec<_> = own.parameters.iter().collect();
        put_list(out, &parameters, |out, (name, value)| {
            put_bytes(out, name.as_bytes());
            put_bytes(out, value.to_string().as_bytes());
        });
        true
    }

    /// Binds a query that was sent, in the context of its container.
    pub fn decode(input: &mut &[u8], container: &Context) -> Option<Bound> {
        let (now_ticks, rest) = input.split_first_chunk::<8>()?;
        let (seed, rest) = rest.split_first_chunk::<8>()?;
        *input = rest;
        let context = Context {
            now_ticks: i64::from_be_bytes(*now_ticks),
            seed: u64::from_be_bytes(*seed),
            ..container.clone()
        };
        let (has_no_rows, own) = (take(input)? == 1, text(input)?);
        let parameters = list(input, |input| {
            let (name, value) = (text(input)?, text(input)?);
            Some((name, json::parse(value.as_bytes()).ok()?))
        })?;
        let all = parameters.into_iter();
        let parameters = all.fold(Parameters::none(), |all, (name, value)| all.with(&name, value));
        let query = Query::parse_within(&own, QueryLimits::service()).ok()?;
        let bound = query.bind_in(&parameters, &Arc::new(context)).ok()?;
        Some(if has_no_rows { bound.over_no_rows() } else { bound })
    }
}

/// The limits that an execution can exceed.
const LIMITS: [&str; 4] = [
    "steps of evaluation",
    "bytes in one value",
    "bytes in the arguments of one call",
    "bytes kept for rows, groups and sort keys",
];

impl QueryError {
    /// Appends an error that a run of a query ended with. Errors of binding are encoded as
    /// unsupported.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            QueryError::Limit { what, limit } => {
                out.push(0);
                let at = LIMITS.iter().position(|known| known == what).unwrap_or(LIMITS.len());
                put_number(out, at as u64);
                put_number(out, *limit as u64);
            }
            QueryError::Stopped => out.push(1),
            QueryError::OutOfMemory => out.push(2),
            QueryError::Cardinality => out.push(3),
            QueryError::NotFinite => out.push(4),
            QueryError::UserFunction { name, source } => {
                out.push(5);
                put_bytes(out, name.as_bytes());
                put_bytes(out, source.message.as_bytes());
            }
            QueryError::Invalid(_) | QueryError::Refused(_) | QueryError::Unsupported { .. } => {
                out.push(6);
                put_bytes(out, self.to_string().as_bytes());
            }
        }
    }

    pub fn decode(input: &mut &[u8]) -> Option<QueryError> {
        Some(match take(input)? {
            0 => {
                let at = usize::try_from(number(input)?).ok()?;
                let what = LIMITS.get(at).copied().unwrap_or("units of something");
                QueryError::Limit { what, limit: usize::try_from(number(input)?).ok()? }
            }
            1 => QueryError::Stopped,
            2 => QueryError::OutOfMemory,
            3 => QueryError::Cardinality,
            4 => QueryError::NotFinite,
            5 => {
                let (name, message) = (text(input)?, text(input)?);
                QueryError::UserFunction { name, source: UserFunctionError { message } }
            }
            6 => QueryError::Unsupported { what: text(input)? },
            _ => return None,
        })
    }
}
