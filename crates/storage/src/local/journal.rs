//! The journal: commits that are in no table yet.
//!
//! A commit is one *record*, and a file of records is a *segment*. There is one segment for
//! each memtable: it begins with it, and is given up when the memtable has become a table.
//! Its blocks are then written over by a later segment, because a sync of a file that
//! neither grows nor takes new blocks waits for nothing but its own bytes.
//!
//! So a segment may end in records of its former life. Each record is checked with the
//! number of its segment, which is never used twice: what is left of another segment does
//! not pass.

mod body;
mod segments;

use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64_with_seed;

pub(super) use self::segments::Segments;
use super::decode::Reader;
use super::files;
use crate::committer::MergedBatch;
use crate::{Durability, StorageError};

/// The folder of all segments.
pub(super) const FOLDER: &str = "journal";

/// Checksum, commit number, length as stored, length of the plain body.
const HEADER_BYTES: usize = 8 + 8 + 4 + 4;

/// How far commit numbers may be ahead of those that are known. Far beyond what fits into
/// segments, and so small that hardly any other bytes pass for a commit number.
const AHEAD_MAX: u64 = 1 << 32;

/// One segment file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Segment {
    pub(super) id: u64,
    pub(super) path: PathBuf,
}

/// An intact record, and where in its segment it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) commit: u64,
    pub(super) range: Range<usize>,
}

/// The segments in a store's folder, by number.
pub(super) fn list(folder: &Path) -> Result<Vec<Segment>, StorageError> {
    let folder = folder.join(FOLDER);
    let names = match files::list(&folder) {
        Err(StorageError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(Vec::new());
        }
        names => names?,
    };
    let segments = names.into_iter().filter_map(|(name, is_folder)| {
        let id = name.parse().ok()?;
        (!is_folder).then(|| Segment { id, path: folder.join(name) })
    });
    let mut segments: Vec<Segment> = segments.collect();
    segments.sort();
    Ok(segments)
}

impl Segment {
    /// All intact records with commits above `floor`, in the order of the file, including
    /// those after bytes that cannot be read.
    pub(super) fn records(&self, floor: u64) -> Result<Vec<Record>, StorageError> {
        Ok(find_records(self.id, &files::read(&self.path)?, floor))
    }

    /// Calls `apply` with each record of `commits`, and its writes.
    pub(super) fn replay(
        &self,
        records: &[Record],
        mut apply: impl FnMut(u64, MergedBatch),
    ) -> Result<(), StorageError> {
        let bytes = files::read(&self.path)?;
        for record in records {
            let read = bytes.get(record.range.clone()).and_then(|bytes| read_at(self.id, bytes));
            let writes = read.and_then(|found| body::decode(found.plain, found.body));
            let Some(writes) = writes else {
                let detail = format!("commit {} in {} cannot be read", record.commit, self.name());
                let path = self.path.parent().and_then(Path::parent).unwrap_or(&self.path);
                return Err(StorageError::Damaged { path: path.to_owned(), detail });
            };
            apply(record.commit, writes);
        }
        Ok(())
    }

    /// Cuts it off, so that records with the numbers beyond can be written elsewhere.
    pub(super) fn cut(&self, len: usize) -> Result<(), StorageError> {
        files::truncate(&self.path, len as u64)
    }

    /// Waits for everything in it.
    pub(super) fn sync(&self) -> Result<(), StorageError> {
        let synced = File::open(&self.path).and_then(|file| file.sync_data());
        synced.map_err(|source| files::during("sync", &self.path, source))
    }

    pub(super) fn remove(&self) -> Result<(), StorageError> {
        std::fs::remove_file(&self.path)
            .map_err(|source| files::during("remove", &self.path, source))
    }

    fn name(&self) -> String {
        format!("{FOLDER}/{}", self.id)
    }
}

/// A record whose checksum is right.
struct Found<'a> {
    commit: u64,
    /// Length of the body before it was compressed; 0 if it was not.
    plain: u32,
    body: &'a [u8],
}

fn read_at(segment: u64, bytes: &[u8]) -> Option<Found<'_>> {
    let mut reader = Reader::new(bytes);
    let checksum = reader.u64()?;
    let before = reader;
    let (commit, stored, plain) = (reader.u64()?, reader.u32()?, reader.u32()?);
    let body = reader.take(usize::try_from(stored).ok()?)?;
    let intact = xxh3_64_with_seed(reader.since(before), segment) == checksum;
    intact.then_some(Found { commit, plain, body })
}

fn find_records(segment: u64, bytes: &[u8], floor: u64) -> Vec<Record> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= HEADER_BYTES) {
        match read_at(segment, rest).filter(|_| is_plausible(rest, floor)) {
            Some(record) => {
                let end = at + HEADER_BYTES + record.body.len();
                if record.commit > floor {
                    found.push(Record { commit: record.commit, range: at..end });
                }
                at = end;
            }
            None => at += 1 + skip(rest.get(1..).unwrap_or_default(), floor),
        }
    }
    found
}

/// Bytes up to the next ones that may be a record: looking at commit numbers is far quicker
/// than computing checksums.
fn skip(bytes: &[u8], floor: u64) -> usize {
    let starts = bytes.windows(HEADER_BYTES).position(|header| is_plausible(header, floor));
    starts.unwrap_or(bytes.len())
}

fn is_plausible(header: &[u8], floor: u64) -> bool {
    let commit = header.get(8..16).and_then(|bytes| bytes.first_chunk());
    commit.is_some_and(|commit| {
        (1..=floor.saturating_add(AHEAD_MAX)).contains(&u64::from_le_bytes(*commit))
    })
}

/// The segment that is being written.
#[derive(Debug)]
pub(super) struct Writer {
    segment: Segment,
    file: File,
    /// Where the next record goes.
    end: u64,
    record: Vec<u8>,
    body: Vec<u8>,
}

impl Writer {
    fn new(segment: Segment, file: File) -> Writer {
        Writer { segment, file, end: 0, record: Vec::new(), body: Vec::new() }
    }

    /// Begins a new file.
    fn create(segment: Segment) -> io::Result<Writer> {
        let file = OpenOptions::new().write(true).create_new(true).open(&segment.path)?;
        Ok(Writer::new(segment, file))
    }

    pub(super) fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Waits for what was written without waiting.
    pub(super) fn sync(&self) -> Result<(), StorageError> {
        let synced = self.file.sync_data();
        synced.map_err(|source| files::during("sync", &self.segment.path, source))
    }

    /// Writes one commit, and waits for the disk if that is asked for.
    ///
    /// # Errors
    /// After [`StorageError::Full`] nothing of the commit is left and the next one may be
    /// written. After any other error what is in the file is not known.
    pub(super) fn append(
        &mut self,
        commit: u64,
        writes: &MergedBatch,
        durability: Durability,
    ) -> Result<(), StorageError> {
        self.encode(commit, writes)?;
        let written = self.write().and_then(|()| match durability {
            Durability::Full => self.file.sync_data(),
            Durability::Os => Ok(()),
        });
        let Err(source) = written else {
            self.end += self.record.len() as u64;
            return Ok(());
        };
        let error = files::during("write", &self.segment.path, source);
        match (error, self.file.set_len(self.end)) {
            (error @ StorageError::Full { .. }, Ok(())) => Err(error),
            (error, _) => Err(StorageError::Failed { detail: error.to_string() }),
        }
    }

    fn encode(&mut self, commit: u64, writes: &MergedBatch) -> Result<(), StorageError> {
        let Writer { segment, record, body, .. } = self;
        body::encode(writes, body);
        record.clear();
        record.resize(HEADER_BYTES, 0);
        let plain = body::compress(body, record);
        let len = |len: usize| {
            u32::try_from(len).map_err(|_| StorageError::Failed {
                detail: format!("a commit of {len} bytes is too large for the journal"),
            })
        };
        let stored = len(record.len() - HEADER_BYTES)?;
        let plain = if plain { len(body.len())? } else { 0 };
        let fields = commit.to_le_bytes().into_iter().chain(stored.to_le_bytes());
        put(record, 8, fields.chain(plain.to_le_bytes()));
        let checked = record.get(8..).unwrap_or_default();
        let checksum = xxh3_64_with_seed(checked, segment.id);
        put(record, 0, checksum.to_le_bytes());
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.end))?;
        self.file.write_all(&self.record)
    }
}

fn put(bytes: &mut [u8], at: usize, field: impl IntoIterator<Item = u8>) {
    bytes.iter_mut().skip(at).zip(field).for_each(|(to, from)| *to = from);
}

#[cfg(test)]
pub(super) mod testing {
    use bytes::Bytes;

    use super::*;

    /// A record that writes its commit number under the key `key`.
    pub(in crate::local) fn record(segment: u64, commit: u64) -> Vec<u8> {
        let (key, value) = (Bytes::from_static(b"key"), commit.to_string());
        let writes = MergedBatch::from([(key, Some(Bytes::from(value)))]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("segment");
        let mut writer = Writer::create(Segment { id: segment, path: path.clone() }).unwrap();
        writer.append(commit, &writes, Durability::Os).unwrap();
        std::fs::read(path).unwrap()
    }
}

#[cfg(test)]
mod tests;
