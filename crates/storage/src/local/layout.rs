//! Where a store's files are, by the layout of its folder.
//!
//! Folders of the first layout have fjall's files. They can be read, so that their contents
//! can be carried over, and are never written.

use std::path::Path;

use super::journal::{self, Record, Segment};
use super::{files, fjall};
use crate::StorageError;
use crate::committer::MergedBatch;

/// Who wrote the files of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Ours,
    /// Layout 1.
    Fjall,
}

impl Layout {
    /// The tree with all data.
    pub(super) fn tree(self) -> &'static str {
        match self {
            Layout::Ours => "tree",
            Layout::Fjall => fjall::TREE,
        }
    }

    /// Whether there is anything of a store in `folder`.
    pub(super) fn has_traces(folder: &Path) -> bool {
        [Layout::Ours, Layout::Fjall].iter().any(|layout| folder.join(layout.tree()).exists())
    }

    pub(super) fn segments(self, folder: &Path) -> Result<Vec<Segment>, StorageError> {
        match self {
            Layout::Ours => journal::list(folder),
            Layout::Fjall => fjall::list(folder),
        }
    }

    /// The intact records of a segment with commits above `floor`.
    pub(super) fn records(
        self,
        segment: &Segment,
        floor: u64,
    ) -> Result<Vec<Record>, StorageError> {
        match self {
            Layout::Ours => segment.records(floor),
            Layout::Fjall => fjall::records(&files::read(&segment.path)?, floor),
        }
    }

    /// Calls `apply` with each of these records.
    pub(super) fn replay(
        self,
        segment: &Segment,
        records: &[Record],
        apply: impl FnMut(u64, MergedBatch),
    ) -> Result<(), StorageError> {
        match self {
            Layout::Ours => segment.replay(records, apply),
            Layout::Fjall => fjall::replay(segment, records, apply),
        }
    }
}
