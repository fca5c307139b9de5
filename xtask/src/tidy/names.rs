//! One word, one meaning: two crates must not give their public types the same name.
//!
//! A reader who sees `KeyRange` should not have to ask whose it is. Crates for tests are
//! left out, and so are names inside one crate, which its modules distinguish.

use std::collections::BTreeMap;

use super::RustFiles;
use crate::report::Finding;
use crate::source::{Source, words};

/// Crates that do not ship.
const TEST_CRATES: [&str; 2] = ["testkit", "lab"];

const TYPES: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

pub(super) fn check(rust: &RustFiles) -> Vec<Finding> {
    let mut first: BTreeMap<&str, (&str, &Source)> = BTreeMap::new();
    let mut findings = Vec::new();
    for source in &rust.production {
        let Some(package) = package_of(&source.path) else { continue };
        for (at, name) in public_types(source) {
            let (owner, defined) = *first.entry(name).or_insert((package, source));
            if owner != package {
                let message = format!(
                    "`{name}` is a public type of `{owner}` too ({}): one word, one meaning",
                    defined.path
                );
                findings.push(Finding::line(&source.path, source.line_of(at), message));
            }
        }
    }
    findings
}

/// The crate that a file ships with.
fn package_of(path: &str) -> Option<&str> {
    let (package, rest) = path.strip_prefix("crates/")?.split_once('/')?;
    (rest.starts_with("src/") && !TEST_CRATES.contains(&package)).then_some(package)
}

/// Names after `pub struct` and the like, with their offsets.
fn public_types(source: &Source) -> Vec<(usize, &str)> {
    let all: Vec<(usize, &str)> = words(source.code()).collect();
    let types = all.windows(3).filter_map(|three| {
        let [(at, "pub"), (kind_at, kind), (name_at, name)] = *three else { return None };
        let between = source.code().get(at + "pub".len()..kind_at)?;
        let is_public = TYPES.contains(&kind) && between.trim().is_empty();
        (is_public && !source.is_test(name_at)).then_some((name_at, name))
    });
    types.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::RepoFile;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let made_up = |(path, text): &(&str, &str)| RepoFile::made_up(path, text);
        let files: Vec<RepoFile> = files.iter().map(made_up).collect();
        let findings = check(&RustFiles::read(&files));
        findings.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_public_name_belongs_to_one_crate() {
        let a = ("crates/a/src/lib.rs", "pub struct KeyRange;\npub enum Own {}\n");
        let b = ("crates/b/src/lib.rs", "\npub struct KeyRange<'a>(&'a str);\n");
        let found = findings(&[a, b]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("crates/b/src/lib.rs:2"), "{found:?}");
        assert!(found[0].contains("crates/a/src/lib.rs"), "{found:?}");
    }

    #[test]
    fn what_is_not_public_or_not_shipped_may_be_called_the_same() {
        let a = ("crates/a/src/lib.rs", "pub struct Place;\nmod x { pub struct Place; }\n");
        for (path, text) in [
            ("crates/b/src/lib.rs", "struct Place;\n"),
            ("crates/b/src/lib.rs", "pub(crate) struct Place;\n"),
            ("crates/b/src/lib.rs", "// pub struct Place;\n"),
            ("crates/b/src/lib.rs", "#[cfg(test)]\nmod tests { pub struct Place; }\n"),
            ("crates/b/tests/all.rs", "pub struct Place;\n"),
            ("crates/lab/src/lib.rs", "pub struct Place;\n"),
        ] {
            assert_eq!(findings(&[a, (path, text)]), [""; 0], "{path}: {text}");
        }
    }
}
