//! The folders of an upgrade, and the order in which they get their names.
//!
//! ```text
//! store/             the old store, until the new one is complete and checked
//! store.upgrade-N/   the new store; N is the newest commit of the store it is made of
//! store.v1/          the old store afterwards, until it is removed
//! ```
//!
//! The two are exchanged in one step where the system can do that, so there is a whole
//! store under the name `store` at every moment. Elsewhere there is a moment without one,
//! in which no server starts. `docs/design/upgrades.md` goes through every moment at which
//! the process can end.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use storage::local;

use super::{STORE, sync_folder};

/// Where the old store is kept.
pub(crate) const OLD: &str = "store.v1";

/// What the name of a new store begins with, until it is complete.
const UNFINISHED: &str = "store.upgrade-";

/// How far an upgrade came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing is left to be done.
    Done,
    /// The old store is in place.
    ToFill,
    /// The new store is in place, the old one has the name that the new one had.
    Exchanged(PathBuf),
    /// No store is in place; the new one is complete.
    Between(PathBuf),
}

/// Whether an upgrade has left something in a data folder.
pub(crate) fn is_left(root: &Path) -> bool {
    root.join(OLD).exists() || !unfinished(root).is_empty()
}

pub(crate) fn stage(root: &Path) -> anyhow::Result<Stage> {
    let (store, left) = (root.join(STORE), unfinished(root));
    let has =
        |store: &PathBuf, contents| local::contents_of(store).is_ok_and(|found| found == contents);
    if !store.exists() {
        let new = left.into_iter().find(|left| has(left, service::upgrade::CONTENTS));
        return new.map(Stage::Between).context("there is no store, and no complete new one");
    }
    let found = local::contents_of(&store)?;
    if found == service::upgrade::CONTENTS_BEFORE {
        let name = |old: &PathBuf| format!("{} holds an old store: move it away", old.display());
        let old = left.iter().find(|left| has(left, service::upgrade::CONTENTS_BEFORE));
        ensure!(old.is_none(), "{}", old.map(name).unwrap_or_default());
        return Ok(Stage::ToFill);
    }
    local::check_versions(&store, service::upgrade::CONTENTS)?;
    let old = left.into_iter().find(|left| has(left, service::upgrade::CONTENTS_BEFORE));
    Ok(old.map_or(Stage::Done, Stage::Exchanged))
}

/// The folder of the new store that is made of this state of the old one.
pub(crate) fn new_store(root: &Path, commit: u64) -> PathBuf {
    root.join(format!("{UNFINISHED}{commit}"))
}

/// Removes new stores that were made of another state of the old one.
pub(crate) fn remove_others(root: &Path, new: &Path) -> anyhow::Result<()> {
    for left in unfinished(root).into_iter().filter(|left| left != new) {
        remove(&left)?;
    }
    Ok(())
}

pub(crate) fn remove(folder: &Path) -> anyhow::Result<()> {
    std::fs::remove_dir_all(folder)
        .with_context(|| format!("{} cannot be removed", folder.display()))
}

/// Puts the new store in place of the old one. `step` is called between any two changes.
pub(crate) fn exchange(root: &Path, new: &Path, step: &mut dyn FnMut()) -> anyhow::Result<()> {
    let store = root.join(STORE);
    if exchange_at_once(&store, new).is_ok() {
        sync(root)?;
        step();
        return keep_old(root, new);
    }
    keep_old(root, &store)?;
    step();
    put_in_place(root, new)
}

/// Gives the old store the name under which it is kept.
pub(crate) fn keep_old(root: &Path, old: &Path) -> anyhow::Result<()> {
    rename(old, &root.join(OLD))?;
    sync(root)
}

/// Puts the new store where there is none.
pub(crate) fn put_in_place(root: &Path, new: &Path) -> anyhow::Result<()> {
    rename(new, &root.join(STORE))?;
    sync(root)
}

/// Exchanges the names of two folders. Not every system can.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn exchange_at_once(one: &Path, other: &Path) -> std::io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn exchange_at_once(_one: &Path, _other: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

fn rename(from: &Path, to: &Path) -> anyhow::Result<()> {
    ensure!(!to.exists(), "{} is there already: move it away", to.display());
    std::fs::rename(from, to).with_context(|| format!("{} cannot be renamed", from.display()))
}

fn sync(root: &Path) -> anyhow::Result<()> {
    sync_folder(root).with_context(|| format!("{} cannot be synced", root.display()))
}

/// New stores that were not put in place, in the order of their names.
fn unfinished(root: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    let is_ours =
        |name: &str| name.strip_prefix(UNFINISHED).is_some_and(|n| n.parse::<u64>().is_ok());
    let ours = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_ours));
    let mut ours: Vec<PathBuf> = ours.map(|entry| entry.path()).collect();
    ours.sort();
    ours
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the system can do, the outcome is the same.
    #[test]
    fn two_renames_do_what_one_exchange_does() {
        for at_once in [true, false] {
            let root = tempfile::tempdir().unwrap();
            let (root, new) = (root.path(), new_store(root.path(), 7));
            for (folder, text) in [(root.join(STORE), "old"), (new.clone(), "new")] {
                std::fs::create_dir(&folder).unwrap();
                std::fs::write(folder.join("file"), text).unwrap();
            }
            if at_once {
                exchange(root, &new, &mut || {}).unwrap();
            } else {
                keep_old(root, &root.join(STORE)).unwrap();
                assert!(is_left(root) && !root.join(STORE).exists());
                put_in_place(root, &new).unwrap();
            }
            let read = |name: &str| std::fs::read_to_string(root.join(name).join("file")).unwrap();
            assert_eq!((read(STORE).as_str(), read(OLD).as_str()), ("new", "old"));
            assert_eq!(unfinished(root), Vec::<PathBuf>::new());
        }
    }
}
