//! Incremental execution of a query, over documents that come one after another.
//!
//! For callers that read documents from an index or a scan and cannot hold them all: a
//! [`Run`] takes one document at a time and returns its rows, or accumulates groups. Order,
//! DISTINCT and counts are then for the caller to apply; the rows carry what is needed for
//! it.

use std::fmt;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use model::json::Value;

use crate::bound::{Block, Expr, GroupOrder, Grouping, Origin};
use crate::context::Watch;
use crate::document::DocumentView;
use crate::error::QueryError;
use crate::eval::{Ambient, Budget, Datum, Env, STEPS_MAX, distinction, evaluate, representative};
use crate::execute::{self, AggregateKind, Groups, MORE, PartialGroups};
use crate::ledger::Ledger;
use crate::query::Bound;
use crate::{Path, bind};

/// One run of a bound query.
pub struct Run<'q> {
    bound: &'q Bound,
    ambient: Ambient,
    /// Steps for later documents: one alone may take [`STEPS_MAX`], or the query could not
    /// be stopped for a long time.
    later: usize,
    groups: Option<Groups>,
    /// Bytes that are kept for the groups.
    kept: usize,
    /// The output expression, if rows are distinguished by their output.
    shown: Option<&'q Expr>,
}

/// A row before it is counted, ordered and compared with others.
pub struct Row<'r, 'd> {
    keys: &'r [Datum<'d>],
    output: &'r Datum<'d>,
    budget: &'r Budget,
    /// The output expression, if the row is distinguished by its output.
    shown: Option<&'r Expr>,
}

/// One of the values that distinguish rows which are groups or distinct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueKey {
    /// Its path in the document, if it is not computed.
    pub path: Option<Path>,
    pub descending: bool,
    /// Whether there is no row without it.
    pub required: bool,
}

/// Consumes rows; returns whether it wants more.
pub type RowSink<'s> = &'s mut dyn FnMut(Row<'_, '_>) -> Result<ControlFlow<()>, QueryError>;

/// An aggregate of the select list, as far as an index may answer it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aggregated {
    pub kind: AggregateKind,
    pub argument: Argument,
}

/// The argument of an aggregate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// The same value for every row, so that only the number of rows counts.
    Constant(Option<Value>),
    /// The value at a path of the document.
    Path(Path),
    Computed,
}

impl<'q> Run<'q> {
    /// Begins a run of at most `steps` steps; see [`crate::STEPS_MAX`].
    #[must_use]
    pub fn new(bound: &'q Bound, steps: usize) -> Run<'q> {
        Run::within(bound, steps, Rc::default())
    }

    /// As [`Run::new`], for a query that counts its memory.
    #[must_use]
    pub fn within(bound: &'q Bound, steps: usize, ledger: Rc<Ledger>) -> Run<'q> {
        let ambient = Ambient::within(&bound.program().context, steps, ledger);
        let groups = bound.program().block.grouping.as_ref().map(Groups::new);
        Run { bound, ambient, later: 0, groups, kept: 0, shown: bound.shown() }
    }

    /// As [`Run::within`], over one of several parts of the documents, with a watch of its
    /// own instead of that of the binding. Parts have numbers, so that they draw different
    /// random numbers; the first is 0.
    #[must_use]
    pub fn of_part(
        bound: &'q Bound,
        steps: usize,
        ledger: Rc<Ledger>,
        part: (u64, Option<Arc<dyn Watch>>),
    ) -> Run<'q> {
        let ambient = Ambient::of_part(&bound.program().context, steps, ledger, part);
        let groups = bound.program().block.grouping.as_ref().map(Groups::new);
        Run { bound, ambient, later: 0, groups, kept: 0, shown: bound.shown() }
    }

    /// Adds a document to the query, and passes its rows to `sink`. Where the query
    /// aggregates, there are no rows until the run ends.
    pub fn document(
        &mut self,
        document: DocumentView<'_>,
        sink: RowSink<'_>,
    ) -> Result<ControlFlow<()>, QueryError> {
        let program = self.bound.program();
        let steps = self.steps_left();
        self.later = steps.saturating_sub(STEPS_MAX);
        self.ambient.budget.allow_steps(steps - self.later);
        let (block, ambient) = (&program.block, &self.ambient);
        let mut env = Env::new(program.slots, ambient);
        env.documents = Some(Box::new(std::iter::once(document)));
        let mut groups = self.groups.as_mut().zip(block.grouping.as_ref());
        let (kept, shown) = (&mut self.kept, self.shown);
        let flow = execute::visit(block, &block.sources, &mut env, &mut |env| {
            if let Some((groups, grouping)) = &mut groups {
                let bytes = groups.add(grouping, env)?;
                env.budget().keep(bytes);
                *kept += bytes;
                return MORE;
            }
            let mut keys = Vec::with_capacity(block.order.len());
            for key in &block.order {
                keys.push(evaluate(&key.expr, env)?);
            }
            let output = evaluate(&block.output, env)?;
            sink(Row { shown, ..Row::new(&keys, &output, env.budget()) })
        });
        drop(env);
        ambient.budget.end_document();
        flow
    }

    /// Passes the rows of the groups so far to `sink`, in no order and with duplicates, and
    /// continues without them; none where the query does not aggregate.
    pub fn finish(&mut self, sink: RowSink<'_>) -> Result<ControlFlow<()>, QueryError> {
        let block = &self.bound.program().block;
        let Some((groups, grouping)) = self.groups.as_mut().zip(block.grouping.as_ref()) else {
            return MORE;
        };
        let groups = std::mem::replace(groups, Groups::new(grouping));
        let mut env = Env::new(self.bound.program().slots, &self.ambient);
        let flow = groups.finish(block, grouping, &mut env, &mut |env, order, row| {
            sink(Row { shown: self.shown, ..Row::new(order, &row, env.budget()) })
        });
        drop(env);
        self.ambient.budget.end_document();
        self.ambient.budget.release(std::mem::take(&mut self.kept));
        flow
    }

    /// The groups so far, for another run of the query to merge. This one continues without
    /// them.
    pub fn take_partial(&mut self) -> PartialGroups {
        let grouping = self.bound.program().block.grouping.as_ref();
        let Some((groups, grouping)) = self.groups.as_mut().zip(grouping) else {
            return PartialGroups::default();
        };
        let groups = std::mem::replace(groups, Groups::new(grouping));
        self.ambient.budget.release(std::mem::take(&mut self.kept));
        groups.into_partial()
    }

    /// Merges groups that another run of the query has accumulated from later documents.
    pub fn merge(&mut self, partial: PartialGroups) -> Result<(), QueryError> {
        let grouping = self.bound.program().block.grouping.as_ref();
        let Some((groups, grouping)) = self.groups.as_mut().zip(grouping) else { return Ok(()) };
        let budget = &self.ambient.budget;
        let bytes = groups.merge(grouping, partial, budget)?;
        budget.keep(bytes);
        self.kept += bytes;
        budget.end_document();
        Ok(())
    }

    /// Adds documents that are known only by their number. For queries that count documents
    /// and read nothing else: see [`Bound::counts_documents`].
    pub fn add_documents(&mut self, count: u64) {
        if let Some(groups) = self.groups.as_mut().filter(|_| self.bound.counts_documents()) {
            groups.count(usize::try_from(count).unwrap_or(usize::MAX));
        }
    }

    /// The remaining steps of the run.
    #[must_use]
    pub fn steps_left(&self) -> usize {
        self.later.saturating_add(self.ambient.budget.steps_left())
    }
}

impl<'r, 'd> Row<'r, 'd> {
    pub(crate) fn new(
        keys: &'r [Datum<'d>],
        output: &'r Datum<'d>,
        budget: &'r Budget,
    ) -> Row<'r, 'd> {
        Row { keys, output, budget, shown: None }
    }

    fn built(&self, datum: &Datum<'d>) -> Result<Option<Value>, QueryError> {
        self.budget.spend_reading(datum.effort())?;
        datum.to_value()
    }

    /// Approximate bytes of its value.
    pub(crate) fn footprint(&self) -> usize {
        self.output.footprint()
    }

    /// The output of the query; `None` drops the row.
    pub fn value(&self) -> Result<Option<Value>, QueryError> {
        self.built(self.output)
    }

    /// The output of the query as JSON text; `None` drops the row.
    pub fn text(&self) -> Result<Option<String>, QueryError> {
        self.budget.spend_reading(self.output.weight())?;
        self.output.to_text()
    }

    /// The sort keys, `None` for undefined. They compare as the language orders values;
    /// descending keys are for the caller to reverse.
    pub fn keys(&self) -> Result<Vec<Option<Value>>, QueryError> {
        self.keys.iter().map(|key| self.built(key)).collect()
    }

    /// The values that distinguish it from all others, as [`Bound::value_order`] lists
    /// them: distinct rows differ in them, and equal ones agree in them.
    pub fn values(&self) -> Result<Vec<Option<Value>>, QueryError> {
        let Some(shown) = self.shown else { return self.keys() };
        self.budget.spend_reading(self.output.effort())?;
        let Expr::Object(members) = shown else { return Ok(vec![representative(self.output)]) };
        Ok(members.iter().map(|(name, _)| representative(&self.output.get(name))).collect())
    }

    /// A text that two rows share exactly if DISTINCT treats them as one.
    #[must_use]
    pub fn identity(&self) -> String {
        distinction(self.output)
    }
}

impl Bound {
    /// Whether the query ranges over documents at all; if not, it returns its rows without
    /// any.
    #[must_use]
    pub fn reads_documents(&self) -> bool {
        !self.program().block.sources.is_empty()
    }

    /// Whether a subquery in FROM makes its rows of all documents together, by DISTINCT or
    /// in groups, or of none. Such a query cannot be executed document by document: see
    /// [`Bound::execute_within`].
    #[must_use]
    pub fn gathers_documents(&self) -> bool {
        gathers(&self.program().block)
    }

    /// Whether FROM makes its rows of no document at all. Every partition would make the
    /// same ones, so one of them stands for all.
    #[must_use]
    pub fn makes_rows_of_nothing(&self) -> bool {
        makes_of_nothing(&self.program().block)
    }

    #[must_use]
    pub fn is_distinct(&self) -> bool {
        self.program().block.distinct
    }

    /// The order of rows that are groups or distinct: that of the values that distinguish
    /// them. `None` for other queries, and for distinct rows in the order of something that
    /// is not in their output.
    #[must_use]
    pub fn value_order(&self) -> Option<Vec<ValueKey>> {
        let block = &self.program().block;
        if let Some(output) = self.shown() {
            let descends = block.order.iter().map(|key| key.descending);
            let descends = descends.chain(std::iter::repeat(false));
            let required = !matches!(output, Expr::Object(_));
            let keys = members(output).zip(descends);
            let key = |(expr, descending)| ValueKey { path: self.path(expr), descending, required };
            return Some(keys.map(key).collect());
        }
        let grouping = block.grouping.as_ref()?;
        let key = |own: &GroupOrder| ValueKey {
            path: self.path_of_group(grouping, &own.expr),
            descending: own.descending,
            required: false,
        };
        Some(grouping.order.iter().map(key).collect())
    }

    /// The output expression, where rows are distinguished by their output: they have no
    /// order, or that of their output.
    fn shown(&self) -> Option<&Expr> {
        let block = &self.program().block;
        let is_ordered = match &block.grouping {
            Some(grouping) => grouping.is_ordered,
            None => !block.order.is_empty() && !self.shows_order(),
        };
        (block.distinct && !is_ordered).then_some(&block.output)
    }

    /// Whether the output of a row is its sort keys, in the same sequence, and nothing
    /// else.
    fn shows_order(&self) -> bool {
        let block = &self.program().block;
        // A computed value has no names.
        let is_place = |path: &Path| path.names().is_some_and(|names| !names.is_empty());
        let shown = members(&block.output).map(|expr| self.path(expr).filter(is_place));
        block.order.iter().all(|key| is_place(&key.path))
            && shown.eq(block.order.iter().map(|key| Some(key.path.clone())))
    }

    /// Whether the query asks for an order of its groups.
    #[must_use]
    pub fn orders_groups(&self) -> bool {
        self.program().block.grouping.as_ref().is_some_and(|grouping| grouping.is_ordered)
    }

    /// The path of a sort key of groups, if it is one of their keys.
    fn path_of_group(&self, grouping: &Grouping, expr: &Expr) -> Option<Path> {
        let Expr::Slot(slot) = expr else { return None };
        let key = grouping.keys.iter().find(|key| key.slot == *slot)?;
        self.path(&key.expr)
    }

    /// The number of rows to skip, and the number to return then.
    #[must_use]
    pub fn window(&self) -> (usize, usize) {
        let counts = self.program().block.counts;
        (counts.skipped(), counts.given())
    }

    /// Whether each document yields its rows by itself, and nothing asks for an order of
    /// them.
    #[must_use]
    pub fn streams(&self) -> bool {
        let is_each = self.reads_documents() && !self.gathers_documents();
        is_each && !self.is_aggregated() && !self.is_distinct() && self.order().is_empty()
    }

    /// Whether rows are aggregated, by GROUP BY or into one.
    #[must_use]
    pub fn is_aggregated(&self) -> bool {
        self.program().block.grouping.is_some()
    }

    /// Whether it only counts the documents that it keeps.
    #[must_use]
    pub fn counts_documents(&self) -> bool {
        let block = &self.program().block;
        let one_row = matches!(block.sources.as_slice(), [source] if source.is_document());
        let counts = |own: &Aggregated| {
            let defined = matches!(own.argument, Argument::Constant(Some(_)));
            own.kind == AggregateKind::Count && defined
        };
        let aggregates = self.aggregates();
        one_row && !aggregates.is_empty() && aggregates.iter().all(counts)
    }

    /// The aggregates, in the order of the select list, if all rows make one group.
    #[must_use]
    pub fn aggregates(&self) -> Vec<Aggregated> {
        let grouping = self.program().block.grouping.as_ref();
        let one_group = grouping.filter(|grouping| grouping.keys.is_empty());
        let aggregates = one_group.map_or(&[][..], |grouping| &grouping.aggregates[..]);
        let argument = |expr: &Expr| self.argument(expr);
        aggregates
            .iter()
            .map(|own| Aggregated { kind: own.kind, argument: argument(&own.argument) })
            .collect()
    }

    fn argument(&self, expr: &Expr) -> Argument {
        if let Expr::Constant(constant) = expr {
            return Argument::Constant(constant.to_value());
        }
        self.path(expr).map_or(Argument::Computed, Argument::Path)
    }

    fn path(&self, expr: &Expr) -> Option<Path> {
        bind::path_of(expr, &|slot| self.program().paths.get(&slot))
    }
}

/// The members of an object constructor, or the one expression itself.
fn members(output: &Expr) -> impl Iterator<Item = &Expr> {
    let own = if let Expr::Object(members) = output { Some(members) } else { None };
    let alone = own.is_none().then_some(output);
    own.into_iter().flatten().map(|(_, expr)| expr).chain(alone)
}

fn gathers(block: &Block) -> bool {
    let Some(Origin::Block(inner)) = block.sources.first().map(|source| &source.origin) else {
        return false;
    };
    inner.distinct || inner.grouping.is_some() || inner.sources.is_empty() || gathers(inner)
}

fn makes_of_nothing(block: &Block) -> bool {
    let Some(Origin::Block(inner)) = block.sources.first().map(|source| &source.origin) else {
        return false;
    };
    inner.sources.is_empty() || makes_of_nothing(inner)
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("bound", self.bound).finish_non_exhaustive()
    }
}

impl fmt::Debug for Row<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Row").field("output", self.output).finish_non_exhaustive()
    }
}
