//! Words that must not occur: shortcuts in code, traces of one machine, and vague words in
//! comments.

use super::{Banned, EXCEPTIONS_PATH, Exceptions, RustFiles, VagueComments, VagueWords};
use crate::repo::RepoFile;
use crate::report::Finding;
use crate::source::{Source, words};

/// Code that production must not contain, with the alternative.
const PRODUCTION: [(&str, &str); 1] =
    [(".unwrap()", "return an error, or `expect` with the invariant that makes it impossible")];

/// Code that no file must contain, tests included.
const EVERYWHERE: [(&str, &str); 3] = [
    (
        "#[ignore",
        "a test that does not run proves nothing; make it fast or move it to `xtask soak`",
    ),
    ("todo!(", "finish it, or return an error that names what is missing"),
    ("unimplemented!(", "finish it, or return an error that names what is missing"),
];

/// Comments that promise work; each needs an issue, as in `FIXME(#12)`.
const PROMISES: [&str; 3] = ["FIXME", "TODO", "XXX"];

pub(super) fn check(files: &[RepoFile], rust: &RustFiles, exceptions: &Exceptions) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in &rust.production {
        findings.extend(check_code(source, &PRODUCTION));
    }
    for source in rust.production.iter().chain(&rust.tests) {
        findings.extend(check_everywhere(source));
        findings.extend(check_promises(source));
    }
    for file in files {
        findings.extend(check_banned(file, exceptions));
    }
    findings.extend(check_vague(rust, exceptions));
    findings
}

/// Looks at production code only.
fn check_code(source: &Source, forbidden: &[(&str, &str)]) -> Vec<Finding> {
    let found = occurrences(source.code(), forbidden).filter(|(at, _)| !source.is_test(*at));
    found.map(|(at, message)| Finding::line(&source.path, source.line_of(at), message)).collect()
}

/// Looks at tests as well.
fn check_everywhere(source: &Source) -> Vec<Finding> {
    let found = occurrences(source.code(), &EVERYWHERE);
    found.map(|(at, message)| Finding::line(&source.path, source.line_of(at), message)).collect()
}

fn occurrences<'a>(
    code: &'a str,
    forbidden: &'a [(&str, &str)],
) -> impl Iterator<Item = (usize, String)> {
    forbidden.iter().flat_map(move |(text, way_out)| {
        code.match_indices(text).map(move |(at, _)| (at, format!("`{text}` is banned: {way_out}")))
    })
}

fn check_promises(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, word) in words(source.comments()) {
        let after = source.comments().get(at + word.len()..).unwrap_or_default();
        if PROMISES.contains(&word) && !names_an_issue(after) {
            let message = format!("`{word}` needs an issue: `{word}(#12)`");
            findings.push(Finding::line(&source.path, source.line_of(at), message));
        }
    }
    findings
}

/// Whether the text begins with `(#12)`.
fn names_an_issue(text: &str) -> bool {
    let number = text.strip_prefix("(#").and_then(|rest| rest.split_once(')'));
    number.is_some_and(|(number, _)| number.parse::<u32>().is_ok())
}

/// Looks at the comments of the crates' sources, tests in them included. Files with an entry
/// may have as many vague words as it holds, and must have no fewer.
fn check_vague(rust: &RustFiles, exceptions: &Exceptions) -> Vec<Finding> {
    let sources = rust.production.iter().chain(&rust.tests);
    let sources = sources.filter(|source| is_crate_source(&source.path));
    let found: Vec<(&Source, Vec<Finding>)> =
        sources.map(|source| (source, vague_words(source, &exceptions.vague_words))).collect();
    let count = |path: &str| {
        let of_file = found.iter().find(|(source, _)| source.path == path);
        of_file.map_or(0, |(_, found)| found.len())
    };
    let mut findings = Vec::new();
    for VagueComments { path, words } in &exceptions.vague_comments {
        if *words == 0 || count(path) < *words {
            let message = format!("{path} does not have {words} vague words: correct the entry");
            findings.push(Finding::file(EXCEPTIONS_PATH, message));
        }
    }
    for (source, found) in &found {
        let entry = exceptions.vague_comments.iter().find(|entry| entry.path == source.path);
        if found.len() > entry.map_or(0, |entry| entry.words) {
            findings.extend_from_slice(found);
        }
    }
    findings
}

/// Whether the path is one of `crates/*/src`.
fn is_crate_source(path: &str) -> bool {
    let mut parts = path.split('/');
    parts.next() == Some("crates") && parts.nth(1) == Some("src")
}

fn vague_words(source: &Source, vague: &[VagueWords]) -> Vec<Finding> {
    let comments = source.comments();
    let mut findings = Vec::new();
    for VagueWords { words, instead } in vague {
        for word in words {
            let message = format!("`{word}` is vague in a comment: {instead}");
            let lines = phrases(comments, word).into_iter().map(|at| source.line_of(at));
            findings.extend(lines.map(|line| Finding::line(&source.path, line, message.clone())));
        }
    }
    findings
}

/// Offsets of a phrase in comments, word by word and in any case.
fn phrases(comments: &str, phrase: &str) -> Vec<usize> {
    let phrase: Vec<&str> = words(phrase).map(|(_, word)| word).collect();
    let words: Vec<(usize, &str)> = words(comments).collect();
    let is_phrase = |run: &&[(usize, &str)]| {
        run.iter().zip(&phrase).all(|((_, word), wanted)| word.eq_ignore_ascii_case(wanted))
            && run.windows(2).all(|pair| is_adjacent(comments, pair))
    };
    words.windows(phrase.len().max(1)).filter(is_phrase).map(|run| run[0].0).collect()
}

/// Whether two words follow each other in one sentence: only blanks or the break of a comment
/// line are between them.
fn is_adjacent(comments: &str, pair: &[(usize, &str)]) -> bool {
    let &[(at, word), (next, _)] = pair else { return false };
    let between = comments.get(at + word.len()..next).unwrap_or_default();
    between.chars().all(|c| c.is_whitespace() || c == '/' || c == '!')
        && between.matches('\n').count() <= 1
}

fn check_banned(file: &RepoFile, exceptions: &Exceptions) -> Vec<Finding> {
    let exempt = file.path == EXCEPTIONS_PATH || file.path.ends_with(".lock");
    let text = if exempt { "" } else { file.text.as_deref().unwrap_or_default() };
    let mut findings = Vec::new();
    for (line, content) in text.lines().enumerate() {
        for banned in exceptions.banned.iter().filter(|banned| applies(banned, &file.path)) {
            for word in banned.texts.iter().filter(|word| content.contains(word.as_str())) {
                let message = format!("`{word}` is banned: {}", banned.reason);
                findings.push(Finding::line(&file.path, line + 1, message));
            }
        }
    }
    findings
}

fn applies(banned: &Banned, path: &str) -> bool {
    banned.folders.is_empty() || banned.folders.iter().any(|folder| path.starts_with(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(findings: &[Finding]) -> Vec<usize> {
        findings.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn unwrap_is_for_tests() {
        let text = "fn a() {\n    b.unwrap();\n    b.unwrap_or(1); // .unwrap()\n}\n\
                    #[cfg(test)]\nmod tests {\n    fn c() { d.unwrap() }\n}\n";
        assert_eq!(lines(&check_code(&Source::new("a.rs", text), &PRODUCTION)), [2]);
    }

    #[test]
    fn an_ignored_test_is_reported() {
        let text =
            "#[cfg(test)]\nmod tests {\n    #[test]\n    #[ignore = \"slow\"]\n    fn a() {}\n}\n";
        assert_eq!(lines(&check_everywhere(&Source::new("a.rs", text))), [4]);
    }

    #[test]
    fn unfinished_code_is_reported() {
        let text = "fn a() { todo!() }\nfn b() { unimplemented!() }\n// todo!()\n";
        let mut found = lines(&check_everywhere(&Source::new("a.rs", text)));
        found.sort_unstable();
        assert_eq!(found, [1, 2]);
    }

    #[test]
    fn a_promise_needs_an_issue() {
        let text = "// FIXME: later\n// FIXME(#12): later\n/// TODO(me)\nlet FIXME = \"TODO\";\n";
        assert_eq!(lines(&check_promises(&Source::new("a.rs", text))), [1, 3]);
    }

    #[test]
    fn banned_texts_are_reported_everywhere_but_in_their_list() {
        let exceptions = banning("/here/", &[]);
        let text = "one\nsee /here/now\n";
        let check = |path: &str| check_banned(&RepoFile::made_up(path, text), &exceptions);
        assert_eq!(check("a.md")[0].to_string(), "a.md:2: `/here/` is banned: why");
        assert_eq!(check("Cargo.lock"), []);
        assert_eq!(check(EXCEPTIONS_PATH), []);
    }

    #[test]
    fn texts_may_be_banned_in_some_folders_only() {
        let exceptions = banning("x-ms-", &["crates/model/"]);
        let check = |path: &str| check_banned(&RepoFile::made_up(path, "x-ms-date"), &exceptions);
        assert_eq!(lines(&check("crates/model/src/lib.rs")), [1]);
        assert_eq!(check("crates/models/src/lib.rs"), []);
    }

    #[test]
    fn vague_words_are_reported_in_comments_of_crates() {
        let text = "//! Whoever calls\n/// waits for so\n/// many rows.\n\
                    fn whoever() { \"nobody\" } // nobody's\n// Soanew, nobodys, so. Many\n";
        let check = |path: &str| vague(path, text, Vec::new());
        let found = check("crates/a/src/b/c.rs");
        assert_eq!(lines(&found), [1, 2, 4]);
        assert_eq!(
            found[1].to_string(),
            "crates/a/src/b/c.rs:2: `so many` is vague in a comment: say n"
        );
        assert_eq!(lines(&check("crates/a/src/tests.rs")), [1, 2, 4]);
        assert_eq!(check("crates/a/tests/b.rs"), []);
        assert_eq!(check("xtask/src/b.rs"), []);
    }

    #[test]
    fn an_entry_for_vague_words_holds_what_is_there() {
        let entry = |words| vec![VagueComments { path: "crates/a/src/b.rs".to_owned(), words }];
        let check = |text: &str, words| vague("crates/a/src/b.rs", text, entry(words));
        assert_eq!(check("// nobody\n// anew\n", 2), []);
        assert_eq!(lines(&check("// nobody\n// anew\n", 1)), [1, 2]);
        let fewer = check("// nobody\n", 2);
        assert_eq!(
            fewer[0].to_string(),
            "xtask/tidy.toml: crates/a/src/b.rs does not have 2 vague words: correct the entry"
        );
        assert_eq!(check("", 0).len(), 1);
    }

    fn vague(path: &str, text: &str, vague_comments: Vec<VagueComments>) -> Vec<Finding> {
        let words = ["whoever", "so many", "nobody", "anew"].map(str::to_owned).to_vec();
        let vague_words = vec![VagueWords { words, instead: "say n".to_owned() }];
        let rust = RustFiles::read(&[RepoFile::made_up(path, text)]);
        check_vague(&rust, &Exceptions { vague_words, vague_comments, ..Exceptions::default() })
    }

    fn banning(text: &str, folders: &[&str]) -> Exceptions {
        let (texts, reason) = (vec![text.to_owned()], "why".to_owned());
        let folders = folders.iter().map(|folder| (*folder).to_owned()).collect();
        Exceptions { banned: vec![Banned { texts, folders, reason }], ..Exceptions::default() }
    }
}
