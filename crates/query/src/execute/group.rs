//! GROUP BY, and aggregates without it: one group for all rows.

use std::collections::BTreeMap;

use super::aggregate::Accumulator;
use crate::bound::{Block, Grouping};
use crate::error::QueryError;
use crate::eval::{Datum, Env, evaluate, identity};

/// The groups so far, by the identities of their keys. Nothing in here refers to
/// a document, so groups can be gathered from documents that come and go.
#[derive(Debug)]
pub(crate) struct Groups {
    groups: BTreeMap<Vec<String>, Group>,
}

/// What a key or an aggregate of a group takes besides its text.
const FIELD_BYTES: usize = 64;

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

    /// Adds the row that the environment stands on.
    pub(crate) fn add<'a>(
        &mut self,
        grouping: &'a Grouping,
        env: &mut Env<'a>,
    ) -> Result<(), QueryError> {
        let mut keys = Vec::with_capacity(grouping.keys.len());
        for key in &grouping.keys {
            keys.push(evaluate(&key.expr, env)?);
        }
        let identities: Vec<String> = keys.iter().map(identity).collect();
        let budget = env.budget();
        let bytes = identities.iter().map(String::len).sum();
        budget.spend_reading(bytes)?;
        if !self.groups.contains_key(&identities) {
            let fields = keys.len() + grouping.aggregates.len();
            budget.spend_bytes(2 * bytes + fields.saturating_mul(FIELD_BYTES))?;
        }
        let group = self
            .groups
            .entry(identities)
            .or_insert_with(|| Group::new(grouping, keys.iter().map(Datum::detached).collect()));
        for (aggregate, accumulator) in grouping.aggregates.iter().zip(&mut group.accumulators) {
            let value = evaluate(&aggregate.argument, env)?;
            accumulator.add(&value, budget)?;
        }
        Ok(())
    }

    /// Adds so many rows to the one group, all of whose aggregates count rows.
    pub(crate) fn count(&mut self, rows: usize) {
        for accumulator in self.groups.values_mut().flat_map(|group| &mut group.accumulators) {
            if let Accumulator::Count(count) = accumulator {
                *count = count.saturating_add(rows);
            }
        }
    }

    /// The outputs of all groups, in the order of their keys.
    pub(crate) fn finish<'a>(
        self,
        block: &'a Block,
        grouping: &'a Grouping,
        env: &mut Env<'a>,
    ) -> Result<Vec<Datum<'a>>, QueryError> {
        let mut outputs = Vec::with_capacity(self.groups.len());
        for group in self.groups.into_values() {
            for (key, value) in grouping.keys.iter().zip(group.keys) {
                env.set(key.slot, value);
            }
            for (aggregate, accumulator) in grouping.aggregates.iter().zip(group.accumulators) {
                env.set(aggregate.slot, accumulator.finish());
            }
            outputs.push(evaluate(&block.output, env)?);
        }
        Ok(outputs)
    }
}

impl Group {
    fn new(grouping: &Grouping, keys: Vec<Datum<'static>>) -> Group {
        let accumulators =
            grouping.aggregates.iter().map(|aggregate| Accumulator::new(aggregate.kind)).collect();
        Group { keys, accumulators }
    }
}
