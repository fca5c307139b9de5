//! From the syntax tree to the tree that runs: what names, parameters and
//! functions mean.
//!
//! The service reports all that it finds wrong, so errors are gathered and
//! binding goes on with undefined in place of what was wrong. Within a query,
//! FROM is bound first, because everything else refers to it.

mod block;
mod check;
mod computed;
mod expression;
mod fold;
mod path;
mod place;

pub(crate) use block::is_aggregated;
pub(crate) use computed::check as check_computed;
pub(crate) use path::path_of;
pub use path::{Path, PathStep};
use place::Place;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use model::json::Value;

use crate::bound::{Block, Constant, Definition, Expr, Slot};
use crate::context::Context;
use crate::error::{Code, QueryError, Refusal, Span, SyntaxError};
use crate::eval::Ambient;
use crate::parameters::Parameters;
use crate::syntax::{self, Select};

/// Calls of user-defined functions in one query, as in the service.
pub const UDF_CALLS_MAX: usize = 10;

/// Steps that computing constants beforehand may take; what takes longer is left
/// to the run, which may not need it.
const FOLD_STEPS_MAX: usize = 5_000_000;

/// The same for texts that are bound where others wait: conditions of patches and the
/// definitions of computed properties. Some milliseconds.
pub(crate) const QUICK_FOLD_STEPS_MAX: usize = 100_000;

/// Errors that are told of one query. To say where each is takes a walk through the text.
const ERRORS_MAX: usize = 100;

/// A query that can run, and how many slots it needs.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    pub(crate) block: Block,
    pub(crate) slots: usize,
    /// The places in documents that slots stand for, where they do.
    pub(crate) paths: BTreeMap<Slot, Path>,
    pub(crate) context: Arc<Context>,
    /// A function of the user's that the query calls and the context does not have:
    /// the query can be planned, but not run.
    uncallable: Option<String>,
    /// What the service plans and refuses to run.
    run_refusal: Option<Refusal>,
    /// What can be planned and not run yet.
    unrunnable: Option<String>,
}

impl Program {
    /// Refuses to run what could not go on at the first item: a query says the same
    /// of a container that is empty and of one that is not.
    pub(crate) fn check_run(&self) -> Result<(), QueryError> {
        if let Some(what) = self.unrunnable.clone() {
            return Err(QueryError::Unsupported { what });
        }
        if let Some(refusal) = &self.run_refusal {
            return Err(refusal.clone().into());
        }
        self.uncallable.as_deref().map_or(Ok(()), |name| Err(QueryError::uncallable(name)))
    }
}

pub(crate) fn bind(
    text: &str,
    select: &Select,
    parameters: &Parameters,
    context: &Arc<Context>,
) -> Result<Program, QueryError> {
    bind_within(FOLD_STEPS_MAX, (text, select), parameters, context)
}

/// Binds a query that is planned for others to run.
pub(crate) fn bind_plan(
    text: &str,
    select: &Select,
    parameters: &Parameters,
    context: &Arc<Context>,
) -> Result<Program, QueryError> {
    let mut binder = Binder::new(text, parameters, context);
    binder.plans = true;
    binder.ambient.budget.allow_steps(FOLD_STEPS_MAX);
    program(binder, select, context)
}

/// Binds a query, folding constants within a budget of `steps`.
pub(crate) fn bind_within(
    steps: usize,
    (text, select): (&str, &Select),
    parameters: &Parameters,
    context: &Arc<Context>,
) -> Result<Program, QueryError> {
    let binder = Binder::new(text, parameters, context);
    binder.ambient.budget.allow_steps(steps);
    program(binder, select, context)
}

fn program<'q>(
    mut binder: Binder<'q>,
    select: &'q Select,
    context: &Arc<Context>,
) -> Result<Program, QueryError> {
    let block = binder.block(select, Rows::Documents).block;
    let paths = std::mem::take(&mut binder.paths);
    let (uncallable, unrunnable) = (binder.uncallable.take(), binder.unrunnable.take());
    let run_refusal = binder.run_refusal.take();
    let context = Arc::clone(context);
    let slots = binder.finish()?;
    Ok(Program { block, slots, paths, context, uncallable, run_refusal, unrunnable })
}

/// Binds an expression that refers to no source.
pub(crate) fn bind_expression(
    text: &str,
    expr: &syntax::Expr,
    parameters: &Parameters,
    context: &Arc<Context>,
) -> Result<(Expr, usize), QueryError> {
    let mut binder = Binder::new(text, parameters, context);
    binder.container = false;
    let expr = binder.expression(expr);
    binder.finish().map(|slots| (expr, slots))
}

struct Binder<'q> {
    text: &'q str,
    parameters: &'q Parameters,
    context: &'q Arc<Context>,
    /// For computing constants beforehand.
    ambient: Ambient,
    /// The parameters used so far.
    constants: BTreeMap<&'q str, Constant>,
    /// Names in scope, innermost last.
    names: Vec<(&'q str, Slot)>,
    /// The sources in scope, those that only name another again left out, and `None` for
    /// the rows of subqueries in expressions.
    sets: Vec<Option<Slot>>,
    slots: usize,
    paths: BTreeMap<Slot, Path>,
    /// What sources stand for that only give it another name.
    places: BTreeMap<Slot, Place>,
    /// The rows that FROM has up to the current place, from the expression around it on.
    beside: Rows,
    /// The computed properties used so far, by name.
    definitions: BTreeMap<&'q str, Arc<Definition>>,
    /// The documents are still to be bound: only the first source of all may.
    container: bool,
    /// The query is planned and not run: what depends on the time stays open.
    plans: bool,
    /// Levels of subqueries around the current place.
    subqueries: usize,
    /// The clause of the innermost query that is bound at the moment.
    clause: Clause,
    /// How many rows the innermost query has.
    rows: Rows,
    /// Aggregates of the innermost query that gather rows.
    gathering: usize,
    /// Aggregates around the current place, within the innermost query.
    aggregating: usize,
    /// A query around the current place has groups: whether scalar subqueries give one row
    /// is told with them.
    defers: bool,
    /// Aggregates of the current query, while its order or select list is bound.
    aggregates: Option<Vec<crate::bound::Aggregate>>,
    /// What the queries around the current place group by, while their select
    /// lists are bound.
    group_keys: Vec<GroupedBy<'q>>,
    udf_calls: usize,
    /// What is right and cannot be run yet.
    unrunnable: Option<String>,
    /// The first function of the user's that cannot be called.
    uncallable: Option<String>,
    errors: Vec<SyntaxError>,
    refusal: Option<Refusal>,
    /// What stands in the way of running the query, but not of planning it.
    run_refusal: Option<Refusal>,
    unsupported: Option<String>,
}

/// A clause of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clause {
    From,
    Filter,
    GroupBy,
    OrderBy,
    Select,
}

/// How many rows a query has for one row around it, fewer before more. The outermost
/// query has none around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rows {
    /// The row around it and no other. Aggregates and groups are about that row alone, and
    /// the rows of a scalar subquery become its own.
    Around,
    /// One that others were gathered into.
    One,
    /// One for each document.
    Documents,
    /// Several for each row around it or document, or one that these were gathered into.
    Many,
}

impl Rows {
    fn are_several(self) -> bool {
        self >= Rows::Documents
    }

    /// Those of a query together with those of what it is joined with.
    fn joined(self, others: Rows) -> Rows {
        if self == Rows::Documents && others > Rows::Around {
            return Rows::Many;
        }
        self.max(others)
    }

    /// What an aggregate makes of them. Of what is in documents, it makes one for each, and
    /// these are not gathered into one by another aggregate either.
    fn gathered(self, start: Rows) -> Rows {
        match (self, start) {
            (Rows::Many, Rows::Documents | Rows::Many) => Rows::Many,
            (Rows::Around, _) => Rows::Around,
            (Rows::One | Rows::Documents | Rows::Many, _) => Rows::One,
        }
    }
}

/// An expression that has one value in each group, which is found in a slot.
#[derive(Clone, Debug)]
struct GroupedBy<'q> {
    expr: &'q syntax::Expr,
    slot: Slot,
    /// What the names in it meant: inside a subquery they may mean another thing.
    meaning: Vec<Option<Slot>>,
}

impl<'q> Binder<'q> {
    fn new(text: &'q str, parameters: &'q Parameters, context: &'q Arc<Context>) -> Binder<'q> {
        Binder {
            text,
            parameters,
            context,
            ambient: Ambient::within(context, FOLD_STEPS_MAX, Rc::default()),
            constants: BTreeMap::new(),
            names: Vec::new(),
            sets: Vec::new(),
            slots: 0,
            paths: BTreeMap::new(),
            places: BTreeMap::new(),
            beside: Rows::Around,
            definitions: BTreeMap::new(),
            container: true,
            plans: false,
            subqueries: 0,
            clause: Clause::Select,
            rows: Rows::Documents,
            gathering: 0,
            aggregating: 0,
            defers: false,
            aggregates: None,
            group_keys: Vec::new(),
            udf_calls: 0,
            unrunnable: None,
            uncallable: None,
            errors: Vec::new(),
            refusal: None,
            run_refusal: None,
            unsupported: None,
        }
    }

    fn finish(self) -> Result<usize, QueryError> {
        // Constants that could not be computed were left to a run that is not to be.
        if self.ambient.budget.is_stopped() {
            return Err(QueryError::Stopped);
        }
        if !self.errors.is_empty() {
            return Err(QueryError::Invalid(self.errors));
        }
        if let Some(refusal) = self.refusal {
            return Err(QueryError::Refused(refusal));
        }
        match self.unsupported {
            Some(what) => Err(QueryError::Unsupported { what }),
            None => Ok(self.slots),
        }
    }

    fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(SyntaxError::new(code, span, message));
        }
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

    /// The value of a parameter, made once for all its uses. One that the client does
    /// not give is undefined.
    fn parameter(&mut self, name: &'q str) -> Constant {
        if let Some(constant) = self.constants.get(name) {
            return constant.clone();
        }
        let Some(value) = self.parameters.get(name) else { return Constant::Undefined };
        let constant = Constant::from(value);
        self.constants.insert(name, constant.clone());
        constant
    }
}

impl From<&Value> for Constant {
    fn from(value: &Value) -> Constant {
        match value {
            Value::Null => Constant::Null,
            Value::Bool(truth) => Constant::Bool(*truth),
            Value::Number(number) => Constant::Number((*number).into()),
            Value::String(text) => Constant::String(text.as_str().into()),
            Value::Array(_) | Value::Object(_) => Constant::Json(value.to_string().into()),
        }
    }
}
