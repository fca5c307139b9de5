//! `FORMAT`: what the folder is.
//!
//! It names three versions: that of the folder's layout, which is ours; that of the engine's
//! files; and that of the contents, a number that only the caller of the store understands.
//! Opening a store compares all three before anything in the folder is touched.
//!
//! Folders of the first layout also name files that must never change: their engine deleted
//! the data of every keyspace that its catalogue did not have, so the catalogue is compared
//! with what creation left.

use std::fmt;
use std::path::Path;

use super::decode::Reader;
use super::files;
use super::layout::Layout;
use crate::error::VersionMismatch;
use crate::{ContentsVersion, StorageError};

pub(super) const FILE: &str = "FORMAT";

const MAGIC: &[u8; 8] = b"ORRERYDB";

/// The layout of the folder that this build writes.
const LAYOUT: u32 = 3;

/// The first one, with fjall's files. It named neither engine nor contents; there was one of
/// each.
const LAYOUT_FIRST: u32 = 1;
const CONTENTS_FIRST: ContentsVersion = ContentsVersion(1);

/// Layouts above ours that are believed to be versions rather than damage.
const FUTURE_LAYOUTS: u32 = 1_000;

/// The contents of `FORMAT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Format {
    layout: u32,
    engine: Engine,
    contents: ContentsVersion,
    created_by: String,
    /// In the first layout.
    fixed: Vec<FixedFile>,
}

/// What wrote the tables, and the versions of both kinds of files.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Engine {
    name: String,
    /// Of the journal, ours; in fjall's folders also of the catalogue of keyspaces.
    journal: u32,
    /// Of tables and of the lists of tables.
    tree: u32,
}

impl Engine {
    /// The one that this build has. A test compares it with what the engine writes.
    fn ours() -> Engine {
        Engine { name: "lsm-tree".to_owned(), journal: 1, tree: 3 }
    }

    /// The one that folders of a layout have which this build can read.
    fn of(layout: u32) -> Engine {
        match layout {
            LAYOUT => Engine::ours(),
            _ => Engine { name: "fjall".to_owned(), journal: 3, tree: 3 },
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Engine { name, journal, tree } = self;
        write!(f, "{name} {tree} with journals {journal}")
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
    pub(super) fn new(contents: ContentsVersion) -> Format {
        let created_by = env!("CARGO_PKG_VERSION").to_owned();
        Format { layout: LAYOUT, engine: Engine::ours(), contents, created_by, fixed: Vec::new() }
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

    pub(super) fn layout(&self) -> Layout {
        if self.layout == LAYOUT { Layout::Ours } else { Layout::Fjall }
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
        let engine = Engine::of(self.layout);
        if self.engine != engine {
            let mismatch = VersionMismatch::new("engine", &self.engine, engine);
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
        if self.layout != LAYOUT_FIRST {
            put_text(&mut bytes, &self.engine.name);
            bytes.extend_from_slice(&self.engine.journal.to_le_bytes());
            bytes.extend_from_slice(&self.engine.tree.to_le_bytes());
            bytes.extend_from_slice(&self.contents.0.to_le_bytes());
        }
        put_text(&mut bytes, &self.created_by);
        if self.layout == LAYOUT_FIRST {
            put_fixed(&mut bytes, &self.fixed);
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
            (LAYOUT | LAYOUT_FIRST, true) => {
                Format::decode_body(layout, reader).ok_or_else(damaged)
            }
            // A flipped bit in the version must not pass for another version,
            // but a later format may keep its checksum elsewhere.
            (found, intact) if (intact || found > LAYOUT) && found <= LAYOUT + FUTURE_LAYOUTS => {
                let mismatch = VersionMismatch::new("folder layout", found, LAYOUT);
                Err(StorageError::UnknownVersion { path: folder.to_owned(), mismatch })
            }
            (_, true | false) => Err(damaged()),
        }
    }

    fn decode_body(layout: u32, mut reader: Reader<'_>) -> Option<Format> {
        let (engine, contents) = match layout {
            LAYOUT_FIRST => (Engine::of(layout), CONTENTS_FIRST),
            _ => (Engine::decode(&mut reader)?, ContentsVersion(reader.u32()?)),
        };
        let created_by = reader.text()?.to_owned();
        let count = if layout == LAYOUT_FIRST { reader.u16()? } else { 0 };
        let fixed = (0..count).map(|_| FixedFile::decode(&mut reader)).collect::<Option<_>>()?;
        let is_all = reader.remaining() == size_of::<u32>();
        is_all.then_some(Format { layout, engine, contents, created_by, fixed })
    }
}

impl Engine {
    fn decode(reader: &mut Reader<'_>) -> Option<Engine> {
        let name = reader.text()?.to_owned();
        Some(Engine { name, journal: reader.u32()?, tree: reader.u32()? })
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

fn put_fixed(bytes: &mut Vec<u8>, fixed: &[FixedFile]) {
    bytes.extend_from_slice(&small(fixed.len()).to_le_bytes());
    for file in fixed {
        put_text(bytes, &file.name);
        bytes.extend_from_slice(&file.size.to_le_bytes());
        bytes.extend_from_slice(&file.crc.to_le_bytes());
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
    use crate::local::tree::Tree;

    const CONTENTS: ContentsVersion = ContentsVersion(5);

    fn first() -> Format {
        let file = |name: &str, crc| FixedFile { name: name.to_owned(), size: 7, crc };
        let fixed = vec![file("version", 1), file("keyspaces/0/current", 2)];
        let (layout, created_by) = (LAYOUT_FIRST, "0.1.0".to_owned());
        Format { layout, engine: Engine::of(layout), contents: CONTENTS_FIRST, created_by, fixed }
    }

    fn decode(bytes: &[u8]) -> Result<Format, StorageError> {
        Format::decode(Path::new("x"), bytes)
    }

    #[test]
    fn what_is_encoded_decodes() {
        for format in [Format::new(CONTENTS), first()] {
            assert_eq!(decode(&format.encode()).unwrap(), format);
        }
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        for good in [Format::new(CONTENTS), first()].map(|format| format.encode()) {
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
        let ours = || Format::new(CONTENTS);
        let mut bytes = ours().encode();
        bytes[8] = 4;
        let text = decode(&bytes).unwrap_err().to_string();
        assert!(text.contains("folder layout 4, and this build reads 3"), "{text}");
        let refused = |format: &Format, contents| {
            format.check_writable(Path::new("x"), ContentsVersion(contents)).unwrap_err()
        };
        let newer = refused(&ours(), 4);
        assert!(matches!(newer, StorageError::UnknownVersion { .. }), "{newer}");
        let text = newer.to_string();
        assert!(text.contains("contents version 5, and this build reads 4"), "{text}");
        let older = refused(&ours(), 6);
        assert!(matches!(older, StorageError::Outdated { .. }), "{older}");
        // The first layout is read, if its contents are asked for, and never written.
        first().check_readable(Path::new("x"), CONTENTS_FIRST).unwrap();
        let older = refused(&first(), CONTENTS_FIRST.0);
        assert!(matches!(older, StorageError::Outdated { .. }), "{older}");
        // No build that was released has written the second one.
        let second = decode(&Format { layout: 2, ..ours() }.encode()).unwrap_err();
        assert!(matches!(second, StorageError::UnknownVersion { .. }), "{second}");
        let engine = Engine { name: "rocks".to_owned(), ..Engine::ours() };
        let foreign = refused(&Format { engine, ..ours() }, CONTENTS.0);
        assert!(matches!(foreign, StorageError::UnknownVersion { .. }), "{foreign}");
        let text = foreign.to_string();
        assert!(
            text.contains("engine rocks 3 with journals 1, and this build reads lsm-tree 3"),
            "{text}"
        );
    }

    /// An engine that writes other files than those that `FORMAT` names must get another
    /// version there.
    #[test]
    fn the_engine_writes_the_versions_that_are_recorded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tree");
        Tree::create(folder.path(), &path, &LocalConfig::default()).unwrap();
        let list = std::fs::read(path.join("v0")).unwrap();
        let recorded = super::super::tables::section(&list, b"format_version").unwrap();
        assert_eq!(recorded, [u8::try_from(Engine::ours().tree).unwrap()]);
    }
}
