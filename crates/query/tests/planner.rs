//! Our planner beside Microsoft's: what it accepts, refuses and plans.
//!
//! The answers were recorded from the library inside the .NET SDK. Where ours differ,
//! `planner-differences.toml` says why; a difference that no entry covers fails, and so
//! does an entry that covers too much or nothing.
#![allow(clippy::print_stdout, reason = "the figures are the point")]

#[path = "planner/asked.rs"]
mod asked;
#[path = "planner/dice.rs"]
mod dice;
#[path = "planner/differences.rs"]
mod differences;
#[path = "planner/evidence.rs"]
mod evidence;
#[path = "planner/figures.rs"]
mod figures;
#[path = "planner/words.rs"]
mod words;

use std::collections::BTreeMap;
use std::path::Path;

use differences::{Case, Difference};
use figures::Figures;
use model::json::Value;

/// Families with fewer rows are told together.
const FAMILY_ROWS_MIN: usize = 200;

/// What is alike in a family, in percent, does not sink below this; some families are
/// about what is not followed, and have their own.
const FAMILY_FLOOR: f64 = 98.0;
const FAMILY_FLOORS: &[(&str, f64)] = &[("pk.pairs", 97.7)];

/// Families that are told together.
const OTHERS: &str = "all others";

/// Differences that are printed where no entry covers them.
const SHOWN_MAX: usize = 20;

const ENTRIES: &str = include_str!("planner-differences.toml");

#[test]
fn plans_are_those_of_the_library() {
    let corpus = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/conformance/query/planner.jsonl.gz"
    ));
    if !corpus.exists() {
        assert!(std::env::var_os("CI").is_none(), "{} is missing", corpus.display());
        println!("left out: the planner's answers, because ../shared/conformance is not there");
        return;
    }
    let packed = std::fs::read(corpus).expect("the corpus is readable");
    let rows = differences::rows(&packed).expect("the corpus is JSON lines");
    let entries = differences::parse(ENTRIES).expect("the entries are well formed");
    judge(&rows, &entries);
}

fn judge(rows: &[Value], entries: &[Difference]) {
    let mut families: BTreeMap<String, Figures> = BTreeMap::new();
    let mut covered = vec![0_usize; entries.len()];
    let mut open = Vec::new();
    for row in rows.iter().filter(|row| differences::is_counted(row)) {
        let Some(case) = Case::of(row) else { continue };
        let family = row.get("family").and_then(Value::as_str).unwrap_or_default();
        families.entry(family.to_owned()).or_default().add(&case.theirs, &case.fields);
        if case.fields.is_empty() {
            continue;
        }
        match entries.iter().position(|entry| entry.covers(&case)) {
            Some(at) => covered[at] += 1,
            None => open.push(case.to_string()),
        }
    }
    let all = told(&families);
    differences::check(entries, &covered, (all.rows, true))
        .expect("entries cover what they should");
    assert!(open.is_empty(), "{} open:\n{}", open.len(), shown(&open));
    assert!(all.share("accept") >= 99.5, "accept or refuse");
    for field in ["code", "message", "location", "ranges", "text"] {
        assert!(all.share(field) >= 99.0, "{field}");
    }
    assert!(all.everything() >= 98.0, "everything");
}

fn told(families: &BTreeMap<String, Figures>) -> Figures {
    let (mut all, mut small) = (Figures::default(), Figures::default());
    for (family, figures) in families {
        all.join(figures);
        if figures.rows < FAMILY_ROWS_MIN {
            small.join(figures);
        } else {
            tell(family, figures);
        }
    }
    tell(OTHERS, &small);
    tell("everything", &all);
    all
}

fn tell(family: &str, figures: &Figures) {
    let own = FAMILY_FLOORS.iter().find(|(name, _)| *name == family);
    let floor = own.map_or(FAMILY_FLOOR, |(_, floor)| *floor);
    assert!(figures.everything() >= floor, "{family} is below {floor} %");
    let shares: Vec<String> = ["accept", "code", "message", "location", "ranges", "text", "info"]
        .iter()
        .map(|field| format!("{field} {:.2}", figures.share(field)))
        .collect();
    println!(
        "{family}: {} rows, all alike {:.2} %, {}",
        figures.rows,
        figures.everything(),
        shares.join(", ")
    );
}

fn shown(open: &[String]) -> String {
    let shown: Vec<&str> = open.iter().take(SHOWN_MAX).map(String::as_str).collect();
    shown.join("\n")
}
