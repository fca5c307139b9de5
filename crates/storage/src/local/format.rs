//! `FORMAT`: what the folder is, and the engine's files that must never change.
//!
//! The engine keeps its catalogue of keyspaces in a small tree of its own and
//! deletes the data of every keyspace that is not in it. One flipped bit there
//! would cost everything, so all of it is compared with what creation left.

use std::path::Path;

use super::decode::Reader;
use super::files;
use crate::StorageError;

pub(super) const FILE: &str = "FORMAT";

const MAGIC: &[u8; 8] = b"ORRERYDB";
const VERSION: u32 = 1;

/// The contents of `FORMAT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Format {
    pub(super) created_by: String,
    pub(super) fixed: Vec<FixedFile>,
}

/// A file that has not changed since creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FixedFile {
    /// Relative to the store's folder.
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) crc: u32,
}

impl Format {
    pub(super) fn describe(folder: &Path, names: &[String]) -> Result<Format, StorageError> {
        let fixed = names.iter().map(|name| FixedFile::describe(folder, name));
        Ok(Format {
            created_by: env!("CARGO_PKG_VERSION").to_owned(),
            fixed: fixed.collect::<Result<_, _>>()?,
        })
    }

    pub(super) fn load(folder: &Path) -> Result<Format, StorageError> {
        Format::decode(folder, &files::read(&folder.join(FILE))?)
    }

    pub(super) fn save(&self, folder: &Path) -> Result<(), StorageError> {
        files::write_whole(&folder.join(FILE), &self.encode())
    }

    /// Compares the fixed files with what creation left.
    pub(super) fn check_fixed_files(&self, folder: &Path) -> Result<(), StorageError> {
        for expected in &self.fixed {
            let same = match FixedFile::describe(folder, &expected.name) {
                Ok(found) => found == *expected,
                Err(StorageError::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::NotFound =>
                {
                    false
                }
                Err(error) => return Err(error),
            };
            if !same {
                let detail = format!("{} is missing or has changed since creation", expected.name);
                return Err(StorageError::Damaged { path: folder.to_owned(), detail });
            }
        }
        Ok(())
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        put_text(&mut bytes, &self.created_by);
        bytes.extend_from_slice(&small(self.fixed.len()).to_le_bytes());
        for file in &self.fixed {
            put_text(&mut bytes, &file.name);
            bytes.extend_from_slice(&file.size.to_le_bytes());
            bytes.extend_from_slice(&file.crc.to_le_bytes());
        }
        bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
        bytes
    }

    fn decode(folder: &Path, bytes: &[u8]) -> Result<Format, StorageError> {
        let damaged = || StorageError::Damaged {
            path: folder.to_owned(),
            detail: format!("the file {FILE} cannot be read"),
        };
        let mut reader = Reader::new(bytes);
        reader.expect(MAGIC).ok_or_else(damaged)?;
        let found = reader.u32().ok_or_else(damaged)?;
        let (body, crc) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
        let intact = crc32fast::hash(body) == u32::from_le_bytes(*crc);
        match (found == VERSION, intact) {
            (true, true) => Format::decode_body(reader).ok_or_else(damaged),
            // A flipped bit in the version must not pass for another version,
            // but a later format may keep its checksum elsewhere.
            (false, _) if found > VERSION && found <= VERSION + FUTURE_VERSIONS => {
                let path = folder.to_owned();
                Err(StorageError::Format { path, found, supported: VERSION })
            }
            (false | true, _) => Err(damaged()),
        }
    }

    fn decode_body(mut reader: Reader<'_>) -> Option<Format> {
        let created_by = reader.text()?.to_owned();
        let count = reader.u16()?;
        let fixed = (0..count).map(|_| FixedFile::decode(&mut reader)).collect::<Option<_>>()?;
        (reader.remaining() == size_of::<u32>()).then_some(Format { created_by, fixed })
    }
}

/// Versions above ours that are believed to be versions rather than damage.
const FUTURE_VERSIONS: u32 = 1_000;

impl FixedFile {
    fn describe(folder: &Path, name: &str) -> Result<FixedFile, StorageError> {
        let bytes = files::read(&folder.join(name))?;
        let (size, crc) = (bytes.len() as u64, crc32fast::hash(&bytes));
        Ok(FixedFile { name: name.to_owned(), size, crc })
    }

    fn decode(reader: &mut Reader<'_>) -> Option<FixedFile> {
        let name = reader.text()?.to_owned();
        Some(FixedFile { name, size: reader.u64()?, crc: reader.u32()? })
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(&small(text.len()).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

fn small(len: usize) -> u16 {
    u16::try_from(len).expect("a version, a file name and the count of files are short")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Format {
        let file = |name: &str, crc| FixedFile { name: name.to_owned(), size: 7, crc };
        let fixed = vec![file("version", 1), file("keyspaces/0/current", 2)];
        Format { created_by: "0.1.0".to_owned(), fixed }
    }

    #[test]
    fn what_is_encoded_decodes() {
        let format = sample();
        assert_eq!(Format::decode(Path::new("x"), &format.encode()).unwrap(), format);
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let good = sample().encode();
        for (position, bit) in (0..good.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            let mut bad = good.clone();
            bad[position] ^= 1 << bit;
            assert!(Format::decode(Path::new("x"), &bad).is_err(), "byte {position} bit {bit}");
        }
        for len in 0..good.len() {
            assert!(Format::decode(Path::new("x"), &good[..len]).is_err(), "cut to {len}");
        }
    }

    #[test]
    fn a_later_version_is_named() {
        let mut bytes = sample().encode();
        bytes[8] = 2;
        let error = Format::decode(Path::new("x"), &bytes).unwrap_err();
        assert!(matches!(error, StorageError::Format { found: 2, supported: 1, .. }), "{error}");
    }
}
