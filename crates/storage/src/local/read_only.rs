//! A store that is read and never written: not a byte, a name or a timestamp of its folder
//! changes.
//!
//! The engine deletes what its list does not name as it opens, so it is given a folder of its
//! own in the system's temporary folder: lists of tables, which are small, are copied there,
//! and the tables, which never change, are linked to. The journal is read where it is. The
//! original is locked as by any other handle, because reading it while a server writes to it
//! would show damage where there is none.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::engine;
use super::format::Format;
use super::history::History;
use super::published::Published;
use super::{FolderLock, LocalConfig, files, guarded, lock};
use crate::{
    CommitStatus, ContentsVersion, Counters, KeyRange, Loss, StorageError, Store, Ticket,
    VerifyReport, View, WriteBatch, WriteSession,
};

/// Opens an existing store for reading, even one in a folder that cannot be written to, and
/// one whose contents are older than what this build writes, if those are asked for. The
/// latest writes may still be in the journal: as much memory is needed as they have bytes.
///
/// # Errors
/// As those of [`open`](super::open).
pub fn open_read_only(
    path: &Path,
    contents: ContentsVersion,
) -> Result<Arc<dyn Store>, StorageError> {
    let lock = lock(path)?;
    let format = Format::load(path)?;
    format.check_readable(path, contents)?;
    format.check_fixed_files(path)?;
    let history = History::of(path, format.layout(), false)?;
    let copy = Copy::of(&path.join(format.layout().tree()))?;
    let config = LocalConfig::default();
    let open = || engine::open_copy(path, &copy.folder, &history, &config);
    let published = guarded(path, open)??;
    let (path, loss) = (path.to_owned(), history.loss);
    Ok(Arc::new(ReadOnlyStore { path, published, loss, _copy: copy, _lock: lock }))
}

/// The engine's own folder. Removed when dropped.
#[derive(Debug)]
struct Copy {
    folder: PathBuf,
}

/// Distinguishes the copies of one process.
static COPIES: AtomicU64 = AtomicU64::new(0);

/// Names that are tried. A process that was killed leaves its copy behind, and the system
/// gives its id to another one some day.
const NAMES_MAX: usize = 1_000;

impl Copy {
    fn of(tree: &Path) -> Result<Copy, StorageError> {
        let copy = Copy { folder: new_folder()? };
        copy.fill(tree)?;
        Ok(copy)
    }

    fn fill(&self, tree: &Path) -> Result<(), StorageError> {
        const TABLES: &str = "tables";
        for (name, is_folder) in files::list(tree)? {
            if !is_folder {
                copy_file(&tree.join(&name), &self.folder.join(&name))?;
            }
        }
        let (from, to) = (tree.join(TABLES), self.folder.join(TABLES));
        fs::create_dir(&to).map_err(|source| files::during("create", &to, source))?;
        if !from.exists() {
            return Ok(());
        }
        for (name, is_folder) in files::list(&from)? {
            if !is_folder {
                link(&from.join(&name), &to.join(&name))?;
            }
        }
        Ok(())
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::warn!(%error, folder = %self.folder.display(), "a temporary copy is left");
        }
    }
}

/// Creates a folder under a name that is free. One of that name that exists is not ours:
/// it is never followed or filled.
fn new_folder() -> Result<PathBuf, StorageError> {
    use std::io::ErrorKind::AlreadyExists;
    let mut further = 1..NAMES_MAX;
    loop {
        let number = COPIES.fetch_add(1, Ordering::Relaxed);
        let name = format!("orrery-read-only-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        match private_folder(&folder) {
            Err(StorageError::Io { source, .. })
                if source.kind() == AlreadyExists && further.next().is_some() => {}
            created => return created.map(|()| folder),
        }
    }
}

/// Data of users goes there, so it is readable by the owner alone.
fn private_folder(folder: &Path) -> Result<(), StorageError> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|source| files::during("create", folder, source))
}

/// Content only: the copy of a read-only file must be writable.
fn copy_file(from: &Path, to: &Path) -> Result<(), StorageError> {
    let bytes = files::read(from)?;
    fs::write(to, bytes).map_err(|source| files::during("write", to, source))
}

#[cfg(unix)]
fn link(from: &Path, to: &Path) -> Result<(), StorageError> {
    let linked = fs::canonicalize(from).and_then(|from| std::os::unix::fs::symlink(from, to));
    linked.map_err(|source| files::during("link to", from, source))
}

/// Links require special permissions elsewhere.
#[cfg(not(unix))]
fn link(from: &Path, to: &Path) -> Result<(), StorageError> {
    let copied = fs::copy(from, to).map(drop);
    copied.map_err(|source| files::during("copy", from, source))
}

#[derive(Debug)]
struct ReadOnlyStore {
    path: PathBuf,
    // Declared before the copy, which is removed when no reader is left.
    published: Published,
    loss: Option<Loss>,
    _copy: Copy,
    _lock: FolderLock,
}

impl Store for ReadOnlyStore {
    fn write_session(&self) -> Box<dyn WriteSession> {
        Box::new(RefusingSession)
    }

    fn view(&self) -> Result<Box<dyn View>, StorageError> {
        Ok(Box::new(self.published.view()?))
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }

    fn loss(&self) -> Option<Loss> {
        self.loss
    }

    fn health(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn verify(&self) -> Result<VerifyReport, StorageError> {
        Format::load(&self.path)?.check_fixed_files(&self.path)?;
        self.published.verify()
    }

    fn table_bytes(&self) -> Result<u64, StorageError> {
        Ok(self.published.tables()?.bytes)
    }

    fn discard(&self, _range: &KeyRange) -> Result<(), StorageError> {
        Err(StorageError::ReadOnly)
    }

    fn compact(&self) -> Result<(), StorageError> {
        Err(StorageError::ReadOnly)
    }

    fn close(&self) -> Result<(), StorageError> {
        self.published.close();
        Ok(())
    }
}

/// Refuses every batch.
#[derive(Debug)]
struct RefusingSession;

impl WriteSession for RefusingSession {
    fn submit(&mut self, _batch: WriteBatch) -> Ticket {
        Ticket::resolved(CommitStatus::Refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_in_nobodys_way() {
        let first = new_folder().unwrap();
        let number = COPIES.load(Ordering::Relaxed);
        let next = format!("orrery-read-only-{}-{number}", std::process::id());
        let left = std::env::temp_dir().join(next);
        fs::create_dir(&left).unwrap();
        let second = new_folder().unwrap();
        assert!(second != left && second != first);
        for folder in [first, left, second] {
            fs::remove_dir(folder).unwrap();
        }
    }
}
