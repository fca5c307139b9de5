//! `FORMAT`: what the folder is, and the engine's files that must never change.
//!
//! It names three versions: that of the folder's layout, which is ours; that of the engine's
//! files; and that of the contents, a number that only the caller of the store understands.
//! Opening a store compares all three before anything in the folder is touched.
//!
//! The engine keeps its catalogue of keyspaces in a small tree of its own and
//! deletes the data of every keyspace that is not in it. One flipped bit there
//! would cost everything, so all of it is compared with what creation left.

use std::fmt;
use std::path::Path;

use super::decode::Reader;
use super::files;
use crate::error::VersionMismatch;
use crate::{ContentsVersion, StorageError};

pub(super) const FILE: &str = "FORMAT";

const MAGIC: &[u8; 8] = b"ORRERYDB";

/// The layout of the folder that this build writes.
const LAYOUT: u32 = 2;

/// The one before. It named neither engine nor contents; there was one of each.
const LAYOUT_BEFORE: u32 = 1;
const CONTENTS_BEFORE: ContentsVersion = ContentsVersion(1);

/// Layouts above ours that are believed to be versions rather than damage.
const FUTURE_LAYOUTS: u32 = 1_000;

/// The contents of `FORMAT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Format {
    layout: u32,
    engine: Engine,
    contents: ContentsVersion,
    created_by: String,
    fixed: Vec<FixedFile>,
}

/// What wrote the engine's files: its name, and the versions that it gives to its own
/// formats.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Engine {
    name: String,
    /// Of journals and of the catalogue of keyspaces.
    database: u32,
    /// Of tables and of the lists of tables.
    tree: u32,
}

impl Engine {
    /// The one that this build has. A test compares it with what the engine writes.
    fn ours() -> Engine {
        Engine { name: "fjall".to_owned(), database: 3, tree: 3 }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Engine { name, database, tree } = self;
        write!(f, "{name} {database} with trees {tree}")
    }
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
    pub(super) fn describe(
        folder: &Path,
        contents: ContentsVersion,
        names: &[String],
    ) -> Result<Format, StorageError> {
        let fixed = names.iter().map(|name| FixedFile::describe(folder, name));
        Ok(Format {
            layout: LAYOUT,
            engine: Engine::ours(),
            contents,
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

    pub(super) fn contents(&self) -> ContentsVersion {
        self.contents
    }

    /// Whether this build can write to the store.
    pub(super) fn check_writable(
        &self,
        folder: &Path,
        contents: ContentsVersion,
    ) -> Result<(), StorageError> {
        // A folder of an older layout has older contents, and those say what to do.
        self.check_readable(folder, contents)?;
        if self.layout == LAYOUT {
            return Ok(());
        }
        Err(StorageError::Outdated {
            path: folder.to_owned(),
            mismatch: VersionMismatch::new("folder layout", self.layout, LAYOUT),
        })
    }

    /// Whether this build can read the store, as one with these contents.
    pub(super) fn check_readable(
        &self,
        folder: &Path,
        contents: ContentsVersion,
    ) -> Result<(), StorageError> {
        let path = folder.to_owned();
        if self.engine != Engine::ours() {
            let mismatch = VersionMismatch::new("engine", &self.engine, Engine::ours());
            return Err(StorageError::UnknownVersion { path, mismatch });
        }
        let mismatch = || VersionMismatch::new("contents version", self.contents, contents);
        match self.contents.cmp(&contents) {
            std::cmp::Ordering::Less => Err(StorageError::Outdated { path, mismatch: mismatch() }),
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => {
                Err(StorageError::UnknownVersion { path, mismatch: mismatch() })
            }
        }
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
        bytes.extend_from_slice(&self.layout.to_le_bytes());
        if self.layout != LAYOUT_BEFORE {
            put_text(&mut bytes, &self.engine.name);
            bytes.extend_from_slice(&self.engine.database.to_le_bytes());
            bytes.extend_from_slice(&self.engine.tree.to_le_bytes());
            bytes.extend_from_slice(&self.contents.0.to_le_bytes());
        }
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
        let layout = reader.u32().ok_or_else(damaged)?;
        let (body, crc) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
        let intact = crc32fast::hash(body) == u32::from_le_bytes(*crc);
        match (layout, intact) {
            (LAYOUT | LAYOUT_BEFORE, true) => {
                Format::decode_body(layout, reader).ok_or_else(damaged)
            }
            // A flipped bit in the version must not pass for another version,
            // but a later format may keep its checksum elsewhere.
            (found, _) if found > LAYOUT && found <= LAYOUT + FUTURE_LAYOUTS => {
                let mismatch = VersionMismatch::new("folder layout", found, LAYOUT);
                Err(StorageError::UnknownVersion { path: folder.to_owned(), mismatch })
            }
            (_, true | false) => Err(damaged()),
        }
    }

    fn decode_body(layout: u32, mut reader: Reader<'_>) -> Option<Format> {
        let (engine, contents) = match layout {
            LAYOUT_BEFORE => (Engine::ours(), CONTENTS_BEFORE),
            _ => (Engine::decode(&mut reader)?, ContentsVersion(reader.u32()?)),
        };
        let created_by = reader.text()?.to_owned();
        let count = reader.u16()?;
        let fixed = (0..count).map(|_| FixedFile::decode(&mut reader)).collect::<Option<_>>()?;
        let is_all = reader.remaining() == size_of::<u32>();
        is_all.then_some(Format { layout, engine, contents, created_by, fixed })
    }
}

impl Engine {
    fn decode(reader: &mut Reader<'_>) -> Option<Engine> {
        let name = reader.text()?.to_owned();
        Some(Engine { name, database: reader.u32()?, tree: reader.u32()? })
    }
}

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
    use crate::local::LocalConfig;

    const CONTENTS: ContentsVersion = ContentsVersion(5);

    fn sample() -> Format {
        let file = |name: &str, crc| FixedFile { name: name.to_owned(), size: 7, crc };
        let fixed = vec![file("version", 1), file("keyspaces/0/current", 2)];
        let (engine, created_by) = (Engine::ours(), "0.1.0".to_owned());
        Format { layout: LAYOUT, engine, contents: CONTENTS, created_by, fixed }
    }

    fn before() -> Format {
        Format { layout: LAYOUT_BEFORE, contents: CONTENTS_BEFORE, ..sample() }
    }

    fn decode(bytes: &[u8]) -> Result<Format, StorageError> {
        Format::decode(Path::new("x"), bytes)
    }

    #[test]
    fn what_is_encoded_decodes() {
        for format in [sample(), before()] {
            assert_eq!(decode(&format.encode()).unwrap(), format);
        }
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        for good in [sample().encode(), before().encode()] {
            for (position, bit) in (0..good.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
                let mut bad = good.clone();
                bad[position] ^= 1 << bit;
                assert!(decode(&bad).is_err(), "byte {position} bit {bit}");
            }
            for len in 0..good.len() {
                assert!(decode(&good[..len]).is_err(), "cut to {len}");
            }
        }
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = sample().encode();
        bytes[8] = 3;
        let text = decode(&bytes).unwrap_err().to_string();
        assert!(text.contains("folder layout 3, and this build reads 2"), "{text}");
        let refused = |format: &Format, contents| {
            format.check_writable(Path::new("x"), ContentsVersion(contents)).unwrap_err()
        };
        let newer = refused(&sample(), 4);
        assert!(matches!(newer, StorageError::UnknownVersion { .. }), "{newer}");
        let text = newer.to_string();
        assert!(text.contains("contents version 5, and this build reads 4"), "{text}");
        let older = refused(&sample(), 6);
        assert!(matches!(older, StorageError::Outdated { .. }), "{older}");
        // The old layout is read, if its contents are asked for, and never written.
        before().check_readable(Path::new("x"), CONTENTS_BEFORE).unwrap();
        let older = refused(&before(), CONTENTS_BEFORE.0);
        assert!(matches!(older, StorageError::Outdated { .. }), "{older}");
        let engine = Engine { name: "rocks".to_owned(), ..Engine::ours() };
        let foreign = refused(&Format { engine, ..sample() }, CONTENTS.0);
        assert!(matches!(foreign, StorageError::UnknownVersion { .. }), "{foreign}");
        let text = foreign.to_string();
        assert!(
            text.contains("engine rocks 3 with trees 3, and this build reads fjall 3"),
            "{text}"
        );
    }

    /// An engine that writes other files than those that `FORMAT` names must get another
    /// version there.
    #[test]
    fn the_engine_writes_the_versions_that_are_recorded() {
        let folder = tempfile::tempdir().unwrap();
        super::super::engine::create(folder.path(), &LocalConfig::default()).unwrap();
        let Engine { database, tree, .. } = Engine::ours();
        let marker = std::fs::read(folder.path().join("version")).unwrap();
        assert_eq!(marker, [b"FJL".as_slice(), &[u8::try_from(database).unwrap()]].concat());
        let lists = folder.path().join(super::super::DATA_FOLDER);
        let list = std::fs::read(lists.join("v0")).unwrap();
        let recorded = super::super::tables::section(&list, b"format_version").unwrap();
        assert_eq!(recorded, [u8::try_from(tree).unwrap()]);
    }
}
