//! The results of a run: broken rules, and the tests that passed and failed.

use std::fmt;
use std::iter::Sum;
use std::ops::AddAssign;

/// One broken rule at one location.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Path from the repository's root.
    pub path: String,
    /// Counted from 1; 0 stands for the file as a whole.
    pub line: usize,
    /// What is wrong and what to do about it.
    pub message: String,
}

impl Finding {
    /// A finding about a file as a whole.
    pub fn file(path: impl Into<String>, message: impl Into<String>) -> Finding {
        Finding::line(path, 0, message)
    }

    /// A finding about one line, counted from 1.
    pub fn line(path: impl Into<String>, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: path.into(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Tests counted from the result lines that test programs print.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
}

impl Tally {
    /// Adds one line of a test program's output, if it is a result line.
    pub fn add_line(&mut self, line: &str) {
        // A test may print without a newline, which puts its text in front.
        let Some(at) = line.find("test result: ") else { return };
        let result = line.get(at..).unwrap_or_default();
        self.passed += count_before(result, " passed").unwrap_or(0);
        self.failed += count_before(result, " failed").unwrap_or(0);
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl Sum for Tally {
    fn sum<I: Iterator<Item = Tally>>(tallies: I) -> Tally {
        tallies.fold(Tally::default(), |mut sum, tally| {
            sum += tally;
            sum
        })
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// The number directly before `label`.
fn count_before(text: &str, label: &str) -> Option<u64> {
    let (before, _) = text.split_once(label)?;
    before.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_lines_are_summed() {
        let mut tally = Tally::default();
        tally.add_line("running 3 tests");
        tally
            .add_line("test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
        tally.add_line("seed 7test result: FAILED. 12 passed; 2 failed; 0 ignored; 0 measured");
        assert_eq!(tally, Tally { passed: 15, failed: 2 });
        assert_eq!(tally.to_string(), "15 passed, 2 failed");
    }

    #[test]
    fn other_lines_count_nothing() {
        let mut tally = Tally::default();
        tally.add_line("test json::tests::three passed ... ok");
        tally.add_line("test result: unreadable");
        assert_eq!(tally, Tally::default());
    }

    #[test]
    fn a_finding_names_its_place() {
        assert_eq!(Finding::line("a.rs", 3, "bad").to_string(), "a.rs:3: bad");
        assert_eq!(Finding::file("a.rs", "bad").to_string(), "a.rs: bad");
    }
}
