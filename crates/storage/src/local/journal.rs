//! Reading the engine's journals without touching them.
//!
//! The engine's own recovery stops at the first unreadable byte, cuts the file there and
//! carries on, and it trusts two fields that no checksum covers (item count and sequence
//! number). So the journals are read here first, while they are still intact: every batch
//! is one of ours and carries its commit number, which makes a missing, repeated or
//! reordered batch visible.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::decode::Reader;
use super::{DATA_KEYSPACE, files, record};
use crate::StorageError;

/// One journal file. The one with the highest id is being written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Journal {
    pub(super) id: u64,
    pub(super) path: PathBuf,
}

/// An intact batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JournalBatch {
    pub(super) commit: u64,
    pub(super) sequence: u64,
}

/// What follows the last intact batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tail {
    /// Nothing, or the zeros of preallocated space.
    Clean,
    /// Something else: the beginning of a batch that was being written when the
    /// process ended, or damage.
    Torn,
    /// Unreadable bytes and then a later intact batch. Batches are synced one
    /// after the other, so this is damage for certain.
    Interrupted,
}

/// An intact batch, and where in its file it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) batch: JournalBatch,
    pub(super) range: Range<u64>,
}

#[derive(Debug)]
pub(super) struct Scan {
    pub(super) batches: Vec<JournalBatch>,
    /// Where the last intact batch begins.
    pub(super) start: u64,
    /// Where it ends.
    pub(super) end: u64,
    pub(super) tail: Tail,
}

/// The journals of a store, oldest first.
pub(super) fn list(folder: &Path) -> Result<Vec<Journal>, StorageError> {
    let journals = files::list(folder)?.into_iter().filter_map(|(name, is_folder)| {
        let id = name.strip_suffix(".jnl")?.parse().ok()?;
        (!is_folder).then(|| Journal { id, path: folder.join(name) })
    });
    let mut journals: Vec<Journal> = journals.collect();
    journals.sort_by_key(|journal| journal.id);
    Ok(journals)
}

/// All intact batches of a journal, including those after holes.
pub(super) fn find_batches(path: &Path) -> Result<Vec<Placed>, StorageError> {
    let bytes = read_without_zeros(path).map_err(|source| files::during("read", path, source))?;
    Ok(find_in(&bytes))
}

fn find_in(bytes: &[u8]) -> Vec<Placed> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let mut reader = Reader::new(rest);
        at += match read_batch(&mut reader) {
            Some(batch) => {
                let len = rest.len() - reader.remaining();
                found.push(Placed { batch, range: at as u64..(at + len) as u64 });
                len
            }
            // No document can be taken for a batch: a batch contains the key of the commit
            // record, which is not UTF-8.
            None => 1 + rest.iter().skip(1).take_while(|byte| **byte != START).count(),
        };
    }
    found
}

/// Copies a journal up to its last used byte.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), StorageError> {
    let bytes = read_without_zeros(from).map_err(|source| files::during("read", from, source))?;
    std::fs::write(to, bytes).map_err(|source| files::during("write", to, source))
}

impl Scan {
    pub(super) fn of(path: &Path) -> Result<Scan, StorageError> {
        let bytes = read_without_zeros(path);
        Ok(Scan::of_bytes(&bytes.map_err(|source| files::during("read", path, source))?))
    }

    fn of_bytes(bytes: &[u8]) -> Scan {
        let mut reader = Reader::new(bytes);
        let mut intact = reader;
        let (mut batches, mut start) = (Vec::new(), 0);
        while let Some(batch) = read_batch(&mut reader) {
            batches.push(batch);
            start = (bytes.len() - intact.remaining()) as u64;
            intact = reader;
        }
        let last = batches.last().map_or(0, |batch| batch.commit);
        let end = (bytes.len() - intact.remaining()) as u64;
        Scan { batches, start, end, tail: classify(intact, last) }
    }
}

fn classify(rest: Reader<'_>, last: u64) -> Tail {
    let rest = rest.rest();
    if rest.chunks(ZEROS.len()).all(is_zero) {
        return Tail::Clean;
    }
    // The batch right after the last one may be the torn one; any later number means that
    // the torn one had been finished.
    let later = (1..rest.len()).filter(|&at| rest.get(at) == Some(&START)).any(|at| {
        let mut reader = Reader::new(rest.get(at..).unwrap_or_default());
        read_batch(&mut reader).is_some_and(|batch| batch.commit > last + 1)
    });
    if later { Tail::Interrupted } else { Tail::Torn }
}

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const TRAILER: &[u8] = b"FJL\x03";

/// Reads one batch, or `None` when it is incomplete, damaged or not ours.
fn read_batch(reader: &mut Reader<'_>) -> Option<JournalBatch> {
    reader.expect(&[START])?;
    let count = reader.u32()?;
    let sequence = reader.u64()?;
    let before = *reader;
    let mut commit = None;
    for _ in 0..count {
        commit = read_item(reader)?.or(commit);
    }
    let items = reader.since(before);
    reader.expect(&[END])?;
    let checksum = reader.u64()?;
    reader.expect(TRAILER)?;
    let intact = xxhash_rust::xxh3::xxh3_64(items) == checksum;
    intact.then_some(JournalBatch { commit: commit?, sequence })
}

/// Reads one item: the commit number if it is the commit record.
fn read_item(reader: &mut Reader<'_>) -> Option<Option<u64>> {
    reader.expect(&[ITEM])?;
    let (_value_type, _compression) = (reader.u8()?, reader.u8()?);
    let keyspace = reader.u64()?;
    let key_len = reader.u16()?;
    let _value_len = reader.u32()?;
    let stored_len = reader.u32()?;
    let key = reader.take(usize::from(key_len))?;
    let value = reader.take(usize::try_from(stored_len).ok()?)?;
    let is_record = keyspace == DATA_KEYSPACE && key == record::KEY;
    Some(if is_record { Some(record::decode(value)?) } else { None })
}

/// Compared as a block, which is far quicker than looking at every byte.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

fn is_zero(piece: &[u8]) -> bool {
    ZEROS.get(..piece.len()) == Some(piece)
}

/// The file up to its last piece that is not all zeros: most of a fresh journal
/// is preallocated space.
fn read_without_zeros(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut piece = vec![0; ZEROS.len()];
    let mut len = file.metadata()?.len();
    while len > 0 {
        let start = (len - 1) / ZEROS.len() as u64 * ZEROS.len() as u64;
        piece.truncate(usize::try_from(len - start).unwrap_or(ZEROS.len()));
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut piece)?;
        if !is_zero(&piece) {
            break;
        }
        len = start;
        piece.resize(ZEROS.len(), 0);
    }
    file.seek(SeekFrom::Start(0))?;
    let mut bytes = Vec::new();
    file.take(len).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Journals as the engine writes them, for tests.
#[cfg(test)]
pub(super) mod testing {
    use super::*;

    /// A batch that writes its commit number under the key `key`.
    pub(in crate::local) fn batch(commit: u64, sequence: u64) -> Vec<u8> {
        let value = commit.to_string();
        let record = record::encode(commit);
        let items = [item(b"key", value.as_bytes()), item(record::KEY, &record)].concat();
        let mut bytes = vec![START];
        bytes.extend_from_slice(&2_u32.to_le_bytes());
        bytes.extend_from_slice(&sequence.to_le_bytes());
        bytes.extend_from_slice(&items);
        bytes.push(END);
        bytes.extend_from_slice(&xxhash_rust::xxh3::xxh3_64(&items).to_le_bytes());
        bytes.extend_from_slice(TRAILER);
        bytes
    }

    fn item(key: &[u8], value: &[u8]) -> Vec<u8> {
        let mut bytes = vec![ITEM, 0, 0];
        bytes.extend_from_slice(&DATA_KEYSPACE.to_le_bytes());
        bytes.extend_from_slice(&u16::try_from(key.len()).unwrap().to_le_bytes());
        for _ in 0..2 {
            bytes.extend_from_slice(&u32::try_from(value.len()).unwrap().to_le_bytes());
        }
        bytes.extend_from_slice(key);
        bytes.extend_from_slice(value);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(commit: u64) -> Vec<u8> {
        testing::batch(commit, commit * 10)
    }

    fn commits(scan: &Scan) -> Vec<u64> {
        scan.batches.iter().map(|batch| batch.commit).collect()
    }

    #[test]
    fn whole_batches_are_read_and_zeros_behind_them_are_clean() {
        let mut bytes = [batch(5), batch(6)].concat();
        let end = bytes.len() as u64;
        bytes.resize(bytes.len() + 200_000, 0);
        let scan = Scan::of_bytes(&bytes);
        assert_eq!((commits(&scan), scan.end, scan.tail), (vec![5, 6], end, Tail::Clean));
        assert_eq!(scan.batches[1].sequence, 60);
        assert_eq!(Scan::of_bytes(&[]).tail, Tail::Clean);
    }

    #[test]
    fn a_batch_cut_off_anywhere_is_torn() {
        let (first, second) = (batch(5), batch(6));
        for len in 1..second.len() {
            let mut bytes = [first.as_slice(), &second[..len]].concat();
            bytes.resize(bytes.len() + 10, 0);
            let scan = Scan::of_bytes(&bytes);
            assert_eq!((commits(&scan), scan.tail), (vec![5], Tail::Torn), "cut to {len}");
        }
    }

    #[test]
    fn damage_with_a_batch_behind_it_is_told_from_a_torn_end() {
        let good = [batch(5), batch(6), batch(7)].concat();
        let one = batch(5).len();
        for at in one..2 * one {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                let scan = Scan::of_bytes(&bad);
                let sequence = (one + 5..one + 13).contains(&at);
                let expected = if sequence { Tail::Clean } else { Tail::Interrupted };
                assert_eq!(scan.tail, expected, "byte {at} bit {bit}");
            }
        }
    }

    #[test]
    fn a_file_of_zeros_reads_as_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.jnl");
        for len in [0, 1, ZEROS.len(), ZEROS.len() * 2 + 1] {
            std::fs::write(&path, vec![0; len]).unwrap();
            assert_eq!(read_without_zeros(&path).unwrap(), Vec::<u8>::new(), "{len}");
        }
        let mut bytes = vec![0; ZEROS.len() * 3];
        bytes[ZEROS.len() + 7] = 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read_without_zeros(&path).unwrap(), bytes[..ZEROS.len() * 2]);
    }
}
