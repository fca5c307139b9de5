//! The repository as the rules see it: a list of paths and texts.
//!
//! Git says which files belong to it (tracked ones, and new ones that are not ignored), so
//! that build output and scratch files are never checked, and so that a rule reports before
//! a file is committed rather than after.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// One file that belongs to the repository.
#[derive(Clone, Debug)]
pub struct RepoFile {
    /// Path from the root, with `/` between its parts.
    pub path: String,
    pub bytes: u64,
    /// `None` for files that are not UTF-8, such as fuzz inputs.
    pub text: Option<String>,
}

impl RepoFile {
    /// A file made up by a test.
    #[cfg(test)]
    pub(crate) fn made_up(path: &str, text: &str) -> RepoFile {
        RepoFile { path: path.to_owned(), bytes: text.len() as u64, text: Some(text.to_owned()) }
    }
}

/// The repository's root folder.
///
/// Cargo names the package's folder when it runs a program or a test; the folder known at
/// build time is the fallback for a binary started by hand.
pub fn root() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    package.parent().map_or(package.clone(), Path::to_path_buf)
}

/// Test data from elsewhere; it lives beside the repository, not in it.
pub fn shared_data(root: &Path) -> PathBuf {
    root.join("../shared")
}

/// Reads every file that belongs to the repository, ordered by path.
pub fn read(root: &Path) -> Result<Vec<RepoFile>> {
    let mut files = Vec::new();
    for path in paths(root)? {
        let full = root.join(&path);
        // A deleted file stays listed until its deletion is committed.
        if !full.is_file() {
            continue;
        }
        let content = std::fs::read(&full).with_context(|| format!("cannot read {path}"))?;
        let bytes = content.len() as u64;
        files.push(RepoFile { path, bytes, text: String::from_utf8(content).ok() });
    }
    Ok(files)
}

fn paths(root: &Path) -> Result<Vec<String>> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("cannot start git, which says which files belong to the repository")?;
    ensure!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let text = String::from_utf8(listed.stdout).context("a path is not UTF-8")?;
    let mut paths: Vec<String> =
        text.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}
