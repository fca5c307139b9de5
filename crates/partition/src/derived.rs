//! Derived data: everything in a bucket that follows from its items.
//!
//! A bucket stores items, and beside them entries that follow from items: ordinals, members
//! of logical partitions, index entries, unique values, expiry entries, the log and the
//! sizes of logical partitions. The history does not follow from items, but from changes of
//! them, and is staged with the rest. Each kind has one [`Maintainer`], and [`MAINTAINERS`] is the list of them all.
//! [`crate::bucket_writer`] walks the list when an item changes; [`crate::check`] walks it
//! when it compares what is stored with what must be.

mod entries;
mod history;
mod statistics;
mod unique;

use std::cell::OnceCell;

use bytes::Bytes;
use model::charge::Written;
use model::epk::Epk;

use crate::command::PartitionError;
use crate::config::PartitionConfig;
use crate::history::Event;
use crate::key::{Group, Keys};
use crate::record::{Item, KeyStatistics, RecordError};
use crate::write_set::WriteSet;

use entries::{Expiry, IndexEntries, Log, Members, Ordinals};
use history::{Histories, KeyHistories};
use statistics::Statistics;
pub(crate) use statistics::read as read_statistics;
pub(crate) use unique::rival;
use unique::{UniqueValue, UniqueValues};

/// All derived data, each group of keys once.
pub(crate) static MAINTAINERS: [&dyn Maintainer; 9] = [
    &Ordinals,
    &Members,
    &UniqueValues,
    &Log,
    &Expiry,
    &Statistics,
    &IndexEntries,
    &Histories,
    &KeyHistories,
];

/// Keeps one kind of derived data.
///
/// What it stages goes into the batch of the change itself, so derived data is never older
/// or newer than the items it follows from. It is called for one bucket at a time: while a
/// bucket moves, the move target has derived data of its own, which follows from the items
/// that were copied so far.
///
/// # Maintainers that cannot finish within a commit
///
/// A vector graph or term statistics are too expensive to update inside a commit, and are
/// not a function of a single item. They fit nevertheless, in two halves:
///
/// - The half in the commit is an ordinary maintainer. Its entries are the *inputs*: the
///   item's vector, or its terms, under the ordinal. As a removed item leaves the log
///   without a trace, `stage` is overridden to leave a tombstone as well, at the LSN of
///   the removal.
/// - The other half catches up in the background, in chunks computed by the sequencer as
///   [`crate::moving`] does: it reads log entries and tombstones after its *watermark*, the
///   LSN up to which its structure covers the bucket, and commits the changed structure,
///   the new watermark and the removal of the tombstones up to it in one batch. State in
///   memory is a cache of that structure, loaded again after a restart.
///
/// Readers use the structure up to the watermark and the log entries after it one by one,
/// so an answer does not depend on the watermark. `check` expects the inputs through
/// `entries`; of the structure it can verify that it covers every input up to the
/// watermark, and that the watermark is not above the LSN of the bucket's head.
pub(crate) trait Maintainer: Sync {
    /// The group of its keys, which no other maintainer uses.
    fn group(&self) -> Group;

    /// Whether its entries follow from the items that there are now. Those that do not are
    /// checked in another way.
    fn follows_from_items(&self) -> bool {
        true
    }

    /// The entries that must exist because this version of an item does, in any order.
    fn entries(&self, scope: &Scope<'_>, version: &Version<'_>) -> Result<Vec<Entry>, RecordError>;

    /// The entry that must exist because a logical partition has this total.
    fn summary(&self, _scope: &Scope<'_>, _total: &KeyStatistics) -> Option<Entry> {
        None
    }

    /// Stages the effect of a change, and counts the terms that clients pay for. Entries
    /// that both versions share are left alone.
    fn stage(
        &self,
        scope: &Scope<'_>,
        change: Change<'_>,
        writes: &mut WriteSet<'_>,
        written: &mut Written,
    ) -> Result<(), PartitionError> {
        let entries = |version: Option<&Version<'_>>| match version {
            Some(version) => self.entries(scope, version).map(sorted),
            None => Ok(Vec::new()),
        };
        let (before, after) = (entries(change.old)?, entries(change.new)?);
        for entry in before.iter().filter(|entry| find(&after, entry).is_none()) {
            written.terms_removed += u32::from(entry.is_term);
            writes.write(entry.key.clone(), None);
        }
        for entry in after {
            let old = find(&before, &entry);
            if old.is_none_or(|old| old.value != entry.value) {
                written.terms_added += u32::from(entry.is_term && old.is_none());
                writes.write(entry.key, Some(entry.value));
            }
        }
        Ok(())
    }
}

/// One logical partition in one bucket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) config: &'a PartitionConfig,
    pub(crate) keys: Keys,
    pub(crate) epk: &'a Epk,
}

/// One version of an item under its id, with lazily computed values that all maintainers
/// and buckets share.
#[derive(Debug)]
pub(crate) struct Version<'i> {
    pub(crate) id: &'i str,
    pub(crate) item: &'i Item,
    unique_values: OnceCell<Vec<UniqueValue>>,
}

impl<'i> Version<'i> {
    pub(crate) fn new(id: &'i str, item: &'i Item) -> Version<'i> {
        Version { id, item, unique_values: OnceCell::new() }
    }

    fn unique_values(&self, config: &PartitionConfig) -> &[UniqueValue] {
        let policy = config.definition.unique_keys();
        self.unique_values.get_or_init(|| unique::values(policy, self.item.json()))
    }
}

/// A change of an item: one version replaces another, is created or removed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'c> {
    pub(crate) old: Option<&'c Version<'c>>,
    pub(crate) new: Option<&'c Version<'c>>,
    /// The record of it, if there is to be one.
    pub(crate) event: Option<&'c Event>,
}

/// A key that must exist, and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: Bytes,
    pub(crate) value: Bytes,
    /// Whether a client pays for it: it indexes a value that the client chose.
    pub(crate) is_term: bool,
}

impl Entry {
    fn new(key: Bytes, value: Bytes) -> Entry {
        Entry { key, value, is_term: false }
    }
}

/// In the order of keys, each once: a document may repeat a value.
pub(crate) fn sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    entries.dedup_by(|a, b| a.key == b.key);
    entries
}

/// The entry of the same key.
fn find<'e>(sorted: &'e [Entry], wanted: &Entry) -> Option<&'e Entry> {
    let at = sorted.binary_search_by(|entry| entry.key.cmp(&wanted.key)).ok()?;
    sorted.get(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group without a maintainer would be neither written nor checked.
    #[test]
    fn every_group_of_many_entries_but_items_has_one_maintainer() {
        let mut groups: Vec<Group> = MAINTAINERS.iter().map(|kept| kept.group()).collect();
        groups.extend([Group::Head, Group::Item, Group::Horizon]);
        groups.sort_unstable();
        assert_eq!(groups, Group::ALL);
    }
}
