//! Partial aggregates as plain data: the state of one run, for another to continue.
//!
//! A run over a part of the documents hands on its groups with the state of their
//! aggregates. Merged in the order of the parts they give the result of one run over all
//! documents, but for the digits that sums of fractions lose in another sequence.

use model::varint::{list, number, put_bytes, put_list, put_number, take, text};

use super::aggregate::AggregateKind;
use crate::eval::Datum;
use crate::number::Numeric;

/// Groups that are not finished.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartialGroups {
    pub(super) groups: Vec<PartialGroup>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct PartialGroup {
    pub(super) keys: Vec<Plain>,
    pub(super) aggregates: Vec<PartialAggregate>,
}

/// The state of one aggregate.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PartialAggregate {
    /// Of values, or of those that are true.
    Count(u64),
    /// No total once something that is no number was seen.
    Sum {
        total: Option<f64>,
        count: u64,
    },
    /// The least or greatest so far, `None` of no values.
    Extreme(Option<Plain>),
    /// An array or object was seen, which is not comparable with primitives.
    Spoilt,
    List(Vec<Plain>),
}

/// A value that belongs to no document and no thread.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Plain {
    Undefined,
    Null,
    Bool(bool),
    Integer(i64),
    Double(f64),
    String(String),
    Array(Vec<Plain>),
    Object(Vec<(String, Plain)>),
}

impl PartialGroups {
    /// The number of groups.
    #[must_use]
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Approximate size in bytes.
    #[must_use]
    pub fn footprint(&self) -> usize {
        let values = |group: &PartialGroup| -> usize {
            let keys: usize = group.keys.iter().map(Plain::footprint).sum();
            let aggregates: usize = group.aggregates.iter().map(PartialAggregate::footprint).sum();
            keys + aggregates + size_of::<PartialGroup>()
        };
        self.groups.iter().map(values).sum()
    }

    pub fn encode(&self, out: &mut Vec<u8>) {
        put_list(out, &self.groups, |out, group| {
            put_list(out, &group.keys, Plain::put);
            put_list(out, &group.aggregates, PartialAggregate::put);
        });
    }

    pub fn decode(input: &mut &[u8]) -> Option<PartialGroups> {
        let groups = list(input, |input| {
            let keys = list(input, Plain::take)?;
            Some(PartialGroup { keys, aggregates: list(input, PartialAggregate::take)? })
        })?;
        Some(PartialGroups { groups })
    }
}

impl PartialAggregate {
    /// Whether it can be the state of an aggregate of that kind.
    pub(super) fn is_of(&self, kind: AggregateKind) -> bool {
        match kind {
            AggregateKind::Count | AggregateKind::CountIf => {
                matches!(self, PartialAggregate::Count(_))
            }
            AggregateKind::Sum | AggregateKind::Average => {
                matches!(self, PartialAggregate::Sum { .. })
            }
            AggregateKind::Min | AggregateKind::Max => {
                matches!(self, PartialAggregate::Extreme(_) | PartialAggregate::Spoilt)
            }
            AggregateKind::MakeList | AggregateKind::MakeSet => {
                matches!(self, PartialAggregate::List(_))
            }
        }
    }

    fn footprint(&self) -> usize {
        let values = match self {
            PartialAggregate::Count(_)
            | PartialAggregate::Sum { .. }
            | PartialAggregate::Spoilt
            | PartialAggregate::Extreme(None) => 0,
            PartialAggregate::Extreme(Some(value)) => value.footprint(),
            PartialAggregate::List(values) => values.iter().map(Plain::footprint).sum(),
        };
        values + size_of::<PartialAggregate>()
    }

    fn put(out: &mut Vec<u8>, own: &PartialAggregate) {
        match own {
            PartialAggregate::Count(count) => {
                out.push(0);
                put_number(out, *count);
            }
            PartialAggregate::Sum { total, count } => {
                out.push(if total.is_some() { 1 } else { 2 });
                out.extend(total.unwrap_or_default().to_be_bytes());
                put_number(out, *count);
            }
            PartialAggregate::Extreme(None) => out.push(3),
            PartialAggregate::Extreme(Some(value)) => {
                out.push(4);
                Plain::put(out, value);
            }
            PartialAggregate::Spoilt => out.push(5),
            PartialAggregate::List(values) => {
                out.push(6);
                put_list(out, values, Plain::put);
            }
        }
    }

    fn take(input: &mut &[u8]) -> Option<PartialAggregate> {
        Some(match take(input)? {
            0 => PartialAggregate::Count(number(input)?),
            tag @ (1 | 2) => {
                let total = Some(f64::from_be_bytes(eight(input)?)).filter(|_| tag == 1);
                PartialAggregate::Sum { total, count: number(input)? }
            }
            3 => PartialAggregate::Extreme(None),
            4 => PartialAggregate::Extreme(Some(Plain::take(input)?)),
            5 => PartialAggregate::Spoilt,
            6 => PartialAggregate::List(list(input, Plain::take)?),
            _ => return None,
        })
    }
}

impl Plain {
    fn footprint(&self) -> usize {
        let inside = match self {
            Plain::Undefined
            | Plain::Null
            | Plain::Bool(_)
            | Plain::Integer(_)
            | Plain::Double(_) => 0,
            Plain::String(text) => text.len(),
            Plain::Array(items) => items.iter().map(Plain::footprint).sum(),
            Plain::Object(members) => {
                members.iter().map(|(name, value)| name.len() + value.footprint()).sum()
            }
        };
        inside + size_of::<Plain>()
    }

    pub(super) fn of(datum: &Datum<'static>) -> Plain {
        match datum {
            Datum::Undefined => Plain::Undefined,
            Datum::Null => Plain::Null,
            Datum::Bool(truth) => Plain::Bool(*truth),
            Datum::Number(Numeric::Integer(integer)) => Plain::Integer(*integer),
            Datum::Number(Numeric::Double(double)) => Plain::Double(*double),
            Datum::String(text) => Plain::String(text.clone().into_owned()),
            Datum::Json(raw) => Plain::of(&Datum::owned(raw.to_value())),
            Datum::Document(document) => Plain::of(&Datum::owned(document.to_value())),
            Datum::Array(list) => Plain::Array(list.items().iter().map(Plain::of).collect()),
            Datum::Object(record) => {
                let members = record.members().iter();
                let own = |(name, value): &(std::borrow::Cow<'static, str>, Datum<'static>)| {
                    (name.clone().into_owned(), Plain::of(value))
                };
                Plain::Object(members.map(own).collect())
            }
        }
    }

    pub(super) fn into_datum(self) -> Datum<'static> {
        match self {
            Plain::Undefined => Datum::Undefined,
            Plain::Null => Datum::Null,
            Plain::Bool(truth) => Datum::Bool(truth),
            Plain::Integer(integer) => Datum::Number(Numeric::Integer(integer)),
            Plain::Double(double) => Datum::Number(Numeric::Double(double)),
            Plain::String(text) => Datum::string(text),
            Plain::Array(items) => Datum::array(items.into_iter().map(Plain::into_datum)),
            Plain::Object(members) => {
                let own = |(name, value): (String, Plain)| (name.into(), value.into_datum());
                Datum::object(members.into_iter().map(own))
            }
        }
    }

    fn put(out: &mut Vec<u8>, own: &Plain) {
        match own {
            Plain::Undefined => out.push(0),
            Plain::Null => out.push(1),
            Plain::Bool(truth) => out.push(if *truth { 3 } else { 2 }),
            Plain::Integer(integer) => {
                out.push(4);
                out.extend(integer.to_be_bytes());
            }
            Plain::Double(double) => {
                out.push(5);
                out.extend(double.to_be_bytes());
            }
            Plain::String(text) => {
                out.push(6);
                put_bytes(out, text.as_bytes());
            }
            Plain::Array(items) => {
                out.push(7);
                put_list(out, items, Plain::put);
            }
            Plain::Object(members) => {
                out.push(8);
                put_list(out, members, |out, (name, value)| {
                    put_bytes(out, name.as_bytes());
                    Plain::put(out, value);
                });
            }
        }
    }

    fn take(input: &mut &[u8]) -> Option<Plain> {
        Some(match take(input)? {
            0 => Plain::Undefined,
            1 => Plain::Null,
            tag @ (2 | 3) => Plain::Bool(tag == 3),
            4 => Plain::Integer(i64::from_be_bytes(eight(input)?)),
            5 => Plain::Double(f64::from_be_bytes(eight(input)?)),
            6 => Plain::String(text(input)?),
            7 => Plain::Array(list(input, Plain::take)?),
            8 => Plain::Object(list(input, |input| Some((text(input)?, Plain::take(input)?)))?),
            _ => return None,
        })
    }
}

fn eight(input: &mut &[u8]) -> Option<[u8; 8]> {
    let (bytes, rest) = input.split_first_chunk::<8>()?;
    *input = rest;
    Some(*bytes)
}
