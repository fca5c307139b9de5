//! The rules of the house, as code: layers, sizes, words, names, doors, paths, documentation.
//!
//! Clippy checks what it can see; this checks the rest. Every rule is a function from files
//! to findings, with a test that shows it can fail. They look at the files alone, never at
//! history, so the verdict on a tree is always the same.

mod docs;
mod doors;
mod names;
mod paths;
mod sizes;
mod words;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

pub use sizes::FunctionSizes;

use crate::layers::{self, LAYERS_PATH, Layers, Workspace};
use crate::repo::{self, RepoFile};
use crate::report::Finding;
use crate::source::Source;

/// Where the exceptions are written down.
pub const EXCEPTIONS_PATH: &str = "xtask/tidy.toml";

/// What the rules need to know besides the files.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exceptions {
    #[serde(default)]
    pub banned: Vec<Banned>,
    #[serde(default)]
    pub long_functions: Vec<LongFunction>,
    #[serde(default)]
    pub wide_doors: Vec<WideDoor>,
    #[serde(default)]
    pub vague_words: Vec<VagueWords>,
    #[serde(default)]
    pub vague_comments: Vec<VagueComments>,
}

/// Texts that no file may contain, or none in some folders.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Banned {
    pub texts: Vec<String>,
    /// Where they are banned; everywhere if no folder is named.
    #[serde(default)]
    pub folders: Vec<String>,
    pub reason: String,
}

/// A function that may be longer than the limit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongFunction {
    pub path: String,
    pub name: String,
    pub lines: usize,
    pub reason: String,
}

/// A crate's root that may export more names than the limit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WideDoor {
    pub path: String,
    pub names: usize,
    pub reason: String,
}

/// Words that comments in the crates' sources must not contain.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VagueWords {
    pub words: Vec<String>,
    pub instead: String,
}

/// A file whose comments still contain vague words.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VagueComments {
    pub path: String,
    pub words: usize,
}

/// The Rust files of the repository, read once for all rules.
#[derive(Clone, Debug)]
pub struct RustFiles {
    pub production: Vec<Source>,
    pub tests: Vec<Source>,
}

/// The verdict on the repository.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub findings: Vec<Finding>,
    pub production_files: usize,
    pub functions: FunctionSizes,
}

/// Runs every rule over the repository at `root`.
pub fn check_repository(root: &Path) -> Result<Verdict> {
    let files = repo::read(root)?;
    let layers = Layers::parse(text_of(&files, LAYERS_PATH)?)?;
    let exceptions: Exceptions = toml::from_str(text_of(&files, EXCEPTIONS_PATH)?)
        .with_context(|| format!("cannot read {EXCEPTIONS_PATH}"))?;
    let workspace = Workspace::read(&files)?;
    let rust = RustFiles::read(&files);

    let mut findings = workspace.findings.clone();
    findings.extend(layers::check(&layers, &workspace, &rust.all()));
    findings.extend(sizes::check(&files, &rust, &exceptions));
    findings.extend(words::check(&files, &rust, &exceptions));
    findings.extend(docs::check(&files, &rust));
    findings.extend(paths::check(&files, &rust));
    findings.extend(names::check(&rust));
    findings.extend(doors::check(&rust, &exceptions));
    findings.sort();

    let functions = FunctionSizes::of(&rust.production);
    Ok(Verdict { findings, production_files: rust.production.len(), functions })
}

fn text_of<'a>(files: &'a [RepoFile], path: &str) -> Result<&'a str> {
    let file = files.iter().find(|file| file.path == path);
    file.and_then(|file| file.text.as_deref()).with_context(|| format!("there is no {path}"))
}

impl RustFiles {
    /// Reads the Rust files and separates production from tests: by folder, by the name
    /// `tests.rs`, and by `#[cfg(test)] mod name;` in the parent module.
    pub fn read(files: &[RepoFile]) -> RustFiles {
        let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
        let sources: Vec<Source> =
            rust.filter_map(|file| Some(Source::new(&*file.path, file.text.as_deref()?))).collect();
        let declared: BTreeSet<String> = sources.iter().flat_map(Source::test_modules).collect();
        let is_test = |source: &Source| {
            is_test_path(&source.path)
                || declared.contains(source.path.trim_end_matches(".rs"))
                || declared.iter().any(|module| source.path.starts_with(&format!("{module}/")))
        };
        let (tests, production) = sources.into_iter().partition(is_test);
        RustFiles { production, tests }
    }

    /// Production first, then tests.
    pub fn all(&self) -> Vec<Source> {
        [self.production.as_slice(), self.tests.as_slice()].concat()
    }
}

fn is_test_path(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "benches" | "fuzz" | "tests.rs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_told_from_production() {
        let files = [
            RepoFile::made_up("crates/a/src/lib.rs", "mod b;\n#[cfg(test)]\nmod golden;\n"),
            RepoFile::made_up("crates/a/src/b.rs", ""),
            RepoFile::made_up("crates/a/src/b/tests.rs", ""),
            RepoFile::made_up("crates/a/src/golden.rs", ""),
            RepoFile::made_up("crates/a/src/golden/runner.rs", ""),
            RepoFile::made_up("crates/a/tests/all.rs", ""),
            RepoFile::made_up("crates/a/benches/cost.rs", ""),
            RepoFile::made_up("crates/a/README.md", ""),
        ];
        let rust = RustFiles::read(&files);
        let paths: Vec<&str> = rust.production.iter().map(|source| source.path.as_str()).collect();
        assert_eq!(paths, ["crates/a/src/lib.rs", "crates/a/src/b.rs"]);
        assert_eq!(rust.tests.len(), 5);
    }
}
