//! Reading the engine's list of tables, and their newest commit.
//!
//! Inside a table every block is under a checksum that the engine verifies when it reads
//! the block: data, index, filter and properties alike. What it does not verify is the list
//! itself (it stores the list's checksum and never compares it), nor a length in a table's
//! directory before it reserves memory for it. Both are verified here, without reading any
//! data.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsm_tree::{Cache, Checksum, Table, UserKey};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64, xxh3_128};

use super::decode::Reader;
use super::{files, guarded, record};
use crate::StorageError;

/// A table as the engine's list has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listed {
    id: u64,
    checksum: u128,
    sequence_offset: u64,
}

/// The newest commit that is in a table of the tree at `folder`, 0 for none. Checks the list
/// and the directories of all tables.
pub(super) fn newest_commit(store: &Path, folder: &Path) -> Result<u64, StorageError> {
    let damaged = |detail: String| StorageError::Damaged { path: store.to_owned(), detail };
    let mut newest = 0;
    for listed in list(folder).map_err(&damaged)? {
        let path = folder.join("tables").join(listed.id.to_string());
        check_directory(&path).map_err(|what| damaged(format!("table {}: {what}", listed.id)))?;
        let found = guarded(store, || newest_record(path, listed))?;
        newest = newest.max(found.map_err(|what| damaged(format!("table {}: {what}", listed.id)))?);
    }
    Ok(newest)
}

/// Compares the whole of a table file with its checksum in the list.
pub(super) fn check_content(store: &Path, table: &Table) -> Result<(), StorageError> {
    let mut hasher = Xxh3Default::new();
    files::for_each_piece(&table.path, |piece| hasher.update(piece))
        .map_err(|source| files::during("read", &table.path, source))?;
    if hasher.digest128() == table.checksum().into_u128() {
        return Ok(());
    }
    let detail = format!("table {} does not match its checksum", table.id());
    Err(StorageError::Damaged { path: store.to_owned(), detail })
}

fn list(folder: &Path) -> Result<Vec<Listed>, String> {
    let current = read(&folder.join("current"))?;
    let mut reader = Reader::new(&current);
    let mut pointer = || Some((reader.u64()?, reader.u128()?, reader.u8()?, reader.remaining()));
    let Some((version, checksum, 0, 0)) = pointer() else {
        return Err("the pointer to the list of tables cannot be read".to_owned());
    };
    let list = read(&folder.join(format!("v{version}")))?;
    if xxh3_128(&list) != checksum {
        return Err(format!("the list of tables, version {version}, fails its checksum"));
    }
    parse_list(&list).ok_or_else(|| "the list of tables cannot be read".to_owned())
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    std::fs::read(path).map_err(|error| format!("the file {name} cannot be read ({error})"))
}

fn parse_list(archive: &[u8]) -> Option<Vec<Listed>> {
    let mut reader = Reader::new(section(archive, b"tables")?);
    let mut tables = Vec::new();
    for _level in 0..reader.u8()? {
        for _run in 0..reader.u8()? {
            for _table in 0..reader.u32()? {
                let id = reader.u64()?;
                reader.expect(&[0])?;
                let checksum = reader.u128()?;
                tables.push(Listed { id, checksum, sequence_offset: reader.u64()? });
            }
        }
    }
    Some(tables)
}

const TRAILER_BYTES: usize = 38;

/// The directory of an archive: position, length, checksum.
fn parse_trailer(trailer: &[u8]) -> Option<(u64, u64, u128)> {
    let mut reader = Reader::new(trailer);
    reader.expect(b"SFA!\x01\x00")?;
    let checksum = reader.u128()?;
    Some((reader.u64()?, reader.u64()?, checksum))
}

pub(super) fn section<'a>(archive: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (body, trailer) = archive.split_at_checked(archive.len().checked_sub(TRAILER_BYTES)?)?;
    let (position, len, _) = parse_trailer(trailer)?;
    let mut reader = Reader::new(slice(body, position, len)?);
    reader.expect(b"TOC!")?;
    for _ in 0..reader.u32()? {
        let (position, len) = (reader.u64()?, reader.u64()?);
        let name_len = reader.u16()?;
        if reader.take(usize::from(name_len))? == name {
            return slice(body, position, len);
        }
    }
    None
}

fn slice(bytes: &[u8], position: u64, len: u64) -> Option<&[u8]> {
    let mut reader = Reader::new(bytes);
    reader.take(usize::try_from(position).ok()?)?;
    reader.take(usize::try_from(len).ok()?)
}

fn check_directory(path: &Path) -> Result<(), String> {
    match directory_is_intact(path) {
        Ok(true) => Ok(()),
        Ok(false) => Err("its directory fails its checksum".to_owned()),
        Err(error) => Err(format!("cannot be read ({error})")),
    }
}

fn directory_is_intact(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let len = file.metadata()?.len();
    let Some(body_len) = len.checked_sub(TRAILER_BYTES as u64) else {
        return Ok(false);
    };
    let mut trailer = [0; TRAILER_BYTES];
    file.seek(SeekFrom::Start(body_len))?;
    file.read_exact(&mut trailer)?;
    let Some((position, directory_len, checksum)) = parse_trailer(&trailer) else {
        return Ok(false);
    };
    if position.checked_add(directory_len) != Some(body_len) {
        return Ok(false);
    }
    file.seek(SeekFrom::Start(position))?;
    let mut directory = Vec::new();
    file.take(directory_len).read_to_end(&mut directory)?;
    Ok(xxh3_128(&directory) == checksum)
}

/// Block cache for looking up one key per table: an index block or two.
const CACHE_BYTES: u64 = 1 << 20;

/// Above all sequence numbers that a record can have.
const SEQUENCE_ANY: u64 = 1 << 63;

/// The commit record of one table, 0 for none.
fn newest_record(path: PathBuf, listed: Listed) -> Result<u64, String> {
    let show = |error: lsm_tree::Error| error.to_string();
    let checksum = Checksum::from_raw(listed.checksum);
    let cache = Arc::new(Cache::with_capacity_bytes(CACHE_BYTES));
    let offset = listed.sequence_offset;
    let table =
        Table::recover(path, checksum, offset, 0, cache, None, false, false).map_err(show)?;
    if table.id() != listed.id {
        return Err(format!("it says to be table {}", table.id()));
    }
    // The same lookup that the engine makes once it has begun to change the folder: it uses
    // the filter, too, and must not be where damage shows first.
    table.get(record::KEY, SEQUENCE_ANY, xxh3_64(record::KEY)).map_err(show)?;
    let key = UserKey::from(record::KEY);
    let Some(found) = table.range(key.clone()..=key).next() else {
        return Ok(0);
    };
    let found = found.map_err(show)?;
    Ok(record::decode(&found.value).ok_or("its commit record cannot be read")?)
}
