//! The folder of a store: `docs/formats/storage.md`.

use std::collections::BTreeMap;
use std::path::Path;

use super::bytes::{Cursor, Damage, Result, damage, hash_64, require, size};
use super::tables::{self, Table, Version, read_file};

const COMMIT_KEY: &[u8] = b"\xFFcommit";
const RECORD_HEADER_BYTES: usize = 24;
const SLOT_AT: [u64; 2] = [0, 4_096];
const SLOT_BYTES: usize = 20;
const WITNESS_BYTES: usize = 8_192;
/// Far above what one commit can have.
const BODY_BYTES_MAX: u32 = 1 << 30;

pub(crate) type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// A store that was read.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) format: Format,
    pub(crate) watermark: Watermark,
    pub(crate) runs: Vec<Vec<Table>>,
    /// The commit that the tables are of.
    pub(crate) in_tables: u64,
    /// Commits that only the journal has.
    pub(crate) in_journal: u64,
    /// Where in its segment the last record ends, by the segment's number.
    pub(crate) segment_ends: BTreeMap<u64, usize>,
    /// What is in the store, without the keys that belong to it.
    pub(crate) rows: Rows,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub(crate) contents: u32,
    pub(crate) created_by: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Watermark {
    pub(crate) commit: u64,
    /// Whether it and all before it are known to be on the disk.
    pub(crate) synced: bool,
    /// Slots that can be read.
    pub(crate) valid_slots: usize,
}

pub(crate) fn read(folder: &Path) -> Result<Store> {
    let format = Format::read(&read_file(&folder.join("FORMAT"))?)?;
    let watermark = Watermark::read(&read_file(&folder.join("WITNESS"))?)?;
    let runs = tables::read(&folder.join("tree"))?;
    let mut rows = merge(&runs)?;
    let in_tables = rows.remove(COMMIT_KEY).map_or(Ok(0), |value| commit_number(&value))?;
    let Journal { commits, segment_ends } = Journal::read(&folder.join("journal"))?;
    let mut commit = in_tables;
    for (number, body) in commits.range(in_tables + 1..) {
        require(*number == commit + 1, || format!("commit {} is missing", commit + 1))?;
        apply(body, &mut rows)?;
        commit = *number;
    }
    require(commit >= watermark.commit, || {
        format!("commit {} was acknowledged, {commit} is the last one", watermark.commit)
    })?;
    let foreign = rows.keys().any(|key| key.first() == Some(&0xFF));
    require(!foreign, || "a reserved key that is not described".to_owned())?;
    let in_journal = commit - in_tables;
    Ok(Store { format, watermark, runs, in_tables, in_journal, segment_ends, rows })
}

impl Format {
    fn read(file: &[u8]) -> Result<Format> {
        let mut cursor = Cursor::new("FORMAT", file);
        cursor.expect(b"ORRERYDB")?;
        cursor.expect(&3_u32.to_le_bytes())?;
        check_crc(file, "FORMAT")?;
        let engine = counted_text(&mut cursor)?;
        require(engine == "lsm-tree", || format!("the engine {engine}"))?;
        cursor.expect(&1_u32.to_le_bytes())?;
        cursor.expect(&3_u32.to_le_bytes())?;
        let (contents, created_by) = (cursor.u32()?, counted_text(&mut cursor)?);
        cursor.take(4)?;
        cursor.end()?;
        Ok(Format { contents, created_by })
    }
}

/// The last four bytes are the CRC-32 of those before.
pub(crate) fn check_crc(bytes: &[u8], what: &str) -> Result<()> {
    let split = bytes.split_last_chunk::<4>();
    let is_right =
        split.is_some_and(|(checked, crc)| crc32fast::hash(checked) == u32::from_le_bytes(*crc));
    require(is_right, || format!("{what} fails its checksum"))
}

fn counted_text(cursor: &mut Cursor<'_>) -> Result<String> {
    let len = cursor.u16()?;
    let text = String::from_utf8(cursor.take(len.into())?.to_vec());
    text.map_err(|_| Damage("a text that is none".to_owned()))
}

impl Watermark {
    fn read(file: &[u8]) -> Result<Watermark> {
        require(file.len() == WITNESS_BYTES, || format!("WITNESS has {} bytes", file.len()))?;
        let slots = SLOT_AT.into_iter().filter_map(|at| {
            let slot = super::bytes::part("a slot", file, at, SLOT_BYTES as u64).ok()?;
            Watermark::slot(slot).ok()
        });
        let slots: Vec<Watermark> = slots.collect();
        let newest = slots.iter().max_by_key(|slot| slot.commit).copied();
        let newest = newest.ok_or_else(|| Damage("WITNESS has no valid slot".to_owned()))?;
        Ok(Watermark { valid_slots: slots.len(), ..newest })
    }

    fn slot(bytes: &[u8]) -> Result<Watermark> {
        check_crc(bytes, "a slot of WITNESS")?;
        let mut cursor = Cursor::new("a slot of WITNESS", bytes);
        cursor.expect(b"WTN1")?;
        let synced = match cursor.u8()? {
            1 => true,
            2 => false,
            other => return damage(format!("durability {other}")),
        };
        cursor.expect(&[0; 3])?;
        Ok(Watermark { commit: cursor.u64()?, synced, valid_slots: 1 })
    }
}

/// The newest version of each key, in the order of the list; those that were deleted are
/// left out.
fn merge(runs: &[Vec<Table>]) -> Result<Rows> {
    let mut merged: BTreeMap<&[u8], &Version> = BTreeMap::new();
    for table in runs.iter().flatten() {
        for (key, version) in &table.rows {
            match merged.get(key.as_slice()) {
                None => drop(merged.insert(key, version)),
                Some((newer, _)) => require(*newer > version.0, || {
                    format!("table {} has a newer version than a run before it", table.id)
                })?,
            }
        }
    }
    let rows = merged.into_iter();
    Ok(rows.filter_map(|(key, (_, value))| Some((key.to_vec(), value.clone()?))).collect())
}

fn commit_number(value: &[u8]) -> Result<u64> {
    let Some((checked, crc)) = value.split_last_chunk::<4>() else {
        return damage("the commit record ends early");
    };
    let is_right = crc32fast::hash(checked) == u32::from_be_bytes(*crc);
    require(is_right, || "the commit record fails its checksum".to_owned())?;
    let mut cursor = Cursor::new("the commit record", checked);
    cursor.expect(&[1])?;
    let number = cursor.u64_be()?;
    cursor.end()?;
    Ok(number)
}

/// All intact records of all segments.
struct Journal {
    /// Bodies by the number of their commit.
    commits: BTreeMap<u64, Vec<u8>>,
    segment_ends: BTreeMap<u64, usize>,
}

impl Journal {
    fn read(folder: &Path) -> Result<Journal> {
        let mut journal = Journal { commits: BTreeMap::new(), segment_ends: BTreeMap::new() };
        if !folder.exists() {
            return Ok(journal);
        }
        let names = std::fs::read_dir(folder)
            .map_err(|error| Damage(format!("{}: {error}", folder.display())))?;
        for name in names.flatten() {
            let Ok(number) = name.file_name().to_string_lossy().parse() else { continue };
            journal.add_segment(number, &read_file(&name.path())?)?;
        }
        Ok(journal)
    }

    /// Records follow each other; where one cannot be read, an intact one is looked for at
    /// every later byte.
    fn add_segment(&mut self, number: u64, file: &[u8]) -> Result<()> {
        let mut at = 0;
        while let Some(rest) = file.get(at..).filter(|rest| rest.len() >= RECORD_HEADER_BYTES) {
            let Some((commit, len, body)) = intact_record(number, rest) else {
                at += 1;
                continue;
            };
            at += len;
            self.segment_ends.insert(number, at);
            let again = self.commits.insert(commit, body?);
            require(again.is_none(), || format!("commit {commit} is there twice"))?;
        }
        Ok(())
    }
}

/// Commit, length and body of the record at the front.
fn intact_record(segment: u64, bytes: &[u8]) -> Option<(u64, usize, Result<Vec<u8>>)> {
    let mut cursor = Cursor::new("a record", bytes);
    let checksum = cursor.u64().ok()?;
    let checked = cursor.rest();
    let (commit, stored, plain) = (cursor.u64().ok()?, cursor.u32().ok()?, cursor.u32().ok()?);
    let body = cursor.take(size(stored).ok()?).ok()?;
    let checked = checked.get(..checked.len() - cursor.rest().len())?;
    (commit > 0 && hash_64(checked, segment) == checksum)
        .then(|| (commit, bytes.len() - cursor.rest().len(), decompressed(body, plain)))
}

fn decompressed(body: &[u8], plain: u32) -> Result<Vec<u8>> {
    if plain == 0 {
        return Ok(body.to_vec());
    }
    require(plain <= BODY_BYTES_MAX, || format!("a commit of {plain} bytes"))?;
    let found = lz4_flex::block::decompress(body, size(plain)?);
    let found = found.map_err(|error| Damage(format!("a commit: {error}")))?;
    require(found.len() == size(plain)?, || "a commit has another length".to_owned())?;
    Ok(found)
}

fn apply(body: &[u8], rows: &mut Rows) -> Result<()> {
    let (mut cursor, mut key) = (Cursor::new("a commit", body), Vec::new());
    while !cursor.is_empty() {
        let (shared, more, value) = (cursor.varint()?, cursor.varint()?, cursor.varint()?);
        require(size(shared)? <= key.len(), || "too much is shared".to_owned())?;
        let before = key.clone();
        key.truncate(size(shared)?);
        key.extend_from_slice(cursor.take(size(more)?)?);
        require(before < key, || "the keys of a commit are not in order".to_owned())?;
        match value.checked_sub(1) {
            None => drop(rows.remove(&key)),
            Some(len) => drop(rows.insert(key.clone(), cursor.take(size(len)?)?.to_vec())),
        }
    }
    Ok(())
}
