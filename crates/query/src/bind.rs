//! From the syntax tree to the tree that runs: what names, parameters and
//! functions mean.
//!
//! The service reports all that it finds wrong, so errors are gathered and
//! binding goes on with undefined in place of what was wrong. Within a query,
//! FROM is bound first, because everything else refers to it.

mod block;
mod check;
mod expression;

use std::collections::BTreeMap;

use model::json::Value;

use crate::bound::{Block, Constant, Expr, Slot};
use crate::error::{Code, QueryError, Span, SyntaxError};
use crate::number::Numeric;
use crate::parameters::Parameters;
use crate::syntax::Select;

/// Calls of user-defined functions in one query, as in the service.
pub const UDF_CALLS_MAX: usize = 10;

/// A query that can run, and how many slots it needs.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) block: Block,
    pub(crate) slots: usize,
}

pub(crate) fn bind(
    text: &str,
    select: &Select,
    parameters: &Parameters,
) -> Result<Program, QueryError> {
    let mut binder = Binder::new(text, parameters);
    let block = binder.block(select);
    binder.finish().map(|slots| Program { block, slots })
}

/// Binds an expression that refers to no source.
pub(crate) fn bind_expression(
    text: &str,
    expr: &crate::syntax::Expr,
    parameters: &Parameters,
) -> Result<(Expr, usize), QueryError> {
    let mut binder = Binder::new(text, parameters);
    binder.container = false;
    let expr = binder.expression(expr);
    binder.finish().map(|slots| (expr, slots))
}

struct Binder<'q> {
    text: &'q str,
    parameters: &'q Parameters,
    /// The parameters used so far.
    constants: BTreeMap<&'q str, Constant>,
    /// Names in scope, innermost last.
    names: Vec<(&'q str, Slot)>,
    slots: usize,
    /// The documents are still to be bound: only the first source of all may.
    container: bool,
    /// Levels of subqueries around the current place.
    subqueries: usize,
    /// Aggregates of the current query, while its select list is bound.
    aggregates: Option<Vec<crate::bound::Aggregate>>,
    udf_calls: usize,
    errors: Vec<SyntaxError>,
    unsupported: Option<String>,
}

impl<'q> Binder<'q> {
    fn new(text: &'q str, parameters: &'q Parameters) -> Binder<'q> {
        Binder {
            text,
            parameters,
            constants: BTreeMap::new(),
            names: Vec::new(),
            slots: 0,
            container: true,
            subqueries: 0,
            aggregates: None,
            udf_calls: 0,
            errors: Vec::new(),
            unsupported: None,
        }
    }

    fn finish(self) -> Result<usize, QueryError> {
        if !self.errors.is_empty() {
            return Err(QueryError::Invalid(self.errors));
        }
        match self.unsupported {
            Some(what) => Err(QueryError::Unsupported { what }),
            None => Ok(self.slots),
        }
    }

    fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.errors.push(SyntaxError::new(code, span, message));
    }

    /// Notes the first thing that is right but not done yet.
    fn unsupported(&mut self, what: impl Into<String>) {
        self.unsupported.get_or_insert_with(|| what.into());
    }

    fn unresolved(&mut self, name: &str, span: Span) {
        self.error(Code::UNRESOLVED, span, format!("Identifier '{name}' could not be resolved."));
    }

    fn new_slot(&mut self) -> Slot {
        self.slots += 1;
        self.slots - 1
    }

    fn resolve(&self, name: &str) -> Option<Slot> {
        self.names.iter().rev().find(|(own, _)| *own == name).map(|(_, slot)| *slot)
    }

    /// The value of a parameter, made once for all its uses.
    fn parameter(&mut self, name: &'q str, span: Span) -> Option<Constant> {
        if let Some(constant) = self.constants.get(name) {
            return Some(constant.clone());
        }
        let Some(value) = self.parameters.get(name) else {
            self.unresolved(name, span);
            return None;
        };
        let constant = Constant::from(value);
        self.constants.insert(name, constant.clone());
        Some(constant)
    }
}

impl From<&Value> for Constant {
    fn from(value: &Value) -> Constant {
        match value {
            Value::Null => Constant::Null,
            Value::Bool(truth) => Constant::Bool(*truth),
            Value::Number(number) => Numeric::from_spelling(number.as_str())
                .map_or(Constant::Number(number.as_f64().into()), Constant::Number),
            Value::String(text) => Constant::String(text.as_str().into()),
            Value::Array(_) | Value::Object(_) => Constant::Json(value.to_string().into()),
        }
    }
}
