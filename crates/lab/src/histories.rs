//! Histories of transactions, and the search in them for what snapshot isolation forbids.
//!
//! Clients append values to lists and read lists, several of each in one transaction, and
//! record what they asked for and what they were answered. As no value is appended twice,
//! a list that was read shows which appends came before the read, and in which order
//! (Kingsbury and Alvaro, *Elle: Inferring Isolation Anomalies from Experimental
//! Observations*, VLDB 2020). That gives the edges between transactions:
//!
//! | edge | from | to |
//! |---|---|---|
//! | `Overwritten` (ww) | the writer of a value | the writer of the next one in the list |
//! | `Read` (wr) | the writer of a value | who read a list that ends with it |
//! | `Missed` (rw) | who read a list | the writer of the next value, which the reader did not see |
//! | `Earlier` | who was answered | those that were asked for after that |
//!
//! A history is one of strong snapshot isolation if and only if these graphs have no cycle
//! but those with two `Missed` edges one after another (Fekete and others, *Making Snapshot
//! Isolation Serializable*, 2005; Cerone and Gotsman, *Analysing Snapshot Isolation*, 2016).
//! Such a cycle is a write skew: allowed, and counted.
//!
//! The checker knows nothing of the database: histories are what clients have seen. It has
//! to find what is wrong in histories that were made wrong, see its tests and
//! `crates/lab/tests/histories.rs`.

mod check;
mod graph;
mod order;

pub use check::{Contradiction, Verdict, check};
pub use graph::{Cycle, CycleKind, Edge};

/// A list of one logical partition.
pub type ListId = u32;

/// What a list consists of. No value is appended twice in one history.
pub type Value = u64;

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Append { list: ListId, value: Value },
    Read { list: ListId, found: Vec<Value> },
}

/// What its client knows of the end of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Committed,
    /// Answered with an error that promises that nothing was done.
    Aborted,
    /// Not answered.
    Unknown,
}

/// One transaction, as its client saw it. Reads without an answer are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    pub steps: Vec<Step>,
    pub outcome: Outcome,
    /// When it was asked for, and when it was answered: positions in the history.
    begun: u64,
    ended: Option<u64>,
}

/// Transactions on the lists of one logical partition.
#[derive(Clone, Debug, Default)]
pub struct History {
    transactions: Vec<Transaction>,
    /// Positions that were given out.
    events: u64,
}

/// A transaction of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransactionId(pub usize);

impl History {
    /// A transaction is about to be asked for. Must be called before that.
    pub fn begin(&mut self, steps: Vec<Step>) -> TransactionId {
        let begun = self.event();
        let outcome = Outcome::Unknown;
        self.transactions.push(Transaction { steps, outcome, begun, ended: None });
        TransactionId(self.transactions.len() - 1)
    }

    /// It was answered: `steps` has the answers. Must be called after that.
    pub fn end(&mut self, id: TransactionId, outcome: Outcome, steps: Vec<Step>) {
        let ended = self.event();
        let transaction = self.transactions.get_mut(id.0).expect("begun in this history");
        *transaction = Transaction { steps, outcome, begun: transaction.begun, ended: Some(ended) };
    }

    #[must_use]
    pub fn transactions(&self) -> &[Transaction] {
        &self.transactions
    }

    fn event(&mut self) -> u64 {
        self.events += 1;
        self.events
    }
}
