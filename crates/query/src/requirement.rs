//! What a filter asks of single places in a document.
//!
//! A [`Requirement`] is what every document must fulfil that a query makes a row
//! of: comparisons of places with constants, joined by AND and OR. All else in
//! the filter is left out, so a document may fulfil it and still not be kept,
//! unless the [`Filter`] says that it is exact. Whoever has an index or routes by
//! partition key looks here; the filter itself is then held against what is left.

mod find;

use std::fmt;

use model::json::{JsonKind, Value};

pub(crate) use find::{calls_of, filter_of};

use crate::bind::Path;

/// What a query requires of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    pub requirement: Requirement,
    /// Whether a document that fulfils the requirement passes sources and filter
    /// in any case, so that nothing needs to be evaluated to know that. How many
    /// rows it gives is another matter where the query iterates over arrays.
    pub exact: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Requirement {
    /// Nothing is known.
    Anything,
    /// No document can fulfil it.
    Never,
    /// A value at the path compares so with the constant. Values of another type
    /// do not, but for [`Comparison::NotEqual`], which they fulfil.
    Compare {
        path: Path,
        comparison: Comparison,
        value: Value,
    },
    /// The value at the path is equal to one of these.
    OneOf {
        path: Path,
        values: Vec<Value>,
    },
    /// The value at the path is a string that begins so.
    Prefix {
        path: Path,
        prefix: String,
        ignores_case: bool,
    },
    /// The value at the path is of one of these types; undefined is none.
    Types {
        path: Path,
        types: &'static [JsonKind],
    },
    All(Vec<Requirement>),
    Either(Vec<Requirement>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// What a value that is there at all may be.
pub(crate) const ANY_KIND: &[JsonKind] = &[
    JsonKind::Null,
    JsonKind::Bool,
    JsonKind::Number,
    JsonKind::String,
    JsonKind::Array,
    JsonKind::Object,
];

impl Comparison {
    /// The comparison that holds between values of one type where this does not.
    pub(crate) fn negated(self) -> Comparison {
        match self {
            Comparison::Equal => Comparison::NotEqual,
            Comparison::NotEqual => Comparison::Equal,
            Comparison::Less => Comparison::GreaterEqual,
            Comparison::LessEqual => Comparison::Greater,
            Comparison::Greater => Comparison::LessEqual,
            Comparison::GreaterEqual => Comparison::Less,
        }
    }

    /// The comparison with its sides exchanged.
    pub(crate) fn flipped(self) -> Comparison {
        match self {
            Comparison::Equal | Comparison::NotEqual => self,
            Comparison::Less => Comparison::Greater,
            Comparison::LessEqual => Comparison::GreaterEqual,
            Comparison::Greater => Comparison::Less,
            Comparison::GreaterEqual => Comparison::LessEqual,
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Comparison::Equal => "=",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterEqual => ">=",
        })
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Requirement::Anything => f.write_str("anything"),
            Requirement::Never => f.write_str("never"),
            Requirement::Compare { path, comparison, value } => {
                write!(f, "{path} {comparison} {value}")
            }
            Requirement::OneOf { path, values } => {
                let values: Vec<String> = values.iter().map(Value::to_string).collect();
                write!(f, "{path} in ({})", values.join(", "))
            }
            Requirement::Prefix { path, prefix, ignores_case } => {
                let how = if *ignores_case { " in any case" } else { "" };
                write!(f, "{path} begins with {}{how}", Value::from(prefix.as_str()))
            }
            Requirement::Types { path, types } => {
                let types: Vec<String> = types.iter().map(|kind| format!("{kind:?}")).collect();
                write!(f, "{path} is {}", types.join("|").to_lowercase())
            }
            Requirement::All(parts) => joined(f, parts, " and "),
            Requirement::Either(parts) => joined(f, parts, " or "),
        }
    }
}

fn joined(f: &mut fmt::Formatter<'_>, parts: &[Requirement], word: &str) -> fmt::Result {
    let parts: Vec<String> = parts.iter().map(Requirement::to_string).collect();
    write!(f, "({})", parts.join(word))
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rest = if self.exact { "" } else { ", then the filter" };
        write!(f, "{}{rest}", self.requirement)
    }
}
