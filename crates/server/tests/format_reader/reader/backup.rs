//! The file of a backup: `docs/formats/backup.md`.

use std::path::Path;

use xxhash_rust::xxh3::Xxh3Default;

use super::bytes::{Cursor, Result, damage, require, size};
use super::store::{Rows, check_crc};
use super::tables::read_file;

const HEADER_BYTES: usize = 20;
const CHUNK_HEADER_BYTES: usize = 5;
const CHUNK: u8 = 0x01;
const END: u8 = 0x02;
const END_BYTES: usize = 1 + 24 + 16 + 4;

/// The rows of the backup in `folder`.
pub(crate) fn read(folder: &Path) -> Result<Rows> {
    let file = read_file(&folder.join("rows"))?;
    let mut cursor = Cursor::new("a backup", &file);
    let header = cursor.take(HEADER_BYTES)?;
    check_crc(header, "the header of a backup")?;
    let mut fields = Cursor::new("the header of a backup", header);
    fields.expect(b"ORRERYBK")?;
    fields.expect(&2_u32.to_le_bytes())?;
    fields.expect(&super::CONTENTS.to_le_bytes())?;
    let mut read = Read::default();
    while cursor.rest().first() == Some(&CHUNK) {
        let len = cursor.rest().get(1..CHUNK_HEADER_BYTES).unwrap_or_default();
        let len = size(Cursor::new("a chunk", len).u32()?)?;
        let chunk = cursor.take(CHUNK_HEADER_BYTES + len + 4)?;
        check_crc(chunk, "a chunk")?;
        read.add(chunk.get(CHUNK_HEADER_BYTES..chunk.len() - 4).unwrap_or_default())?;
    }
    read.check_end(cursor.take(END_BYTES)?)?;
    cursor.end()?;
    Ok(read.rows)
}

#[derive(Default)]
struct Read {
    rows: Rows,
    chunks: u64,
    bytes: u64,
    hasher: Xxh3Default,
}

impl Read {
    fn add(&mut self, rows: &[u8]) -> Result<()> {
        self.hasher.update(rows);
        self.chunks += 1;
        let mut cursor = Cursor::new("the rows of a chunk", rows);
        while !cursor.is_empty() {
            let (key, value) = (cursor.u16()?, cursor.u32()?);
            let (key, value) = (cursor.take(key.into())?, cursor.take(size(value)?)?);
            let last = self.rows.last_key_value().map(|(last, _)| last.as_slice());
            require(last < Some(key), || "the rows of a backup are not in order".to_owned())?;
            self.bytes += (key.len() + value.len()) as u64;
            self.rows.insert(key.to_vec(), value.to_vec());
        }
        Ok(())
    }

    fn check_end(&self, end: &[u8]) -> Result<()> {
        check_crc(end, "the end of a backup")?;
        let mut cursor = Cursor::new("the end of a backup", end);
        cursor.expect(&[END])?;
        let counted = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
        if counted != (self.chunks, self.rows.len() as u64, self.bytes) {
            return damage(format!("a backup that should have {counted:?}"));
        }
        let is_right = cursor.u128()? == self.hasher.digest128();
        require(is_right, || "the rows of a backup fail their checksum".to_owned())
    }
}
