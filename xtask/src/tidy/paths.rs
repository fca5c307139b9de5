//! Paths are valid: every file is reached by its crate, and every file that a document
//! names exists.
//!
//! The compiler ignores a file that no `mod` line names, and nothing else checks what a
//! page says about the tree. Both rot in silence.

use std::collections::BTreeSet;

use super::RustFiles;
use crate::repo::RepoFile;
use crate::report::Finding;
use crate::source::Source;

/// Where paths from the repository's root begin; in a text, such a path between backticks
/// must exist.
const ROOTS: [&str; 4] = ["crates/", "docs/", "fuzz/", "xtask/"];

/// Stands for any name in a path of a document.
const PLACEHOLDER: &str = "NAME";

pub(super) fn check(files: &[RepoFile], rust: &RustFiles) -> Vec<Finding> {
    let mut findings: Vec<Finding> = files.iter().filter_map(check_name).collect();
    findings.extend(check_dead(&rust.all()));
    let known = known_paths(files);
    for source in rust.production.iter().chain(&rust.tests) {
        findings.extend(check_mentions(&source.path, source.comments(), &known));
    }
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let text = file.text.as_deref().unwrap_or_default();
        findings.extend(check_mentions(&file.path, text, &known));
        findings.extend(check_links(&file.path, text, &known));
    }
    findings
}

fn check_name(file: &RepoFile) -> Option<Finding> {
    let is_mod = file.path.rsplit('/').next() == Some("mod.rs");
    is_mod.then(|| Finding::file(&file.path, "name the file after its module: `foo.rs` and `foo/`"))
}

/// Files under `src/` that no module declares, so that they are never compiled.
fn check_dead(sources: &[Source]) -> Vec<Finding> {
    let declared: BTreeSet<String> = sources.iter().flat_map(Source::modules).collect();
    let dead = sources.iter().filter(|source| {
        let Some((_, inside)) = source.path.split_once("/src/") else { return false };
        let is_root = matches!(inside, "lib.rs" | "main.rs") || inside.starts_with("bin/");
        !is_root && !declared.contains(source.path.trim_end_matches(".rs"))
    });
    dead.map(|source| Finding::file(&source.path, "no `mod` line names this file")).collect()
}

/// Every file and every folder, without a slash at the end.
fn known_paths(files: &[RepoFile]) -> BTreeSet<&str> {
    let folders = |path| -> Vec<&str> {
        str::match_indices(path, '/').filter_map(|(at, _)| path.get(..at)).collect()
    };
    files
        .iter()
        .flat_map(|file| folders(&file.path).into_iter().chain([file.path.as_str()]))
        .collect()
}

/// Paths between backticks.
fn check_mentions(path: &str, text: &str, known: &BTreeSet<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, content) in text.lines().enumerate() {
        for mention in content.split('`').skip(1).step_by(2) {
            let named = mention.trim_end_matches('/');
            if is_path(mention) && !known.contains(named) {
                findings.push(Finding::line(path, line + 1, format!("there is no `{named}`")));
            }
        }
    }
    findings
}

fn is_path(mention: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-');
    ROOTS.iter().any(|root| mention.starts_with(root))
        && mention.chars().all(plain)
        && !mention.contains(PLACEHOLDER)
}

/// Links of a page to other files of the repository.
fn check_links(path: &str, text: &str, known: &BTreeSet<&str>) -> Vec<Finding> {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut findings = Vec::new();
    for (line, content) in text.lines().enumerate() {
        let targets = content.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for target in targets.filter(|target| !target.contains(':') && !target.starts_with('#')) {
            let file = target.split('#').next().unwrap_or(target);
            if !known.contains(resolve(folder, file).as_str()) {
                findings.push(Finding::line(
                    path,
                    line + 1,
                    format!("the link to `{target}` is dead"),
                ));
            }
        }
    }
    findings
}

/// A relative path as seen from the root.
fn resolve(folder: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mod_rs_is_reported() {
        assert!(check_name(&RepoFile::made_up("crates/a/src/b/mod.rs", "")).is_some());
        assert_eq!(check_name(&RepoFile::made_up("crates/a/src/mod_rs.rs", "")), None);
    }

    #[test]
    fn a_file_that_no_module_names_is_reported() {
        let sources = [
            Source::new("crates/a/src/lib.rs", "pub mod b;\n// mod d;\n"),
            Source::new("crates/a/src/b.rs", "#[cfg(test)]\nmod c;\nmod inline {}\n"),
            Source::new("crates/a/src/b/c.rs", ""),
            Source::new("crates/a/src/d.rs", ""),
            Source::new("crates/a/src/bin/e.rs", ""),
            Source::new("crates/a/tests/f.rs", ""),
        ];
        let paths: Vec<String> = check_dead(&sources).into_iter().map(|f| f.path).collect();
        assert_eq!(paths, ["crates/a/src/d.rs"]);
    }

    #[test]
    fn a_path_that_is_not_there_is_reported() {
        let known = BTreeSet::from(["crates/a", "crates/a/src/lib.rs", "docs"]);
        let there = "`crates/a/src/lib.rs`, `crates/a/` and `docs/`";
        assert_eq!(check_mentions("a.md", there, &known), []);
        let patterns = "`crates/*/src`, `fuzz/corpus/NAME/`, `src/gone.rs`, crates/gone";
        assert_eq!(check_mentions("a.md", patterns, &known), []);
        let gone = check_mentions("a.md", "one\n`crates/a/src/gone.rs`", &known);
        assert_eq!(gone, [Finding::line("a.md", 2, "there is no `crates/a/src/gone.rs`")]);
    }

    #[test]
    fn a_dead_link_is_reported() {
        let known = BTreeSet::from(["README.md", "docs/glossary.md", "docs"]);
        let alive = "[a](../README.md#status) [b](glossary.md) [c](#here) [d](https://e.example/f)";
        assert_eq!(check_links("docs/index.md", alive, &known), []);
        let dead = check_links("docs/index.md", "[a](README.md)", &known);
        assert_eq!(dead, [Finding::line("docs/index.md", 1, "the link to `README.md` is dead")]);
    }

    #[test]
    fn folders_are_known_by_their_files() {
        let files = [RepoFile::made_up("a/b/c.md", "")];
        assert_eq!(known_paths(&files), BTreeSet::from(["a", "a/b", "a/b/c.md"]));
    }
}
