//! Required documentation: why a module exists, which question a benchmark answers, what
//! changed for users.

use super::RustFiles;
use crate::repo::RepoFile;
use crate::report::Finding;
use crate::source::Source;

/// Above this a module needs a `//!` that explains it.
const UNDOCUMENTED_LINES_MAX: usize = 100;

const CHANGELOG_PATH: &str = "CHANGELOG.md";
const UNRELEASED: &str = "## Unreleased";
/// Sections of the changelog, in this order, as they matter to users.
const CHANGELOG_SECTIONS: [&str; 5] =
    ["Compatibility", "Features", "Fixes", "Performance", "Internals"];

pub(super) fn check(files: &[RepoFile], rust: &RustFiles) -> Vec<Finding> {
    let mut findings: Vec<Finding> = rust.production.iter().filter_map(check_module).collect();
    findings.extend(rust.tests.iter().filter_map(check_bench));
    findings.extend(check_changelog(files));
    findings
}

fn check_module(source: &Source) -> Option<Finding> {
    let lines = source.production_lines();
    let silent = lines > UNDOCUMENTED_LINES_MAX && source.docs().is_empty();
    silent.then(|| {
        let message = format!("{lines} lines and no `//!` that says what it is for");
        Finding::file(&source.path, message)
    })
}

/// Modules of a benchmark are in a folder of their own, and ask nothing.
fn check_bench(source: &Source) -> Option<Finding> {
    let is_bench = source.path.rsplit('/').nth(1) == Some("benches");
    let docs = source.docs();
    let mut first_paragraph = docs.iter().take_while(|line| !line.is_empty());
    let asks = first_paragraph.any(|line| line.contains('?'));
    (is_bench && !asks)
        .then(|| Finding::file(&source.path, "a benchmark opens with `//!` and its question"))
}

/// The section for what is not released yet must be there, complete.
fn check_changelog(files: &[RepoFile]) -> Option<Finding> {
    let file = files.iter().find(|file| file.path == CHANGELOG_PATH);
    let text = file.and_then(|file| file.text.as_deref()).unwrap_or_default();
    let unreleased = text.lines().skip_while(|line| *line != UNRELEASED).skip(1);
    let sections: Vec<&str> = unreleased
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("### "))
        .collect();
    (sections != CHANGELOG_SECTIONS).then(|| {
        let message =
            format!("`{UNRELEASED}` needs the sections {}", CHANGELOG_SECTIONS.join(", "));
        Finding::file(CHANGELOG_PATH, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_module_without_docs_is_reported() {
        let code = "use a;\n".repeat(UNDOCUMENTED_LINES_MAX);
        assert_eq!(check_module(&Source::new("a.rs", &*code)), None);
        assert!(check_module(&Source::new("a.rs", format!("{code}use b;\n"))).is_some());
        assert_eq!(check_module(&Source::new("a.rs", format!("//! Why.\n{code}"))), None);
    }

    #[test]
    fn a_bench_asks_a_question() {
        let check = |text: &str| check_bench(&Source::new("crates/a/benches/b.rs", text));
        assert_eq!(check("//! How much does\n//! a write cost?\n"), None);
        assert!(check("//! Benchmarks.\n").is_some());
        assert!(check("fn main() {} // why?\n").is_some());
        let module = Source::new("crates/a/benches/b/client.rs", "//! A client.\n");
        assert_eq!(check_bench(&module), None);
    }

    #[test]
    fn the_changelog_needs_all_sections_in_order() {
        let sections = |names: &[&str]| -> String {
            names.iter().map(|name| format!("### {name}\n- Something.\n")).collect()
        };
        let check = |text: String| check_changelog(&[RepoFile::made_up(CHANGELOG_PATH, &text)]);
        let complete = sections(&CHANGELOG_SECTIONS);
        assert_eq!(check(format!("# Log\n{UNRELEASED}\n{complete}## 0.1\n")), None);
        assert!(check(format!("# Log\n{complete}")).is_some());
        assert!(check(format!("{UNRELEASED}\n{}", sections(&["Features", "Fixes"]))).is_some());
        assert!(check_changelog(&[]).is_some());
    }
}
