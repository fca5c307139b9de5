//! Terms by document first, by term later.
//!
//! A commit writes one row for each document, with all its terms; they are also kept in
//! memory, sorted, for queries. When enough of them have gathered they are folded into
//! another store of terms, all at once, and their rows are deleted: what a merge operator
//! would do, done by commands.
//!
//! Terms that were added could be found in the document again, so that a row is only needed
//! for terms that were removed. Without the others (`Rows::OfRemovals`) the design writes
//! the least that it can; opening again is then not possible here, as nothing in this tool
//! reads documents.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use storage::{Direction, KeyRange, ScanLimit, WriteBatch};

use super::change::{self, Bucket, DELTA, Postings, group_of, put_varint, take, take_varint};
use super::term_store::{Reading, TermStore, Visit, Wanted};

/// What the row of a document has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rows {
    OfAll,
    OfRemovals,
}

pub(super) struct Deferred {
    rows: Rows,
    /// Documents that gather before they are folded.
    documents_max: usize,
    next: u64,
    pending: BTreeMap<Bucket, Pending>,
    folded: Box<dyn TermStore>,
}

#[derive(Debug, Default)]
struct Pending {
    /// An added posting is not among the folded ones, a removed one is.
    postings: Postings,
    rows: Vec<Bytes>,
    documents: usize,
}

impl Deferred {
    pub(super) fn new(rows: Rows, documents_max: usize, folded: Box<dyn TermStore>) -> Deferred {
        Deferred { rows, documents_max, next: 0, pending: BTreeMap::new(), folded }
    }

    fn pending_in<'p>(
        &'p self,
        wanted: &Wanted<'_>,
    ) -> impl DoubleEndedIterator<Item = (&'p Bytes, bool)> + use<'p> {
        let range =
            Bytes::copy_from_slice(&wanted.range.start)..Bytes::copy_from_slice(&wanted.range.end);
        let of_bucket = self.pending.get(&wanted.bucket).into_iter();
        of_bucket
            .flat_map(move |pending| pending.postings.range(range.clone()))
            .map(|(posting, added)| (posting, *added))
    }
}

impl Pending {
    fn add(&mut self, posting: Bytes, added: bool) {
        // What was added and is removed again, or the other way, is as if nothing had been.
        if self.postings.remove(&posting).is_none() {
            self.postings.insert(posting, added);
        }
    }
}

impl TermStore for Deferred {
    /// Writes the terms of one document.
    fn write(
        &mut self,
        _: &Reading<'_>,
        bucket: Bucket,
        changes: &Postings,
        batch: &mut WriteBatch,
    ) -> Result<()> {
        let pending = self.pending.entry(bucket).or_default();
        pending.documents += 1;
        let kept = |added: bool| self.rows == Rows::OfAll || !added;
        let row = encode(changes.iter().filter(|(_, added)| kept(**added)));
        if !row.is_empty() {
            let key = change::key(bucket, DELTA, &[&self.next.to_be_bytes()]);
            self.next += 1;
            pending.rows.push(key.clone());
            batch.put(key, row);
        }
        for (posting, added) in changes {
            pending.add(posting.clone(), *added);
        }
        Ok(())
    }

    fn scan(&self, reading: &Reading<'_>, wanted: Wanted<'_>, visit: &mut Visit<'_>) -> Result<()> {
        let pending = self.pending_in(&wanted);
        let pending: Box<dyn Iterator<Item = (&Bytes, bool)>> = match wanted.direction {
            Direction::Forward => Box::new(pending),
            Direction::Backward => Box::new(pending.rev()),
        };
        let mut pending = pending.peekable();
        let comes_first = |one: &[u8], other: &[u8]| match wanted.direction {
            Direction::Forward => one < other,
            Direction::Backward => one > other,
        };
        let mut enough = false;
        self.folded.scan(reading, wanted, &mut |posting| {
            while let Some((other, _)) = pending.next_if(|(other, _)| comes_first(other, posting)) {
                enough = visit(other)?.is_break();
                if enough {
                    return Ok(ControlFlow::Break(()));
                }
            }
            if pending.next_if(|(other, _)| **other == posting).is_some() {
                return Ok(ControlFlow::Continue(()));
            }
            let flow = visit(posting)?;
            enough = flow.is_break();
            Ok(flow)
        })?;
        for (posting, _) in pending {
            if enough || visit(posting)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn count(&self, reading: &Reading<'_>, wanted: Wanted<'_>) -> Result<u64> {
        let (mut added, mut removed) = (0, 0);
        for (_, is_added) in self.pending_in(&wanted) {
            if is_added { added += 1 } else { removed += 1 }
        }
        Ok(self.folded.count(reading, wanted)? + added - removed)
    }

    fn reopen(&mut self, reading: &Reading<'_>) -> Result<()> {
        anyhow::ensure!(self.rows == Rows::OfAll, "added terms are not stored");
        self.folded.reopen(reading)?;
        self.pending.clear();
        self.next = 0;
        let (all, rows) = (KeyRange::all(), ScanLimit::ROWS_DEFAULT);
        reading.each(all, Direction::Forward, rows, |key, value| {
            if group_of(key) == Some(DELTA) {
                let bucket = *key.first_chunk().context("a key has a bucket")?;
                let pending = self.pending.entry(bucket).or_default();
                pending.documents += 1;
                pending.rows.push(key.clone());
                let number = key.last_chunk().context("a row has a number")?;
                self.next = self.next.max(u64::from_be_bytes(*number) + 1);
                decode(value, |posting, added| pending.add(posting, added))?;
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Folds a bucket in which enough has gathered. Called between groups.
    fn fold(&mut self, reading: &Reading<'_>) -> Result<Option<WriteBatch>> {
        let is_full = |pending: &Pending| pending.documents >= self.documents_max;
        let full = self.pending.iter().find(|(_, pending)| is_full(pending));
        let Some(bucket) = full.map(|(bucket, _)| *bucket) else { return Ok(None) };
        let Pending { postings, rows, .. } = self.pending.remove(&bucket).unwrap_or_default();
        let mut batch = WriteBatch::new();
        rows.into_iter().for_each(|row| batch.delete(row));
        self.folded.write(reading, bucket, &postings, &mut batch)?;
        Ok(Some(batch))
    }
}

/// The ordinal, which all postings of a document share, then for each the length of its entry,
/// whether it is added, and the entry.
fn encode<'p>(changes: impl Iterator<Item = (&'p Bytes, &'p bool)>) -> Vec<u8> {
    let mut out = Vec::new();
    for (posting, added) in changes {
        let (entry, ordinal) = posting.split_at(posting.len() - change::ORDINAL_BYTES);
        if out.is_empty() {
            out.extend_from_slice(ordinal);
        }
        put_varint((entry.len() as u64) << 1 | u64::from(*added), &mut out);
        out.extend_from_slice(entry);
    }
    out
}

fn decode(row: &[u8], mut posting: impl FnMut(Bytes, bool)) -> Result<()> {
    let (ordinal, mut rest) =
        row.split_first_chunk::<{ change::ORDINAL_BYTES }>().context("a row has an ordinal")?;
    while !rest.is_empty() {
        let head = take_varint(&mut rest)?;
        let entry = take(&mut rest, head >> 1)?;
        posting([entry, ordinal].concat().into(), head & 1 == 1);
    }
    Ok(())
}
