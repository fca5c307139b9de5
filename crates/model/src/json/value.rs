//! The tree form of JSON, for code that edits or computes.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use super::{Number, write_string};

/// Properties up to which a repeated name is found by comparing all pairs.
const LINEAR_NAMES_MAX: usize = 12;

/// A JSON value. Equality is by meaning (numbers equal as doubles, objects equal in any
/// order of properties); the derived order between types is the service's:
/// null, booleans, numbers, strings, arrays, objects.
#[derive(Clone, Debug)]
pub enum Value {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Value>),
    Object(Object),
}

/// The properties of an object, in the order they were written.
///
/// A vector, not a map: documents have few properties per object, and their
/// order is part of what the client gets back.
#[derive(Clone, Debug, Default)]
pub struct Object {
    members: Vec<(String, Value)>,
}

impl Object {
    #[must_use]
    pub fn new() -> Object {
        Object::default()
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.members.iter_mut().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Sets a property in place, or appends it.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        let (name, value) = (name.into(), value.into());
        match self.get_mut(&name) {
            Some(slot) => *slot = value,
            None => self.members.push((name, value)),
        }
    }

    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.members.iter().position(|(key, _)| key == name)?;
        Some(self.members.remove(at).1)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &Value)> {
        self.members.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Appends without looking for an earlier property of that name.
    pub(super) fn push_unchecked(&mut self, name: String, value: Value) {
        self.members.push((name, value));
    }

    fn sorted(&self) -> Vec<(&str, &Value)> {
        let mut members: Vec<_> = self.iter().collect();
        members.sort_by_key(|(key, _)| *key);
        members
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Object {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Object {
        let mut object = Object::new();
        let mut places = BTreeMap::new();
        for (name, value) in members {
            let (name, value) = (name.into(), value.into());
            // Searching each name among all earlier ones takes long if there are many.
            if object.len() < LINEAR_NAMES_MAX {
                object.insert(name, value);
                continue;
            }
            if places.is_empty() {
                places
                    .extend(object.iter().enumerate().map(|(at, (name, _))| (name.to_owned(), at)));
            }
            match places.entry(name) {
                Entry::Occupied(place) => {
                    if let Some((_, slot)) = object.members.get_mut(*place.get()) {
                        *slot = value;
                    }
                }
                Entry::Vacant(place) => {
                    let name = place.key().clone();
                    place.insert(object.len());
                    object.push_unchecked(name, value);
                }
            }
        }
        object
    }
}

impl IntoIterator for Object {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

impl Value {
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.as_object()?.get(name)
    }

    #[must_use]
    pub fn as_object(&self) -> Option<&Object> {
        if let Value::Object(object) = self { Some(object) } else { None }
    }

    #[must_use]
    pub fn as_array(&self) -> Option<&[Value]> {
        if let Value::Array(items) = self { Some(items) } else { None }
    }

    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        if let Value::String(text) = self { Some(text) } else { None }
    }

    #[must_use]
    pub fn as_number(&self) -> Option<Number> {
        if let Value::Number(number) = self { Some(*number) } else { None }
    }

    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Value::Bool(truth) = self { Some(*truth) } else { None }
    }

    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The name of the type, for messages.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        }
    }

    /// Appends the compact text of the value.
    pub fn write(&self, out: &mut String) {
        match self {
            Value::Null => out.push_str("null"),
            Value::Bool(true) => out.push_str("true"),
            Value::Bool(false) => out.push_str("false"),
            Value::Number(number) => out.push_str(&number.to_string()),
            Value::String(text) => write_string(out, text),
            Value::Array(items) => {
                write_list(out, ('[', ']'), items, |out, item| item.write(out));
            }
            Value::Object(object) => {
                write_list(out, ('{', '}'), &object.members, |out, (name, value)| {
                    write_string(out, name);
                    out.push(':');
                    value.write(out);
                })
            }
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Bool(false) => 1,
            Value::Bool(true) => 2,
            Value::Number(_) => 3,
            Value::String(_) => 4,
            Value::Array(_) => 5,
            Value::Object(_) => 6,
        }
    }
}

fn write_list<T>(
    out: &mut String,
    (open, close): (char, char),
    items: &[T],
    write: impl Fn(&mut String, &T),
) {
    out.push(open);
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(close);
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Value {}

impl PartialOrd for Value {
    fn partial_cmp(&self, other: &Value) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Value {
    fn cmp(&self, other: &Value) -> Ordering {
        match (self, other) {
            (Value::Number(a), Value::Number(b)) => a.cmp(b),
            // UTF-8 bytes order as code points do, which is the order of the index.
            (Value::String(a), Value::String(b)) => a.cmp(b),
            (Value::Array(a), Value::Array(b)) => a.cmp(b),
            (Value::Object(a), Value::Object(b)) => a.sorted().cmp(&b.sorted()),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = String::new();
        self.write(&mut out);
        f.write_str(&out)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Value {
        Value::Bool(truth)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Number(number.into())
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Value {
        Value::Number(number.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::String(text)
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Value {
        Value::Object(object)
    }
}

impl<V: Into<Value>> From<Vec<V>> for Value {
    fn from(items: Vec<V>) -> Value {
        Value::Array(items.into_iter().map(Into::into).collect())
    }
}

impl<V: Into<Value>> FromIterator<V> for Value {
    fn from_iter<I: IntoIterator<Item = V>>(items: I) -> Value {
        Value::Array(items.into_iter().map(Into::into).collect())
    }
}
