//! Scripts in files: what the name and the folder of a file say about it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use operator::{ScriptKind, ScriptUpload};

/// Files that one command uploads. A container has some hundred scripts at most.
const FILES_MAX: usize = 1_000;

/// Folders of this name hold scripts of that kind.
const FOLDERS: [(&str, ScriptKind); 3] = [
    ("procedures", ScriptKind::Procedure),
    ("triggers", ScriptKind::Trigger),
    ("functions", ScriptKind::Function),
];

/// A script and the file that it is from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ScriptFile {
    pub(super) path: PathBuf,
    pub(super) script: ScriptUpload,
}

/// Reads files and folders, in the order of their names. `kind` is that of all files, if it
/// is given.
pub(super) fn read(paths: &[PathBuf], kind: Option<ScriptKind>) -> anyhow::Result<Vec<ScriptFile>> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(folder(path, kind)?);
        } else {
            found.push((path.clone(), kind.or(of_folder(path.parent())).unwrap_or_default()));
        }
    }
    ensure!(found.len() <= FILES_MAX, "{} files, more than {FILES_MAX}", found.len());
    found.into_iter().map(|(path, kind)| file(path, kind)).collect()
}

/// The files of a folder, and of those in it that are named by a kind.
fn folder(path: &Path, kind: Option<ScriptKind>) -> anyhow::Result<Vec<(PathBuf, ScriptKind)>> {
    let own = kind.or(of_folder(Some(path)));
    let mut files = scripts_in(path, own.unwrap_or_default())?;
    if own.is_none() {
        for (name, kind) in FOLDERS {
            let below = path.join(name);
            if below.is_dir() {
                files.extend(scripts_in(&below, kind)?);
            }
        }
    }
    ensure!(!files.is_empty(), "there are no scripts in {}", path.display());
    Ok(files)
}

fn scripts_in(folder: &Path, kind: ScriptKind) -> anyhow::Result<Vec<(PathBuf, ScriptKind)>> {
    let cannot_read = || format!("cannot read {}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(cannot_read)? {
        let path = entry.with_context(cannot_read)?.path();
        if path.extension() == Some(OsStr::new("js")) && path.is_file() {
            files.push((path, kind));
        }
    }
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(files)
}

fn of_folder(folder: Option<&Path>) -> Option<ScriptKind> {
    let name = folder?.file_name()?;
    FOLDERS.into_iter().find(|(known, _)| name == *known).map(|(_, kind)| kind)
}

fn file(path: PathBuf, kind: ScriptKind) -> anyhow::Result<ScriptFile> {
    let cannot_read = || format!("cannot read {}", path.display());
    let body = fs::read_to_string(&path).with_context(cannot_read)?;
    let stem = path.file_stem().and_then(OsStr::to_str);
    let stem = stem.with_context(|| format!("the name of {} is not text", path.display()))?;
    let script = match kind {
        ScriptKind::Procedure | ScriptKind::Function => ScriptUpload {
            kind,
            name: stem.to_owned(),
            body,
            trigger_type: None,
            trigger_operation: None,
        },
        ScriptKind::Trigger => trigger(&path, stem, body)?,
    };
    Ok(ScriptFile { path, script })
}

/// `NAME.TIME.OPERATION.js`.
fn trigger(path: &Path, stem: &str, body: String) -> anyhow::Result<ScriptUpload> {
    let mut parts = stem.rsplitn(3, '.');
    let (Some(operation), Some(time), Some(name)) = (parts.next(), parts.next(), parts.next())
    else {
        bail!(
            "{} does not say when the trigger runs: call it NAME.TIME.OPERATION.js, such as \
             validate.pre.create.js",
            path.display()
        );
    };
    Ok(ScriptUpload {
        kind: ScriptKind::Trigger,
        name: name.to_owned(),
        body,
        trigger_type: Some(capitalised(time)),
        trigger_operation: Some(capitalised(operation)),
    })
}

/// As the protocol spells these words.
fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
