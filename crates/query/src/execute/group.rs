//! GROUP BY, and aggregates without it: one group for all rows.

use std::collections::BTreeMap;

use super::aggregate::Accumulator;
use super::{MORE, visit};
use crate::bound::{Block, Grouping};
use crate::error::QueryError;
use crate::eval::{Datum, Env, evaluate, identity};

struct Group<'a> {
    /// The sources' values in the group's first row. The output refers to
    /// nothing but keys and aggregates, so any row of the group would do.
    row: Vec<Datum<'a>>,
    accumulators: Vec<Accumulator<'a>>,
}

/// The outputs of all groups, in the order of their keys.
pub(super) fn rows<'a>(
    block: &'a Block,
    grouping: &'a Grouping,
    env: &mut Env<'a>,
) -> Result<Vec<Datum<'a>>, QueryError> {
    let groups = gather(block, grouping, env)?;
    let mut outputs = Vec::with_capacity(groups.len());
    for group in groups.into_values() {
        for (slot, value) in grouping.slots.clone().zip(group.row) {
            env.set(slot, value);
        }
        for (aggregate, accumulator) in grouping.aggregates.iter().zip(group.accumulators) {
            env.set(aggregate.slot, accumulator.finish());
        }
        outputs.push(evaluate(&block.output, env)?);
    }
    Ok(outputs)
}

fn gather<'a>(
    block: &'a Block,
    grouping: &'a Grouping,
    env: &mut Env<'a>,
) -> Result<BTreeMap<Vec<String>, Group<'a>>, QueryError> {
    let mut groups = BTreeMap::new();
    if grouping.keys.is_empty() {
        // Without keys there is a group even if there is no row.
        groups.insert(Vec::new(), Group::new(grouping, Vec::new()));
    }
    let _ = visit(block, &block.sources, env, &mut |env| {
        let mut keys = Vec::with_capacity(grouping.keys.len());
        for key in &grouping.keys {
            keys.push(identity(&evaluate(key, env)?));
        }
        if !groups.contains_key(&keys) {
            env.budget.spend_bytes(keys.iter().map(String::len).sum())?;
        }
        let group = groups.entry(keys).or_insert_with(|| {
            let row = grouping.slots.clone().map(|slot| env.get(slot).clone()).collect();
            Group::new(grouping, row)
        });
        for (aggregate, accumulator) in grouping.aggregates.iter().zip(&mut group.accumulators) {
            let value = evaluate(&aggregate.argument, env)?;
            accumulator.add(value, &env.budget)?;
        }
        MORE
    })?;
    Ok(groups)
}

impl<'a> Group<'a> {
    fn new(grouping: &Grouping, row: Vec<Datum<'a>>) -> Group<'a> {
        let accumulators =
            grouping.aggregates.iter().map(|aggregate| Accumulator::new(aggregate.kind)).collect();
        Group { row, accumulators }
    }
}
