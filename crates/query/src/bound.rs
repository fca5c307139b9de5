//! The bound tree, which is executed: names are resolved to paths, parameters to values,
//! functions to code. Made by [`crate::bind`] only.
//!
//! Every alias, definition and aggregate of a query has a slot of its own. A subquery that
//! produces rows is suspended inside its own sources while the outer query works on each
//! row, so slots are never shared.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::bind::Path;
use crate::eval::Pattern;
use crate::execute::AggregateKind;
use crate::functions::{Function, RegexCall};
use crate::number::Numeric;
use crate::syntax::{BinaryOp, SubqueryKind, UnaryOp};

/// A slot's number.
pub(crate) type Slot = usize;

#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Constant(Constant),
    Slot(Slot),
    Member(Box<Expr>, Key),
    Array(Vec<Expr>),
    /// Names differ.
    Object(Vec<(String, Expr)>),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// A left-associative chain: each operator takes everything to its left.
    Chain(Box<Expr>, Vec<(BinaryOp, Expr)>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Between {
        negated: bool,
        operands: Box<[Expr; 3]>,
    },
    In(Box<In>),
    Like(Box<Like>),
    Coalesce(Box<Expr>, Box<Expr>),
    Conditional(Box<[Expr; 3]>),
    Call(&'static Function, Vec<Expr>),
    /// A call of a regular expression that is compiled beforehand.
    Regex(Box<RegexCall>),
    Udf(String, Vec<Expr>),
    Subquery(SubqueryKind, Box<Block>),
    Let {
        slot: Slot,
        parts: Box<[Expr; 2]>,
    },
    /// A computed property of a document.
    Computed(Computed),
}

#[derive(Clone, Debug)]
pub(crate) struct In {
    pub(crate) negated: bool,
    pub(crate) needle: Expr,
    pub(crate) items: Vec<Expr>,
    /// The identities of the items, where all are constants and many.
    pub(crate) known: Option<Arc<BTreeSet<String>>>,
}

#[derive(Clone, Debug)]
pub(crate) struct Like {
    pub(crate) negated: bool,
    pub(crate) text: Expr,
    pub(crate) pattern: LikePattern,
}

#[derive(Clone, Debug)]
pub(crate) enum LikePattern {
    Fixed(Arc<Pattern>),
    Computed { pattern: Expr, escape: Option<char> },
}

/// The use of a computed property.
#[derive(Clone, Debug)]
pub(crate) struct Computed {
    pub(crate) name: String,
    /// The slot of the document.
    pub(crate) row: Slot,
    pub(crate) definition: Arc<Definition>,
}

/// What a computed property is, as a function of the document in `slot`.
#[derive(Debug)]
pub(crate) struct Definition {
    pub(crate) slot: Slot,
    pub(crate) body: Expr,
}

impl Expr {
    pub(crate) const UNDEFINED: Expr = Expr::Constant(Constant::Undefined);
}

/// Shares its text: one parameter may be used thousands of times.
#[derive(Clone, Debug)]
pub(crate) enum Constant {
    Undefined,
    Null,
    Bool(bool),
    Number(Numeric),
    String(Arc<str>),
    /// An array or object, as compact text.
    Json(Arc<str>),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Name(String),
    Index(usize),
}

/// A query or subquery.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) sources: Vec<Source>,
    pub(crate) filter: Option<Expr>,
    /// Rows are aggregated into groups; with no keys, into one.
    pub(crate) grouping: Option<Grouping>,
    /// A row whose output is undefined is dropped.
    pub(crate) output: Expr,
    pub(crate) distinct: bool,
    pub(crate) order: Vec<OrderKey>,
    pub(crate) counts: Counts,
}

/// The number of rows to skip and to return, where the query has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) top: Option<u32>,
    pub(crate) offset: Option<u32>,
    pub(crate) limit: Option<u32>,
}

impl Counts {
    pub(crate) fn skipped(self) -> usize {
        rows(self.offset.unwrap_or(0))
    }

    /// TOP applies to what OFFSET and LIMIT leave.
    pub(crate) fn given(self) -> usize {
        let least = self.top.into_iter().chain(self.limit).min();
        least.map_or(usize::MAX, rows)
    }
}

fn rows(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

#[derive(Clone, Debug)]
pub(crate) struct Grouping {
    pub(crate) keys: Vec<GroupKey>,
    pub(crate) aggregates: Vec<Aggregate>,
    /// The order of groups. No two of them agree in all of it.
    pub(crate) order: Vec<GroupOrder>,
    /// Whether the query asks for an order.
    pub(crate) is_ordered: bool,
}

/// A sort key of groups, as a function of their keys.
#[derive(Clone, Debug)]
pub(crate) struct GroupOrder {
    pub(crate) expr: Expr,
    pub(crate) descending: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct GroupKey {
    pub(crate) expr: Expr,
    /// The slot in which the output finds the group's value.
    pub(crate) slot: Slot,
}

#[derive(Clone, Debug)]
pub(crate) struct Aggregate {
    pub(crate) kind: AggregateKind,
    pub(crate) argument: Expr,
    /// The slot in which the output finds the result.
    pub(crate) slot: Slot,
}

#[derive(Clone, Debug)]
pub(crate) struct OrderKey {
    pub(crate) expr: Expr,
    /// The path of the value in the document.
    pub(crate) path: Path,
    pub(crate) descending: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) origin: Origin,
    pub(crate) steps: Vec<Key>,
    /// Each element of the array is a row, not the array itself.
    pub(crate) iterates: bool,
    pub(crate) slot: Slot,
}

impl Source {
    /// Whether it ranges over the documents of the container as they are.
    pub(crate) fn is_document(&self) -> bool {
        matches!(self.origin, Origin::Container) && self.steps.is_empty() && !self.iterates
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// The documents that the query runs over.
    Container,
    /// A row of an earlier source or of an outer query.
    Slot(Slot),
    Block(Box<Block>),
}
