//! Values of types that JSON does not have: dates, ObjectIds, binary data, GUIDs, timestamps
//! and the different kinds of numbers, as MongoDB and Table clients use them.
//!
//! In the text of an item such a value is an object, `{"$t":code,"$v":value}`, and to the
//! query language and its index it is never more than that. Only the protocols that have
//! these types read more into it. The forms are specified in `docs/formats/values.md`, and
//! `docs/design/typed-values.md` says why. [`Typed::order`] is the order that MongoDB gives
//! values of different types.

mod date;
mod decimal;
mod number;

use std::cmp::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub use date::Date;
pub use decimal::Decimal;
pub use number::{BeyondDouble, ExactNumber, TypedNumber};

use crate::hex::{self, Lower};
use crate::json::{Number, Object, Value};

/// The members of the object that a typed value is in texts.
const TYPE: &str = "$t";
const VALUE: &str = "$v";

/// Codes of types: those of BSON, which are also those of Table entities, and the GUID.
mod code {
    pub(super) const GUID: i64 = 0;
    pub(super) const DOUBLE: i64 = 1;
    pub(super) const STRING: i64 = 2;
    pub(super) const BINARY: i64 = 5;
    pub(super) const OBJECT_ID: i64 = 7;
    pub(super) const BOOL: i64 = 8;
    pub(super) const DATE: i64 = 9;
    pub(super) const INT32: i64 = 16;
    pub(super) const TIMESTAMP: i64 = 17;
    pub(super) const INT64: i64 = 18;
    pub(super) const DECIMAL: i64 = 19;
    pub(super) const MIN_KEY: i64 = -1;
    pub(super) const MAX_KEY: i64 = 127;
}

/// Digits of a GUID before each hyphen.
const GUID_HYPHENS: [usize; 4] = [8, 12, 16, 20];
/// Subtype of binary data that no prefix names.
const GENERIC: u8 = 0;

/// A value with a type of its own, or one that is plain JSON, but no array or object.
#[derive(Clone, Debug, PartialEq)]
pub enum Typed {
    /// Below everything.
    MinKey,
    Null,
    Number(TypedNumber),
    String(String),
    Binary {
        subtype: u8,
        bytes: Vec<u8>,
    },
    Guid([u8; 16]),
    ObjectId([u8; 12]),
    Bool(bool),
    Date(Date),
    /// MongoDB's own timestamps.
    Timestamp {
        seconds: u32,
        increment: u32,
    },
    /// Above everything.
    MaxKey,
}

impl Typed {
    /// What a value of an item's text means to a protocol with types. `None` for arrays and
    /// for objects, also those that only resemble a typed value.
    #[must_use]
    pub fn read(value: &Value) -> Option<Typed> {
        match value {
            Value::Null => Some(Typed::Null),
            Value::Bool(truth) => Some(Typed::Bool(*truth)),
            Value::Number(number) => Some(Typed::Number(TypedNumber::plain(*number))),
            Value::String(text) => Some(Typed::String(text.clone())),
            Value::Array(_) => None,
            Value::Object(object) => Typed::read_object(object),
        }
    }

    fn read_object(object: &Object) -> Option<Typed> {
        let (code, value) = (object.get(TYPE)?.as_number()?.as_i64()?, object.get(VALUE)?);
        if object.len() != 2 {
            return None;
        }
        let number = match code {
            code::DOUBLE => Some(TypedNumber::Double(read_double(value)?)),
            code::INT32 => Some(TypedNumber::Int32(read_integer(value)?)),
            code::INT64 => Some(TypedNumber::Int64(read_integer(value)?)),
            code::DECIMAL => Some(TypedNumber::Decimal(Decimal::parse(value.as_str()?)?)),
            _ => None,
        };
        if let Some(number) = number {
            return Some(Typed::Number(number));
        }
        Some(match code {
            code::GUID => Typed::Guid(read_guid(value.as_str()?)?),
            code::STRING => Typed::String(value.as_str()?.to_owned()),
            code::BINARY => read_binary(value.as_str()?)?,
            code::OBJECT_ID => Typed::ObjectId(hex::decode(value.as_str()?)?.try_into().ok()?),
            code::BOOL => Typed::Bool(value.as_bool()?),
            code::DATE => Typed::Date(Date::read(value)?),
            code::TIMESTAMP => {
                let [seconds, increment] = value.as_array()? else { return None };
                let (seconds, increment) = (read_integer(seconds)?, read_integer(increment)?);
                Typed::Timestamp { seconds, increment }
            }
            code::MIN_KEY if value.is_null() => Typed::MinKey,
            code::MAX_KEY if value.is_null() => Typed::MaxKey,
            _ => return None,
        })
    }

    /// The value as plain JSON where that reads back as the same type, and otherwise with
    /// its type.
    #[must_use]
    pub fn to_value(&self) -> Value {
        self.plain().unwrap_or_else(|| self.to_typed_value())
    }

    fn plain(&self) -> Option<Value> {
        let plain = match self {
            Typed::Null => Value::Null,
            Typed::Bool(truth) => Value::Bool(*truth),
            Typed::String(text) => Value::String(text.clone()),
            Typed::Number(number) => Value::Number(number.to_plain()?),
            Typed::MinKey
            | Typed::Binary { .. }
            | Typed::Guid(_)
            | Typed::ObjectId(_)
            | Typed::Date(_)
            | Typed::Timestamp { .. }
            | Typed::MaxKey => return None,
        };
        Some(plain)
    }

    /// The value with its type, as Table entities have all of their properties. Null, which
    /// no entity has, stays what it is.
    #[must_use]
    pub fn to_typed_value(&self) -> Value {
        let (code, value) = match self {
            Typed::Null => return Value::Null,
            Typed::MinKey => (code::MIN_KEY, Value::Null),
            Typed::MaxKey => (code::MAX_KEY, Value::Null),
            Typed::Number(number) => match number {
                TypedNumber::Int32(own) => (code::INT32, i64::from(*own).into()),
                TypedNumber::Int64(own) => (code::INT64, (*own).into()),
                TypedNumber::Double(own) => (code::DOUBLE, double_value(*own)),
                TypedNumber::Decimal(own) => (code::DECIMAL, own.to_string().into()),
            },
            Typed::String(text) => (code::STRING, text.clone().into()),
            Typed::Binary { subtype, bytes } => (code::BINARY, binary_text(*subtype, bytes).into()),
            Typed::Guid(bytes) => (code::GUID, guid_text(bytes).into()),
            Typed::ObjectId(bytes) => (code::OBJECT_ID, Lower(bytes).to_string().into()),
            Typed::Bool(truth) => (code::BOOL, Value::Bool(*truth)),
            Typed::Date(date) => (code::DATE, date.to_value()),
            Typed::Timestamp { seconds, increment } => {
                let parts = [*seconds, *increment].map(Value::from);
                (code::TIMESTAMP, Value::Array(parts.to_vec()))
            }
        };
        Object::from_iter([(TYPE, Value::from(code)), (VALUE, value)]).into()
    }

    /// The order of values of all types. Numbers compare by their exact values, whatever
    /// their types.
    #[must_use]
    pub fn order(&self, other: &Typed) -> Ordering {
        match (self, other) {
            (Typed::Number(a), Typed::Number(b)) => a.exact().cmp(&b.exact()),
            (Typed::String(a), Typed::String(b)) => a.cmp(b),
            (
                Typed::Binary { subtype: a, bytes: first },
                Typed::Binary { subtype: b, bytes: second },
            ) => (first.len(), a, first).cmp(&(second.len(), b, second)),
            (Typed::Guid(a), Typed::Guid(b)) => a.cmp(b),
            (Typed::ObjectId(a), Typed::ObjectId(b)) => a.cmp(b),
            (Typed::Bool(a), Typed::Bool(b)) => a.cmp(b),
            (Typed::Date(a), Typed::Date(b)) => a.cmp(b),
            (
                Typed::Timestamp { seconds: a, increment: first },
                Typed::Timestamp { seconds: b, increment: second },
            ) => (a, first).cmp(&(b, second)),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// The place of its type among the types.
    fn rank(&self) -> u8 {
        match self {
            Typed::MinKey => 0,
            Typed::Null => 1,
            Typed::Number(_) => 2,
            Typed::String(_) => 3,
            Typed::Binary { .. } => 4,
            Typed::Guid(_) => 5,
            Typed::ObjectId(_) => 6,
            Typed::Bool(_) => 7,
            Typed::Date(_) => 8,
            Typed::Timestamp { .. } => 9,
            Typed::MaxKey => 10,
        }
    }
}

fn read_integer<T: TryFrom<i64>>(value: &Value) -> Option<T> {
    T::try_from(value.as_number()?.as_i64()?).ok()
}

/// Doubles that JSON has no number for are texts.
fn read_double(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => Some(number.as_f64()),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            "-0" => Some(-0.0),
            _ => None,
        },
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn double_value(double: f64) -> Value {
    match Number::from_f64(double) {
        Some(_) if double == 0.0 && double.is_sign_negative() => "-0".into(),
        Some(number) => Value::Number(number),
        None if double.is_nan() => "NaN".into(),
        None => if double > 0.0 { "Infinity" } else { "-Infinity" }.into(),
    }
}

fn read_guid(text: &str) -> Option<[u8; 16]> {
    let bytes: [u8; 16] = hex::decode(&text.replace('-', ""))?.try_into().ok()?;
    guid_text(&bytes).eq_ignore_ascii_case(text).then_some(bytes)
}

fn guid_text(bytes: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, digit) in Lower(bytes).to_string().chars().enumerate() {
        text.extend(GUID_HYPHENS.contains(&at).then_some('-'));
        text.push(digit);
    }
    text
}

fn read_binary(text: &str) -> Option<Typed> {
    let (subtype, data) = match text.split_once(':') {
        Some((subtype, data)) => (*hex::decode(subtype)?.first_chunk::<1>()?, data),
        None => ([GENERIC], text),
    };
    let ([subtype], bytes) = (subtype, STANDARD.decode(data).ok()?);
    // Of several texts for the same bytes one is read.
    (binary_text(subtype, &bytes) == text).then_some(Typed::Binary { subtype, bytes })
}

fn binary_text(subtype: u8, bytes: &[u8]) -> String {
    let data = STANDARD.encode(bytes);
    if subtype == GENERIC { data } else { format!("{subtype:02x}:{data}") }
}

#[cfg(test)]
mod tests;
