//! `WITNESS`: the highest commit number that anyone was told is durable.
//!
//! The engine takes damage in the middle of its journal for a write that was cut
//! off at the end, and drops what follows in silence. It cannot know better, as
//! nothing outside the journal says how far it went. This file does.

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

/// The witness of an open store.
#[derive(Debug)]
pub(super) struct Witness {
    file: File,
    durability: Durability,
}

/// What a witness says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Testimony {
    pub(super) commit: u64,
    pub(super) durability: Durability,
}

impl Witness {
    /// Writes a witness of nothing, durably.
    pub(super) fn create(folder: &Path) -> Result<(), StorageError> {
        let path = folder.join(FILE);
        let mut bytes = [0; FILE_BYTES];
        let slot = Testimony { commit: 0, durability: Durability::Full }.encode();
        if let Some(first) = bytes.first_chunk_mut() {
            *first = slot;
        }
        let written = File::create_new(&path).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_all()
        });
        written.map_err(|source| files::during("write", &path, source))
    }

    pub(super) fn open(folder: &Path, durability: Durability) -> Result<Witness, StorageError> {
        let path = folder.join(FILE);
        let opened = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = opened.map_err(|source| files::during("open", &path, source))?;
        Ok(Witness { file, durability })
    }

    /// Testifies that `commit` is durable. Not synced: see the format.
    pub(super) fn testify(&mut self, commit: u64) -> Result<(), StorageError> {
        self.write(commit % 2, commit, self.durability)
    }

    /// Testifies to `commit` and nothing else, also when the witness knew of later ones
    /// that are lost. Synced, so that after a power cut it is known whether the commits that
    /// follow had to wait for the disk.
    pub(super) fn start_from(&mut self, commit: u64) -> Result<(), StorageError> {
        self.write(0, commit, self.durability)?;
        self.write(1, commit, self.durability)?;
        self.sync()
    }

    /// Testifies that everything up to `commit` is on the disk, and nothing came later.
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
        let bytes = Testimony { commit, durability }.encode();
        let offset = SeekFrom::Start(slot * SLOT_STRIDE);
        let written = self.file.seek(offset).and_then(|_| self.file.write_all(&bytes));
        written.map_err(|source| StorageError::io("write the witness", source))
    }

    pub(super) fn sync(&self) -> Result<(), StorageError> {
        self.file.sync_data().map_err(|source| StorageError::io("sync the witness", source))
    }
}

impl Testimony {
    /// What the witness of a closed store says, if it can still be read.
    pub(super) fn load(folder: &Path) -> Result<Option<Testimony>, StorageError> {
        match files::read(&folder.join(FILE)) {
            Ok(bytes) => Ok(Testimony::newest(&bytes)),
            Err(StorageError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn newest(bytes: &[u8]) -> Option<Testimony> {
        let slots = [0, SLOT_STRIDE].into_iter().filter_map(|offset| {
            let mut reader = Reader::new(bytes);
            reader.take(usize::try_from(offset).ok()?)?;
            Testimony::decode(reader.array()?)
        });
        slots.max_by_key(|testimony| testimony.commit)
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

    fn decode(slot: [u8; SLOT_BYTES]) -> Option<Testimony> {
        let (body, crc) = slot.split_last_chunk::<4>()?;
        let intact = crc32fast::hash(body) == u32::from_le_bytes(*crc);
        let mut reader = Reader::new(body);
        reader.expect(MAGIC)?;
        let durability = match (reader.array()?, intact) {
            ([1, 0, 0, 0], true) => Durability::Full,
            ([2, 0, 0, 0], true) => Durability::Os,
            ([..], _) => return None,
        };
        Some(Testimony { commit: reader.u64()?, durability })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(folder: &Path) -> Option<(u64, Durability)> {
        Testimony::load(folder).unwrap().map(|found| (found.commit, found.durability))
    }

    #[test]
    fn the_newest_intact_slot_counts() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(load(folder.path()), None);
        Witness::create(folder.path()).unwrap();
        assert_eq!(load(folder.path()), Some((0, Durability::Full)));
        let mut witness = Witness::open(folder.path(), Durability::Os).unwrap();
        for commit in 1..=9 {
            witness.testify(commit).unwrap();
            assert_eq!(load(folder.path()), Some((commit, Durability::Os)));
        }
    }

    #[test]
    fn a_new_start_forgets_what_came_later() {
        let folder = tempfile::tempdir().unwrap();
        let mut witness = Witness::open(folder.path(), Durability::Full).unwrap();
        witness.testify(8).unwrap();
        witness.testify(9).unwrap();
        witness.start_from(3).unwrap();
        assert_eq!(load(folder.path()), Some((3, Durability::Full)));
    }

    #[test]
    fn a_spoilt_slot_falls_back_to_the_other_and_two_to_nothing() {
        let folder = tempfile::tempdir().unwrap();
        Witness::create(folder.path()).unwrap();
        let mut witness = Witness::open(folder.path(), Durability::Full).unwrap();
        witness.testify(7).unwrap();
        witness.testify(8).unwrap();
        let path = folder.path().join(FILE);
        for bit in 0..SLOT_BYTES * 8 {
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Testimony::newest(&bytes).unwrap().commit, 7, "bit {bit}");
            bytes[FILE_BYTES / 2 + bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Testimony::newest(&bytes), None, "bit {bit}");
        }
        assert_eq!(Testimony::newest(&[]), None);
    }
}
