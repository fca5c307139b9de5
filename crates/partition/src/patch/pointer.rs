//! Paths inside a document, and their targets.

use std::fmt;

use model::json::{Object, Value};

/// Levels in a path; documents are no deeper.
const SEGMENTS_MAX: usize = model::json::DEPTH_MAX;

/// A path such as `/a/b/0`, with `~1` for a slash and `~0` for a tilde in names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pointer {
    text: String,
    /// All segments but the last.
    parents: Vec<String>,
    last: String,
}

/// The target of a path: its parent exists, the target itself may not.
#[derive(Debug)]
pub(super) enum Target<'a> {
    Member {
        object: &'a mut Object,
        name: &'a str,
    },
    Element {
        array: &'a mut Vec<Value>,
        index: usize,
    },
    /// After the last element, written `-`.
    End {
        array: &'a mut Vec<Value>,
    },
}

/// Why a path has no target in a document.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// The parent of the target does not exist.
    NoParent {
        segment: String,
    },
    Other(String),
}

impl From<String> for Obstacle {
    fn from(problem: String) -> Obstacle {
        Obstacle::Other(problem)
    }
}

impl Pointer {
    pub(super) fn parse(text: &str) -> Result<Pointer, String> {
        let segments =
            text.strip_prefix('/').ok_or_else(|| format!("path '{text}' must start with '/'"))?;
        let mut parents: Vec<String> = segments.split('/').map(unescape).collect();
        let last = parents.pop().unwrap_or_default();
        if last.is_empty() || parents.iter().any(String::is_empty) {
            return Err(format!("path '{text}' has an empty segment"));
        }
        if parents.len() >= SEGMENTS_MAX {
            return Err(format!("path has more than {SEGMENTS_MAX} segments"));
        }
        Ok(Pointer { text: text.to_owned(), parents, last })
    }

    pub(super) fn first(&self) -> &str {
        self.parents.first().unwrap_or(&self.last)
    }

    /// Whether this path lies below `other`.
    pub(super) fn is_inside(&self, other: &Pointer) -> bool {
        let mut segments = self.segments();
        other.segments().all(|theirs| segments.next() == Some(theirs)) && segments.next().is_some()
    }

    /// Whether this path is, contains, or lies inside the property at `names`.
    pub(super) fn touches(&self, names: &[String]) -> bool {
        self.segments().zip(names).all(|(ours, theirs)| ours == theirs)
    }

    /// Finds the target, or reports which part of the path is missing.
    pub(super) fn target<'a>(&'a self, document: &'a mut Value) -> Result<Target<'a>, Obstacle> {
        let mut node = document;
        for segment in &self.parents {
            let missing = || Obstacle::NoParent { segment: segment.clone() };
            node = child(node, segment).ok_or_else(missing)?;
        }
        let kind = node.type_name();
        match node {
            Value::Object(object) => Ok(Target::Member { object, name: &self.last }),
            Value::Array(array) => self.element(array),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Err(format!("path '{self}': its parent is {kind}").into())
            }
        }
    }

    fn element<'a>(&self, array: &'a mut Vec<Value>) -> Result<Target<'a>, Obstacle> {
        if self.last == "-" {
            return Ok(Target::End { array });
        }
        match parse_index(&self.last).filter(|index| *index <= array.len()) {
            Some(index) => Ok(Target::Element { array, index }),
            None => {
                Err(format!("path '{self}': '{}' is not an index of the array", self.last).into())
            }
        }
    }

    pub(super) fn existing<'a>(
        &'a self,
        document: &'a mut Value,
    ) -> Result<&'a mut Value, Obstacle> {
        let missing = || Obstacle::from(format!("there is nothing at path '{self}'"));
        match self.target(document)? {
            Target::Member { object, name } => object.get_mut(name).ok_or_else(missing),
            Target::Element { array, index } => array.get_mut(index).ok_or_else(missing),
            Target::End { .. } => Err(missing()),
        }
    }

    fn segments(&self) -> impl Iterator<Item = &String> {
        self.parents.iter().chain(std::iter::once(&self.last))
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Target<'_> {
    pub(super) fn get(&self) -> Option<&Value> {
        match self {
            Target::Member { object, name } => object.get(name),
            Target::Element { array, index } => array.get(*index),
            Target::End { .. } => None,
        }
    }

    /// Inserts into arrays; adds or overwrites in objects.
    pub(super) fn add(self, value: Value) -> Result<(), String> {
        match self {
            Target::Member { object, name } => object.insert(name, value),
            Target::Element { array, index } => array.insert(index, value),
            Target::End { array } => array.push(value),
        }
        Ok(())
    }

    /// Like `add`, but overwrites the element of an array.
    pub(super) fn set(self, value: Value) -> Result<(), String> {
        match self {
            Target::Element { array, index } if index < array.len() => {
                array.splice(index..=index, [value]);
                Ok(())
            }
            Target::Member { .. } | Target::Element { .. } | Target::End { .. } => self.add(value),
        }
    }

    pub(super) fn remove(self) -> Result<Value, String> {
        match self {
            Target::Member { object, name } => object
                .remove(name)
                .ok_or_else(|| format!("there is no property '{name}' to remove")),
            Target::Element { array, index } if index < array.len() => Ok(array.remove(index)),
            Target::Element { index, .. } => Err(format!("there is no element {index} to remove")),
            Target::End { .. } => Err("there is no element '-' to remove".to_owned()),
        }
    }
}

fn child<'a>(node: &'a mut Value, segment: &str) -> Option<&'a mut Value> {
    match node {
        Value::Object(object) => object.get_mut(segment),
        Value::Array(array) => array.get_mut(parse_index(segment)?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// An array index: digits without leading zeros.
fn parse_index(segment: &str) -> Option<usize> {
    let plain = segment.bytes().all(|b| b.is_ascii_digit())
        && (segment == "0" || !segment.starts_with('0'));
    if plain { segment.parse().ok() } else { None }
}

fn unescape(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}
