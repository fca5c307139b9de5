//! Moving a bucket's items to the buckets that take its place.
//!
//! From the moment a partition knows of a move, every command writes to the
//! move target as well. What was there before is copied in chunks, each worked out by the
//! sequencer like a command: it looks at the present version of each item, so a
//! copy can never put an older version over a newer one, and it leaves out what
//! the move target holds already, so copying may begin again from the start as
//! often as one likes. Copies keep positions, ordinals and times, and take no
//! position themselves.

use model::epk::Epk;
use storage::{Batch, Direction, KeyRange, ScanLimit, Ticket, View};

use crate::bucket_writer::Mark;
use crate::command::Problem;
use crate::key::{BucketNumber, Group};
use crate::read::{Position, Reader, parse_item_key};
use crate::sequencer::Partition;

/// A chunk of copies.
#[derive(Debug)]
#[must_use = "the copies are there only after the ticket"]
pub struct Copied {
    pub items: u64,
    pub bytes: u64,
    pub ticket: Ticket,
}

impl Partition {
    /// Copies items of a moving bucket to their move targets.
    pub fn copy(&mut self, names: &[Position]) -> Result<Copied, Problem> {
        self.rewrite(names, Partition::copy_key)
    }

    /// Writes something about items of which only the names are known, key by key.
    /// `work` says how many items it is about and what is written.
    pub(crate) fn rewrite(
        &mut self,
        names: &[Position],
        work: impl Fn(&mut Partition, &Epk, &[Position]) -> Result<(u64, Batch), Problem>,
    ) -> Result<Copied, Problem> {
        self.recover_if_broken()?;
        let (mut items, mut bytes) = (0, 0);
        for of_key in names.chunk_by(|a, b| a.epk == b.epk) {
            let Some(Position { epk, .. }) = of_key.first() else { continue };
            let (changed, batch) = work(self, epk, of_key)?;
            if !batch.is_empty() {
                items += changed;
                bytes += batch.bytes() as u64;
                drop(self.submit(batch));
            }
        }
        Ok(Copied { items, bytes, ticket: self.barrier() })
    }

    fn copy_key(&mut self, epk: &Epk, names: &[Position]) -> Result<(u64, Batch), Problem> {
        let source = self.setup().bucket_of(epk).ok_or(Problem::Gone)?;
        let target = self.setup().move_target_of(epk).ok_or(Problem::Gone)?;
        let (owner, mut target) = (self.writer(source, epk), self.writer(target, epk));
        let (mut writes, mut copied) = (self.write_set()?, 0);
        for Position { id, .. } in names {
            let Some(item) = owner.find(&writes, id)? else { continue };
            if !target.holds(&writes, &item)? {
                target.put(&mut writes, id, None, &item)?;
                copied += 1;
            }
        }
        if writes.is_empty() {
            return Ok((0, Batch::new()));
        }
        let head = target.write_head(&mut writes, &self.mark());
        let batch = writes.into_batch();
        self.set_head(head);
        Ok((copied, batch))
    }

    /// Whether the move targets hold all that a moving bucket holds. If so, their
    /// heads are brought to where the partition is: the bucket's own head, which
    /// may alone know of the last item number given out, goes away with it.
    pub fn complete_move(&mut self, from: BucketNumber) -> Result<Option<Ticket>, Problem> {
        self.recover_if_broken()?;
        let setup = self.setup().clone();
        let Some(moving) = setup.moves.iter().find(|moving| moving.from == from) else {
            return Err(Problem::Gone);
        };
        let source = self.head(from);
        let targets = moving.into.iter().map(|bucket| self.head(bucket.number));
        let sums =
            targets.fold((0, 0), |(items, bytes), head| (items + head.items, bytes + head.bytes));
        if sums != (source.items, source.bytes) {
            return Ok(None);
        }
        let (mark, mut writes, mut heads) = (self.mark(), self.write_set()?, Vec::new());
        for bucket in &moving.into {
            heads.push(self.writer(bucket, &bucket.range.min).write_head(&mut writes, &mark));
        }
        let batch = writes.into_batch();
        heads.into_iter().for_each(|head| self.set_head(head));
        Ok(Some(self.submit(batch)))
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { lsn: self.lsn(), now: self.now(), next_number: self.next_number() }
    }
}

impl Reader {
    /// The names of the items stored in one bucket, from behind `after`, in
    /// order. Fewer than `max` only at the end.
    pub fn names(
        &self,
        view: &dyn View,
        bucket: BucketNumber,
        after: Option<&Position>,
        max: usize,
    ) -> Result<Vec<Position>, Problem> {
        let keys = self.setup().keys_of(bucket);
        let mut range = KeyRange::prefix(&keys.group(Group::Item));
        if let Some(Position { epk, id }) = after {
            range.start = keys.behind_item(epk, id);
        }
        let mut names = Vec::new();
        loop {
            let rows = max.saturating_sub(names.len());
            let limit = ScanLimit { rows, ..ScanLimit::default() };
            let chunk = view.scan(&range, Direction::Forward, limit)?;
            for (key, _) in &chunk.rows {
                names.push(parse_item_key(key)?);
            }
            match chunk.rest {
                Some(rest) if names.len() < max => range = rest,
                Some(_) | None => return Ok(names),
            }
        }
    }
}
