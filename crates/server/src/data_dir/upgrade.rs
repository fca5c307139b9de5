//! The folders of an upgrade, and the order in which they get their names.
//!
//! ```text
//! store/             the old store, until the new one is complete and checked
//! store.upgrade-N/   the new store; N is the newest commit of the store it is made of
//! store.vN/          the old store afterwards, until it is removed; N is its contents version
//! ```
//!
//! The two are exchanged in one step where the system can do that, so there is a whole
//! store under the name `store` at every moment. Elsewhere there is a moment without one,
//! in which no server starts. `docs/design/upgrades.md` goes through every moment at which
//! the process can end.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use service::upgrade::{CONTENTS, CONTENTS_BEFORE};
use storage::{ContentsVersion, local};

use super::{STORE, sync_folder};

/// Where an old store is kept.
pub(crate) fn kept(root: &Path, contents: ContentsVersion) -> PathBuf {
    root.join(format!("store.v{contents}"))
}

/// The old stores that are kept.
pub(crate) fn all_kept(root: &Path) -> Vec<PathBuf> {
    let places = CONTENTS_BEFORE.into_iter().map(|contents| kept(root, contents));
    places.filter(|place| place.exists()).collect()
}

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
    !all_kept(root).is_empty() || !unfinished(root).is_empty()
}

pub(crate) fn stage(root: &Path) -> anyhow::Result<Stage> {
    let (store, left) = (root.join(STORE), unfinished(root));
    let contents = |store: &PathBuf| local::contents_of(store).ok();
    let is_old = |store: &&PathBuf| {
        contents(store).is_some_and(|contents| CONTENTS_BEFORE.contains(&contents))
    };
    if !store.exists() {
        let new = left.into_iter().find(|left| contents(left) == Some(CONTENTS));
        return new.map(Stage::Between).context("there is no store, and no complete new one");
    }
    let found = local::contents_of(&store)?;
    if CONTENTS_BEFORE.contains(&found) {
        let name = |old: &PathBuf| format!("{} holds an old store: move it away", old.display());
        let old = left.iter().find(is_old);
        ensure!(old.is_none(), "{}", old.map(name).unwrap_or_default());
        return Ok(Stage::ToFill);
    }
    local::check_versions(&store, CONTENTS)?;
    let old = left.iter().find(is_old).cloned();
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

/// Puts the new store in place of the old one, which gets the name `kept`. `step` is called
/// between any two changes.
pub(crate) fn exchange(
    root: &Path,
    (new, kept): (&Path, &Path),
    step: &mut dyn FnMut(),
) -> anyhow::Result<()> {
    let store = root.join(STORE);
    if exchange_at_once(&store, new).is_ok() {
        sync(root)?;
        step();
        return keep_old(root, (new, kept));
    }
    keep_old(root, (&store, kept))?;
    step();
    put_in_place(root, new)
}

/// Gives the old store the name under which it is kept.
pub(crate) fn keep_old(root: &Path, (old, kept): (&Path, &Path)) -> anyhow::Result<()> {
    rename(old, kept)?;
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
            let old = kept(root, ContentsVersion(2));
            for (folder, text) in [(root.join(STORE), "old"), (new.clone(), "new")] {
                std::fs::create_dir(&folder).unwrap();
                std::fs::write(folder.join("file"), text).unwrap();
            }
            if at_once {
                exchange(root, (&new, &old), &mut || {}).unwrap();
            } else {
                keep_old(root, (&root.join(STORE), &old)).unwrap();
                assert!(is_left(root) && !root.join(STORE).exists());
                put_in_place(root, &new).unwrap();
            }
            let read = |store: &Path| std::fs::read_to_string(store.join("file")).unwrap();
            assert_eq!((read(&root.join(STORE)).as_str(), read(&old).as_str()), ("new", "old"));
            assert_eq!(all_kept(root), [old]);
            assert_eq!(unfinished(root), Vec::<PathBuf>::new());
        }
    }
}
