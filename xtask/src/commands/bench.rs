//! `cargo xtask bench`: every benchmark, or those whose name is given.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::repo::{self, RepoFile};
use crate::run::{Cargo, step};

pub fn run(root: &Path, wanted: Option<&str>) -> Result<()> {
    let benches = benches(&repo::read(root)?, wanted);
    ensure!(!benches.is_empty(), "there is no such benchmark under crates/*/benches");
    for (package, bench) in benches {
        step(&format!("{package}::{bench}"), || {
            Cargo::new(root, &["bench", "-p", &package, "--bench", &bench]).run()
        })?;
    }
    Ok(())
}

/// Crate and name of each `crates/*/benches/*.rs`.
fn benches(files: &[RepoFile], wanted: Option<&str>) -> Vec<(String, String)> {
    let all = files.iter().filter_map(|file| {
        let (package, bench) = file.path.strip_prefix("crates/")?.split_once("/benches/")?;
        Some((package.to_owned(), bench.strip_suffix(".rs")?.to_owned()))
    });
    all.filter(|(_, bench)| !bench.contains('/') && wanted.is_none_or(|name| name == bench))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benches_are_found_by_folder() {
        let files = [
            RepoFile::made_up("crates/storage/benches/door.rs", ""),
            RepoFile::made_up("crates/storage/benches/door/load.rs", ""),
            RepoFile::made_up("crates/index/benches/entries.rs", ""),
        ];
        assert_eq!(benches(&files, None).len(), 2);
        assert_eq!(benches(&files, Some("door")), [("storage".to_owned(), "door".to_owned())]);
        assert_eq!(benches(&files, Some("gate")), []);
    }
}
