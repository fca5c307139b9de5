//! A store that is read and never written: not a byte, a name or a timestamp of its folder
//! changes.
//!
//! The engine repairs, empties and deletes as it opens, so it is given a folder of its own
//! in the system's temporary folder: journals and lists of tables, which are small, are
//! copied there, and the tables, which never change, are hard-linked. It has no threads
//! there that could flush or compact. The original is locked as by any other handle,
//! because reading it while a server writes to it would show damage where there is none.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::engine::{self, Published};
use super::format::{self, Format};
use super::recover::Recovery;
use super::{DATA_FOLDER, FolderLock, LocalConfig, files, guarded, journal, lock, watermark};
use crate::{
    CommitStatus, ContentsVersion, Counters, KeyRange, Loss, StorageError, Store, Ticket,
    VerifyReport, View, WriteBatch, WriteSession,
};

/// Opens an existing store for reading, even one in a folder that cannot be written to, and
/// one whose contents are older than what this build writes, if those are asked for. The
/// latest writes may still be in journals: as much memory is needed as they have bytes, and
/// as much space in the temporary folder.
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
    check(path)?;
    let copy = Copy::of(path)?;
    let Recovery { commit, loss, .. } = Recovery::of(&copy.folder, false)?.perform()?;
    let config = LocalConfig::default();
    let published = guarded(path, || engine::show(path, &copy.folder, commit, &config))??;
    let path = path.to_owned();
    Ok(Arc::new(ReadOnlyStore { path, published, loss, _copy: copy, _lock: lock }))
}

/// Inspects the original before anything is copied, so that damage is reported for it and
/// not for the copy.
fn check(path: &Path) -> Result<(), StorageError> {
    Recovery::of(path, false).map(drop)
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
    fn of(store: &Path) -> Result<Copy, StorageError> {
        let copy = Copy { folder: new_folder()? };
        copy.fill(store)?;
        Ok(copy)
    }

    fn fill(&self, store: &Path) -> Result<(), StorageError> {
        let Copy { folder } = self;
        for name in [format::FILE, watermark::FILE, "version"] {
            copy_file(&store.join(name), &folder.join(name))?;
        }
        for journal in journal::list(store)? {
            let name = journal.path.file_name().unwrap_or_default();
            journal::copy(&journal.path, &folder.join(name))?;
        }
        let is_table = Path::new(DATA_FOLDER).join("tables");
        let mut folders = vec![PathBuf::from("keyspaces")];
        while let Some(inside) = folders.pop() {
            let (from, to) = (store.join(&inside), folder.join(&inside));
            fs::create_dir(&to).map_err(|source| files::during("create", &to, source))?;
            for (name, is_folder) in files::list(&from)? {
                match is_folder {
                    true => folders.push(inside.join(name)),
                    false if inside == is_table => link(&from.join(&name), &to.join(&name))?,
                    false => copy_file(&from.join(&name), &to.join(&name))?,
                }
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
        self.published.check_engine()
    }

    fn verify(&self) -> Result<VerifyReport, StorageError> {
        Format::load(&self.path)?.check_fixed_files(&self.path)?;
        self.published.verify()
    }

    fn table_bytes(&self) -> Result<u64, StorageError> {
        self.published.table_bytes()
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
