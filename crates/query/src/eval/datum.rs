//! Values while a query runs.

use std::borrow::Cow;
use std::rc::Rc;

use model::json::{JsonKind, Object, Raw, Value, write_string};

use crate::document::DocumentView;
use crate::error::QueryError;
use crate::number::Numeric;

/// A value of the language: JSON, or undefined.
///
/// A value of a document stays a view into its text until an operator looks inside; a
/// computed one shares its parts, so cloning is cheap.
#[derive(Clone, Debug)]
pub(crate) enum Datum<'a> {
    Undefined,
    Null,
    Bool(bool),
    /// Possibly NaN or infinite, which no document and no result can hold.
    Number(Numeric),
    String(Cow<'a, str>),
    /// Any JSON value as text.
    Json(Raw<'a>),
    /// A whole document with properties that are added to it.
    Document(DocumentView<'a>),
    Array(Rc<List<'a>>),
    Object(Rc<Record<'a>>),
}

/// A computed array; none of its elements is undefined.
#[derive(Debug)]
pub(crate) struct List<'a> {
    items: Vec<Datum<'a>>,
    weight: usize,
}

/// A computed object; none of its members is undefined.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    members: Vec<(Cow<'a, str>, Datum<'a>)>,
    weight: usize,
}

/// The types in their order: what ORDER BY puts first is least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Type {
    Undefined,
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl<'a> List<'a> {
    pub(crate) fn items(&self) -> &[Datum<'a>] {
        &self.items
    }
}

impl<'a> Record<'a> {
    pub(crate) fn members(&self) -> &[(Cow<'a, str>, Datum<'a>)] {
        &self.members
    }
}

impl<'a> Datum<'a> {
    /// What one value costs besides its text.
    pub(crate) const OVERHEAD: usize = 16;

    /// Bytes that can be read in the time that one value takes by itself.
    const VALUE_EFFORT: usize = 64;

    pub(crate) fn string(text: impl Into<Cow<'a, str>>) -> Datum<'a> {
        Datum::String(text.into())
    }

    pub(crate) fn number(number: impl Into<Numeric>) -> Datum<'a> {
        Datum::Number(number.into())
    }

    pub(crate) fn of_document(document: DocumentView<'a>) -> Datum<'a> {
        document.plain().map_or(Datum::Document(document), Datum::Json)
    }

    /// A count or position; all of them are far below 2^63.
    pub(crate) fn count(count: usize) -> Datum<'a> {
        Datum::number(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// An array of the defined items.
    pub(crate) fn array(items: impl IntoIterator<Item = Datum<'a>>) -> Datum<'a> {
        let items: Vec<_> = items.into_iter().filter(Datum::is_defined).collect();
        let weight =
            items.iter().fold(Self::OVERHEAD, |sum, item| sum.saturating_add(item.weight()));
        Datum::Array(Rc::new(List { items, weight }))
    }

    /// An object of the defined members, whose names must differ.
    pub(crate) fn object(
        members: impl IntoIterator<Item = (Cow<'a, str>, Datum<'a>)>,
    ) -> Datum<'a> {
        let members: Vec<_> = members.into_iter().filter(|(_, value)| value.is_defined()).collect();
        let weight = members.iter().fold(Self::OVERHEAD, |sum, (name, value)| {
            sum.saturating_add(name.len()).saturating_add(value.weight())
        });
        Datum::Object(Rc::new(Record { members, weight }))
    }

    pub(crate) fn type_of(&self) -> Type {
        match self {
            Datum::Undefined => Type::Undefined,
            Datum::Null => Type::Null,
            Datum::Bool(_) => Type::Bool,
            Datum::Number(_) => Type::Number,
            Datum::String(_) => Type::String,
            Datum::Array(_) => Type::Array,
            Datum::Object(_) | Datum::Document(_) => Type::Object,
            Datum::Json(raw) => match raw.kind() {
                JsonKind::Null => Type::Null,
                JsonKind::Bool => Type::Bool,
                JsonKind::Number => Type::Number,
                JsonKind::String => Type::String,
                JsonKind::Array => Type::Array,
                JsonKind::Object => Type::Object,
            },
        }
    }

    pub(crate) fn is_defined(&self) -> bool {
        !matches!(self, Datum::Undefined)
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        match self {
            Datum::Bool(truth) => Some(*truth),
            Datum::Json(raw) => raw.as_bool(),
            Datum::Undefined
            | Datum::Null
            | Datum::Number(_)
            | Datum::String(_)
            | Datum::Document(_)
            | Datum::Array(_)
            | Datum::Object(_) => None,
        }
    }

    /// The number with the digits of an integer, if it is a number.
    pub(crate) fn as_numeric(&self) -> Option<Numeric> {
        match self {
            Datum::Number(number) => Some(*number),
            Datum::Json(raw) if raw.kind() == JsonKind::Number => {
                Numeric::from_spelling(raw.text())
            }
            Datum::Json(_)
            | Datum::Undefined
            | Datum::Null
            | Datum::Bool(_)
            | Datum::String(_)
            | Datum::Document(_)
            | Datum::Array(_)
            | Datum::Object(_) => None,
        }
    }

    pub(crate) fn as_f64(&self) -> Option<f64> {
        self.as_numeric().map(Numeric::as_f64)
    }

    pub(crate) fn as_i64(&self) -> Option<i64> {
        self.as_numeric().and_then(Numeric::as_i64)
    }

    pub(crate) fn as_str(&self) -> Option<Cow<'_, str>> {
        match self {
            Datum::String(text) => Some(Cow::Borrowed(text)),
            Datum::Json(raw) => raw.as_str(),
            Datum::Undefined
            | Datum::Null
            | Datum::Bool(_)
            | Datum::Number(_)
            | Datum::Document(_)
            | Datum::Array(_)
            | Datum::Object(_) => None,
        }
    }

    /// The property of an object; undefined for other types.
    pub(crate) fn get(&self, name: &str) -> Datum<'a> {
        match self {
            Datum::Json(raw) => raw.get(name).map_or(Datum::Undefined, Datum::Json),
            Datum::Document(document) => document.get(name).map_or(Datum::Undefined, Datum::Json),
            Datum::Object(record) => {
                let found = record.members.iter().find(|(key, _)| key == name);
                found.map_or(Datum::Undefined, |(_, value)| value.clone())
            }
            Datum::Undefined
            | Datum::Null
            | Datum::Bool(_)
            | Datum::Number(_)
            | Datum::String(_)
            | Datum::Array(_) => Datum::Undefined,
        }
    }

    /// The element of an array; undefined for other types.
    pub(crate) fn at(&self, index: usize) -> Datum<'a> {
        match self {
            Datum::Json(raw) => raw.elements().nth(index).map_or(Datum::Undefined, Datum::Json),
            Datum::Array(list) => list.items.get(index).cloned().unwrap_or(Datum::Undefined),
            Datum::Undefined
            | Datum::Null
            | Datum::Bool(_)
            | Datum::Number(_)
            | Datum::String(_)
            | Datum::Document(_)
            | Datum::Object(_) => Datum::Undefined,
        }
    }

    /// The elements, if it is an array.
    pub(crate) fn elements(&self) -> Option<Vec<Datum<'a>>> {
        match self {
            Datum::Json(raw) if raw.kind() == JsonKind::Array => {
                Some(raw.elements().map(Datum::Json).collect())
            }
            Datum::Array(list) => Some(list.items.clone()),
            Datum::Json(_)
            | Datum::Document(_)
            | Datum::Undefined
            | Datum::Null
            | Datum::Bool(_)
            | Datum::Number(_)
            | Datum::String(_)
            | Datum::Object(_) => None,
        }
    }

    /// The members in written order, if it is an object.
    pub(crate) fn members(&self) -> Option<Vec<(Cow<'a, str>, Datum<'a>)>> {
        match self {
            Datum::Json(raw) if raw.kind() == JsonKind::Object => {
                Some(raw.members().map(|(name, value)| (name, Datum::Json(value))).collect())
            }
            Datum::Document(document) => {
                Some(document.members().map(|(name, value)| (name, Datum::Json(value))).collect())
            }
            Datum::Object(record) => Some(record.members.clone()),
            Datum::Json(_)
            | Datum::Undefined
            | Datum::Null
            | Datum::Bool(_)
            | Datum::Number(_)
            | Datum::String(_)
            | Datum::Array(_) => None,
        }
    }

    /// A value that no document and no query holds.
    pub(crate) fn owned(value: Value) -> Datum<'a> {
        match value {
            Value::Null => Datum::Null,
            Value::Bool(truth) => Datum::Bool(truth),
            Value::Number(number) => Datum::Number(number.into()),
            Value::String(text) => Datum::string(text),
            Value::Array(items) => Datum::array(items.into_iter().map(Datum::owned)),
            Value::Object(object) => {
                let own = |(name, value): (String, Value)| (name.into(), Datum::owned(value));
                Datum::object(object.into_iter().map(own))
            }
        }
    }

    /// The value, detached from the lifetime of its document.
    pub(crate) fn detached(&self) -> Datum<'static> {
        match self {
            Datum::Undefined => Datum::Undefined,
            Datum::Null => Datum::Null,
            Datum::Bool(truth) => Datum::Bool(*truth),
            Datum::Number(number) => Datum::Number(*number),
            Datum::String(text) => Datum::string(text.clone().into_owned()),
            Datum::Json(raw) => Datum::owned(raw.to_value()),
            Datum::Document(document) => Datum::owned(document.to_value()),
            Datum::Array(list) => Datum::array(list.items.iter().map(Datum::detached)),
            Datum::Object(record) => {
                let members = record.members.iter();
                let own = |(name, value): &(Cow<'a, str>, Datum<'a>)| {
                    (Cow::Owned(name.clone().into_owned()), value.detached())
                };
                Datum::object(members.map(own))
            }
        }
    }

    /// Approximate bytes of the value when it is serialised. Shared parts count each time
    /// they appear.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Datum::Undefined | Datum::Null | Datum::Bool(_) | Datum::Number(_) => Self::OVERHEAD,
            Datum::String(text) => Self::OVERHEAD + text.len(),
            Datum::Json(raw) => Self::OVERHEAD + raw.text().len(),
            Datum::Document(document) => Self::OVERHEAD + document.len(),
            Datum::Array(list) => list.weight,
            Datum::Object(record) => record.weight,
        }
    }

    /// Bytes that are read when all of the value is: those of a document count once more
    /// for every level around them, and each value takes some time besides.
    pub(crate) fn effort(&self) -> usize {
        match self {
            Datum::Undefined
            | Datum::Null
            | Datum::Bool(_)
            | Datum::Number(_)
            | Datum::String(_) => self.weight(),
            Datum::Json(raw) => match raw.kind() {
                JsonKind::Array | JsonKind::Object => Self::OVERHEAD + effort_of(raw.text()),
                JsonKind::Null | JsonKind::Bool | JsonKind::Number | JsonKind::String => {
                    self.weight()
                }
            },
            Datum::Document(document) => {
                document.parts().fold(Self::OVERHEAD, |sum, part| sum + effort_of(part.text()))
            }
            Datum::Array(list) => list.items.iter().fold(Self::VALUE_EFFORT, |sum, item| {
                sum.saturating_add(Self::VALUE_EFFORT).saturating_add(item.effort())
            }),
            Datum::Object(record) => {
                record.members.iter().fold(Self::VALUE_EFFORT, |sum, (name, value)| {
                    let own = Self::VALUE_EFFORT + name.len();
                    sum.saturating_add(own).saturating_add(value.effort())
                })
            }
        }
    }

    /// Approximate bytes of its own that the value takes once it is detached. The text of
    /// an array or object becomes a tree, which may be thirty times as large.
    pub(crate) fn footprint(&self) -> usize {
        match self {
            Datum::Undefined | Datum::Null | Datum::Bool(_) | Datum::Number(_) => 0,
            Datum::String(text) => ALLOCATION_BYTES + text.len(),
            Datum::Json(raw) => match raw.kind() {
                JsonKind::Null | JsonKind::Bool | JsonKind::Number => 0,
                JsonKind::String => ALLOCATION_BYTES + raw.text().len(),
                JsonKind::Array | JsonKind::Object => tree_bytes(raw.text()),
            },
            Datum::Document(document) => document.parts().map(|part| tree_bytes(part.text())).sum(),
            Datum::Array(list) => list.items.iter().fold(NODE_BYTES, |sum, item| {
                sum.saturating_add(size_of::<Datum<'_>>()).saturating_add(item.footprint())
            }),
            Datum::Object(record) => {
                record.members.iter().fold(NODE_BYTES, |sum, (name, value)| {
                    sum.saturating_add(MEMBER_BYTES + name.len()).saturating_add(value.footprint())
                })
            }
        }
    }

    /// Builds the tree; `None` for undefined.
    pub(crate) fn to_value(&self) -> Result<Option<Value>, QueryError> {
        self.built().map_err(|NotFinite| QueryError::NotFinite)
    }

    /// Writes the value as JSON; `None` for undefined. A value of a document is copied as
    /// it stands there.
    pub(crate) fn to_text(&self) -> Result<Option<String>, QueryError> {
        if !self.is_defined() {
            return Ok(None);
        }
        let mut out = String::with_capacity(self.weight());
        self.write(&mut out).map_err(|NotFinite| QueryError::NotFinite)?;
        Ok(Some(out))
    }

    fn write(&self, out: &mut String) -> Result<(), NotFinite> {
        match self {
            // No part of an array or object is.
            Datum::Undefined => {}
            Datum::Null => out.push_str("null"),
            Datum::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
            Datum::Number(number) => {
                out.push_str(&number.to_number().ok_or(NotFinite)?.to_string());
            }
            Datum::String(text) => write_string(out, text),
            Datum::Json(raw) => out.push_str(raw.text()),
            Datum::Document(document) => document.write(out),
            Datum::Array(list) => {
                out.push('[');
                for (at, item) in list.items.iter().enumerate() {
                    separate(out, at);
                    item.write(out)?;
                }
                out.push(']');
            }
            Datum::Object(record) => {
                out.push('{');
                for (at, (name, value)) in record.members.iter().enumerate() {
                    separate(out, at);
                    write_string(out, name);
                    out.push(':');
                    value.write(out)?;
                }
                out.push('}');
            }
        }
        Ok(())
    }

    fn built(&self) -> Result<Option<Value>, NotFinite> {
        Ok(Some(match self {
            Datum::Undefined => return Ok(None),
            Datum::Null => Value::Null,
            Datum::Bool(truth) => Value::Bool(*truth),
            Datum::Number(number) => Value::Number(number.to_number().ok_or(NotFinite)?),
            Datum::String(text) => Value::String(text.clone().into_owned()),
            Datum::Json(raw) => raw.to_value(),
            Datum::Document(document) => document.to_value(),
            Datum::Array(list) => {
                let items = list.items.iter().filter_map(|item| item.built().transpose());
                Value::Array(items.collect::<Result<_, _>>()?)
            }
            Datum::Object(record) => {
                let members = record.members.iter().filter_map(|(name, value)| {
                    let value = value.built().transpose()?;
                    Some(value.map(|value| (name.clone().into_owned(), value)))
                });
                Value::Object(members.collect::<Result<Object, _>>()?)
            }
        }))
    }
}

/// The effort for the text of an array or object.
fn effort_of(text: &str) -> usize {
    let (mut sum, mut depth, mut quoted, mut escaped) = (0_usize, 0_usize, false, false);
    for byte in text.bytes() {
        sum = sum.saturating_add(depth);
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => sum = sum.saturating_add(Datum::VALUE_EFFORT),
            _ => {}
        }
    }
    sum
}

/// What an allocator adds to a few bytes, in the mean.
pub(crate) const ALLOCATION_BYTES: usize = 16;

/// An array or object without its parts.
const NODE_BYTES: usize = 64 + ALLOCATION_BYTES;

/// A member of an object without its texts.
const MEMBER_BYTES: usize = size_of::<(Cow<'_, str>, Datum<'_>)>() + ALLOCATION_BYTES;

/// The bytes of a text's tree: each comma and each bracket stands for a value. Where they
/// are inside strings, it is less.
fn tree_bytes(text: &str) -> usize {
    let values = text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    text.len().saturating_add(values.saturating_mul(MEMBER_BYTES))
}

fn separate(out: &mut String, at: usize) {
    if at > 0 {
        out.push(',');
    }
}

/// NaN or an infinity where JSON is to be written.
struct NotFinite;
