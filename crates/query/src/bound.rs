//! The tree that runs: names are places, parameters are values, functions are
//! code. Made by [`crate::bind`] only.
//!
//! Every alias, definition and aggregate of a query has a slot of its own. A
//! subquery that produces rows stays half-way through its own sources while the
//! outer query works on each row, so slots are never shared.

use std::ops::Range;
use std::sync::Arc;

use crate::execute::AggregateKind;
use crate::functions::Function;
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
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Between {
        negated: bool,
        operands: Box<[Expr; 3]>,
    },
    In {
        negated: bool,
        needle: Box<Expr>,
        list: Vec<Expr>,
    },
    Like {
        negated: bool,
        operands: Box<[Expr; 2]>,
        escape: Option<char>,
    },
    Coalesce(Box<Expr>, Box<Expr>),
    Conditional(Box<[Expr; 3]>),
    Call(&'static Function, Vec<Expr>),
    Subquery(SubqueryKind, Box<Block>),
    Let {
        slot: Slot,
        parts: Box<[Expr; 2]>,
    },
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Name(String),
    Index(usize),
}

/// A query or subquery.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) sources: Vec<Source>,
    pub(crate) filter: Option<Expr>,
    /// Rows are gathered into groups; with no keys, into one.
    pub(crate) grouping: Option<Grouping>,
    /// A row whose output is undefined is dropped.
    pub(crate) output: Expr,
    pub(crate) distinct: bool,
    pub(crate) order: Vec<OrderKey>,
    pub(crate) offset: usize,
    pub(crate) limit: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Grouping {
    pub(crate) keys: Vec<Expr>,
    pub(crate) aggregates: Vec<Aggregate>,
    /// The slots of the block's sources, which stand for the group when its
    /// output is made.
    pub(crate) slots: Range<Slot>,
}

#[derive(Clone, Debug)]
pub(crate) struct Aggregate {
    pub(crate) kind: AggregateKind,
    pub(crate) argument: Expr,
    /// Where the output finds the result.
    pub(crate) slot: Slot,
}

#[derive(Clone, Debug)]
pub(crate) struct OrderKey {
    pub(crate) expr: Expr,
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

#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// The documents that the query runs over.
    Container,
    /// A row of an earlier source or of an outer query.
    Slot(Slot),
    Block(Box<Block>),
}
