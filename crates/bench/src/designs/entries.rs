//! A key for each posting, with an empty value: today's design, and shorter spellings of it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use storage::{Direction, KeyRange, ScanLimit, WriteBatch};

use super::change::{self, Bucket, GROUP_END, INDEX, ORDINAL_BYTES, Postings};
use super::term_store::{Reading, TermStore, Visit, Wanted};

/// Bytes of a path's hash, and of its number where paths are numbered.
const HASH_BYTES: usize = 8;
const NUMBER_BYTES: usize = 2;

/// Where the numbers of paths are: in a bucket and a group that nothing else uses.
const NUMBERS: [u8; GROUP_END] = [0, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0x03];

/// How a key is spelled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spelling {
    /// Paths have numbers instead of hashes.
    pub(super) numbered: bool,
    /// Last bytes of the ordinal that are kept.
    pub(super) ordinal_bytes: usize,
}

impl Spelling {
    pub(super) const TODAY: Spelling = Spelling { numbered: false, ordinal_bytes: ORDINAL_BYTES };
}

pub(super) struct Entries {
    spelling: Spelling,
    numbers: BTreeMap<[u8; HASH_BYTES], u16>,
    hashes: Vec<[u8; HASH_BYTES]>,
}

impl Entries {
    pub(super) fn new(spelling: Spelling) -> Entries {
        Entries { spelling, numbers: BTreeMap::new(), hashes: Vec::new() }
    }

    /// A posting as a key. Numbers a path that has none.
    fn key(&mut self, bucket: Bucket, posting: &[u8], batch: &mut WriteBatch) -> Result<Bytes> {
        let (hash, rest) = posting.split_first_chunk().context("a posting has a path")?;
        if self.spelling.numbered && !self.numbers.contains_key(hash) {
            let number = u16::try_from(self.hashes.len()).context("paths have numbers left")?;
            self.note(*hash, number);
            batch.put([&NUMBERS[..], &number.to_be_bytes()].concat(), hash.to_vec());
        }
        let (value, ordinal) = rest.split_at(rest.len() - ORDINAL_BYTES);
        let ordinal = &ordinal[ORDINAL_BYTES - self.spelling.ordinal_bytes..];
        let path = self.path(hash).context("the path has a number")?;
        Ok(change::key(bucket, INDEX, &[&path, value, ordinal]))
    }

    fn note(&mut self, hash: [u8; HASH_BYTES], number: u16) {
        self.numbers.insert(hash, number);
        self.hashes.push(hash);
    }

    /// What stands for a path in keys.
    fn path(&self, hash: &[u8; HASH_BYTES]) -> Option<Vec<u8>> {
        match self.spelling.numbered {
            true => Some(self.numbers.get(hash)?.to_be_bytes().to_vec()),
            false => Some(hash.to_vec()),
        }
    }

    /// The first key that is not below an entry.
    fn bound(&self, bucket: Bucket, entry: &[u8]) -> Option<Bytes> {
        let (hash, value) = entry.split_first_chunk()?;
        Some(change::key(bucket, INDEX, &[&self.path(hash)?, value]))
    }

    /// Writes the posting of a key to `out`.
    fn read(&self, key: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let rest = key.get(GROUP_END..).context("a key has a group")?;
        out.clear();
        let rest = match self.spelling.numbered {
            false => rest,
            true => {
                let (number, rest) =
                    rest.split_first_chunk::<NUMBER_BYTES>().context("a key has a path")?;
                let at = usize::from(u16::from_be_bytes(*number));
                out.extend(self.hashes.get(at).context("the path is known")?);
                rest
            }
        };
        let short = self.spelling.ordinal_bytes;
        let value = rest.len().checked_sub(short).context("a key has an ordinal")?;
        let (value, ordinal) = rest.split_at(value);
        out.extend_from_slice(value);
        out.extend(std::iter::repeat_n(0, ORDINAL_BYTES - short));
        out.extend_from_slice(ordinal);
        Ok(())
    }
}

impl TermStore for Entries {
    fn write(
        &mut self,
        _: &Reading<'_>,
        bucket: Bucket,
        changes: &Postings,
        batch: &mut WriteBatch,
    ) -> Result<()> {
        for (posting, added) in changes {
            let key = self.key(bucket, posting, batch)?;
            if *added { batch.put(key, Bytes::new()) } else { batch.delete(key) }
        }
        Ok(())
    }

    fn scan(&self, reading: &Reading<'_>, wanted: Wanted<'_>, visit: &mut Visit<'_>) -> Result<()> {
        let bound = |entry: &[u8]| self.bound(wanted.bucket, entry);
        let Some((start, end)) = bound(&wanted.range.start).zip(bound(&wanted.range.end)) else {
            return Ok(());
        };
        let mut posting = Vec::new();
        let range = KeyRange::new(start, end);
        reading.each(range, wanted.direction, wanted.about, |key, _| {
            self.read(key, &mut posting)?;
            visit(&posting)
        })
    }

    fn reopen(&mut self, reading: &Reading<'_>) -> Result<()> {
        *self = Entries::new(self.spelling);
        let all = (KeyRange::prefix(&NUMBERS), Direction::Forward, ScanLimit::ROWS_DEFAULT);
        let mut found = Vec::new();
        reading.each(all.0, all.1, all.2, |_, hash| {
            found.push(*hash.first_chunk().context("a number has a hash")?);
            Ok(ControlFlow::Continue(()))
        })?;
        // In the order of their numbers.
        (0..).zip(found).for_each(|(number, hash)| self.note(hash, number));
        Ok(())
    }
}
