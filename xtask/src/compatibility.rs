//! `COMPATIBILITY.md`, rendered from the results of the last runs.
//!
//! That page is never written by hand: what it says was observed, or it is not said.

use std::fmt::Write as _;

use crate::conformance::server::Scheme;
use crate::conformance::{Combination, Outcome, Sdk};
use crate::report::Tally;
use crate::suite::{Counts, Verdict};

/// The page, from the repository's root.
pub const PATH: &str = "COMPATIBILITY.md";

/// Everything that the page is made of.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Of all SDKs, in order.
    pub outcomes: Vec<Outcome>,
    /// The package whose suite ran, and its results.
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
    line!(page, "after a restart. The numbers are those of the cases that passed.\n");
    columns(page, outcomes);
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

/// A column for each SDK, a line for each scheme and number of partitions.
fn columns(page: &mut String, outcomes: &[Outcome]) {
    let sdks =
        Sdk::ALL.into_iter().filter(|sdk| outcomes.iter().any(|it| it.combination.sdk == *sdk));
    let sdks: Vec<Sdk> = sdks.collect();
    let mut row = |name: &str, cell: &dyn Fn(Sdk) -> String| {
        let cells: Vec<String> = sdks.iter().map(|sdk| cell(*sdk)).collect();
        line!(page, "| {name} | {} |", cells.join(" | "));
    };
    row("", &|sdk| sdk.language().to_owned());
    row("---", &|_| "---".to_owned());
    let of = |sdk| outcomes.iter().find(move |outcome| outcome.combination.sdk == sdk);
    row("package", &|sdk| of(sdk).map_or_else(String::new, |outcome| outcome.package.clone()));
    let mut kinds: Vec<(Scheme, u32)> =
        outcomes.iter().map(|it| (it.combination.scheme, it.combination.partitions)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for (scheme, partitions) in kinds {
        let plural = if partitions == 1 { "" } else { "s" };
        row(&format!("{scheme}, {partitions} partition{plural}"), &|sdk| {
            let of = Combination { sdk, scheme, partitions };
            outcomes.iter().find(|outcome| outcome.combination == of).map_or_else(String::new, cell)
        });
    }
}

fn cell(outcome: &Outcome) -> String {
    let Tally { passed, failed } = outcome.tally();
    if failed == 0 { passed.to_string() } else { format!("{passed} of {}", passed + failed) }
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
    use crate::suite::Reasoned;

    fn outcome(sdk: Sdk, partitions: u32, failed: &[&str]) -> Outcome {
        Outcome {
            combination: Combination { sdk, scheme: Scheme::Http, partitions },
            package: "sdk 1.0".to_owned(),
            passed: vec!["create".to_owned()],
            failed: failed.iter().map(|failure| (*failure).to_owned()).collect(),
        }
    }

    #[test]
    fn every_sdk_has_a_column_and_every_failure_its_reason() {
        let outcomes = vec![
            outcome(Sdk::Rust, 1, &[]),
            outcome(Sdk::Rust, 5, &["read: 404"]),
            outcome(Sdk::Dotnet, 1, &[]),
            outcome(Sdk::Dotnet, 10, &[]),
        ];
        let page = render(&Seen { outcomes, suite: None });
        let table = "|  | Rust | .NET |\n\
                     | --- | --- | --- |\n\
                     | package | sdk 1.0 | sdk 1.0 |\n\
                     | http, 1 partition | 1 | 1 |\n\
                     | http, 5 partitions | 1 of 2 |  |\n\
                     | http, 10 partitions |  | 1 |\n";
        assert!(page.contains(table), "{page}");
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
