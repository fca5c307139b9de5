//! Partition keys: the paths a container declares, the values items have there, and how a
//! value becomes a position on the ring.
//!
//! Values come from two sources, the request header and the document, and the two must
//! agree; so both are parsed here into one type, [`PartitionKey`], which is equal exactly
//! when the service would take the values for the same key.

mod cut;
mod definition;
mod path;

use std::cmp::Ordering;
use std::fmt;

pub use definition::{DefinitionError, HashVersion, KeyKind, PartitionKeyDefinition};
pub use path::{KeyPath, KeyPathError};

use crate::epk::normalised;
use crate::json::{self, JsonKind, Number, Raw};
use crate::limits::{KEY_BYTES_MAX, KEY_LEVELS_MAX};

/// A key header may spell every byte of its strings as a six-character escape.
const JSON_BYTES_MAX: usize = KEY_LEVELS_MAX * (6 * KEY_BYTES_MAX + 8);

/// Characters of a refused value that an error message repeats.
const SHOWN_CHARS_MAX: usize = 128;

/// The value at one path of a partition key.
///
/// Equality and order are by meaning: the two zeros are one number. Numbers are
/// finite, because JSON has no others.
#[derive(Clone, Debug)]
pub enum KeyComponent {
    /// The item has no value at the path. Not the same key as null.
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    String(String),
}

impl KeyComponent {
    /// Reads a value of a document or a header.
    ///
    /// An object counts as no value: the official Python and Java clients send
    /// `{}` for a document with an object at the path, and the service accepts
    /// such documents. Arrays are refused, as the service does.
    fn from_raw(value: Raw<'_>) -> Result<KeyComponent, KeyError> {
        match value.kind() {
            JsonKind::Object => Ok(KeyComponent::Undefined),
            JsonKind::Null => Ok(KeyComponent::Null),
            JsonKind::Bool => Ok(KeyComponent::Bool(value.text() == "true")),
            JsonKind::Number => {
                number(value.as_number().ok_or_else(|| KeyError::invalid(value.text()))?)
            }
            JsonKind::String => string(value),
            JsonKind::Array => Err(KeyError::Unsupported { value: shown(value.text()) }),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            KeyComponent::Undefined => 0,
            KeyComponent::Null => 1,
            KeyComponent::Bool(_) => 2,
            KeyComponent::Number(_) => 3,
            KeyComponent::String(_) => 4,
        }
    }

    fn write(&self, out: &mut String) {
        match self {
            KeyComponent::Undefined => out.push_str("{}"),
            KeyComponent::Null => out.push_str("null"),
            KeyComponent::Bool(true) => out.push_str("true"),
            KeyComponent::Bool(false) => out.push_str("false"),
            KeyComponent::Number(number) => {
                let number = Number::from_f64(*number);
                out.push_str(&number.map_or("null".to_owned(), |number| number.to_string()));
            }
            KeyComponent::String(text) => json::write_string(out, text),
        }
    }
}

/// Keys are doubles. An integer that a double cannot hold would silently become its
/// neighbour's key; the service refuses it, and so do we, in header and document alike.
fn number(number: Number) -> Result<KeyComponent, KeyError> {
    match number.as_i64() {
        Some(integer) if !is_faithful(integer, number.as_f64()) => Err(KeyError::Precision),
        Some(_) | None => Ok(KeyComponent::Number(normalised(number.as_f64()))),
    }
}

/// Whether an integer means the double nearest to it: it is that double, or the
/// shortest digits that lead back to it, filled up with zeros, as JavaScript writes it.
fn is_faithful(integer: i64, value: f64) -> bool {
    /// From here on doubles skip integers.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    value.abs() < EXACT_MAX
        || Number::from_f64(value).and_then(Number::as_i64) == Some(integer)
        || integer.to_string() == format!("{value}")
}

fn string(value: Raw<'_>) -> Result<KeyComponent, KeyError> {
    let text = value.as_str().ok_or_else(|| KeyError::invalid(value.text()))?;
    if text.len() > KEY_BYTES_MAX {
        return Err(KeyError::TooLong { bytes: text.len() });
    }
    Ok(KeyComponent::String(text.into_owned()))
}

impl Ord for KeyComponent {
    fn cmp(&self, other: &KeyComponent) -> Ordering {
        match (self, other) {
            (KeyComponent::Bool(a), KeyComponent::Bool(b)) => a.cmp(b),
            (KeyComponent::Number(a), KeyComponent::Number(b)) => {
                normalised(*a).total_cmp(&normalised(*b))
            }
            (KeyComponent::String(a), KeyComponent::String(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for KeyComponent {
    fn partial_cmp(&self, other: &KeyComponent) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for KeyComponent {
    fn eq(&self, other: &KeyComponent) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for KeyComponent {}

impl From<&str> for KeyComponent {
    fn from(text: &str) -> KeyComponent {
        KeyComponent::String(text.to_owned())
    }
}

impl From<f64> for KeyComponent {
    fn from(number: f64) -> KeyComponent {
        KeyComponent::Number(normalised(number))
    }
}

impl From<bool> for KeyComponent {
    fn from(truth: bool) -> KeyComponent {
        KeyComponent::Bool(truth)
    }
}

/// The value of a partition key, complete or a hierarchical prefix; empty in
/// containers without a key.
///
/// Two different keys may still be one logical partition in a version 1
/// container, where only the start of long strings counts: compare EPKs there.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartitionKey(Vec<KeyComponent>);

impl PartitionKey {
    /// The key of items in containers without a partition key.
    pub const NONE: PartitionKey = PartitionKey(Vec::new());

    pub fn new(components: impl IntoIterator<Item = impl Into<KeyComponent>>) -> PartitionKey {
        PartitionKey(components.into_iter().map(Into::into).collect())
    }

    /// Reads what `Display` writes, which is what clients send: a JSON array of the values,
    /// where `{}` stands for undefined.
    pub fn parse_json(text: &str) -> Result<PartitionKey, KeyError> {
        if text.len() > JSON_BYTES_MAX {
            return Err(KeyError::TooLong { bytes: text.len() });
        }
        let canonical = json::canonical(text.as_bytes()).map_err(|_| KeyError::invalid(text))?;
        let values = Raw::trusted(&canonical);
        if values.kind() != JsonKind::Array {
            return Err(KeyError::invalid(text));
        }
        let given = values.elements().count();
        if given > KEY_LEVELS_MAX {
            return Err(KeyError::Mismatch { expected: KEY_LEVELS_MAX, given });
        }
        values.elements().map(|value| json_component(value, text)).collect()
    }

    #[must_use]
    pub fn components(&self) -> &[KeyComponent] {
        &self.0
    }

    /// Whether this is the empty key of containers without a partition key.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.0.is_empty()
    }
}

/// Unlike in documents, `{}` must be empty here, and an array makes the whole text invalid.
fn json_component(value: Raw<'_>, text: &str) -> Result<KeyComponent, KeyError> {
    let filled = value.kind() == JsonKind::Object && value.members().next().is_some();
    if filled || value.kind() == JsonKind::Array {
        return Err(KeyError::invalid(text));
    }
    KeyComponent::from_raw(value)
}

impl FromIterator<KeyComponent> for PartitionKey {
    fn from_iter<I: IntoIterator<Item = KeyComponent>>(components: I) -> PartitionKey {
        PartitionKey(components.into_iter().collect())
    }
}

/// As JSON; see [`PartitionKey::parse_json`].
impl fmt::Display for PartitionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::from("[");
        for (at, component) in self.0.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            component.write(&mut out);
        }
        out.push(']');
        f.write_str(&out)
    }
}

/// Why a partition key cannot be used. The caller has to send another one; the
/// texts are the service's where they are known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("Partition key {text} is invalid.")]
    Invalid { text: String },
    #[error(
        "Unsupported PartitionKey value component '{value}'. Numeric, string, bool, null, \
         Undefined are the only supported types."
    )]
    Unsupported { value: String },
    #[error(
        "The requested partition key is out of key range, possibly because of loss of precision \
         of partition key value."
    )]
    Precision,
    #[error(
        "Partition key value of {bytes} bytes is too long: at most {KEY_BYTES_MAX} are allowed."
    )]
    TooLong { bytes: usize },
    /// The number of components is not the definition's.
    #[error(
        "Partition key provided either doesn't correspond to definition in the collection or \
         doesn't match partition key field values specified in the document."
    )]
    Mismatch { expected: usize, given: usize },
}

impl KeyError {
    fn invalid(text: &str) -> KeyError {
        KeyError::Invalid { text: shown(text) }
    }
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
