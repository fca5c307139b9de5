//! Files and folders, with errors that name the operation.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;

use crate::StorageError;

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, StorageError> {
    fs::read(path).map_err(|source| during("read", path, source))
}

/// Writes a file atomically: after a power cut it is there completely or not at all.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    write_whole_by(path, |file| file.write_all(bytes))
}

/// The same for a file whose content `write` produces.
pub(super) fn write_whole_by(
    path: &Path,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), StorageError> {
    let temporary = path.with_extension("tmp");
    let written = File::create(&temporary).and_then(|mut file| {
        write(&mut file)?;
        file.sync_all()
    });
    written
        .and_then(|()| fs::rename(&temporary, path))
        .map_err(|source| during("write", path, source))?;
    path.parent().map_or(Ok(()), sync_folder)
}

/// Makes created, renamed and removed names in `folder` durable. Windows neither
/// needs nor allows it.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), StorageError> {
    if cfg!(windows) {
        return Ok(());
    }
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(|source| during("sync", folder, source))
}

/// Makes the names in a folder and in all folders below it durable.
pub(super) fn sync_folders(folder: &Path) -> Result<(), StorageError> {
    for (name, is_folder) in list(folder)? {
        if is_folder {
            sync_folders(&folder.join(name))?;
        }
    }
    sync_folder(folder)
}

pub(crate) fn truncate(path: &Path, len: u64) -> Result<(), StorageError> {
    let file = OpenOptions::new().write(true).open(path);
    file.and_then(|file| {
        file.set_len(len)?;
        file.sync_all()
    })
    .map_err(|source| during("truncate", path, source))
}

/// The names in a folder, sorted, with whether each is a folder itself. Names that are not
/// text are skipped: neither the engine nor we write such.
pub(crate) fn list(folder: &Path) -> Result<Vec<(String, bool)>, StorageError> {
    let entries = fs::read_dir(folder).and_then(|entries| {
        entries
            .map(|entry| {
                let entry = entry?;
                Ok((entry.file_name(), entry.file_type()?.is_dir()))
            })
            .collect::<io::Result<Vec<_>>>()
    });
    let entries = entries.map_err(|source| during("list", folder, source))?;
    let mut names: Vec<(String, bool)> = entries
        .into_iter()
        .filter_map(|(name, is_folder)| Some((name.into_string().ok()?, is_folder)))
        .collect();
    names.sort();
    Ok(names)
}

/// Feeds a file to `update` piece by piece.
pub(crate) fn for_each_piece(path: &Path, mut update: impl FnMut(&[u8])) -> io::Result<()> {
    const PIECE_BYTES: usize = 1 << 20;
    let mut file = File::open(path)?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let len = file.read(&mut piece)?;
        match piece.get(..len) {
            None | Some([]) => return Ok(()),
            Some(read) => update(read),
        }
    }
}

pub(crate) fn during(action: &str, path: &Path, source: io::Error) -> StorageError {
    StorageError::io(format!("{action} {}", path.display()), source)
}
