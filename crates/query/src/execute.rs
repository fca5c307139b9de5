//! Execution of a query over documents: sources → WHERE → groups → ORDER BY → DISTINCT →
//! OFFSET, LIMIT and TOP.
//!
//! Rows are pushed from the sources towards the end, so a query without an order streams,
//! and stops reading as soon as it has enough (early termination).

mod aggregate;
mod group;
mod order;
mod partial;

pub use aggregate::AggregateKind;
use aggregate::SEEN_BYTES;
pub(crate) use group::Groups;
pub use partial::PartialGroups;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::bound::{Block, Expr, Origin, Source};
use crate::error::QueryError;
use crate::eval::{Datum, Env, Evaluated, VALUE_BYTES_MAX, bounded, distinction, evaluate, truth};
use crate::syntax::SubqueryKind;

/// Whether the consumer of the rows wants more.
pub(crate) type Flow = Result<ControlFlow<()>, QueryError>;

/// Consumes one row; the environment is passed along because execution continues in it.
pub(crate) type Sink<'s, 'a> = &'s mut dyn FnMut(&mut Env<'a>, Datum<'a>) -> Flow;

/// Steps that a row takes besides those of its expressions.
const ROW_STEPS: usize = 10;

pub(crate) const MORE: Flow = Ok(ControlFlow::Continue(()));
pub(crate) const ENOUGH: Flow = Ok(ControlFlow::Break(()));

/// Passes the rows of a query or subquery to `sink`.
pub(crate) fn run<'a>(block: &'a Block, env: &mut Env<'a>, sink: Sink<'_, 'a>) -> Flow {
    if block.counts.given() == 0 {
        return MORE;
    }
    let mut tail = Tail::new(block);
    if let Some(grouping) = &block.grouping {
        let mut groups = Groups::new(grouping);
        let _ = visit(block, &block.sources, env, &mut |env| {
            groups.add(grouping, env)?;
            MORE
        })?;
        let _ = groups
            .finish_in_order(block, grouping, env, &mut |env, row| tail.pass(env, row, sink))?;
    } else if !block.order.is_empty() {
        let rows = order::rows(block, env)?;
        tail.pass_all(env, rows, sink)?;
    } else {
        let _ = visit(block, &block.sources, env, &mut |env| {
            let row = evaluate(&block.output, env)?;
            tail.pass(env, row, sink)
        })?;
    }
    if tail.stopped { ENOUGH } else { MORE }
}

/// Calls `row` for every combination of the sources that passes the filter.
pub(crate) fn visit<'a>(
    block: &'a Block,
    sources: &'a [Source],
    env: &mut Env<'a>,
    row: &mut dyn FnMut(&mut Env<'a>) -> Flow,
) -> Flow {
    let Some((source, rest)) = sources.split_first() else {
        env.budget().spend_steps(ROW_STEPS)?;
        return if passes(block.filter.as_ref(), env)? { row(env) } else { MORE };
    };
    let mut bind = |env: &mut Env<'a>, value: Datum<'a>| {
        bind_rows(source, env, value, &mut |env| visit(block, rest, env, row))
    };
    match &source.origin {
        Origin::Slot(slot) => {
            let value = env.get(*slot).clone();
            bind(env, value)
        }
        Origin::Block(inner) => run(inner, env, &mut bind),
        Origin::Container => {
            for document in env.documents.take().into_iter().flatten() {
                if bind(env, Datum::of_document(document))?.is_break() {
                    return ENOUGH;
                }
            }
            MORE
        }
    }
}

/// Binds the rows of one value of a source: itself, or each of its elements.
fn bind_rows<'a>(
    source: &'a Source,
    env: &mut Env<'a>,
    value: Datum<'a>,
    next: &mut dyn FnMut(&mut Env<'a>) -> Flow,
) -> Flow {
    env.budget().spend_reading(source.steps.len().saturating_mul(value.weight()))?;
    let value = source.steps.iter().fold(value, |value, step| step.of(&value));
    if !source.iterates {
        if !value.is_defined() {
            return MORE;
        }
        env.set(source.slot, value);
        return next(env);
    }
    env.budget().spend_reading(value.weight())?;
    for element in value.elements().unwrap_or_default() {
        env.budget().spend_steps(ROW_STEPS)?;
        env.set(source.slot, element);
        if next(env)?.is_break() {
            return ENOUGH;
        }
    }
    MORE
}

/// A row stays only if the filter is exactly true.
pub(crate) fn passes<'a>(filter: Option<&'a Expr>, env: &mut Env<'a>) -> Result<bool, QueryError> {
    match filter {
        Some(filter) => Ok(truth(filter, env)? == Some(true)),
        None => Ok(true),
    }
}

/// The last stage of a query: drops rows without a value, duplicates and rows before the
/// offset, and stops at the limit.
struct Tail {
    seen: Option<BTreeSet<String>>,
    skip: usize,
    left: usize,
    /// The consumer of the rows wants no more, as opposed to the limit.
    stopped: bool,
}

impl Tail {
    fn new(block: &Block) -> Tail {
        let seen = block.distinct.then(BTreeSet::new);
        Tail { seen, skip: block.counts.skipped(), left: block.counts.given(), stopped: false }
    }

    fn pass<'a>(&mut self, env: &mut Env<'a>, row: Datum<'a>, sink: Sink<'_, 'a>) -> Flow {
        if !row.is_defined() || !self.is_new(env, &row)? {
            return MORE;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return MORE;
        }
        self.left = self.left.saturating_sub(1);
        if sink(env, row)?.is_break() {
            self.stopped = true;
            return ENOUGH;
        }
        if self.left == 0 { ENOUGH } else { MORE }
    }

    fn pass_all<'a>(
        &mut self,
        env: &mut Env<'a>,
        rows: Vec<Datum<'a>>,
        sink: Sink<'_, 'a>,
    ) -> Result<(), QueryError> {
        for row in rows {
            if self.pass(env, row, sink)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn is_new(&mut self, env: &Env<'_>, row: &Datum<'_>) -> Result<bool, QueryError> {
        let Some(seen) = &mut self.seen else { return Ok(true) };
        env.budget().spend_reading(row.effort())?;
        let distinction = distinction(row);
        let bytes = distinction.len() + SEEN_BYTES;
        let new = seen.insert(distinction);
        if new {
            env.budget().spend_bytes(bytes)?;
        }
        Ok(new)
    }
}

/// The value of a subquery inside an expression.
pub(crate) fn subquery<'a>(
    kind: SubqueryKind,
    block: &'a Block,
    env: &mut Env<'a>,
) -> Evaluated<'a> {
    match kind {
        SubqueryKind::Exists => exists(block, env).map(Datum::Bool),
        // The binder negated the filter: no row breaks it.
        SubqueryKind::All => exists(block, env).map(|found| Datum::Bool(!found)),
        SubqueryKind::Array => collected(block, env),
        SubqueryKind::Scalar => {
            let mut rows = up_to(2, block, env)?;
            if rows.len() > 1 {
                return Err(QueryError::Cardinality);
            }
            Ok(rows.pop().unwrap_or(Datum::Undefined))
        }
        SubqueryKind::First => Ok(up_to(1, block, env)?.pop().unwrap_or(Datum::Undefined)),
        SubqueryKind::Last => {
            let mut last = Datum::Undefined;
            let _ = run(block, env, &mut |_, row| {
                last = row;
                MORE
            })?;
            Ok(last)
        }
    }
}

fn exists<'a>(block: &'a Block, env: &mut Env<'a>) -> Result<bool, QueryError> {
    Ok(!up_to(1, block, env)?.is_empty())
}

fn up_to<'a>(
    count: usize,
    block: &'a Block,
    env: &mut Env<'a>,
) -> Result<Vec<Datum<'a>>, QueryError> {
    let mut rows = Vec::new();
    let _ = run(block, env, &mut |_, row| {
        rows.push(row);
        if rows.len() < count { MORE } else { ENOUGH }
    })?;
    Ok(rows)
}

/// All rows as one array. The size is checked with each row, not at the end.
fn collected<'a>(block: &'a Block, env: &mut Env<'a>) -> Evaluated<'a> {
    let (mut rows, mut bytes) = (Vec::new(), 0_usize);
    let _ = run(block, env, &mut |env, row| {
        env.budget().spend_bytes(row.weight() + size_of::<Datum<'_>>())?;
        bytes = bytes.saturating_add(row.weight());
        if bytes > VALUE_BYTES_MAX {
            return Err(QueryError::Limit { what: "bytes in one value", limit: VALUE_BYTES_MAX });
        }
        rows.push(row);
        MORE
    })?;
    bounded(Datum::array(rows))
}
