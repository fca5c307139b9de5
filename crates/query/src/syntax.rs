//! The syntax tree: a query before names are resolved.
//!
//! Every expression knows its height, and none is higher than [`EXPRESSION_HEIGHT_MAX`], or
//! where the thread has stack for it than `DEEP_HEIGHT_MAX`: code that walks a tree may
//! recurse. Dropping one needs little stack, and any thread has enough for it. AND and OR
//! hold all their operands in one node, because generated filters chain thousands of them.

mod print;

pub(crate) use print::Spelled;

pub(crate) use print::quote;

use crate::error::Span;
use crate::number::Numeric;

/// Levels that an expression may have from its root to its deepest leaf.
///
/// Walking one level takes up to some kilobytes of stack in unoptimised builds,
/// and worker threads have two megabytes.
pub const EXPRESSION_HEIGHT_MAX: usize = 256;

/// The same where there is stack for what the service allows: a path of a thousand names,
/// below everything that its parser can hold.
pub(crate) const DEEP_HEIGHT_MAX: usize = 2_048;

/// Levels of operators that have a node each, before a chain of them becomes a list.
const CHAIN_HEIGHT: usize = 32;

/// Operators in such a list, as in the service.
const CHAIN_MAX: usize = 20_000;

/// A query or subquery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Select {
    pub distinct: bool,
    pub top: Option<Top>,
    pub selection: Selection,
    pub from: Option<From>,
    pub filter: Option<Expr>,
    pub group_by: Vec<Expr>,
    pub order_by: Option<OrderBy>,
    pub page: Option<Page>,
    pub span: Span,
}

/// `TOP n`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Top {
    pub count: Count,
    pub span: Span,
}

/// `OFFSET n LIMIT m`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub offset: Count,
    pub limit: Count,
    pub span: Span,
}

/// A number of rows, or the parameter that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    Number(Numeric, Span),
    Parameter(Name),
}

impl Count {
    /// The number of rows, if the number written is one.
    #[must_use]
    pub fn rows(number: Numeric) -> Option<u32> {
        u32::try_from(number.as_i64()?).ok()
    }
}

/// The output of a query per row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    All(Span),
    Value(Expr),
    List(Vec<SelectItem>),
}

impl Selection {
    /// What is selected, where it is written out.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let (one, items) = match self {
            Selection::All(_) => (None, &[][..]),
            Selection::Value(expr) => (Some(expr), &[][..]),
            Selection::List(items) => (None, items.as_slice()),
        };
        one.into_iter().chain(items.iter().map(|item| &item.expr))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectItem {
    pub expr: Expr,
    pub alias: Option<Name>,
}

impl SelectItem {
    /// The alias, else the last name of the path.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.named().map(|(name, _)| name)
    }

    /// As [`SelectItem::name`], with its position. An empty name is none.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
    pub(crate) fn named(&self) -> Option<(&str, Span)> {
        if let Some(alias) = &self.alias {
            return Some((&alias.text, alias.span));
        }
        match self.expr.kind() {
            ExprKind::Member(_, property) => Some((property.name.as_str(), property.span)),
            ExprKind::Identifier(name) => Some((name.as_str(), self.expr.span())),
            _ => None,
        }
        .filter(|(name, _)| !name.is_empty())
    }
}

/// `FROM first JOIN …`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct From {
    pub first: Source,
    pub joins: Vec<Source>,
    /// The sources without the keyword.
    pub span: Span,
}

impl From {
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        std::iter::once(&self.first).chain(&self.joins)
    }
}

/// One set of rows that a query ranges over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    pub collection: Collection,
    /// Written or not; see [`Source::name`] for the name that counts.
    pub alias: Option<Name>,
    /// `alias IN collection`: each element of the array is a row.
    pub iterates: bool,
    pub span: Span,
    pub collection_span: Span,
}

impl Source {
    /// The name of the rows: the alias, else the last name of the path; a subquery has
    /// none.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match (&self.alias, &self.collection) {
            (Some(alias), _) => Some(&alias.text),
            (None, Collection::Path { root, steps }) => match steps.last() {
                None => Some(&root.text),
                Some(Step::Name(property)) => Some(&property.name),
                Some(Step::Index(_)) => None,
            },
            (None, Collection::Subquery(_)) => None,
        }
    }

    /// Whether it is no more than a name, or another for it.
    fn is_name(&self) -> bool {
        let Collection::Path { steps, .. } = &self.collection else { return false };
        steps.is_empty() && !self.iterates
    }

    /// Whether it is no more than a name that stands for itself.
    pub(crate) fn is_itself(&self) -> bool {
        let Collection::Path { root, .. } = &self.collection else { return false };
        self.is_name() && self.alias.as_ref().is_none_or(|alias| alias.text == root.text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Collection {
    Path { root: Name, steps: Vec<Step> },
    Subquery(Box<Select>),
}

/// One step of a source's path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Name(Property),
    Index(Numeric),
}

/// A property's name, written `.name` or `["name"]`. Both mean the same and are equal;
/// printing keeps the original spelling.
#[derive(Clone, Debug)]
pub struct Property {
    pub name: String,
    pub bracketed: bool,
    /// The name with its quotes, without dot or brackets.
    pub span: Span,
}

impl PartialEq for Property {
    fn eq(&self, other: &Property) -> bool {
        self.name == other.name
    }
}

impl Eq for Property {}

/// A name as it was written; a parameter's includes its `@`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    pub text: String,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderBy {
    pub keys: OrderKeys,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderKeys {
    Items(Vec<OrderItem>),
    /// `ORDER BY RANK f(…)`.
    Rank(OrderItem),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderItem {
    pub expr: Expr,
    /// `None` where neither ASC nor DESC is written.
    pub direction: Option<SortDirection>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortDirection {
    Ascending,
    Descending,
}

/// An expression with its position and height. Made by `Expr::new` only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    kind: ExprKind,
    span: Span,
    /// With the brackets around it.
    outer: Span,
    height: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExprKind {
    Undefined,
    Null,
    Bool(bool),
    Number(Numeric),
    String(String),
    Parameter(String),
    Identifier(String),
    Array(Vec<Expr>),
    Object(Vec<(Name, Expr)>),
    Member(Box<Expr>, Property),
    /// `base[index]` with anything but a string literal.
    Index(Box<Expr>, Box<Expr>),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// The rest of a long left-associative chain of operators: each takes everything to its
    /// left.
    Chain(Box<Expr>, Vec<(BinaryOp, Expr)>),
    /// Two operands or more.
    And(Vec<Expr>),
    /// Two operands or more.
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
    Call {
        name: Name,
        arguments: Vec<Expr>,
    },
    Udf {
        name: Name,
        arguments: Vec<Expr>,
    },
    Subquery(SubqueryKind, Box<Select>),
    Let {
        name: Name,
        parts: Box<[Expr; 2]>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    Minus,
    Plus,
    BitNot,
    Not,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    ShiftLeft,
    ShiftRight,
    ShiftRightUnsigned,
    Concat,
    BitOr,
    BitXor,
    BitAnd,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

/// The kinds of subqueries in expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubqueryKind {
    Scalar,
    Exists,
    Array,
    All,
    First,
    Last,
}

/// An expression would be higher than [`DEEP_HEIGHT_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooHigh;

impl Expr {
    pub(crate) fn new(kind: ExprKind, span: Span) -> Result<Expr, TooHigh> {
        let mut below = 0;
        kind.for_each_child(&mut |child| below = below.max(child.height()));
        let height = below + 1;
        if height > DEEP_HEIGHT_MAX {
            return Err(TooHigh);
        }
        Ok(Expr { kind, span, outer: span, height })
    }

    /// Adds an operand to the node if it is an AND (or an OR): `(a AND b) AND c`
    /// is the same as `a AND b AND c`, with or without the brackets.
    pub(crate) fn extend_chain(&mut self, operand: Expr) -> Result<(), TooHigh> {
        let (ExprKind::And(operands) | ExprKind::Or(operands)) = &mut self.kind else {
            return Err(TooHigh);
        };
        if operand.height >= DEEP_HEIGHT_MAX {
            return Err(TooHigh);
        }
        self.height = self.height.max(operand.height + 1);
        self.span = self.outer.to(operand.outer);
        self.outer = self.span;
        operands.push(operand);
        Ok(())
    }

    pub(crate) fn into_kind(self) -> ExprKind {
        self.kind
    }

    /// Whether operators after the expression go into a list, so that the tree grows no
    /// higher.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
    pub(crate) fn chains(&self) -> bool {
        match &self.kind {
            ExprKind::Chain(..) => true,
            ExprKind::Binary(..) => self.height >= CHAIN_HEIGHT,
            _ => false,
        }
    }

    /// Adds an operator and its right operand to a chain, or begins one.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
    pub(crate) fn chained(mut self, op: BinaryOp, operand: Expr) -> Result<Expr, TooHigh> {
        let span = self.outer.to(operand.outer);
        let height = self.height.max(operand.height + 1);
        match &mut self.kind {
            ExprKind::Chain(_, rest) if rest.len() < CHAIN_MAX && height <= DEEP_HEIGHT_MAX => {
                rest.push((op, operand));
                (self.span, self.outer, self.height) = (span, span, height);
                Ok(self)
            }
            ExprKind::Chain(..) => Err(TooHigh),
            _ => Expr::new(ExprKind::Chain(Box::new(self), vec![(op, operand)]), span),
        }
    }

    /// Levels from here to the deepest leaf.
    pub(crate) fn height(&self) -> usize {
        self.height
    }

    /// Whether the path that the expression is has more parts than that, its root
    /// included.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
    pub(crate) fn path_is_beyond(&self, most: usize) -> bool {
        if self.height <= most {
            return false;
        }
        let (mut parts, mut at) = (0, self);
        loop {
            at = match &at.kind {
                ExprKind::Member(base, _) | ExprKind::Index(base, _) => base,
                ExprKind::Identifier(_) => return parts + 1 > most,
                _ => return parts > most,
            };
            parts += 1;
        }
    }

    #[must_use]
    pub fn kind(&self) -> &ExprKind {
        &self.kind
    }

    /// Its position, without brackets around it.
    #[must_use]
    pub fn span(&self) -> Span {
        self.span
    }

    /// Its position, with brackets around it: the operand of something larger.
    pub(crate) fn outer(&self) -> Span {
        self.outer
    }

    pub(crate) fn within_brackets(mut self, outer: Span) -> Expr {
        self.outer = outer;
        self
    }
}

/// A direct part of an expression.
#[derive(Clone, Copy, Debug)]
pub enum Child<'e> {
    Expr(&'e Expr),
    Select(&'e Select),
}

impl Child<'_> {
    fn height(self) -> usize {
        match self {
            Child::Expr(expr) => expr.height,
            Child::Select(select) => select.height(),
        }
    }
}

impl ExprKind {
    /// Visits the direct parts, in the order they are written.
    pub fn for_each_child<'e>(&'e self, visit: &mut dyn FnMut(Child<'e>)) {
        match self {
            ExprKind::Undefined
            | ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number(_)
            | ExprKind::String(_)
            | ExprKind::Parameter(_)
            | ExprKind::Identifier(_) => {}
            ExprKind::Array(items) | ExprKind::And(items) | ExprKind::Or(items) => {
                each(items, visit);
            }
            ExprKind::Call { arguments, .. } | ExprKind::Udf { arguments, .. } => {
                each(arguments, visit);
            }
            ExprKind::Object(members) => each(members.iter().map(|(_, value)| value), visit),
            ExprKind::Member(base, _) | ExprKind::Unary(_, base) => visit(Child::Expr(base)),
            ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) | ExprKind::Coalesce(a, b) => {
                each([&**a, &**b], visit);
            }
            ExprKind::Chain(first, rest) => {
                visit(Child::Expr(first));
                each(rest.iter().map(|(_, operand)| operand), visit);
            }
            ExprKind::Between { operands, .. } | ExprKind::Conditional(operands) => {
                each(&**operands, visit);
            }
            ExprKind::Like { operands, .. } | ExprKind::Let { parts: operands, .. } => {
                each(&**operands, visit);
            }
            ExprKind::In { needle, list, .. } => {
                visit(Child::Expr(needle));
                each(list, visit);
            }
            ExprKind::Subquery(_, select) => visit(Child::Select(select)),
        }
    }
}

fn each<'e>(exprs: impl IntoIterator<Item = &'e Expr>, visit: &mut dyn FnMut(Child<'e>)) {
    exprs.into_iter().for_each(|expr| visit(Child::Expr(expr)));
}

impl Select {
    /// Whether it says no more than `SELECT *`, of the row around it.
    pub(crate) fn is_bare_star(&self) -> bool {
        let around = |from: &From| from.joins.is_empty() && from.first.is_name();
        let bare = self.from.as_ref().is_none_or(around)
            && self.filter.is_none()
            && self.group_by.is_empty();
        let counted = self.top.is_some() || self.order_by.is_some() || self.page.is_some();
        matches!(self.selection, Selection::All(_)) && bare && !counted && !self.distinct
    }

    /// Visits the direct parts: expressions of all clauses, and subqueries in FROM.
    pub fn for_each_child<'e>(&'e self, visit: &mut dyn FnMut(Child<'e>)) {
        each(self.selection.exprs(), visit);
        for source in self.from.iter().flat_map(From::sources) {
            if let Collection::Subquery(select) = &source.collection {
                visit(Child::Select(select));
            }
        }
        each(&self.filter, visit);
        each(&self.group_by, visit);
        match self.order_by.as_ref().map(|order| &order.keys) {
            None => {}
            Some(OrderKeys::Items(items)) => each(items.iter().map(|item| &item.expr), visit),
            Some(OrderKeys::Rank(item)) => visit(Child::Expr(&item.expr)),
        }
    }

    /// Levels from here to the deepest leaf.
    pub(crate) fn height(&self) -> usize {
        let mut below = 0;
        self.for_each_child(&mut |child| below = below.max(child.height()));
        below + 1
    }
}
