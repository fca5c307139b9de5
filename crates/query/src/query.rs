//! The public interface: from a text or a tree to a bound query, which can be executed.

use std::fmt;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use model::json::{Raw, Value};

use crate::advice::{self, Advice};
use crate::bind::{self, Path, Program};
use crate::bound::{Block, Constant, Expr, Slot};
use crate::context::{Context, UserFunctions};
use crate::document::DocumentView;
use crate::error::{QueryError, Refusal, SyntaxError};
use crate::eval::{self, Ambient, Datum, Env, STEPS_MAX};
use crate::execute;
use crate::index_use::{self, IndexUse, Indexed};
use crate::ledger::Ledger;
use crate::parameters::Parameters;
use crate::parser::{self, QueryLimits};
use crate::plan::{self, Features, KeyRanges, KeyShape, Plan, PlanOptions};
use crate::predicate::{self, Filter};
use crate::run::{Row, RowSink};
use crate::syntax::Select;
use crate::transfer::BoundText;
use crate::tree;

/// A query whose text is valid. Names and functions are not resolved yet: that needs the
/// parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    text: String,
    select: Select,
    /// A limit of the service that prevents the execution of the query.
    excess: Option<SyntaxError>,
}

impl Query {
    pub fn parse(text: &str) -> Result<Query, QueryError> {
        Query::parse_within(text, QueryLimits::default())
    }

    /// As [`Query::parse`], within the limits of an account.
    pub fn parse_within(text: &str, limits: QueryLimits) -> Result<Query, QueryError> {
        let parser::Parsed { select, excess } = parser::parse_within(text, limits)?;
        Ok(Query { text: text.to_owned(), select, excess })
    }

    /// A query that a program made as a tree. The limits of a text apply.
    pub fn from_tree(select: Select, limits: QueryLimits) -> Result<Query, QueryError> {
        tree::check(&select, limits)?;
        let text = select.to_string();
        if text.encode_utf16().count() > limits.text_units {
            let (what, limit) = ("characters", limits.text_units);
            return Err(QueryError::Limit { what, limit });
        }
        Ok(Query { text, select, excess: None })
    }

    /// The text that was parsed, or the canonical text of the tree.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The syntax tree; it prints as canonical text.
    #[must_use]
    pub fn syntax(&self) -> &Select {
        &self.select
    }

    /// How the query could be written to cost less.
    #[must_use]
    pub fn advice(&self) -> Vec<Advice> {
        advice::advice(&self.select)
    }

    /// Resolves names, functions and parameters.
    ///
    /// It is 1970 and the container has no functions and no computed properties;
    /// see [`Query::bind_in`].
    pub fn bind(&self, parameters: &Parameters) -> Result<Bound, QueryError> {
        self.bind_in(parameters, &Arc::default())
    }

    /// Resolves names, functions and parameters in a context.
    ///
    /// Refuses calls of functions that the context does not have, which can only be
    /// planned: see [`Query::plan`].
    pub fn bind_in(
        &self,
        parameters: &Parameters,
        context: &Arc<Context>,
    ) -> Result<Bound, QueryError> {
        if let Some(excess) = &self.excess {
            return Err(excess.clone().into());
        }
        let program = bind::bind(&self.text, &self.select, parameters, context)?;
        program.check_run()?;
        let (text, parameters) = (self.text.clone(), parameters.clone());
        let own = Arc::new(BoundText { text, parameters, has_no_rows: false });
        Ok(Bound { program, own: Some(own) })
    }
}

impl Query {
    /// Plans the query for clients that run it on each partition themselves.
    ///
    /// Refuses what the service refuses to plan, and queries that the client's features do
    /// not suffice for.
    pub fn plan(
        &self,
        parameters: &Parameters,
        context: &Arc<Context>,
        key: &KeyShape,
        features: &Features,
    ) -> Result<Plan, QueryError> {
        self.plan_with(parameters, context, key, (features, features.options()))
    }

    /// As [`Query::plan`], for a client that requests a plan of its own kind.
    pub fn plan_with(
        &self,
        parameters: &Parameters,
        context: &Arc<Context>,
        key: &KeyShape,
        (features, options): (&Features, PlanOptions),
    ) -> Result<Plan, QueryError> {
        let program = bind::bind_plan(&self.text, &self.select, parameters, context)?;
        plan::plan(&self.select, &program, key, features, options)
    }
}

/// A query that is ready to run, any number of times.
#[derive(Clone)]
pub struct Bound {
    program: Program,
    /// What it was bound from, if that is a query.
    own: Option<Arc<BoundText>>,
}

/// One key of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order<'b> {
    pub path: &'b Path,
    pub descending: bool,
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound").field("block", &self.program.block).finish_non_exhaustive()
    }
}

impl Bound {
    /// Whether the query keeps a document: its filter is exactly true.
    ///
    /// Only for queries over one row per document; see [`Bound::is_rowwise`].
    pub fn matches(&self, document: Raw<'_>) -> Result<bool, QueryError> {
        self.matches_within(document.into(), STEPS_MAX)
    }

    fn matches_within(&self, document: DocumentView<'_>, steps: usize) -> Result<bool, QueryError> {
        let ambient = Ambient::within(&self.program.context, steps, Rc::default());
        let mut env = self.row(document, &ambient)?;
        execute::passes(self.block().filter.as_ref(), &mut env)
    }

    /// The query's output for a document that it keeps; `None` if it is undefined, which
    /// drops the row.
    ///
    /// Only for queries over one row per document; see [`Bound::is_rowwise`].
    pub fn project(&self, document: Raw<'_>) -> Result<Option<Value>, QueryError> {
        let ambient = self.ambient();
        let mut env = self.row(document.into(), &ambient)?;
        let output = eval::evaluate(&self.block().output, &mut env)?;
        output.to_value()
    }

    /// Whether each document is one row of the query, so that it can be filtered and
    /// projected by itself: no join, no group, no aggregate. Order, DISTINCT and counts are
    /// then for the caller to apply.
    #[must_use]
    pub fn is_rowwise(&self) -> bool {
        self.row_slot().is_some()
    }

    /// What the query requires of a document.
    #[must_use]
    pub fn filter(&self) -> Filter {
        predicate::filter_of(&self.program)
    }

    /// The indexes that the query can be served from, and those that it lacks.
    #[must_use]
    pub fn index_use(&self, indexed: &dyn Indexed) -> IndexUse {
        index_use::index_use(&self.program, indexed)
    }

    /// The paths in documents that the query orders by, most significant first.
    #[must_use]
    pub fn order(&self) -> Vec<Order<'_>> {
        let keys = self.block().order.iter();
        keys.map(|key| Order { path: &key.path, descending: key.descending }).collect()
    }

    /// The partition keys that can satisfy the query.
    #[must_use]
    pub fn key_ranges(&self, key: &KeyShape) -> KeyRanges {
        plan::key_ranges(&self.program, key)
    }

    /// Runs the query over all documents, in memory.
    ///
    /// Ties in ORDER BY come in the order of the documents.
    pub fn execute<'a>(
        &'a self,
        documents: impl Iterator<Item = impl Into<DocumentView<'a>>> + 'a,
    ) -> Result<Vec<Value>, QueryError> {
        self.execute_within(documents, STEPS_MAX)
    }

    /// As [`Bound::execute`], in at most `steps` steps.
    pub fn execute_within<'a>(
        &'a self,
        documents: impl Iterator<Item = impl Into<DocumentView<'a>>> + 'a,
        steps: usize,
    ) -> Result<Vec<Value>, QueryError> {
        let ledger = Rc::<Ledger>::default();
        let mut rows = Vec::new();
        self.execute_each(documents, steps, &ledger, &mut |row| {
            // A tree of values takes more than its text.
            ledger.keep(row.footprint())?;
            rows.extend(row.value()?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(rows)
    }

    /// As [`Bound::execute_within`], one row after the other.
    pub fn execute_each<'a>(
        &'a self,
        documents: impl Iterator<Item = impl Into<DocumentView<'a>>> + 'a,
        steps: usize,
        ledger: &Rc<Ledger>,
        sink: RowSink<'_>,
    ) -> Result<(), QueryError> {
        let ambient = Ambient::within(&self.program.context, steps, Rc::clone(ledger));
        let mut env = Env::new(self.program.slots, &ambient);
        env.documents = Some(Box::new(documents.map(Into::into)));
        let _ = execute::run(self.block(), &mut env, &mut |env, row| {
            sink(Row::new(&[], &row, env.budget()))
        })?;
        Ok(())
    }

    /// The same query over no rows: an aggregate has its value of an empty input.
    #[must_use]
    pub fn over_no_rows(mut self) -> Bound {
        self.program.block.filter = Some(Expr::Constant(Constant::Bool(false)));
        if let Some(own) = &mut self.own {
            Arc::make_mut(own).has_no_rows = true;
        }
        self
    }

    pub(crate) fn own_text(&self) -> Option<&BoundText> {
        self.own.as_deref()
    }

    /// The functions that it may call.
    #[must_use]
    pub fn functions(&self) -> Option<&Arc<dyn UserFunctions>> {
        self.program.context.functions.as_ref()
    }

    pub(crate) fn program(&self) -> &Program {
        &self.program
    }

    fn block(&self) -> &Block {
        &self.program.block
    }

    fn row_slot(&self) -> Option<Slot> {
        match self.block().sources.as_slice() {
            [source] if source.is_document() && self.block().grouping.is_none() => {
                Some(source.slot)
            }
            _ => None,
        }
    }

    fn ambient(&self) -> Ambient {
        Ambient::new(&self.program.context)
    }

    fn row<'a>(
        &self,
        document: DocumentView<'a>,
        ambient: &'a Ambient,
    ) -> Result<Env<'a>, QueryError> {
        let what = || "asking a query with joins or groups about one document".to_owned();
        let slot = self.row_slot().ok_or_else(|| QueryError::Unsupported { what: what() })?;
        let mut env = Env::new(self.program.slots, ambient);
        env.set(slot, Datum::of_document(document));
        Ok(env)
    }
}

/// Steps of evaluating a condition on an item: all other writes of the partition wait
/// meanwhile. A fifth of a second, and enough to read the largest item some thirty times.
pub const CONDITION_STEPS_MAX: usize = STEPS_MAX / 5;

/// The condition of a patch: what follows `SELECT *`, for example
/// `from c where c.n = 1`.
#[derive(Clone, Debug)]
pub struct Condition {
    bound: Bound,
}

impl Condition {
    /// Positions in errors count from the start of the condition.
    pub fn parse(text: &str) -> Result<Condition, QueryError> {
        let select = parser::parse_condition(text)?;
        let (none, context) = (Parameters::none(), Arc::default());
        let steps = bind::QUICK_FOLD_STEPS_MAX;
        let program = bind::bind_within(steps, (text, &select), &none, &context)?;
        program.check_run()?;
        Ok(Condition { bound: Bound { program, own: None } })
    }

    /// Whether the query of the condition returns a row for the document.
    pub fn holds<'d>(&self, document: impl Into<DocumentView<'d>>) -> Result<bool, QueryError> {
        let document = document.into();
        if self.bound.is_rowwise() {
            return self.bound.matches_within(document, CONDITION_STEPS_MAX);
        }
        let rows = self.bound.execute_within(std::iter::once(document), CONDITION_STEPS_MAX)?;
        Ok(!rows.is_empty())
    }
}

/// Checks the text of a computed property: `SELECT VALUE … FROM alias` and no other
/// clause, with names and functions that exist.
pub fn check_computed_property(text: &str) -> Result<(), QueryError> {
    match bind::check_computed(text, &Arc::default())? {
        true => Ok(()),
        false => Err(Refusal::ComputedProperty.into()),
    }
}

/// The canonical text of a lone expression.
pub fn canonical_expression(text: &str) -> Result<String, QueryError> {
    parser::parse_expression(text).map(|expr| expr.to_string())
}

/// Evaluates a lone expression that refers to no document.
pub fn evaluate(text: &str, parameters: &Parameters) -> Result<Option<Value>, QueryError> {
    evaluate_in(text, parameters, &Arc::default())
}

/// Evaluates a lone expression in a context.
pub fn evaluate_in(
    text: &str,
    parameters: &Parameters,
    context: &Arc<Context>,
) -> Result<Option<Value>, QueryError> {
    let expr = parser::parse_expression(text)?;
    let (bound, slots) = bind::bind_expression(text, &expr, parameters, context)?;
    let ambient = Ambient::new(context);
    let mut env = Env::new(slots, &ambient);
    let value = eval::evaluate(&bound, &mut env)?;
    value.to_value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_queries_can_be_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Bound>();
        shared::<Condition>();
    }

    #[test]
    fn one_document_is_asked_about_by_itself() {
        let query = Query::parse("SELECT c.a FROM c WHERE c.n = @n").unwrap();
        let bound = query.bind(&Parameters::none().with("@n", 1_u32)).unwrap();
        let (kept, other) = (Raw::trusted(r#"{"n":1.0,"a":"x"}"#), Raw::trusted(r#"{"n":"1"}"#));
        assert!(bound.matches(kept).unwrap());
        assert!(!bound.matches(other).unwrap());
        assert_eq!(bound.project(kept).unwrap().unwrap().to_string(), r#"{"a":"x"}"#);
        assert_eq!(bound.project(other).unwrap().unwrap().to_string(), "{}");
    }

    #[test]
    fn joins_and_groups_are_not_about_one_document() {
        for text in ["SELECT VALUE COUNT(1) FROM c", "SELECT VALUE t FROM t IN c.l"] {
            let bound = Query::parse(text).unwrap().bind(&Parameters::none()).unwrap();
            assert!(!bound.is_rowwise());
            let error = bound.matches(Raw::trusted("{}")).unwrap_err();
            assert!(matches!(error, QueryError::Unsupported { .. }));
        }
    }

    #[test]
    fn parameters_are_read_from_the_clients_list() {
        let list =
            |text: &str| Parameters::from_list(&model::json::parse(text.as_bytes()).unwrap());
        let parameters =
            list(r#"[{"name":"@a","value":[1]},{"name":"@b_2","value":null}]"#).unwrap();
        assert_eq!(parameters.get("@a").unwrap().to_string(), "[1]");
        for wrong in [
            "{}",
            r#"[{"name":"a","value":1}]"#,
            r#"[{"name":"@a","value":1},{"name":"@a","value":1}]"#,
            r#"[{"name":"@*","value":1}]"#,
        ] {
            assert!(matches!(list(wrong), Err(QueryError::Refused(_))), "{wrong}");
        }
    }
}
