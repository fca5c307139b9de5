//! A vendor's own test suite as a judge, with an honest account of what it shows.
//!
//! Four files say what is expected: `suite.toml` which tests run, `known_failures.toml`
//! which of them fail and why, `vacuous.txt` which pass against a server that implements
//! nothing and so prove nothing. [`judge`] compares a run with them: a failure that is not
//! listed is an error, and so is a listed one that passes, so that the list can only
//! shrink.

pub mod python;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// Which tests run, and which do not.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub features: Vec<Feature>,
    #[serde(default)]
    pub pending: Vec<Pending>,
    #[serde(default)]
    pub excluded: Vec<Reasoned>,
}

/// What some test files are about.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feature {
    pub name: String,
    /// Without `.py`.
    pub files: Vec<String>,
}

/// Files that wait for something that is not built yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pending {
    pub reason: String,
    pub files: Vec<String>,
}

/// Tests with one reason for all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reasoned {
    pub reason: String,
    pub tests: BTreeSet<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownFailures {
    #[serde(default)]
    causes: Vec<Reasoned>,
}

impl Plan {
    pub fn parse(text: &str) -> Result<Plan> {
        toml::from_str(text).context("cannot read suite.toml")
    }

    /// The feature that a test's file belongs to.
    fn feature_of(&self, test: &str) -> Option<&Feature> {
        let file = test.split_once(".py").map_or(test, |(file, _)| file);
        self.features.iter().find(|feature| feature.files.iter().any(|name| name == file))
    }
}

pub fn parse_known_failures(text: &str) -> Result<Vec<Reasoned>> {
    let known: KnownFailures = toml::from_str(text).context("cannot read known_failures.toml")?;
    Ok(known.causes)
}

/// One test id per line; lines that begin with `#` are for people.
pub fn parse_vacuous(text: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// How one test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Passed,
    Failed,
    /// By its own choice.
    Skipped,
}

/// Reads the lines `outcome id` of a run.
pub fn parse_results(text: &str) -> BTreeMap<String, Ended> {
    let parse = |line: &str| {
        let (outcome, id) = line.split_once(' ')?;
        let ended = match outcome {
            "passed" => Ended::Passed,
            "failed" => Ended::Failed,
            "skipped" => Ended::Skipped,
            _ => return None,
        };
        Some((id.to_owned(), ended))
    };
    text.lines().filter_map(parse).collect()
}

/// Numbers about some tests. Vacuous ones are in no other number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
    pub vacuous: usize,
}

/// The results of a run. Plain data, kept for `COMPATIBILITY.md`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// In the order of the plan.
    pub features: Vec<(String, Counts)>,
    pub failures: Vec<Reasoned>,
    pub excluded: Vec<Reasoned>,
    pub pending: Vec<Pending>,
    /// What makes the run an error.
    pub complaints: Vec<String>,
}

impl Verdict {
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for (_, counts) in &self.features {
            total.passed += counts.passed;
            total.failed += counts.failed;
            total.skipped += counts.skipped;
            total.vacuous += counts.vacuous;
        }
        total
    }
}

/// What was expected of a run.
#[derive(Clone, Debug)]
pub struct Expected {
    pub plan: Plan,
    pub known: Vec<Reasoned>,
    pub vacuous: BTreeSet<String>,
}

/// Compares the results of `files` with what was expected of them.
pub fn judge(expected: &Expected, files: &[String], results: &BTreeMap<String, Ended>) -> Verdict {
    let mut verdict = Verdict {
        excluded: expected.plan.excluded.clone(),
        pending: expected.plan.pending.clone(),
        ..Verdict::default()
    };
    for feature in &expected.plan.features {
        let own = results.iter().filter(|(test, _)| {
            expected.plan.feature_of(test).is_some_and(|of| of.name == feature.name)
        });
        let counts = count(own, &expected.vacuous);
        if counts != Counts::default() {
            verdict.features.push((feature.name.clone(), counts));
        }
    }
    verdict.failures = failures(&expected.known, results);
    verdict.complaints = complaints(&expected.known, files, results);
    verdict
}

fn count<'a>(
    results: impl Iterator<Item = (&'a String, &'a Ended)>,
    vacuous: &BTreeSet<String>,
) -> Counts {
    let mut counts = Counts::default();
    for (test, ended) in results {
        match ended {
            Ended::Passed if vacuous.contains(test) => counts.vacuous += 1,
            Ended::Passed => counts.passed += 1,
            Ended::Failed => counts.failed += 1,
            Ended::Skipped => counts.skipped += 1,
        }
    }
    counts
}

/// The known failures that occurred in this run, by cause.
fn failures(known: &[Reasoned], results: &BTreeMap<String, Ended>) -> Vec<Reasoned> {
    let failed = |test: &&String| results.get(*test) == Some(&Ended::Failed);
    let met = known.iter().map(|cause| Reasoned {
        reason: cause.reason.clone(),
        tests: cause.tests.iter().filter(failed).cloned().collect(),
    });
    met.filter(|cause| !cause.tests.is_empty()).collect()
}

fn complaints(
    known: &[Reasoned],
    files: &[String],
    results: &BTreeMap<String, Ended>,
) -> Vec<String> {
    let mut complaints = Vec::new();
    let listed: BTreeSet<&String> = known.iter().flat_map(|cause| &cause.tests).collect();
    for (test, ended) in results {
        match (ended, listed.contains(test)) {
            (Ended::Failed, false) => complaints.push(format!("{test} fails and is not listed")),
            (Ended::Passed, true) => {
                complaints.push(format!("{test} passes: remove it from known_failures.toml"));
            }
            (Ended::Skipped, true) => {
                complaints.push(format!("{test} skips itself: remove it from known_failures.toml"));
            }
            (Ended::Failed, true) | (Ended::Passed | Ended::Skipped, false) => {}
        }
    }
    let of_files =
        |test: &&&String| files.iter().any(|file| test.starts_with(&format!("{file}.py::")));
    for test in listed.iter().filter(of_files).filter(|test| !results.contains_key(**test)) {
        complaints.push(format!("{test} is listed and did not run"));
    }
    for cause in known.iter().filter(|cause| cause.reason.trim().is_empty()) {
        complaints.push(format!("{:?} have no reason", cause.tests));
    }
    for file in files {
        if !results.keys().any(|test| test.starts_with(&format!("{file}.py::"))) {
            complaints.push(format!("{file}.py ran no test"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "[[features]]\nname = \"items\"\nfiles = [\"test_a\"]\n\
                        [[features]]\nname = \"batch\"\nfiles = [\"test_b\"]\n";

    fn expected(known: &[&str]) -> Expected {
        let tests = known.iter().map(|test| (*test).to_owned()).collect();
        Expected {
            plan: Plan::parse(PLAN).unwrap(),
            known: vec![Reasoned { reason: "later".to_owned(), tests }],
            vacuous: parse_vacuous("# why\n\ntest_a.py::mocked\n"),
        }
    }

    fn run(known: &[&str], results: &str) -> Verdict {
        judge(&expected(known), &["test_a".to_owned()], &parse_results(results))
    }

    #[test]
    fn a_run_as_expected_has_no_complaints() {
        let results = "passed test_a.py::one\npassed test_a.py::mocked\nfailed test_a.py::two\n\
                       skipped test_a.py::three\n";
        let verdict = run(&["test_a.py::two"], results);
        assert_eq!(verdict.complaints, [""; 0]);
        let counts = Counts { passed: 1, failed: 1, skipped: 1, vacuous: 1 };
        assert_eq!(verdict.features, [("items".to_owned(), counts)]);
        assert_eq!(verdict.total(), counts);
        assert_eq!(verdict.failures.len(), 1);
    }

    #[test]
    fn a_failure_that_nobody_listed_is_an_error() {
        let verdict = run(&[], "failed test_a.py::one\n");
        assert_eq!(verdict.complaints, ["test_a.py::one fails and is not listed"]);
    }

    #[test]
    fn the_list_of_failures_can_only_shrink() {
        let verdict = run(&["test_a.py::one"], "passed test_a.py::one\n");
        assert_eq!(
            verdict.complaints,
            ["test_a.py::one passes: remove it from known_failures.toml"]
        );
        let verdict = run(&["test_a.py::gone"], "passed test_a.py::one\n");
        assert_eq!(verdict.complaints, ["test_a.py::gone is listed and did not run"]);
        // What another file lists is not this run's business.
        assert_eq!(run(&["test_b.py::gone"], "passed test_a.py::one\n").complaints, [""; 0]);
    }

    #[test]
    fn a_file_that_ran_nothing_is_an_error() {
        assert_eq!(run(&[], "").complaints, ["test_a.py ran no test"]);
    }

    #[test]
    fn a_vacuous_test_that_fails_is_a_failure() {
        let verdict = run(&[], "failed test_a.py::mocked\n");
        assert_eq!(verdict.total(), Counts { failed: 1, ..Counts::default() });
        assert_eq!(verdict.complaints.len(), 1);
    }
}
