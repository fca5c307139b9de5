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
        self.recover_if_broken()?;
        let (mut items, mut bytes) = (0, 0);
        for of_key in names.chunk_by(|a, b| a.epk == b.epk) {
            let Some(Position { epk, .. }) = of_key.first() else { continue };
            let ids = of_key.iter().map(|name| name.id.as_str());
            let (changed, batch) = self.reindex_key(epk, ids)?;
            if !batch.is_empty() {
                items += changed;
                bytes += batch.bytes() as u64;
                drop(self.submit(batch));
            }
        }
        Ok(Copied { items, bytes, ticket: self.barrier() })
    }

    fn reindex_key<'n>(
        &self,
        epk: &Epk,
        ids: impl Iterator<Item = &'n str>,
    ) -> Result<(u64, Batch), Problem> {
        let bucket = self.setup().bucket_of(epk).ok_or(Problem::Gone)?;
        let mut home = self.home(bucket, epk);
        let mut second = self.setup().second_home_of(epk).map(|bucket| self.home(bucket, epk));
        let (mut stage, mut changed) = (self.stage()?, 0);
        for id in ids {
            let Some(old) = home.find(&stage, id)? else { continue };
            if old.policy_version == self.setup().policy_version {
                continue;
            }
            let new = Item { policy_version: self.setup().policy_version, ..old.clone() };
            home.put(&mut stage, id, Some(&old), &new)?;
            if let Some(second) = &mut second
                && second.holds(&stage, &old)?
            {
                second.put(&mut stage, id, Some(&old), &new)?;
            }
            changed += 1;
        }
        Ok((changed, stage.into_batch()))
    }
}
