//! The order of the values of each list, as reads show it.

use std::collections::BTreeMap;

use super::check::Contradiction;
use super::{History, ListId, Outcome, Step, TransactionId, Value};

/// What happened to one list.
#[derive(Debug, Default)]
pub(super) struct ListOrder {
    /// Values that were read, in their order: the longest list that was read.
    pub(super) values: Vec<Value>,
    /// Acknowledged appends that no read has shown. They are after all reads, or lost.
    pub(super) unseen: Vec<TransactionId>,
}

/// The orders of all lists, and the writers of values.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pub(super) lists: BTreeMap<ListId, ListOrder>,
    writers: BTreeMap<(ListId, Value), TransactionId>,
    /// The last value that a transaction appended to a list.
    last: BTreeMap<(TransactionId, ListId), Value>,
}

impl Orders {
    pub(super) fn of(history: &History, found: &mut Vec<Contradiction>) -> Orders {
        let mut orders = Orders::default();
        for (id, list, value) in appends(history) {
            if orders.writers.insert((list, value), id).is_some() {
                found.push(Contradiction::AppendedTwice { list, value });
            }
            orders.last.insert((id, list), value);
        }
        for (reader, list, read) in reads(history) {
            let order = orders.lists.entry(list).or_default();
            let (longer, shorter) = if read.len() > order.values.len() {
                (read, order.values.as_slice())
            } else {
                (order.values.as_slice(), read)
            };
            if !longer.starts_with(shorter) {
                found.push(Contradiction::Forked { reader, list });
            } else if read.len() > order.values.len() {
                order.values = read.to_vec();
            }
        }
        orders.find_unknown_values(found);
        orders.note_unseen(history);
        orders
    }

    pub(super) fn writer(&self, list: ListId, value: Value) -> Option<TransactionId> {
        self.writers.get(&(list, value)).copied()
    }

    /// Whether a transaction appended something to a list after this value.
    pub(super) fn is_intermediate(&self, list: ListId, value: Value) -> bool {
        let writer = self.writer(list, value);
        writer.is_some_and(|writer| self.last.get(&(writer, list)) != Some(&value))
    }

    /// Values without a writer, or that are in a list more than once.
    fn find_unknown_values(&self, found: &mut Vec<Contradiction>) {
        for (list, order) in &self.lists {
            let mut places = BTreeMap::new();
            for value in &order.values {
                if !self.writers.contains_key(&(*list, *value)) {
                    found.push(Contradiction::Invented { list: *list, value: *value });
                }
                if places.insert(value, ()).is_some() {
                    found.push(Contradiction::Repeated { list: *list, value: *value });
                }
            }
        }
    }

    fn note_unseen(&mut self, history: &History) {
        let mut seen = BTreeMap::new();
        for (list, order) in &self.lists {
            seen.extend(order.values.iter().map(|value| ((*list, *value), ())));
        }
        for (id, list, value) in appends(history) {
            let committed = history.transactions.get(id.0).map(|it| it.outcome);
            if committed == Some(Outcome::Committed) && !seen.contains_key(&(list, value)) {
                self.lists.entry(list).or_default().unseen.push(id);
            }
        }
    }
}

fn appends(history: &History) -> impl Iterator<Item = (TransactionId, ListId, Value)> {
    steps(history).filter_map(|(id, step)| match step {
        Step::Append { list, value } => Some((id, *list, *value)),
        Step::Read { .. } => None,
    })
}

fn reads(history: &History) -> impl Iterator<Item = (TransactionId, ListId, &[Value])> {
    steps(history).filter_map(|(id, step)| match step {
        Step::Read { list, found } => Some((id, *list, found.as_slice())),
        Step::Append { .. } => None,
    })
}

fn steps(history: &History) -> impl Iterator<Item = (TransactionId, &Step)> {
    let transactions = history.transactions.iter().enumerate();
    transactions.flat_map(|(at, it)| it.steps.iter().map(move |step| (TransactionId(at), step)))
}
