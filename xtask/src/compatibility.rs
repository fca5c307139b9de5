//! `COMPATIBILITY.md`, rendered from the results of the last runs.
//!
//! Nobody writes that page by hand: what it says was seen, or it is not said.

use std::fmt::Write as _;

use crate::conformance::{Outcome, Sdk};
use crate::report::Tally;
use crate::suite::{Counts, Verdict};

/// The page, from the repository's root.
pub const PATH: &str = "COMPATIBILITY.md";

/// Everything that the page is made of.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Of all SDKs, in order.
    pub outcomes: Vec<Outcome>,
    /// The package whose suite ran, and what it showed.
    pub suite: Option<(String, Verdict)>,
}

/// Renders the page.
pub fn render(seen: &Seen) -> String {
    let mut page = String::from(
        "# Compatibility\n\n\
         What the official SDKs, unmodified, make of Orrery. This page is written by `cargo xtask compatibility`\n\
         from the results of `cargo xtask conformance` and `cargo xtask suite python`; do not edit it.\n",
    );
    conformance(&mut page, &seen.outcomes);
    if let Some((package, verdict)) = &seen.suite {
        suite(&mut page, package, verdict);
    }
    page
}

/// Writing to a text cannot fail.
macro_rules! line {
    ($page:expr, $($format:tt)*) => {
        writeln!($page, $($format)*).expect("a text takes every line")
    };
}

fn conformance(page: &mut String, outcomes: &[Outcome]) {
    line!(page, "\n## Programs with the official SDKs\n");
    line!(
        page,
        "Each program (`tests/conformance/`) runs against a fresh server with its data on disk, then again"
    );
    line!(page, "after a restart.\n");
    line!(page, "| language | package | scheme | partitions | passed | failed |");
    line!(page, "|---|---|---|---|---|---|");
    for outcome in outcomes {
        let Tally { passed, failed } = outcome.tally();
        let (of, package) = (outcome.combination, &outcome.package);
        let (language, partitions) = (of.sdk.language(), of.partitions);
        line!(
            page,
            "| {language} | {package} | {} | {partitions} | {passed} | {failed} |",
            of.scheme
        );
    }
    line!(page, "");
    for sdk in Sdk::ALL {
        if let Some(caveat) = sdk.caveat() {
            line!(page, "- {}: {caveat}.", sdk.language());
        }
    }
    for outcome in outcomes.iter().filter(|outcome| !outcome.failed.is_empty()) {
        line!(page, "\n{}:\n", outcome.combination);
        for failure in &outcome.failed {
            line!(page, "- {failure}");
        }
    }
}

fn suite(page: &mut String, package: &str, verdict: &Verdict) {
    line!(page, "\n## Microsoft's own tests of the Python SDK ({package})\n");
    line!(
        page,
        "*Vacuous* tests pass against a server that knows nothing as well: they prove nothing and are in no"
    );
    line!(page, "other column. *Skipped* tests skip themselves.\n");
    line!(page, "| feature | passed | failed | skipped | vacuous |");
    line!(page, "|---|---|---|---|---|");
    for (feature, counts) in &verdict.features {
        row(page, feature, *counts);
    }
    row(page, "**all**", verdict.total());
    line!(page, "\n### Why tests fail\n");
    for cause in &verdict.failures {
        line!(page, "- {}: {}", cause.tests.len(), cause.reason);
    }
    line!(
        page,
        "\nThe tests are named in `tests/conformance/python/known_failures.toml`, a list that may only shrink."
    );
    line!(page, "\n### What does not run\n");
    for reasoned in &verdict.excluded {
        line!(page, "- {} tests: {}", reasoned.tests.len(), reasoned.reason);
    }
    for pending in &verdict.pending {
        line!(page, "- {} files: {}", pending.files.len(), pending.reason);
    }
}

fn row(page: &mut String, name: &str, counts: Counts) {
    let Counts { passed, failed, skipped, vacuous } = counts;
    line!(page, "| {name} | {passed} | {failed} | {skipped} | {vacuous} |");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::Combination;
    use crate::conformance::server::Scheme;
    use crate::suite::Reasoned;

    fn outcome(failed: &[&str]) -> Outcome {
        Outcome {
            combination: Combination { sdk: Sdk::Rust, scheme: Scheme::Http, partitions: 5 },
            package: "sdk 1.0".to_owned(),
            passed: vec!["create".to_owned()],
            failed: failed.iter().map(|failure| (*failure).to_owned()).collect(),
        }
    }

    #[test]
    fn every_outcome_has_a_line_and_every_failure_its_reason() {
        let seen = Seen { outcomes: vec![outcome(&["read: 404"])], suite: None };
        let page = render(&seen);
        assert!(page.contains("| Rust | sdk 1.0 | http | 5 | 1 | 1 |"), "{page}");
        assert!(page.contains("- read: 404"), "{page}");
        assert!(page.contains("- Rust: no certificate"), "{page}");
        assert!(!page.contains("Microsoft"), "{page}");
    }

    #[test]
    fn a_suite_is_summed_up_and_its_failures_are_explained() {
        let counts = Counts { passed: 3, failed: 2, skipped: 1, vacuous: 4 };
        let tests = ["a".to_owned(), "b".to_owned()].into();
        let verdict = Verdict {
            features: vec![("items".to_owned(), counts), ("batch".to_owned(), counts)],
            failures: vec![Reasoned { reason: "later".to_owned(), tests }],
            ..Verdict::default()
        };
        let page = render(&Seen { outcomes: vec![], suite: Some(("sdk 1.0".to_owned(), verdict)) });
        assert!(page.contains("| items | 3 | 2 | 1 | 4 |"), "{page}");
        assert!(page.contains("| **all** | 6 | 4 | 2 | 8 |"), "{page}");
        assert!(page.contains("- 2: later"), "{page}");
    }
}
