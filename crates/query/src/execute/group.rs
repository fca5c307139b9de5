//! GROUP BY, and aggregates without it: one group for all rows.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::aggregate::Accumulator;
use super::{ENOUGH, Flow, MORE};
use crate::bound::{Block, Grouping};
use crate::error::QueryError;
use crate::eval::{ALLOCATION_BYTES, Datum, Env, evaluate, identity, place, total_order};

/// The groups so far, by the identities of their keys. Nothing in here refers to
/// a document, so groups can be gathered from documents that come and go.
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

    /// Adds the row that the environment stands on. Says how many bytes are kept for it,
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
        let identities: Vec<String> = keys.iter().map(identity).collect();
        let (bytes, mut kept) = (identities.iter().map(String::len).sum(), 0);
        budget.spend_reading(bytes)?;
        if !self.groups.contains_key(&identities) {
            let values = keys.iter().fold(0_usize, |sum, key| sum.saturating_add(key.footprint()));
            let fields =
                keys.len() * KEY_BYTES + grouping.aggregates.len() * size_of::<Accumulator>();
            kept = (GROUP_BYTES + fields + bytes).saturating_add(values);
            // A value is there twice while it is detached.
            budget.spend_bytes(kept.saturating_add(values))?;
        }
        let group = self
            .groups
            .entry(identities)
            .or_insert_with(|| Group::new(grouping, keys.iter().map(Datum::detached).collect()));
        for (aggregate, accumulator) in grouping.aggregates.iter().zip(&mut group.accumulators) {
            let value = evaluate(&aggregate.argument, env)?;
            kept += accumulator.add(&value, budget)?;
        }
        Ok(kept)
    }

    /// Adds so many rows to the one group, all of whose aggregates count rows.
    pub(crate) fn count(&mut self, rows: usize) {
        for accumulator in self.groups.values_mut().flat_map(|group| &mut group.accumulators) {
            if let Accumulator::Count(count) = accumulator {
                *count = count.saturating_add(rows);
            }
        }
    }

    /// Gives the outputs of all groups to `sink`, in the order of their keys and with what
    /// they are ordered by. Groups are gone as soon as they have given theirs.
    pub(crate) fn finish<'a>(
        self,
        block: &'a Block,
        grouping: &'a Grouping,
        env: &mut Env<'a>,
        sink: &mut dyn FnMut(&mut Env<'a>, &[u8], Datum<'a>) -> Flow,
    ) -> Flow {
        let mut groups = Vec::with_capacity(self.groups.len());
        for (identities, group) in self.groups {
            let place = place(identities.iter().map(String::as_str));
            env.budget().spend_bytes(place.len() + size_of::<(Vec<u8>, Group)>())?;
            groups.push((place, group));
        }
        groups.sort_by(|(a, _), (b, _)| a.cmp(b));
        if !grouping.order.is_empty() {
            groups = ordered(groups, grouping, env)?;
        }
        for (place, group) in groups {
            for (key, value) in grouping.keys.iter().zip(group.keys) {
                env.set(key.slot, value);
            }
            for (aggregate, accumulator) in grouping.aggregates.iter().zip(group.accumulators) {
                env.set(aggregate.slot, accumulator.finish());
            }
            let output = evaluate(&block.output, env)?;
            if sink(env, &place, output)?.is_break() {
                return ENOUGH;
            }
        }
        MORE
    }
}

/// A group with its place among the others.
type Placed = (Vec<u8>, Group);

/// The groups in the order that the query asks for; equal ones in that of their keys.
/// Their places say how many come before them.
fn ordered<'a>(
    groups: Vec<Placed>,
    grouping: &'a Grouping,
    env: &mut Env<'a>,
) -> Result<Vec<Placed>, QueryError> {
    let mut keyed = Vec::with_capacity(groups.len());
    for (place, group) in groups {
        for (key, value) in grouping.keys.iter().zip(&group.keys) {
            env.set(key.slot, value.clone());
        }
        let mut keys = Vec::with_capacity(grouping.order.len());
        for order in &grouping.order {
            let key = evaluate(&order.expr, env)?;
            env.budget().spend_bytes(key.weight().saturating_add(size_of::<Datum<'_>>()))?;
            env.budget().spend_reading(key.effort())?;
            keys.push(key);
        }
        keyed.push((keys, place, group));
    }
    keyed.sort_by(|(a, ..), (b, ..)| {
        let each = grouping.order.iter().zip(a.iter().zip(b));
        let mut orders = each.map(|(key, (a, b))| {
            let order = total_order(a, b);
            if key.descending { order.reverse() } else { order }
        });
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
    let placed = keyed.into_iter().enumerate().map(|(rank, (_, place, group))| {
        let rank = u64::try_from(rank).unwrap_or(u64::MAX).to_be_bytes();
        (rank.into_iter().chain(place).collect(), group)
    });
    Ok(placed.collect())
}

impl Group {
    fn new(grouping: &Grouping, keys: Vec<Datum<'static>>) -> Group {
        let accumulators =
            grouping.aggregates.iter().map(|aggregate| Accumulator::new(aggregate.kind)).collect();
        Group { keys, accumulators }
    }
}
