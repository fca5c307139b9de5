//! The judgement on one history.

use super::graph::{self, Cycle, Graph};
use super::order::Orders;
use super::{History, ListId, Outcome, Step, TransactionId, Value};

/// What no order of transactions explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contradiction {
    /// The history is not one: values have to be different.
    AppendedTwice { list: ListId, value: Value },
    /// A value that no client has appended.
    Invented { list: ListId, value: Value },
    /// A value that is in a list more than once.
    Repeated { list: ListId, value: Value },
    /// A list that is not the beginning of what others have read, nor the other way round.
    Forked { reader: TransactionId, list: ListId },
    /// A value of a transaction that was refused (G1a).
    AbortedRead { writer: TransactionId, list: ListId, value: Value },
    /// A list as it was within another transaction (G1b).
    IntermediateRead { reader: TransactionId, list: ListId },
    /// A transaction that does not see its own appends, last and in their order.
    Internal { reader: TransactionId, list: ListId },
}

/// What was found in a history.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    pub contradictions: Vec<Contradiction>,
    /// Forbidden cycles: one for each group of transactions that are tied together.
    pub cycles: Vec<Cycle>,
    /// Pairs of transactions of which each missed what the other wrote: allowed.
    pub write_skews: usize,
    pub committed: usize,
    pub aborted: usize,
    pub unknown: usize,
}

impl Verdict {
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.contradictions.is_empty() && self.cycles.is_empty()
    }

    /// The findings and counts of several histories.
    #[must_use]
    pub fn and(mut self, other: Verdict) -> Verdict {
        self.contradictions.extend(other.contradictions);
        self.cycles.extend(other.cycles);
        self.write_skews += other.write_skews;
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.unknown += other.unknown;
        self
    }
}

/// Judges a history. Cycles are only searched where the lists make sense.
#[must_use]
pub fn check(history: &History) -> Verdict {
    let mut verdict = Verdict::default();
    for transaction in &history.transactions {
        match transaction.outcome {
            Outcome::Committed => verdict.committed += 1,
            Outcome::Aborted => verdict.aborted += 1,
            Outcome::Unknown => verdict.unknown += 1,
        }
    }
    let orders = Orders::of(history, &mut verdict.contradictions);
    find_dirty_reads(history, &orders, &mut verdict.contradictions);
    if verdict.contradictions.is_empty() {
        let graph = Graph::of(history, &orders);
        verdict.cycles = graph::forbidden_cycles(&graph);
        verdict.write_skews = graph::write_skews(&graph);
    }
    verdict
}

fn find_dirty_reads(history: &History, orders: &Orders, found: &mut Vec<Contradiction>) {
    for (list, order) in &orders.lists {
        for value in &order.values {
            let Some(writer) = orders.writer(*list, *value) else { continue };
            let outcome = history.transactions.get(writer.0).map(|it| it.outcome);
            if outcome == Some(Outcome::Aborted) {
                found.push(Contradiction::AbortedRead { writer, list: *list, value: *value });
            }
        }
    }
    for (at, transaction) in history.transactions.iter().enumerate() {
        let reader = TransactionId(at);
        for read in outside_reads(&transaction.steps) {
            let OutsideRead { list, found: before } = read;
            let Some(before) = before else {
                found.push(Contradiction::Internal { reader, list });
                continue;
            };
            if before.last().is_some_and(|last| orders.is_intermediate(list, *last)) {
                found.push(Contradiction::IntermediateRead { reader, list });
            }
        }
    }
}

/// What a read shows of other transactions.
pub(super) struct OutsideRead<'a> {
    pub(super) list: ListId,
    /// None if the reader's own appends are not at the end.
    pub(super) found: Option<&'a [Value]>,
}

/// The reads of a transaction, without what it had appended itself until then.
pub(super) fn outside_reads(steps: &[Step]) -> impl Iterator<Item = OutsideRead<'_>> {
    steps.iter().enumerate().filter_map(|(at, step)| {
        let Step::Read { list, found } = step else { return None };
        let own: Vec<Value> =
            steps.iter().take(at).filter_map(|it| own_append(it, *list)).collect();
        Some(OutsideRead { list: *list, found: found.strip_suffix(own.as_slice()) })
    })
}

fn own_append(step: &Step, of: ListId) -> Option<Value> {
    match step {
        Step::Append { list, value } if *list == of => Some(*value),
        Step::Append { .. } | Step::Read { .. } => None,
    }
}

#[cfg(test)]
mod tests;
