//! Journals of folders whose engine was fjall: layout 1.
//!
//! The tree below them is the one that we use ourselves; only the journals differ. Each
//! batch has the commit record, whose number makes a missing one visible.

use std::path::Path;

use bytes::Bytes;

use super::decode::Reader;
use super::journal::{Record, Segment};
use super::{files, record};
use crate::StorageError;
use crate::committer::MergedBatch;

/// The keyspace with all data.
pub(super) const TREE: &str = "keyspaces/1";
const KEYSPACE: u64 = 1;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const TRAILER: &[u8] = b"FJL\x03";

/// Of an item: a value, or one of the two kinds of deletes.
const VALUE: u8 = 0;
/// Of an item: the value is compressed with LZ4.
const COMPRESSED: u8 = 1;

pub(super) fn list(folder: &Path) -> Result<Vec<Segment>, StorageError> {
    let journals = files::list(folder)?.into_iter().filter_map(|(name, is_folder)| {
        let id = name.strip_suffix(".jnl")?.parse().ok()?;
        (!is_folder).then(|| Segment { id, path: folder.join(name) })
    });
    let mut journals: Vec<Segment> = journals.collect();
    journals.sort();
    Ok(journals)
}

pub(super) fn records(bytes: &[u8], floor: u64) -> Result<Vec<Record>, StorageError> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let mut reader = Reader::new(rest);
        at += match read_batch(&mut reader) {
            Some((commit, _)) => {
                let len = rest.len() - reader.remaining();
                if commit > floor {
                    found.push(Record { commit, range: at..at + len });
                }
                len
            }
            // No document can be taken for a batch: a batch contains the key of the commit
            // record, which is not UTF-8.
            None => 1 + rest.iter().skip(1).take_while(|byte| **byte != START).count(),
        };
    }
    Ok(found)
}

pub(super) fn replay(
    segment: &Segment,
    records: &[Record],
    mut apply: impl FnMut(u64, MergedBatch),
) -> Result<(), StorageError> {
    let bytes = files::read(&segment.path)?;
    for record in records {
        let batch = bytes.get(record.range.clone()).map(Reader::new);
        let Some((commit, writes)) = batch.and_then(|mut batch| read_batch(&mut batch)) else {
            let detail = format!("commit {} in its journal cannot be read", record.commit);
            return Err(StorageError::Damaged { path: segment.path.clone(), detail });
        };
        apply(commit, writes);
    }
    Ok(())
}

/// Reads one batch, or `None` when it is incomplete, damaged or not ours.
fn read_batch(reader: &mut Reader<'_>) -> Option<(u64, MergedBatch)> {
    reader.expect(&[START])?;
    let (count, _sequence) = (reader.u32()?, reader.u64()?);
    let (before, mut commit, mut writes) = (*reader, None, MergedBatch::new());
    for _ in 0..count {
        let (key, value) = read_item(reader)?;
        if *key == *record::KEY {
            commit = Some(record::decode(&value?)?);
        } else {
            writes.insert(key, value);
        }
    }
    let items = reader.since(before);
    reader.expect(&[END])?;
    let checksum = reader.u64()?;
    reader.expect(TRAILER)?;
    let intact = xxhash_rust::xxh3::xxh3_64(items) == checksum;
    intact.then_some((commit?, writes))
}

fn read_item(reader: &mut Reader<'_>) -> Option<(Bytes, Option<Bytes>)> {
    reader.expect(&[ITEM])?;
    let (kind, compression) = (reader.u8()?, reader.u8()?);
    let is_ours = reader.u64()? == KEYSPACE;
    let (key_len, value_len, stored_len) = (reader.u16()?, reader.u32()?, reader.u32()?);
    let key = Bytes::copy_from_slice(reader.take(usize::from(key_len))?);
    let stored = reader.take(usize::try_from(stored_len).ok()?)?;
    let value = match (kind, compression) {
        (VALUE, COMPRESSED) if value_len <= VALUE_BYTES_MAX => {
            let len = usize::try_from(value_len).ok()?;
            Some(Bytes::from(lz4_flex::block::decompress(stored, len).ok()?))
        }
        (VALUE, COMPRESSED) => return None,
        (VALUE, _) => Some(Bytes::copy_from_slice(stored)),
        (_, _) => None,
    };
    is_ours.then_some((key, value))
}

/// No value was larger: see [`crate::VALUE_BYTES_MAX`]. A length is read before the
/// checksum is.
const VALUE_BYTES_MAX: u32 = 64 << 20;
