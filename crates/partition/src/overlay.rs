//! The overlay: writes that were submitted but are not durable yet.
//!
//! `apply` must see them, or a hot item could change only once per fsync; clients must not,
//! or they could read what a crash undoes. So the sequencer reads the overlay before its
//! view, and all other readers use views.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use storage::{CommitStatus, TicketStatus, Write, WriteBatch};

use crate::key;

/// Pending writes by key, and the status of their tickets, which says when they are durable.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    values: BTreeMap<Bytes, Pending>,
    submissions: VecDeque<Submission>,
    next: u64,
}

#[derive(Debug)]
struct Pending {
    /// The last submission that wrote the key.
    submission: u64,
    value: Option<Bytes>,
}

#[derive(Debug)]
struct Submission {
    number: u64,
    status: TicketStatus,
    keys: Vec<Bytes>,
}

/// A submission was not made durable: everything that was computed on top of it is void.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

impl Overlay {
    /// The pending value: `Some(None)` if the key is about to be deleted.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Option<Bytes>> {
        self.values.get(key).map(|pending| pending.value.clone())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.submissions.is_empty()
    }

    /// Remembers the keys of a batch that `apply` may read again.
    pub(crate) fn stage(&mut self, batch: &WriteBatch) -> Staged {
        let number = self.next;
        self.next += 1;
        let mut keys = Vec::new();
        for write in batch.iter() {
            let (key, value) = match write {
                Write::Put { key, value } => (key, Some(value.clone())),
                Write::Delete { key } => (key, None),
            };
            if key::is_read_by_apply(key) {
                keys.push(key.clone());
                self.values.insert(key.clone(), Pending { submission: number, value });
            }
        }
        Staged { number, keys }
    }

    pub(crate) fn submitted(&mut self, staged: Staged, status: TicketStatus) {
        self.submissions.push_back(Submission { number: staged.number, status, keys: staged.keys });
    }

    /// Forgets what has become durable, and so is in every view from now on.
    pub(crate) fn settle(&mut self) -> Result<(), Broken> {
        while let Some(submission) = self.submissions.front() {
            match submission.status.outcome() {
                None => return Ok(()),
                Some(CommitStatus::Durable) => self.forget_first(),
                Some(
                    CommitStatus::Refused
                    | CommitStatus::Full
                    | CommitStatus::Fenced
                    | CommitStatus::Unknown,
                ) => {
                    return Err(Broken);
                }
            }
        }
        Ok(())
    }

    fn forget_first(&mut self) {
        let Some(submission) = self.submissions.pop_front() else { return };
        for key in &submission.keys {
            if self.values.get(key).is_some_and(|pending| pending.submission == submission.number) {
                self.values.remove(key);
            }
        }
    }
}

/// Proof that a batch is in the overlay before it is submitted.
#[derive(Debug)]
pub(crate) struct Staged {
    number: u64,
    keys: Vec<Bytes>,
}
