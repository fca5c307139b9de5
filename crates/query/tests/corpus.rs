//! How much of the recorded corpora the language gets right, against what it got
//! right before: the counts may rise and never fall.
//!
//! The corpora lie outside the repository. `cargo xtask corpus` judges any folder
//! in the same form and shows what is wrong.
#![allow(clippy::print_stdout, reason = "the counts are the point")]

#[path = "corpus/folder.rs"]
mod folder;
#[path = "corpus/grammar.rs"]
mod grammar;
#[path = "corpus/indexes.rs"]
mod indexes;
#[path = "corpus/judge.rs"]
mod judge;
#[path = "corpus/plans.rs"]
mod plans;
#[path = "corpus/report.rs"]
mod report;
#[path = "corpus/results.rs"]
mod results;

use std::path::Path;

use report::Report;

/// Rows that may be wrong per file; files that are not named may have none.
const WRONG_MAX: &[(&str, usize)] = &[
    // The documentation spells a message in two ways and rounds a number.
    ("doc_selfcontained.jsonl, not checked upstream", 2),
    // Examples over other documents than those of the row.
    ("doc_with_input.jsonl, not checked upstream", 15),
];

#[test]
fn corpora_are_judged_as_before() {
    let folder =
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/query"));
    if !folder.exists() {
        assert!(std::env::var_os("CI").is_none(), "{} is missing", folder.display());
        println!("left out: the query corpora, because ../shared/conformance is not there");
        return;
    }
    let reports = judge::judge(folder).expect("the corpora are readable");
    assert!(!reports.is_empty());
    for report in &reports {
        println!("{report}");
        let most = WRONG_MAX.iter().find(|(name, _)| *name == report.name).map_or(0, |(_, n)| *n);
        assert!(report.wrong.len() <= most, "{}", details(report));
    }
}

fn details(report: &Report) -> String {
    format!("{report}\n{}", report.wrong.join("\n"))
}
