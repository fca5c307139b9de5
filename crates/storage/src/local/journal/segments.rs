//! The files of the journal: which are needed, and which is to be written over next.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::super::{disk_space, files};
use super::{FOLDER, Segment, Writer};
use crate::StorageError;

/// Shared by the committer, which begins segments, and the flusher, which gives them up.
#[derive(Debug)]
pub(in crate::local) struct Segments {
    folder: PathBuf,
    /// The number of the next segment. None is used twice.
    next: AtomicU64,
    /// A file with blocks to write over, under the name of a segment to come.
    ready: Mutex<Option<(Segment, File)>>,
}

impl Segments {
    /// Continues after the segments that are there.
    pub(in crate::local) fn new(store: &Path, found: &[Segment]) -> Segments {
        let next = found.iter().map(|segment| segment.id + 1).max().unwrap_or(1);
        Segments { folder: store.join(FOLDER), next: AtomicU64::new(next), ready: Mutex::default() }
    }

    /// Begins a segment.
    pub(in crate::local) fn start(&self) -> Result<Writer, StorageError> {
        if let Some((segment, file)) = self.take_ready() {
            return Ok(Writer::new(segment, file));
        }
        let segment = self.name();
        let path = segment.path.clone();
        let created = Writer::create(segment);
        let writer = created.map_err(|source| files::during("create", &path, source))?;
        // What is written to it is only there if its name is.
        files::sync_folder(&self.folder)?;
        Ok(writer)
    }

    /// Gives up segments whose commits are in tables. One of them is kept to be written
    /// over.
    pub(in crate::local) fn release(&self, segments: Vec<Segment>) -> Result<(), StorageError> {
        if segments.is_empty() {
            return Ok(());
        }
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        for segment in segments {
            if ready.is_none() {
                *ready = Some(self.rename(&segment)?);
            } else {
                segment.remove()?;
            }
        }
        files::sync_folder(&self.folder)
    }

    /// Removes the file that was kept, for its space.
    pub(in crate::local) fn drop_ready(&self) -> Result<(), StorageError> {
        match self.take_ready() {
            Some((segment, _)) => segment.remove(),
            None => Ok(()),
        }
    }

    /// Removes all files: the tables have everything.
    pub(in crate::local) fn clear(&self) -> Result<(), StorageError> {
        drop(self.take_ready());
        let store = self.folder.parent().unwrap_or(&self.folder);
        super::list(store)?.iter().try_for_each(Segment::remove)?;
        files::sync_folder(&self.folder)
    }

    /// Bytes that all files take on the disk.
    pub(in crate::local) fn bytes(&self) -> u64 {
        disk_space::used(&self.folder)
    }

    fn name(&self) -> Segment {
        let id = self.next.fetch_add(1, Ordering::AcqRel);
        Segment { id, path: self.folder.join(id.to_string()) }
    }

    fn rename(&self, segment: &Segment) -> Result<(Segment, File), StorageError> {
        let renamed = self.name();
        std::fs::rename(&segment.path, &renamed.path)
            .and_then(|()| OpenOptions::new().write(true).open(&renamed.path))
            .map(|file| (renamed, file))
            .map_err(|source| files::during("rename", &segment.path, source))
    }

    fn take_ready(&self) -> Option<(Segment, File)> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
