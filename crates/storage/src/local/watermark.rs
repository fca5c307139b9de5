//! `WITNESS`: the commit watermark, the highest commit number that was acknowledged.
//!
//! The engine takes damage in the middle of its journal for a write that was cut off at the
//! end, and silently drops what follows. It cannot know better, as nothing outside the
//! journal says how far it went. This file does.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use super::decode::Reader;
use super::files;
use crate::{Durability, StorageError};

pub(super) const FILE: &str = "WITNESS";

const MAGIC: &[u8; 4] = b"WTN1";

/// Each slot has a page of its own, so that a torn write spoils one slot only.
const SLOT_STRIDE: u64 = 4_096;
const FILE_BYTES: usize = 8_192;
const SLOT_BYTES: usize = 20;

/// The watermark file of an open store.
#[derive(Debug)]
pub(super) struct WatermarkFile {
    file: File,
    durability: Durability,
}

/// The newest acknowledged commit, and whether it and all before it had to be synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CommitWatermark {
    pub(super) commit: u64,
    pub(super) durability: Durability,
}

impl WatermarkFile {
    /// Writes a watermark of zero, durably.
    pub(super) fn create(folder: &Path) -> Result<(), StorageError> {
        let path = folder.join(FILE);
        let mut bytes = [0; FILE_BYTES];
        let slot = CommitWatermark { commit: 0, durability: Durability::Full }.encode();
        if let Some(first) = bytes.first_chunk_mut() {
            *first = slot;
        }
        let written = File::create_new(&path).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_all()
        });
        written.map_err(|source| files::during("write", &path, source))
    }

    pub(super) fn open(
        folder: &Path,
        durability: Durability,
    ) -> Result<WatermarkFile, StorageError> {
        let path = folder.join(FILE);
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = opened.map_err(|source| files::during("open", &path, source))?;
        Ok(WatermarkFile { file, durability })
    }

    /// Advances the watermark to `commit`. Not synced: see the format.
    pub(super) fn advance(&mut self, commit: u64) -> Result<(), StorageError> {
        self.write(commit % 2, commit, self.durability)
    }

    /// Sets the watermark to `commit`, even if that moves it back because later commits
    /// are lost. Synced, so that after a power cut it is known whether the commits that
    /// follow had to wait for the disk.
    pub(super) fn start_from(&mut self, commit: u64) -> Result<(), StorageError> {
        self.write(0, commit, self.durability)?;
        self.write(1, commit, self.durability)?;
        self.sync()
    }

    /// Records that everything up to `commit` is on the disk and nothing came later.
    pub(super) fn end_with(&mut self, commit: u64) -> Result<(), StorageError> {
        self.write(0, commit, Durability::Full)?;
        self.write(1, commit, Durability::Full)?;
        self.sync()
    }

    fn write(
        &mut self,
        slot: u64,
        commit: u64,
        durability: Durability,
    ) -> Result<(), StorageError> {
        let bytes = CommitWatermark { commit, durability }.encode();
        let offset = SeekFrom::Start(slot * SLOT_STRIDE);
        let written = self.file.seek(offset).and_then(|_| self.file.write_all(&bytes));
        written.map_err(|source| StorageError::io("write the commit watermark", source))
    }

    pub(super) fn sync(&self) -> Result<(), StorageError> {
        self.file
            .sync_data()
            .map_err(|source| StorageError::io("sync the commit watermark", source))
    }
}

impl CommitWatermark {
    /// The watermark of a closed store, if it can still be read.
    pub(super) fn load(folder: &Path) -> Result<Option<CommitWatermark>, StorageError> {
        match files::read(&folder.join(FILE)) {
            Ok(bytes) => Ok(CommitWatermark::newest(&bytes)),
            Err(StorageError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn newest(bytes: &[u8]) -> Option<CommitWatermark> {
        let slots = [0, SLOT_STRIDE].into_iter().filter_map(|offset| {
            let mut reader = Reader::new(bytes);
            reader.take(usize::try_from(offset).ok()?)?;
            CommitWatermark::decode(reader.array()?)
        });
        slots.max_by_key(|watermark| watermark.commit)
    }

    fn encode(self) -> [u8; SLOT_BYTES] {
        let mut body = [0; SLOT_BYTES - 4];
        let durability = match self.durability {
            Durability::Full => 1,
            Durability::Os => 2,
        };
        let fields = MAGIC.iter().copied().chain([durability, 0, 0, 0]);
        for (to, from) in body.iter_mut().zip(fields.chain(self.commit.to_le_bytes())) {
            *to = from;
        }
        let mut slot = [0; SLOT_BYTES];
        let crc = crc32fast::hash(&body).to_le_bytes();
        for (to, from) in slot.iter_mut().zip(body.into_iter().chain(crc)) {
            *to = from;
        }
        slot
    }

    fn decode(slot: [u8; SLOT_BYTES]) -> Option<CommitWatermark> {
        let (body, crc) = slot.split_last_chunk::<4>()?;
        let intact = crc32fast::hash(body) == u32::from_le_bytes(*crc);
        let mut reader = Reader::new(body);
        reader.expect(MAGIC)?;
        let durability = match (reader.array()?, intact) {
            ([1, 0, 0, 0], true) => Durability::Full,
            ([2, 0, 0, 0], true) => Durability::Os,
            ([..], _) => return None,
        };
        Some(CommitWatermark { commit: reader.u64()?, durability })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(folder: &Path) -> Option<(u64, Durability)> {
        CommitWatermark::load(folder).unwrap().map(|found| (found.commit, found.durability))
    }

    #[test]
    fn the_newest_intact_slot_counts() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(load(folder.path()), None);
        WatermarkFile::create(folder.path()).unwrap();
        assert_eq!(load(folder.path()), Some((0, Durability::Full)));
        let mut watermark = WatermarkFile::open(folder.path(), Durability::Os).unwrap();
        for commit in 1..=9 {
            watermark.advance(commit).unwrap();
            assert_eq!(load(folder.path()), Some((commit, Durability::Os)));
        }
    }

    #[test]
    fn a_new_start_forgets_what_came_later() {
        let folder = tempfile::tempdir().unwrap();
        let mut watermark = WatermarkFile::open(folder.path(), Durability::Full).unwrap();
        watermark.advance(8).unwrap();
        watermark.advance(9).unwrap();
        watermark.start_from(3).unwrap();
        assert_eq!(load(folder.path()), Some((3, Durability::Full)));
    }

    #[test]
    fn a_spoilt_slot_falls_back_to_the_other_and_two_to_nothing() {
        let folder = tempfile::tempdir().unwrap();
        WatermarkFile::create(folder.path()).unwrap();
        let mut watermark = WatermarkFile::open(folder.path(), Durability::Full).unwrap();
        watermark.advance(7).unwrap();
        watermark.advance(8).unwrap();
        let path = folder.path().join(FILE);
        for bit in 0..SLOT_BYTES * 8 {
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(CommitWatermark::newest(&bytes).unwrap().commit, 7, "bit {bit}");
            bytes[FILE_BYTES / 2 + bit / 8] ^= 1 << (bit % 8);
            assert_eq!(CommitWatermark::newest(&bytes), None, "bit {bit}");
        }
        assert_eq!(CommitWatermark::newest(&[]), None);
    }
}
