//! Queries that a program makes as a tree, instead of as text.
//!
//! The limits of a parsed query apply to such a tree: its levels, its operators, lists and
//! joins are counted, and its names must be valid in a text, so that it prints as the query
//! that it is. So a tree cannot exceed what a text can.

use crate::error::{Code, QueryError, Span, SyntaxError};
use crate::lexer::is_plain_name;
use crate::parser::{AND_MAX, GROUP_KEYS_MAX, IN_ITEMS_MAX, OR_MAX, QueryLimits};
use crate::syntax::{
    Child, Collection, Count, EXPRESSION_HEIGHT_MAX, Expr, ExprKind, Select, Selection, Source,
};

impl Expr {
    /// An expression without a position in a text.
    ///
    /// # Errors
    /// [`QueryError::Limit`] when it has more than [`EXPRESSION_HEIGHT_MAX`] levels, for
    /// which not every thread has the stack.
    pub fn made(kind: ExprKind) -> Result<Expr, QueryError> {
        let made = Expr::new(kind, Span::default()).ok();
        made.filter(|made| made.height() <= EXPRESSION_HEIGHT_MAX).ok_or_else(too_deep)
    }
}

/// Checks what was not checked when the tree's expressions were made.
pub(crate) fn check(select: &Select, limits: QueryLimits) -> Result<(), QueryError> {
    if matches!(select, Select { selection: Selection::All(_), from: None, .. }) {
        let message = "Syntax error, 'SELECT *' is not valid if FROM clause is omitted.";
        return Err(SyntaxError::new(Code::STAR_WITHOUT_FROM, Span::default(), message).into());
    }
    Walk { limits, ands: 0, ors: 0 }.select(select, EXPRESSION_HEIGHT_MAX)
}

/// The counts so far.
struct Walk {
    limits: QueryLimits,
    ands: usize,
    ors: usize,
}

impl Walk {
    fn select(&mut self, select: &Select, levels: usize) -> Result<(), QueryError> {
        let joins = select.from.as_ref().map_or(0, |from| from.joins.len());
        within("joins", joins, self.limits.joins)?;
        within("expressions to group by", select.group_by.len(), GROUP_KEYS_MAX)?;
        if let Selection::List(items) = &select.selection {
            not_empty(items.len())?;
        }
        let counts = select.top.iter().map(|top| &top.count);
        let page = select.page.iter().flat_map(|page| [&page.offset, &page.limit]);
        for count in counts.chain(page) {
            if let Count::Parameter(name) = count {
                parameter(&name.text)?;
            }
        }
        for one in select.from.iter().flat_map(|from| from.sources()) {
            source(one)?;
        }
        self.children(levels, |visit| select.for_each_child(visit))
    }

    fn expr(&mut self, expr: &Expr, levels: usize) -> Result<(), QueryError> {
        match expr.kind() {
            ExprKind::Identifier(text) => name(text)?,
            ExprKind::Parameter(text) => parameter(text)?,
            ExprKind::Call { name: function, .. } | ExprKind::Udf { name: function, .. } => {
                name(&function.text)?;
            }
            ExprKind::Let { name: defined, .. } => name(&defined.text)?,
            ExprKind::And(operands) => {
                at_least_two(operands.len())?;
                self.ands += operands.len() - 1;
                within("logical AND operators", self.ands, AND_MAX)?;
            }
            ExprKind::Or(operands) => {
                at_least_two(operands.len())?;
                self.ors += operands.len() - 1;
                within("logical OR operators", self.ors, OR_MAX)?;
            }
            ExprKind::In { list, .. } => {
                not_empty(list.len())?;
                within("items in an IN expression", list.len(), IN_ITEMS_MAX)?;
            }
            ExprKind::Chain(_, rest) => not_empty(rest.len())?,
            ExprKind::Undefined
            | ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number(_)
            | ExprKind::String(_)
            | ExprKind::Array(_)
            | ExprKind::Object(_)
            | ExprKind::Member(..)
            | ExprKind::Index(..)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Between { .. }
            | ExprKind::Like { .. }
            | ExprKind::Coalesce(..)
            | ExprKind::Conditional(_)
            | ExprKind::Subquery(..) => {}
        }
        self.children(levels, |visit| expr.kind().for_each_child(visit))
    }

    /// Continues with the direct parts, one level down.
    fn children<'e>(
        &mut self,
        levels: usize,
        parts: impl FnOnce(&mut dyn FnMut(Child<'e>)),
    ) -> Result<(), QueryError> {
        let levels = levels.checked_sub(1).ok_or_else(too_deep)?;
        let mut checked = Ok(());
        parts(&mut |child| {
            if checked.is_ok() {
                checked = match child {
                    Child::Expr(expr) => self.expr(expr, levels),
                    Child::Select(select) => self.select(select, levels),
                };
            }
        });
        checked
    }
}

fn source(source: &Source) -> Result<(), QueryError> {
    if let Some(alias) = &source.alias {
        name(&alias.text)?;
    }
    match &source.collection {
        Collection::Path { root, .. } => name(&root.text),
        Collection::Subquery(_) => Ok(()),
    }
}

fn name(text: &str) -> Result<(), QueryError> {
    if is_plain_name(text) { Ok(()) } else { Err(malformed(format!("'{text}' is not a name."))) }
}

fn parameter(text: &str) -> Result<(), QueryError> {
    match text.strip_prefix('@') {
        Some(rest) => name(rest),
        None => Err(malformed(format!("'{text}' is not the name of a parameter."))),
    }
}

fn at_least_two(operands: usize) -> Result<(), QueryError> {
    if operands >= 2 { Ok(()) } else { Err(malformed("An operator lacks operands.".to_owned())) }
}

fn not_empty(items: usize) -> Result<(), QueryError> {
    if items >= 1 { Ok(()) } else { Err(malformed("A list has no items.".to_owned())) }
}

fn within(what: &'static str, count: usize, limit: usize) -> Result<(), QueryError> {
    if count <= limit { Ok(()) } else { Err(QueryError::Limit { what, limit }) }
}

fn too_deep() -> QueryError {
    QueryError::Limit { what: "levels of nesting", limit: EXPRESSION_HEIGHT_MAX }
}

fn malformed(message: String) -> QueryError {
    SyntaxError::new(Code::SYNTAX, Span::default(), message).into()
}
