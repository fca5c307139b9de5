//! Bringing items under the indexing policy in force.
//!
//! An item keeps the entries of the policy it was written under, and its record
//! names that policy. When the policy changes, items are gone through in chunks, each
//! worked out by the sequencer like a command: the entries that differ are written,
//! the record names the new policy, and nothing else about the item changes: not its
//! position, its time or its etag. Going through them again does nothing.

use model::epk::Epk;
use storage::Batch;

use crate::command::Problem;
use crate::moving::Copied;
use crate::read::Position;
use crate::record::Item;
use crate::sequencer::Partition;

impl Partition {
    /// Gives these items the entries of the policy in force.
    pub fn reindex(&mut self, names: &[Position]) -> Result<Copied, Problem> {
        self.rewrite(names, |partition, epk, names| partition.reindex_key(epk, names))
    }

    fn reindex_key(&self, epk: &Epk, names: &[Position]) -> Result<(u64, Batch), Problem> {
        let bucket = self.setup().bucket_of(epk).ok_or(Problem::Gone)?;
        let mut owner = self.writer(bucket, epk);
        let mut target = self.setup().move_target_of(epk).map(|bucket| self.writer(bucket, epk));
        let (mut writes, mut changed) = (self.write_set()?, 0);
        for Position { id, .. } in names {
            let Some(old) = owner.find(&writes, id)? else { continue };
            if old.policy_version == self.setup().policy_version {
                continue;
            }
            let new = Item { policy_version: self.setup().policy_version, ..old.clone() };
            owner.put(&mut writes, id, Some(&old), &new)?;
            if let Some(target) = &mut target
                && target.holds(&writes, &old)?
            {
                target.put(&mut writes, id, Some(&old), &new)?;
            }
            changed += 1;
        }
        Ok((changed, writes.into_batch()))
    }
}
