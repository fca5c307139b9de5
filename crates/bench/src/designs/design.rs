//! The designs by name, and what a group of documents writes in each.

use std::collections::BTreeMap;

use anyhow::Result;
use bytes::Bytes;
use storage::{Write, WriteBatch};

use super::change::{self, Bucket, Change, HEAD, LOG, MEMBER, Postings, group_of};
use super::chunks::Chunks;
use super::deferred::{Deferred, Rows};
use super::entries::{Entries, Spelling};
use super::term_store::{Reading, TermStore};

/// Bytes of a chunk, small and large: some ten and some hundred postings.
const SMALL: usize = 512;
const LARGE: usize = 4 << 10;
/// Documents of a bucket that gather before they are folded: with eight buckets and 1 KB
/// each, some megabytes of sorted terms in memory.
const GATHERED: usize = 1 << 10;
/// Bytes of an ordinal in short keys.
const ORDINAL_BYTES_SHORT: usize = 5;

/// A design. The first is the one that the others are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Name {
    /// A key for each term, as now
    Today,
    /// Today's with a path number of two bytes and an ordinal of five
    ShortKeys,
    /// Today's without the position in log entries and the id in member entries
    ShortRows,
    /// Today's with one head for all buckets of a partition
    OneHead,
    /// All three
    Short,
    /// Chunks of 512 bytes, rewritten in each commit
    Chunks512,
    /// Chunks of 4 KB, rewritten in each commit
    Chunks4k,
    /// A row for each document, folded into keys for each term
    FoldKeys,
    /// A row for each document, folded into chunks of 512 bytes
    Fold512,
    /// A row for each document, folded into chunks of 4 KB
    Fold4k,
    /// No row but for removals, folded into keys for each term
    LazyKeys,
    /// No row but for removals, folded into chunks of 4 KB
    Lazy4k,
}

/// What a design changes in rows that are no index entries.
#[derive(Clone, Copy, Debug, Default)]
struct OtherRows {
    short: bool,
    one_head: bool,
}

pub(super) struct Design {
    pub(super) terms: Box<dyn TermStore>,
    rows: OtherRows,
    heads: BTreeMap<Bucket, Bytes>,
    /// Documents must be staged one by one.
    by_document: bool,
}

impl Design {
    pub(super) fn new(name: Name) -> Design {
        Design::gathering(name, GATHERED)
    }

    /// A design that folds, if it does, when `gathered` documents of a bucket wait for it.
    pub(super) fn gathering(name: Name, gathered: usize) -> Design {
        let today = || Box::new(Entries::new(Spelling::TODAY));
        let short = || {
            Box::new(Entries::new(Spelling { numbered: true, ordinal_bytes: ORDINAL_BYTES_SHORT }))
        };
        let chunks = |bytes| Box::new(Chunks::new(bytes));
        let deferred = |rows, folded| Box::new(Deferred::new(rows, gathered, folded));
        let terms: Box<dyn TermStore> = match name {
            Name::Today | Name::ShortRows | Name::OneHead => today(),
            Name::ShortKeys | Name::Short => short(),
            Name::Chunks512 => chunks(SMALL),
            Name::Chunks4k => chunks(LARGE),
            Name::FoldKeys => deferred(Rows::OfAll, today()),
            Name::Fold512 => deferred(Rows::OfAll, chunks(SMALL)),
            Name::Fold4k => deferred(Rows::OfAll, chunks(LARGE)),
            Name::LazyKeys => deferred(Rows::OfRemovals, today()),
            Name::Lazy4k => deferred(Rows::OfRemovals, chunks(LARGE)),
        };
        let rows = OtherRows {
            short: matches!(name, Name::ShortRows | Name::Short),
            one_head: matches!(name, Name::OneHead | Name::Short),
        };
        let by_document = matches!(
            name,
            Name::FoldKeys | Name::Fold512 | Name::Fold4k | Name::LazyKeys | Name::Lazy4k
        );
        Design { terms, rows, heads: BTreeMap::new(), by_document }
    }

    /// What a group of commands writes, in one commit.
    pub(super) fn write(&mut self, reading: &Reading<'_>, group: &[Change]) -> Result<WriteBatch> {
        let mut batch = WriteBatch::new();
        let mut by_bucket: BTreeMap<Bucket, Postings> = BTreeMap::new();
        for change in group {
            self.write_rows(&change.rows, &mut batch);
            if self.by_document {
                self.terms.write(reading, change.bucket, &change.postings, &mut batch)?;
            } else {
                let of_bucket = by_bucket.entry(change.bucket).or_default();
                of_bucket.extend(change.postings.iter().map(|(at, added)| (at.clone(), *added)));
            }
        }
        for (bucket, postings) in by_bucket {
            self.terms.write(reading, bucket, &postings, &mut batch)?;
        }
        if self.rows.one_head {
            self.write_heads(&mut batch);
        }
        Ok(batch)
    }

    fn write_rows(&mut self, rows: &[Write], batch: &mut WriteBatch) {
        for row in rows {
            let (key, group) = (row.key().clone(), group_of(row.key()));
            match row.value() {
                Some(head) if self.rows.one_head && group == Some(HEAD) => {
                    _ = key.first_chunk().map(|bucket| self.heads.insert(*bucket, head.clone()));
                }
                Some(_) if self.rows.short && matches!(group, Some(MEMBER | LOG)) => {
                    batch.put(key, Bytes::new());
                }
                Some(value) => batch.put(key, value.clone()),
                None => batch.delete(key),
            }
        }
    }

    /// One row that has what the heads of all buckets have: what differs between them are the
    /// numbers of items and bytes, in the last 16 bytes.
    fn write_heads(&self, batch: &mut WriteBatch) {
        let Some((first, head)) = self.heads.first_key_value() else { return };
        let mut all = head.to_vec();
        for (bucket, head) in &self.heads {
            all.extend_from_slice(&bucket[4..]);
            all.extend(head.iter().rev().take(16).rev());
        }
        batch.put(change::key(*first, HEAD, &[]), all);
    }
}
