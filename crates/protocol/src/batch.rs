//! Transactional batches and bulk requests.
//!
//! They come in two forms, `json` and `hybrid`, which mean the same: either parses a
//! body into a list of `Wording`s and renders a list of `Outcome`s as a body.
//! Everything else is common to both and is here.

mod hybrid;
mod json;

use std::borrow::Cow;

use bytes::Bytes;
use http::StatusCode;
use hybrid_row::batch::operation_type;
use model::charge::Charge;
use model::etag::Etag;
use model::json::canonical_body;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use service::{
    BulkOperation, BulkResult, EffectKind, EtagMatch, ItemOperation, ItemResult, ServiceError,
};

use crate::binary_json;
use crate::error::WireError;
use crate::resource::status_of;
use crate::system_properties::shown;

/// The encoding of a body, and of its answer.
#[derive(Clone, Copy, Debug)]
enum Form {
    Json,
    HybridRow,
}

impl Form {
    fn of(body: &[u8]) -> Form {
        if hybrid::is_hybrid(body) { Form::HybridRow } else { Form::Json }
    }

    /// The body in canonical form, if it is JSON. Items in the other form are made
    /// canonical one by one, as they are written.
    fn check(self, body: &Bytes) -> Result<Bytes, WireError> {
        match self {
            Form::Json => Ok(canonical_body(body).map_err(ServiceError::from)?),
            Form::HybridRow => Ok(body.clone()),
        }
    }

    fn read(self, body: &Bytes, count_max: usize) -> Result<Vec<Wording<'_>>, WireError> {
        match self {
            Form::Json => json::read(body, count_max),
            Form::HybridRow => hybrid::read(body, count_max),
        }
    }

    fn answer(self, status: StatusCode, outcomes: &[Outcome]) -> Result<BatchAnswer, WireError> {
        let (body, is_binary) = match self {
            Form::Json => (json::write(outcomes).into(), false),
            Form::HybridRow => (hybrid::write(outcomes)?.into(), true),
        };
        Ok(BatchAnswer { status, body, is_binary })
    }
}

/// One operation as it is in the body.
#[derive(Debug)]
struct Wording<'a> {
    verb: OperationVerb,
    id: Option<Cow<'a, str>>,
    /// A JSON array inside a string.
    key: Option<Cow<'a, str>>,
    body: Option<Bytes>,
    if_match: Option<Cow<'a, str>>,
    if_none_match: Option<Cow<'a, str>>,
    minimal: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OperationVerb {
    Create,
    Upsert,
    Read,
    Replace,
    Delete,
    Patch,
}

/// The names and the numbers of verbs.
const VERBS: [(&str, i32, OperationVerb); 6] = [
    ("Create", operation_type::CREATE, OperationVerb::Create),
    ("Upsert", operation_type::UPSERT, OperationVerb::Upsert),
    ("Read", operation_type::READ, OperationVerb::Read),
    ("Replace", operation_type::REPLACE, OperationVerb::Replace),
    ("Delete", operation_type::DELETE, OperationVerb::Delete),
    ("Patch", operation_type::PATCH, OperationVerb::Patch),
];

impl OperationVerb {
    fn named(name: &str) -> Option<OperationVerb> {
        VERBS.iter().find(|(word, _, _)| *word == name).map(|(_, _, verb)| *verb)
    }

    fn numbered(number: i32) -> Option<OperationVerb> {
        VERBS.iter().find(|(_, known, _)| *known == number).map(|(_, _, verb)| *verb)
    }
}

impl Wording<'_> {
    fn lacks(what: &str) -> WireError {
        WireError::bad_request(format!("An operation has no '{what}'."))
    }

    fn unknown(verb: &str) -> WireError {
        WireError::bad_request(format!("'{verb}' is not an operation of a batch."))
    }

    fn parse(self, all_minimal: bool) -> Result<Parsed, WireError> {
        let key = self
            .key
            .as_deref()
            .map(|key| PartitionKey::parse_json(key).map_err(WireError::key))
            .transpose()?;
        let minimal = self.minimal || all_minimal;
        Ok(Parsed { key, minimal, operation: self.operation()? })
    }

    /// The operation, or what is wrong with it alone.
    fn operation(self) -> Result<Result<ItemOperation, WireError>, WireError> {
        let Wording { verb, id, body, if_match, if_none_match, .. } = self;
        let id = || id.as_deref().map(parse_id).ok_or_else(|| Wording::lacks("id"));
        let body = || body.map(parse_body).ok_or_else(|| Wording::lacks("resourceBody"));
        let etag = |value: Option<Cow<'_, str>>| value.map(|value| EtagMatch(value.into_owned()));
        let if_match = etag(if_match);
        Ok(match verb {
            OperationVerb::Create => body()?.map(|body| ItemOperation::Create { body }),
            OperationVerb::Upsert => body()?.map(|body| ItemOperation::Upsert { body, if_match }),
            OperationVerb::Read => {
                let if_none_match = etag(if_none_match);
                id()?.map(|id| ItemOperation::Read { id, if_none_match })
            }
            OperationVerb::Delete => id()?.map(|id| ItemOperation::Delete { id, if_match }),
            OperationVerb::Replace => {
                both(id()?, body()?).map(|(id, body)| ItemOperation::Replace { id, body, if_match })
            }
            OperationVerb::Patch => {
                both(id()?, body()?).map(|(id, body)| ItemOperation::Patch { id, body, if_match })
            }
        })
    }
}

fn both<A, B, E>(first: Result<A, E>, second: Result<B, E>) -> Result<(A, B), E> {
    Ok((first?, second?))
}

fn parse_id(id: &str) -> Result<ItemId, WireError> {
    ItemId::parse(id).map_err(|error| WireError::bad_request(error.to_string()))
}

/// An item may be in binary JSON, as it may where it is written alone.
fn parse_body(body: Bytes) -> Result<Bytes, WireError> {
    if binary_json::is_binary(&body) {
        return Ok(Bytes::from(binary_json::decode(&body)?));
    }
    Ok(body)
}

/// One operation with all it needs. It may still be wrong: in a transaction that fails the
/// whole batch, in a bulk request only the operation.
#[derive(Debug)]
struct Parsed {
    operation: Result<ItemOperation, WireError>,
    key: Option<PartitionKey>,
    minimal: bool,
}

/// What came of one operation.
#[derive(Debug)]
struct Outcome {
    status: StatusCode,
    charge: Charge,
    etag: Option<Etag>,
    body: Option<Bytes>,
    error: Option<WireError>,
}

impl Outcome {
    fn done(result: ItemResult, minimal: bool, bare: bool) -> Outcome {
        let wrote = matches!(result.kind, EffectKind::Created | EffectKind::Replaced);
        let text = result.text.filter(|_| !(minimal && wrote));
        let body = text.zip(result.stamp.as_ref());
        Outcome {
            status: status_of(result.kind),
            charge: result.charge,
            body: body.map(|(text, stamp)| shown(text, stamp, bare)),
            etag: result.stamp.map(|stamp| stamp.etag),
            error: None,
        }
    }

    fn refused(error: WireError, charge: Charge) -> Outcome {
        Outcome { status: error.status, charge, etag: None, body: None, error: Some(error) }
    }
}

/// The operations of one request.
#[derive(Debug)]
pub struct BatchRequest {
    form: Form,
    parsed: Vec<Parsed>,
}

/// What their answer has to look like.
#[derive(Debug)]
pub struct BatchShape {
    form: Form,
    /// By operation: whether its client does not want to see what it wrote.
    minimal: Vec<bool>,
}

/// The answer to all of them.
#[derive(Debug)]
pub struct BatchAnswer {
    pub status: StatusCode,
    pub body: Bytes,
    /// Otherwise it is JSON.
    pub is_binary: bool,
}

impl BatchRequest {
    /// Reads a body in either form. With `minimal` no operation shows what it wrote.
    ///
    /// # Errors
    /// It is malformed.
    pub fn read(
        body: &Bytes,
        minimal: bool,
        operations_max: usize,
    ) -> Result<BatchRequest, WireError> {
        let form = Form::of(body);
        let body = form.check(body)?;
        // One more than allowed is enough to see that there are too many.
        let worded = form.read(&body, operations_max.saturating_add(1))?;
        let parsed = worded.into_iter().map(|wording| wording.parse(minimal));
        let parsed = parsed.collect::<Result<Vec<Parsed>, WireError>>()?;
        Ok(BatchRequest { form, parsed })
    }

    fn shape(&self) -> BatchShape {
        let minimal = self.parsed.iter().map(|parsed| parsed.minimal).collect();
        BatchShape { form: self.form, minimal }
    }

    /// For a transactional batch.
    ///
    /// # Errors
    /// One of the operations is wrong.
    pub fn atomic(self) -> Result<(Vec<ItemOperation>, BatchShape), WireError> {
        let shape = self.shape();
        let operations = self.parsed.into_iter().map(|parsed| parsed.operation);
        Ok((operations.collect::<Result<Vec<_>, WireError>>()?, shape))
    }

    /// For a bulk request, where an operation that is wrong fails alone.
    ///
    /// # Errors
    /// One of the operations has no key.
    pub fn bulk(self) -> Result<(Vec<BulkOperation>, BatchShape), WireError> {
        let shape = self.shape();
        let keyed = |Parsed { key, operation, .. }: Parsed| {
            let key =
                key.ok_or_else(|| WireError::bad_request("An operation has no partitionKey."))?;
            let unreadable = |error: WireError| ItemOperation::Unreadable { why: error.message };
            Ok(BulkOperation { key, operation: operation.unwrap_or_else(unreadable) })
        };
        let operations = self.parsed.into_iter().map(keyed);
        Ok((operations.collect::<Result<Vec<_>, WireError>>()?, shape))
    }
}

impl BatchShape {
    /// All of a transactional batch was done. With `bare`, items are shown without system
    /// properties.
    ///
    /// # Errors
    /// A result is too long for its form.
    pub fn done(self, results: Vec<ItemResult>, bare: bool) -> Result<BatchAnswer, WireError> {
        let done = results.into_iter().zip(&self.minimal);
        let outcomes: Vec<Outcome> =
            done.map(|(result, minimal)| Outcome::done(result, *minimal, bare)).collect();
        self.form.answer(StatusCode::OK, &outcomes)
    }

    /// None of a transactional batch was done, because of the operation at a position.
    ///
    /// # Errors
    /// A result is too long for its form.
    pub fn failed(
        self,
        at: usize,
        error: ServiceError,
        charge: Charge,
    ) -> Result<BatchAnswer, WireError> {
        let outcomes = failed(at, error, charge, self.minimal.len());
        self.form.answer(StatusCode::MULTI_STATUS, &outcomes)
    }

    /// Each operation of a bulk request was done or not.
    ///
    /// # Errors
    /// A result is too long for its form.
    pub fn each_done(self, results: Vec<BulkResult>, bare: bool) -> Result<BatchAnswer, WireError> {
        let all_done = results.iter().all(|bulk| bulk.result.is_ok());
        let each = results.into_iter().zip(&self.minimal);
        let outcomes: Vec<Outcome> = each
            .map(|(BulkResult { result, charge }, minimal)| match result {
                Ok(result) => Outcome::done(result, *minimal, bare),
                Err(error) => Outcome::refused(error.into(), charge),
            })
            .collect();
        let status = if all_done { StatusCode::OK } else { StatusCode::MULTI_STATUS };
        self.form.answer(status, &outcomes)
    }
}

/// For a bulk request the service does not say what is missing.
#[must_use]
pub fn plainly_missing(error: WireError) -> WireError {
    if error.status == StatusCode::NOT_FOUND { WireError { substatus: 0, ..error } } else { error }
}

/// The operation that failed carries its error and the charge, all others depended on it.
fn failed(at: usize, error: ServiceError, charge: Charge, count: usize) -> Vec<Outcome> {
    let error = WireError::from(error);
    let dependency = WireError::from(ServiceError::Dependency);
    let outcome = |position| {
        if position == at {
            Outcome::refused(error.clone(), charge)
        } else {
            Outcome::refused(dependency.clone(), Charge::ZERO)
        }
    };
    (0..count).map(outcome).collect()
}
