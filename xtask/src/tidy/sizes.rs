//! Files and functions stay short enough to be read at once.

use std::fmt;

use super::{EXCEPTIONS_PATH, Exceptions, LongFunction, RustFiles};
use crate::repo::RepoFile;
use crate::report::Finding;
use crate::source::{Function, Source};

/// A longer file is hard to read; tests do not count.
const FILE_LINES_MAX: usize = 800;
/// A longer function does not fit a screen. Clippy counts code lines only.
const FUNCTION_LINES_MAX: usize = 80;
/// Quality shows in the tail: 19 of 20 functions are at most this long.
const FUNCTION_LINES_P95_MAX: usize = 30;
/// At most one function in this many may be an exception.
const FUNCTIONS_PER_EXCEPTION_MIN: usize = 100;
/// Larger files are data, and data does not belong in the repository.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

pub(super) fn check(files: &[RepoFile], rust: &RustFiles, exceptions: &Exceptions) -> Vec<Finding> {
    let mut findings = check_bytes(files);
    findings.extend(rust.production.iter().filter_map(check_file));
    findings.extend(check_functions(&rust.production, &exceptions.long_functions));
    findings.extend(check_exceptions(&rust.production, &exceptions.long_functions));
    findings
}

fn check_bytes(files: &[RepoFile]) -> Vec<Finding> {
    let large = files.iter().filter(|file| file.bytes > FILE_BYTES_MAX);
    large
        .map(|file| {
            let message = format!("{} bytes; at most {FILE_BYTES_MAX} are allowed", file.bytes);
            Finding::file(&file.path, message)
        })
        .collect()
}

fn check_file(source: &Source) -> Option<Finding> {
    let lines = source.production_lines();
    (lines > FILE_LINES_MAX).then(|| {
        let message = format!("{lines} lines without tests; at most {FILE_LINES_MAX} are allowed");
        Finding::file(&source.path, message)
    })
}

fn check_functions(sources: &[Source], exceptions: &[LongFunction]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for source in sources {
        for function in source.functions() {
            let excepted = exceptions.iter().find(|e| is_for(e, source, &function));
            let lines_max = excepted.map_or(FUNCTION_LINES_MAX, |e| e.lines);
            if function.lines > lines_max {
                let Function { name, line, lines } = function;
                let message =
                    format!("`{name}` has {lines} lines; at most {lines_max} are allowed");
                findings.push(Finding::line(&source.path, line, message));
            }
        }
    }
    let sizes = FunctionSizes::of(sources);
    if sizes.p95 > FUNCTION_LINES_P95_MAX {
        let message = format!(
            "19 of 20 functions have at most {} lines; {FUNCTION_LINES_P95_MAX} is the limit",
            sizes.p95
        );
        findings.push(Finding::file("crates", message));
    }
    findings
}

/// Exceptions are few, needed and reasoned.
fn check_exceptions(sources: &[Source], exceptions: &[LongFunction]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut say = |message: String| findings.push(Finding::file(EXCEPTIONS_PATH, message));
    for exception in exceptions {
        let LongFunction { path, name, lines, reason } = exception;
        let mut longest = sources
            .iter()
            .flat_map(|source| source.functions().into_iter().map(move |f| (source, f)))
            .filter(|(source, function)| is_for(exception, source, function))
            .map(|(_, function)| function.lines);
        if *lines <= FUNCTION_LINES_MAX || !longest.any(|actual| actual == *lines) {
            say(format!("no `{name}` of {lines} lines in {path}: correct or remove the entry"));
        }
        if reason.trim().is_empty() {
            say(format!("`{name}` in {path} has no reason"));
        }
    }
    let functions = FunctionSizes::of(sources).count;
    if exceptions.len() * FUNCTIONS_PER_EXCEPTION_MIN > functions {
        say(format!("{} long functions of {functions}: more than 1 %", exceptions.len()));
    }
    findings
}

fn is_for(exception: &LongFunction, source: &Source, function: &Function) -> bool {
    exception.path == source.path && exception.name == function.name
}

/// How long functions are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionSizes {
    pub count: usize,
    pub median: usize,
    pub p95: usize,
    pub longest: usize,
}

impl FunctionSizes {
    pub fn of(sources: &[Source]) -> FunctionSizes {
        let functions = sources.iter().flat_map(Source::functions);
        let mut lines: Vec<usize> = functions.map(|function| function.lines).collect();
        lines.sort_unstable();
        let at = |percent: usize| {
            let rank = (lines.len() * percent).div_ceil(100);
            lines.get(rank.saturating_sub(1)).copied().unwrap_or(0)
        };
        FunctionSizes { count: lines.len(), median: at(50), p95: at(95), longest: at(100) }
    }
}

impl fmt::Display for FunctionSizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FunctionSizes { count, median, p95, longest } = self;
        write!(f, "{count} functions, lines: median {median}, p95 {p95}, longest {longest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, lines: usize) -> String {
        format!("fn {name}() {{{}}}\n", "\n".repeat(lines - 1))
    }

    fn exception(name: &str, lines: usize) -> LongFunction {
        let (path, reason) = ("a.rs".to_owned(), "a match".to_owned());
        LongFunction { path, name: name.to_owned(), lines, reason }
    }

    #[test]
    fn a_large_file_is_reported() {
        let mut file = RepoFile::made_up("data.bin", "");
        file.bytes = FILE_BYTES_MAX;
        assert_eq!(check_bytes(std::slice::from_ref(&file)), []);
        file.bytes += 1;
        assert_eq!(check_bytes(&[file]).len(), 1);
    }

    #[test]
    fn a_long_file_is_reported_and_its_tests_do_not_count() {
        let tests = "#[cfg(test)]\nmod tests {\n}\n";
        let text = |lines| format!("{}{tests}", "// x\n".repeat(lines));
        assert_eq!(check_file(&Source::new("a.rs", text(FILE_LINES_MAX))), None);
        assert!(check_file(&Source::new("a.rs", text(FILE_LINES_MAX + 1))).is_some());
    }

    #[test]
    fn a_long_function_is_reported_unless_excepted() {
        let short = function("short", 2).repeat(100);
        let text = function("fits", FUNCTION_LINES_MAX) + &function("long", 81) + &short;
        let sources = [Source::new("a.rs", text)];
        let findings = check_functions(&sources, &[]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].to_string(), "a.rs:81: `long` has 81 lines; at most 80 are allowed");
        let excepted = [exception("long", 81)];
        assert_eq!(check_functions(&sources, &excepted), []);
        assert_eq!(check_exceptions(&sources, &excepted), []);
    }

    #[test]
    fn an_exception_may_not_grow_nor_outlive_its_need() {
        let short = function("short", 2).repeat(100);
        let sources = [Source::new("a.rs", function("long", 90) + &short)];
        assert_eq!(check_functions(&sources, &[exception("long", 85)]).len(), 1);
        assert_eq!(check_exceptions(&sources, &[exception("long", 95)]).len(), 1);
        assert_eq!(check_exceptions(&sources, &[exception("gone", 95)]).len(), 1);
        let unreasoned = LongFunction { reason: " ".to_owned(), ..exception("long", 90) };
        assert_eq!(check_exceptions(&sources, &[unreasoned]).len(), 1);
    }

    #[test]
    fn too_many_exceptions_are_reported() {
        let short = function("short", 2).repeat(98);
        let sources = [Source::new("a.rs", function("long", 90) + &short)];
        let findings = check_exceptions(&sources, &[exception("long", 90)]);
        assert_eq!(findings[0].message, "1 long functions of 99: more than 1 %");
    }

    #[test]
    fn a_heavy_tail_is_reported() {
        let text = function("short", 2).repeat(9) + &function("longish", 46);
        let findings = check_functions(&[Source::new("a.rs", text)], &[]);
        assert_eq!(findings.len(), 1, "{findings:?}");
    }

    #[test]
    fn sizes_are_ranks() {
        let text: String = (1..=20).map(|lines| function("f", lines)).collect();
        let sizes = FunctionSizes::of(&[Source::new("a.rs", text)]);
        assert_eq!(sizes, FunctionSizes { count: 20, median: 10, p95: 19, longest: 20 });
        assert_eq!(FunctionSizes::of(&[]), FunctionSizes::default());
    }
}
