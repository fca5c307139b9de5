//! Backfill of index entries under a changed indexing policy.
//!
//! An item keeps the entries of the policy it was written under, and its record names that
//! policy. When the policy changes, items are rewritten in chunks, each computed by the
//! sequencer like a command: the entries that differ are written, the record names the new
//! policy, and nothing else about the item changes: not its position, its time or its etag.
//! Repeating it changes nothing.

use crate::command::PartitionError;
use crate::derived::Version;
use crate::moving::Copied;
use crate::read::Position;
use crate::record::Item;
use crate::sequencer::Partition;

impl Partition {
    /// Gives these items the entries of the policy in force.
    pub fn reindex(&mut self, names: &[Position]) -> Result<Copied, PartitionError> {
        self.rewrite(names, |writer, id| {
            let policy_version = writer.config().policy_version;
            match writer.find(id)? {
                Some(old) if old.policy_version != policy_version => {
                    let new = Item { policy_version, ..old.clone() };
                    writer.put(Some(&Version::new(id, &old)), &Version::new(id, &new))?;
                    Ok(true)
                }
                Some(_) | None => Ok(false),
            }
        })
    }
}
