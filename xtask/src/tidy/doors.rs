//! Doors stay narrow: a crate's root exports few names, or says why it exports many.

use super::{EXCEPTIONS_PATH, Exceptions, RustFiles, WideDoor};
use crate::report::Finding;
use crate::source::{Source, words};

/// More names than this cannot be kept in mind.
const EXPORTS_MAX: usize = 40;

pub(super) fn check(rust: &RustFiles, exceptions: &Exceptions) -> Vec<Finding> {
    let doors: Vec<(&Source, usize)> =
        rust.production.iter().filter(|s| is_door(&s.path)).map(|s| (s, exports(s))).collect();
    let mut findings = Vec::new();
    for (source, names) in &doors {
        let excepted = exceptions.wide_doors.iter().find(|door| door.path == source.path);
        let most = excepted.map_or(EXPORTS_MAX, |door| door.names);
        if *names > most {
            let message = format!("exports {names} names; at most {most} are allowed");
            findings.push(Finding::file(&source.path, message));
        }
    }
    for WideDoor { path, names, reason } in &exceptions.wide_doors {
        let actual = doors.iter().find(|(source, _)| source.path == *path);
        if *names <= EXPORTS_MAX || actual.is_none_or(|(_, actual)| actual != names) {
            let message = format!("{path} does not export {names} names: correct the entry");
            findings.push(Finding::file(EXCEPTIONS_PATH, message));
        }
        if reason.trim().is_empty() {
            findings.push(Finding::file(EXCEPTIONS_PATH, format!("{path} has no reason")));
        }
    }
    findings
}

fn is_door(path: &str) -> bool {
    path.starts_with("crates/") && path.ends_with("/src/lib.rs")
}

/// How many names a root exports: those of each `pub use`, and each `pub mod`.
fn exports(source: &Source) -> usize {
    source.code().split(';').map(exported).sum()
}

fn exported(statement: &str) -> usize {
    let statement = statement.trim_start();
    if statement.starts_with("pub mod ") {
        return 1;
    }
    // Attributes and blank comments may stand before it.
    let Some((_, names)) = statement.split_once("pub use ") else { return 0 };
    let names = names.rsplit_once('{').map_or(names, |(_, names)| names);
    names.split(',').filter(|name| words(name).next().is_some()).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::RepoFile;

    fn findings(names: usize, wide_doors: Vec<WideDoor>) -> usize {
        let list: Vec<String> = (1..names).map(|number| format!("Name{number}")).collect();
        let text = format!("mod a;\npub mod b;\n// Why.\npub use a::{{{},}};\n", list.join(", "));
        let files = [RepoFile::made_up("crates/a/src/lib.rs", &text)];
        let exceptions = Exceptions { wide_doors, ..Exceptions::default() };
        check(&RustFiles::read(&files), &exceptions).len()
    }

    fn door(names: usize, reason: &str) -> WideDoor {
        WideDoor { path: "crates/a/src/lib.rs".to_owned(), names, reason: reason.to_owned() }
    }

    #[test]
    fn a_wide_door_needs_a_reason() {
        assert_eq!(findings(EXPORTS_MAX, Vec::new()), 0);
        assert_eq!(findings(EXPORTS_MAX + 1, Vec::new()), 1);
        assert_eq!(findings(EXPORTS_MAX + 1, vec![door(EXPORTS_MAX + 1, "many verbs")]), 0);
        assert_eq!(findings(EXPORTS_MAX + 1, vec![door(EXPORTS_MAX + 1, " ")]), 1);
    }

    #[test]
    fn an_entry_holds_what_is_there() {
        assert_eq!(findings(EXPORTS_MAX + 2, vec![door(EXPORTS_MAX + 3, "many verbs")]), 1);
        assert_eq!(findings(EXPORTS_MAX, vec![door(EXPORTS_MAX, "many verbs")]), 1);
        assert_eq!(exported("pub use a::One as Other"), 1);
        assert_eq!(exported("use a::{One, Other}"), 0);
    }
}
