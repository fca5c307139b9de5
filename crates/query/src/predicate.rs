//! The sargable part of a filter: predicates on single paths of a document.
//!
//! A [`Predicate`] holds for every document that a query makes a row of: comparisons
//! of paths with constants, combined by AND and OR. Everything else in the filter is
//! left out, so a document may satisfy the predicate and still not be kept, unless the
//! [`Filter`] says that the predicate covers it. The planner and routing by partition
//! key use predicates; the filter itself is then applied to what they leave as the
//! residual filter.

mod find;

use std::fmt;

use model::json::{JsonKind, Value};

pub(crate) use find::{calls_of, filter_of};

use crate::bind::Path;

/// What a query requires of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    pub predicate: Predicate,
    /// Whether every document that satisfies the predicate passes sources and filter, so
    /// that there is no residual filter to evaluate. The number of its rows may still vary
    /// where the query iterates over arrays.
    pub covers_filter: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Predicate {
    /// Nothing is known.
    Anything,
    /// No document can satisfy it.
    Never,
    /// The value at the path compares with the constant as named. Values of another type do
    /// not, except for [`Comparison::NotEqual`], which they satisfy.
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
    /// The value at the path is a string with this prefix.
    Prefix {
        path: Path,
        prefix: String,
        ignores_case: bool,
    },
    /// The value at the path has one of these types; undefined has none.
    Types {
        path: Path,
        types: &'static [JsonKind],
    },
    All(Vec<Predicate>),
    Either(Vec<Predicate>),
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

/// The types that a defined value may have.
pub(crate) const ANY_KIND: &[JsonKind] = &[
    JsonKind::Null,
    JsonKind::Bool,
    JsonKind::Number,
    JsonKind::String,
    JsonKind::Array,
    JsonKind::Object,
];

impl Comparison {
    /// The comparison that holds between values of one type where this one does not.
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

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Predicate::Anything => f.write_str("anything"),
            Predicate::Never => f.write_str("never"),
            Predicate::Compare { path, comparison, value } => {
                write!(f, "{path} {comparison} {value}")
            }
            Predicate::OneOf { path, values } => {
                let values: Vec<String> = values.iter().map(Value::to_string).collect();
                write!(f, "{path} in ({})", values.join(", "))
            }
            Predicate::Prefix { path, prefix, ignores_case } => {
                let how = if *ignores_case { " in any case" } else { "" };
                write!(f, "{path} begins with {}{how}", Value::from(prefix.as_str()))
            }
            Predicate::Types { path, types } => {
                let types: Vec<String> = types.iter().map(|kind| format!("{kind:?}")).collect();
                write!(f, "{path} is {}", types.join("|").to_lowercase())
            }
            Predicate::All(parts) => joined(f, parts, " and "),
            Predicate::Either(parts) => joined(f, parts, " or "),
        }
    }
}

fn joined(f: &mut fmt::Formatter<'_>, parts: &[Predicate], word: &str) -> fmt::Result {
    let parts: Vec<String> = parts.iter().map(Predicate::to_string).collect();
    write!(f, "({})", parts.join(word))
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rest = if self.covers_filter { "" } else { ", then the filter" };
        write!(f, "{}{rest}", self.predicate)
    }
}
