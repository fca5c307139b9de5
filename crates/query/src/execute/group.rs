//! GROUP BY, and aggregates without it: one group for all rows.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::aggregate::Accumulator;
use super::partial::{PartialGroup, PartialGroups, Plain};
use super::{ENOUGH, Flow, MORE};
use crate::bound::{Block, Grouping};
use crate::error::QueryError;
use crate::eval::{
    ALLOCATION_BYTES, Budget, Datum, Env, distinction, evaluate, order_beyond_doubles,
    representative, total_order,
};

/// The groups so far, by what distinguishes their keys. Nothing in here refers to a
/// document, so documents can be dropped while groups accumulate.
#[derive(Debug)]
pub(crate) struct Groups {
    groups: BTreeMap<Vec<String>, Group>,
}

/// What a group takes besides its keys and aggregates; nodes of the map are half full.
const GROUP_BYTES: usize =
    2 * (size_of::<Vec<String>>() + size_of::<Group>()) + 3 * ALLOCATION_BYTES;

/// What a key of a group takes besides its texts.
const KEY_BYTES: usize = size_of::<String>() + size_of::<Datum<'static>>() + ALLOCATION_BYTES;

#[derive(Debug)]
struct Group {
    keys: Vec<Datum<'static>>,
    accumulators: Vec<Accumulator>,
}

impl Groups {
    pub(crate) fn new(grouping: &Grouping) -> Groups {
        let mut groups = BTreeMap::new();
        if grouping.keys.is_empty() {
            // Without keys there is a group even if there is no row.
            groups.insert(Vec::new(), Group::new(grouping, Vec::new()));
        }
        Groups { groups }
    }

    /// Adds the current row of the environment. Returns the bytes that are kept for it,
    /// which are counted already.
    pub(crate) fn add<'a>(
        &mut self,
        grouping: &'a Grouping,
        env: &mut Env<'a>,
    ) -> Result<usize, QueryError> {
        let mut keys = Vec::with_capacity(grouping.keys.len());
        for key in &grouping.keys {
            keys.push(evaluate(&key.expr, env)?);
        }
        let budget = env.budget();
        for key in &keys {
            budget.spend_reading(key.effort())?;
        }
        let (group, mut kept) = self.group_of(grouping, &keys, budget)?;
        for (aggregate, accumulator) in grouping.aggregates.iter().zip(&mut group.accumulators) {
            let value = evaluate(&aggregate.argument, env)?;
            kept += accumulator.add(&value, budget)?;
        }
        Ok(kept)
    }

    /// The group with these keys, and the bytes that are kept for it if it is a new one,
    /// which are counted already.
    fn group_of(
        &mut self,
        grouping: &Grouping,
        keys: &[Datum<'_>],
        budget: &Budget,
    ) -> Result<(&mut Group, usize), QueryError> {
        let identities: Vec<String> = keys.iter().map(distinction).collect();
        let (bytes, mut kept) = (identities.iter().map(String::len).sum(), 0);
        budget.spend_reading(bytes)?;
        if !self.groups.contains_key(&identities) {
            let values = keys.iter().fold(0_usize, |sum, key| sum.saturating_add(key.footprint()));
            let fields =
                keys.len() * KEY_BYTES + grouping.aggregates.len() * size_of::<Accumulator>();
            kept = (GROUP_BYTES + fields + bytes).saturating_add(values);
            // A value exists twice while it is detached.
            budget.spend_bytes(kept.saturating_add(values))?;
        }
        let group = self
            .groups
            .entry(identities)
            .or_insert_with(|| Group::new(grouping, keys.iter().map(Datum::detached).collect()));
        Ok((group, kept))
    }

    /// The groups as plain data.
    pub(crate) fn into_partial(self) -> PartialGroups {
        let partial = |group: Group| PartialGroup {
            keys: group.keys.iter().map(Plain::of).collect(),
            aggregates: group.accumulators.into_iter().map(Accumulator::into_partial).collect(),
        };
        PartialGroups { groups: self.groups.into_values().map(partial).collect() }
    }

    /// Merges groups that were accumulated elsewhere, of later documents. Returns the bytes
    /// that are kept for them, which are counted already.
    pub(crate) fn merge(
        &mut self,
        grouping: &Grouping,
        partial: PartialGroups,
        budget: &Budget,
    ) -> Result<usize, QueryError> {
        let mut sum = 0;
        for PartialGroup { keys, aggregates } in partial.groups {
            let keys: Vec<Datum<'static>> = keys.into_iter().map(Plain::into_datum).collect();
            let (group, kept) = self.group_of(grouping, &keys, budget)?;
            sum += kept;
            let own = grouping.aggregates.iter().zip(&mut group.accumulators);
            for ((aggregate, accumulator), partial) in own.zip(aggregates) {
                debug_assert!(partial.is_of(aggregate.kind), "one query, one kind");
                sum += accumulator.merge(partial, budget)?;
            }
        }
        Ok(sum)
    }

    /// Adds this many rows to the one group, all of whose aggregates count rows.
    pub(crate) fn count(&mut self, rows: usize) {
        for accumulator in self.groups.values_mut().flat_map(|group| &mut group.accumulators) {
            if let Accumulator::Count(count) = accumulator {
                *count = count.saturating_add(rows);
            }
        }
    }

    /// Passes the outputs of all groups to `sink`, with their sort keys. A group is dropped
    /// as soon as its output was passed.
    pub(crate) fn finish<'a>(
        self,
        block: &'a Block,
        grouping: &'a Grouping,
        env: &mut Env<'a>,
        sink: &mut dyn FnMut(&mut Env<'a>, &[Datum<'a>], Datum<'a>) -> Flow,
    ) -> Flow {
        for group in self.groups.into_values() {
            let order = group.stand(grouping, env)?;
            for (aggregate, accumulator) in grouping.aggregates.iter().zip(group.accumulators) {
                env.set(aggregate.slot, accumulator.finish());
            }
            let output = evaluate(&block.output, env)?;
            if sink(env, &order, output)?.is_break() {
                return ENOUGH;
            }
        }
        MORE
    }

    /// As [`Groups::finish`], in order.
    pub(crate) fn finish_in_order<'a>(
        self,
        block: &'a Block,
        grouping: &'a Grouping,
        env: &mut Env<'a>,
        sink: &mut dyn FnMut(&mut Env<'a>, Datum<'a>) -> Flow,
    ) -> Flow {
        let mut rows = Vec::with_capacity(self.groups.len());
        let _ = self.finish(block, grouping, env, &mut |env, order, row| {
            let keys = order.iter().fold(0_usize, |sum, key| sum.saturating_add(key.weight()));
            let fields = (order.len() + 1) * size_of::<Datum<'_>>();
            env.budget().spend_bytes(keys.saturating_add(row.weight()).saturating_add(fields))?;
            rows.push((order.to_vec(), row));
            MORE
        })?;
        rows.sort_by(|(a, _), (b, _)| compare(grouping, a, b));
        for (_, row) in rows {
            if sink(env, row)?.is_break() {
                return ENOUGH;
            }
        }
        MORE
    }
}

fn compare(grouping: &Grouping, a: &[Datum<'_>], b: &[Datum<'_>]) -> Ordering {
    let each = grouping.order.iter().zip(a.iter().zip(b));
    let mut orders = each.map(|(key, (a, b))| {
        let order = total_order(a, b);
        if key.descending { order.reverse() } else { order }
    });
    let beyond = || {
        let mut orders = a.iter().zip(b).map(|(a, b)| order_beyond_doubles(a, b));
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    };
    orders.find(|order| order.is_ne()).unwrap_or_else(beyond)
}

impl Group {
    fn new(grouping: &Grouping, keys: Vec<Datum<'static>>) -> Group {
        let accumulators =
            grouping.aggregates.iter().map(|aggregate| Accumulator::new(aggregate.kind)).collect();
        Group { keys, accumulators }
    }

    /// Loads the group into the environment. Returns its sort keys: one value of all that
    /// are one group.
    fn stand<'a>(
        &self,
        grouping: &'a Grouping,
        env: &mut Env<'a>,
    ) -> Result<Vec<Datum<'a>>, QueryError> {
        for (key, value) in grouping.keys.iter().zip(&self.keys) {
            env.set(key.slot, value.clone());
        }
        let mut order = Vec::with_capacity(grouping.order.len());
        for key in &grouping.order {
            let value = evaluate(&key.expr, env)?;
            env.budget().spend_reading(value.effort())?;
            order.push(representative(&value).map_or(Datum::Undefined, Datum::owned));
        }
        Ok(order)
    }
}
