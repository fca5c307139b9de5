//! ORDER BY.

use std::cmp::Ordering;

use super::{MORE, visit};
use crate::bound::{Block, OrderKey};
use crate::error::QueryError;
use crate::eval::{Datum, Env, evaluate, total_order};

struct Row<'a> {
    keys: Vec<Datum<'a>>,
    output: Datum<'a>,
}

/// The outputs of all rows, in order. Rows with equal keys keep the order in
/// which they came, and come in the opposite order where the first key descends,
/// as reading an index backwards gives them. Undefined comes before everything else.
pub(super) fn rows<'a>(block: &'a Block, env: &mut Env<'a>) -> Result<Vec<Datum<'a>>, QueryError> {
    let mut rows = Vec::new();
    let _ = visit(block, &block.sources, env, &mut |env| {
        let mut keys = Vec::with_capacity(block.order.len());
        for key in &block.order {
            keys.push(evaluate(&key.expr, env)?);
        }
        let output = evaluate(&block.output, env)?;
        let weight = keys.iter().fold(output.weight(), |sum, key| sum.saturating_add(key.weight()));
        let fields = size_of::<Row<'_>>() + keys.len() * size_of::<Datum<'_>>();
        // A growing list has up to twice the capacity that it needs.
        env.budget().spend_bytes(weight.saturating_add(2 * fields))?;
        // It is compared with others, as often as the logarithm of their number.
        let effort = keys.iter().fold(0_usize, |sum, key| sum.saturating_add(key.effort()));
        let levels = usize::BITS - rows.len().leading_zeros();
        let levels = usize::try_from(levels).unwrap_or(usize::MAX);
        env.budget().spend_reading(effort.saturating_mul(levels))?;
        rows.push(Row { keys, output });
        MORE
    })?;
    if block.order.first().is_some_and(|key| key.descending) {
        rows.reverse();
    }
    rows.sort_by(|a, b| compare(&block.order, &a.keys, &b.keys));
    Ok(rows.into_iter().map(|row| row.output).collect())
}

fn compare(order: &[OrderKey], a: &[Datum<'_>], b: &[Datum<'_>]) -> Ordering {
    order
        .iter()
        .zip(a.iter().zip(b))
        .map(|(key, (a, b))| {
            let order = total_order(a, b);
            if key.descending { order.reverse() } else { order }
        })
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}
