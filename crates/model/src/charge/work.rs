//! What is charged for: not what our engine happened to do, but what the operation was, in
//! quantities that do not depend on when it ran, on how much is stored beside the item, or
//! on concurrent writers.

/// What one operation did, counted by the partition that did it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Work {
    /// Nothing a client pays for: the fault was ours, or the request went elsewhere.
    #[default]
    Nothing,
    /// An item was looked up and none was returned: it does not exist, or was not modified.
    Probe,
    /// An item was returned.
    Read { bytes: u64 },
    /// An item was created, replaced, patched or deleted.
    Write(Written),
    /// A write reached its partition and was refused there.
    RefusedWrite,
    /// A query looked through one physical partition.
    Query(Scanned),
    /// Changes of other items were passed over on the way to those that were asked for.
    Passed { changes: u64 },
    /// A script ran, besides its operations on items: some ten thousand steps for each tick.
    Script { ticks: u64 },
    /// A query called functions that users have stored.
    Calls { calls: u64, ticks: u64 },
}

/// How a write changed an item.
///
/// Bytes are those of the client's own JSON text. The properties that the server adds are
/// not counted: their length is not the client's choice.
///
/// A *term* is one index entry about a value that the client chose: one path with
/// one value, however long. Left out are `id` and partition key, which every item
/// has and which address it, and `_ts`: an item replaced twice in one second must
/// not be cheaper than one replaced in two. A value under a unique key counts as
/// a term as well. Log, statistics, expiry and ordinals are our bookkeeping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Bytes of the version that was removed, if there was one.
    pub removed: Option<u64>,
    /// Bytes of the version that was added, if there is one.
    pub added: Option<u64>,
    pub terms_removed: u32,
    pub terms_added: u32,
    /// Operations of a patch.
    pub patched: u32,
}

/// What a query read in one physical partition, and returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Items that were loaded, whether or not they are in the answer.
    pub items: u64,
    /// Index entries that were read.
    pub entries: u64,
    /// Bytes of the answer.
    pub output_bytes: u64,
}
