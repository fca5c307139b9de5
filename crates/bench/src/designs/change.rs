//! What a partition writes for one document, with its index entries taken apart.
//!
//! Every design gets the same changes and stores the same postings, each in its own way. A
//! *posting* is an entry of the index, `path hash | value`, followed by the ordinal of the
//! document: today's key without bucket and group.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use storage::{Write, WriteBatch};

/// The number of the container and of the bucket, which every key begins with.
pub(super) type Bucket = [u8; 8];

/// Groups of keys, as in docs/formats/partition.md.
pub(super) const HEAD: u8 = 0x01;
pub(super) const ITEM: u8 = 0x10;
pub(super) const ORDINAL: u8 = 0x20;
pub(super) const MEMBER: u8 = 0x21;
pub(super) const INDEX: u8 = 0x30;
/// A group of the designs here: terms that have not been folded yet.
pub(super) const DELTA: u8 = 0x31;
pub(super) const LOG: u8 = 0x60;

pub(super) const ORDINAL_BYTES: usize = 8;

/// Postings, and whether each is added or removed.
pub(super) type Postings = BTreeMap<Bytes, bool>;

/// What one command changes.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) bucket: Bucket,
    pub(super) postings: Postings,
    /// Everything but the index.
    pub(super) rows: Vec<Write>,
}

impl Change {
    pub(super) fn of(batch: &WriteBatch) -> Result<Change> {
        let first = batch.iter().next().context("a command writes")?;
        let bucket = *first.key().first_chunk().context("a key has a bucket")?;
        let (mut postings, mut rows) = (Postings::new(), Vec::new());
        for write in batch.iter() {
            match posting_of(write.key()) {
                Some(posting) => _ = postings.insert(posting, write.value().is_some()),
                None => rows.push(write.clone()),
            }
        }
        Ok(Change { bucket, postings, rows })
    }
}

fn posting_of(key: &Bytes) -> Option<Bytes> {
    (group_of(key)? == INDEX).then(|| key.slice(GROUP_END..))
}

pub(super) fn group_of(key: &[u8]) -> Option<u8> {
    key.get(size_of::<Bucket>()).copied()
}

/// Where the part of a key begins that differs by group.
pub(super) const GROUP_END: usize = size_of::<Bucket>() + 1;

pub(super) fn key(bucket: Bucket, group: u8, rest: &[&[u8]]) -> Bytes {
    let mut key = Vec::with_capacity(GROUP_END + rest.iter().map(|part| part.len()).sum::<usize>());
    key.extend(bucket);
    key.push(group);
    rest.iter().for_each(|part| key.extend_from_slice(part));
    key.into()
}

/// Splits a posting into its entry and the ordinal.
pub(super) fn split(posting: &[u8]) -> Result<(&[u8], u64)> {
    let (entry, ordinal) =
        posting.split_last_chunk::<ORDINAL_BYTES>().context("a posting has an ordinal")?;
    Ok((entry, u64::from_be_bytes(*ordinal)))
}

pub(super) fn put_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

pub(super) fn take_varint(input: &mut &[u8]) -> Result<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, rest) = input.split_first().context("a number ends")?;
        *input = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    anyhow::bail!("a number has more than 64 bits")
}

pub(super) fn take<'a>(input: &mut &'a [u8], bytes: u64) -> Result<&'a [u8]> {
    let (front, rest) =
        input.split_at_checked(usize::try_from(bytes)?).context("there are enough bytes")?;
    *input = rest;
    Ok(front)
}
