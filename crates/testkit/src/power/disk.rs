//! A disk with a write-back cache, built from recorded events and cut off at any moment.
//!
//! The model is what a file system may leave, not what a particular one does:
//!
//! - A sync makes durable what happened to that file or folder before the sync began, and
//!   nothing else. A name is durable when its *folder* is synced.
//! - Pages of a file reach the disk one by one, in any order, each as it was at any moment
//!   since the last sync. A page may be torn between two sectors; a sector is whole.
//! - The length of a file is one that it has had since the last sync. What is within it
//!   and did not reach the disk reads as zeros.
//! - Names appear and vanish in the order of the changes or in any order; a rename shows
//!   as a whole or not at all.

mod file;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use runtime::Random;

use self::file::FileState;
use super::Event;

/// What a name refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    File(usize),
    /// Known by its path: folders are never renamed here.
    Folder,
}

#[derive(Clone, Debug)]
enum NameChange {
    Set(String, Node),
    Remove(String),
    Rename(String, String, Node),
}

/// The names in a folder.
#[derive(Debug, Default)]
struct FolderState {
    durable: BTreeMap<String, Node>,
    /// As programs see it.
    now: BTreeMap<String, Node>,
    changes: Vec<NameChange>,
    /// Changes that have become durable, ever.
    settled: usize,
}

/// The subject of a sync in progress, and how many changes it had when the sync began.
#[derive(Clone, Debug)]
enum Mark {
    File(usize, usize),
    Folder(String, usize),
}

/// A disk with one folder, and everything it may not have written yet.
#[derive(Debug)]
pub struct Disk {
    files: Vec<FileState>,
    folders: BTreeMap<String, FolderState>,
    /// Inode numbers are reused, so this describes the present.
    files_by_inode: BTreeMap<u64, usize>,
    folders_by_inode: BTreeMap<u64, String>,
    syncs: BTreeMap<u64, Mark>,
}

impl Default for Disk {
    fn default() -> Disk {
        Disk {
            files: Vec::new(),
            folders: BTreeMap::from([(String::new(), FolderState::default())]),
            files_by_inode: BTreeMap::new(),
            folders_by_inode: BTreeMap::new(),
            syncs: BTreeMap::new(),
        }
    }
}

impl Disk {
    /// Applies one event.
    pub fn apply(&mut self, event: &Event) -> Result<()> {
        match event {
            Event::Opened { path, inode, folder: true, .. } => {
                ensure!(self.folders.contains_key(path), "the folder {path} was never made");
                self.folders_by_inode.insert(*inode, path.clone());
            }
            Event::Opened { path, inode, created, emptied, .. } => {
                self.open(path, *inode, *created)?;
                if *emptied {
                    self.file(*inode)?.resize(0);
                }
            }
            Event::Written { inode, position, bytes } => self.file(*inode)?.write(*position, bytes),
            Event::Resized { inode, len } => self.file(*inode)?.resize(*len),
            Event::SyncBegun { inode, number } => self.begin_sync(*inode, *number)?,
            Event::SyncEnded { number } => self.end_sync(*number)?,
            Event::Renamed { from, to } => self.rename(from, to)?,
            Event::Unlinked { path } => self.change(path, |name, _| NameChange::Remove(name))?,
            Event::FolderMade { path } => {
                self.change(path, |name, _| NameChange::Set(name, Node::Folder))?;
                self.folders.insert(path.clone(), FolderState::default());
            }
            Event::FolderRemoved { path } => bail!("{path}: folders are never removed"),
            Event::Said { .. } => {}
        }
        Ok(())
    }

    fn file(&mut self, inode: u64) -> Result<&mut FileState> {
        let file = *self.files_by_inode.get(&inode).context("a file that was never opened")?;
        self.files.get_mut(file).context("files are never forgotten")
    }

    fn folder(&mut self, path: &str) -> Result<(&mut FolderState, String)> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        let folder = self.folders.get_mut(parent).with_context(|| format!("no folder {parent}"))?;
        Ok((folder, name.to_owned()))
    }

    fn change(
        &mut self,
        path: &str,
        change: impl FnOnce(String, Option<Node>) -> NameChange,
    ) -> Result<()> {
        let (folder, name) = self.folder(path)?;
        let node = folder.now.get(&name).copied();
        folder.change(change(name, node));
        Ok(())
    }

    fn open(&mut self, path: &str, inode: u64, created: bool) -> Result<()> {
        if created {
            let file = self.files.len();
            self.files.push(FileState::default());
            self.files_by_inode.insert(inode, file);
            return self.change(path, |name, _| NameChange::Set(name, Node::File(file)));
        }
        let file = Node::File(*self.files_by_inode.get(&inode).context("a file from before")?);
        let (folder, name) = self.folder(path)?;
        if folder.now.get(&name) != Some(&file) {
            // The engine renames without going through the library whose calls are
            // recorded. The next thing it does is open the file by its new name.
            let old = folder.now.iter().find(|(_, node)| **node == file);
            let old = old.map(|(name, _)| name.clone()).context("a file without a name")?;
            folder.change(NameChange::Rename(old, name, file));
        }
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        let parent = |path: &str| path.rsplit_once('/').map(|(parent, _)| parent.to_owned());
        ensure!(parent(from) == parent(to), "{from} moves to another folder");
        let (_, to) = self.folder(to)?;
        let (folder, from) = self.folder(from)?;
        let node = *folder.now.get(&from).context("what is renamed exists")?;
        folder.change(NameChange::Rename(from, to, node));
        Ok(())
    }

    fn begin_sync(&mut self, inode: u64, number: u64) -> Result<()> {
        // A folder may have a former file's inode, and vice versa.
        let mark = match (self.files_by_inode.get(&inode), self.folders_by_inode.get(&inode)) {
            (_, Some(path)) => {
                let folder = self.folders.get(path).context("folders stay")?;
                Mark::Folder(path.clone(), folder.settled + folder.changes.len())
            }
            (Some(file), None) => {
                let state = self.files.get(*file).context("files are never forgotten")?;
                Mark::File(*file, state.changes())
            }
            (None, None) => bail!("something that was never opened is synced"),
        };
        self.syncs.insert(number, mark);
        Ok(())
    }

    fn end_sync(&mut self, number: u64) -> Result<()> {
        match self.syncs.remove(&number).context("a sync ends once")? {
            Mark::File(file, changes) => {
                self.files.get_mut(file).context("files are never forgotten")?.settle(changes);
            }
            Mark::Folder(path, changes) => {
                self.folders.get_mut(&path).context("folders stay")?.settle(changes);
            }
        }
        Ok(())
    }

    /// Fills `target` with what the disk holds if the power is cut now.
    pub fn cut(&self, random: &dyn Random, target: &Path) -> Result<()> {
        self.cut_folder(random, "", target)
    }

    fn cut_folder(&self, random: &dyn Random, path: &str, target: &Path) -> Result<()> {
        std::fs::create_dir_all(target)?;
        let state = self.folders.get(path).with_context(|| format!("no folder {path}"))?;
        for (name, node) in state.cut(random) {
            let target = target.join(&name);
            match node {
                Node::Folder => {
                    let path = if path.is_empty() { name } else { format!("{path}/{name}") };
                    self.cut_folder(random, &path, &target)?;
                }
                Node::File(file) => {
                    let file = self.files.get(file).context("files are never forgotten")?;
                    file.cut(random).save(&target)?;
                }
            }
        }
        Ok(())
    }
}

impl FolderState {
    fn change(&mut self, change: NameChange) {
        change.perform(&mut self.now);
        self.changes.push(change);
    }

    fn settle(&mut self, changes: usize) {
        let count = changes.saturating_sub(self.settled).min(self.changes.len());
        for change in self.changes.drain(..count) {
            change.perform(&mut self.durable);
        }
        self.settled += count;
    }

    fn cut(&self, random: &dyn Random) -> BTreeMap<String, Node> {
        let below = |limit: usize| usize::try_from(random.next_u64() % limit as u64).unwrap_or(0);
        let mut names = self.durable.clone();
        let in_order = below(self.changes.len() + 1);
        let way = below(4);
        for (index, change) in self.changes.iter().enumerate() {
            let happens = match way {
                0 => false,
                1 => true,
                2 => index < in_order,
                _ => below(2) == 0,
            };
            if happens {
                change.perform(&mut names);
            }
        }
        names
    }
}

impl NameChange {
    fn perform(&self, names: &mut BTreeMap<String, Node>) {
        match self {
            NameChange::Set(name, node) => {
                names.insert(name.clone(), *node);
            }
            NameChange::Remove(name) => {
                names.remove(name);
            }
            NameChange::Rename(from, to, node) => {
                // Only its own name is removed: in any order, another file may have taken
                // it.
                if names.get(from) == Some(node) {
                    names.remove(from);
                }
                names.insert(to.clone(), *node);
            }
        }
    }
}

#[cfg(test)]
mod tests;
