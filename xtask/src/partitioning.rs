//! Which statement about partitioning is proved by which test.
//!
//! The statements are rows of `docs/partitioning/rows.toml`. A test proves the rows whose
//! ids its name begins with, so the table cannot name a test that does not exist, and a
//! test cannot go unnoticed. So does a case of a program that is written with an official
//! SDK: some statements are about those. A row without a proof must say what it waits for:
//! no row is forgotten.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::conformance::Outcome;

/// The rows, from the repository's root.
pub const ROWS: &str = "docs/partitioning/rows.toml";
/// The table made from them.
pub const TABLE: &str = "docs/partitioning/proof.md";

/// One statement.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub id: String,
    pub says: String,
    /// What its proof waits for.
    pub pending: Option<String>,
}

#[derive(Deserialize)]
struct Rows {
    row: Vec<Row>,
}

pub fn parse_rows(text: &str) -> Result<Vec<Row>> {
    let rows: Rows = toml::from_str(text).context(ROWS)?;
    Ok(rows.row)
}

/// A test and whether it passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    pub name: String,
    pub passed: bool,
}

impl Proof {
    /// Reads a line of a test program's output, if it is the result of a test.
    pub fn from_line(line: &str) -> Option<Proof> {
        let (name, verdict) = line.strip_prefix("test ")?.split_once(" ... ")?;
        let passed = match verdict.trim() {
            "ok" => true,
            "FAILED" => false,
            _ => return None,
        };
        Some(Proof { name: name.to_owned(), passed })
    }

    /// The cases of an SDK's program that name rows.
    pub fn of_cases(outcome: &Outcome) -> Vec<Proof> {
        let folder = outcome.combination.sdk.folder();
        let proof = |name: &str, passed| Proof { name: format!("{folder}::{name}"), passed };
        let failed = outcome.failed.iter().filter_map(|failure| failure.split_once(": "));
        let passed = outcome.passed.iter().map(|name| proof(name, true));
        let all = passed.chain(failed.map(|(name, _)| proof(name, false)));
        all.filter(|proof| !proof.rows().is_empty()).collect()
    }

    /// The rows that its name begins with: `l3` and `p1` of `logical::l3_p1_an_id`.
    pub fn rows(&self) -> Vec<String> {
        let function = self.name.rsplit("::").next().unwrap_or_default();
        function.split('_').take_while(|word| is_row(word)).map(str::to_uppercase).collect()
    }
}

fn is_row(word: &str) -> bool {
    let mut characters = word.chars();
    characters.next().is_some_and(|first| first.is_ascii_lowercase())
        && word.len() > 1
        && characters.all(|digit| digit.is_ascii_digit())
}

/// The table, or what is wrong with it.
pub fn render(rows: &[Row], proofs: &[Proof]) -> Result<String> {
    let mut of_row: BTreeMap<String, Vec<&Proof>> = BTreeMap::new();
    for proof in proofs {
        for id in proof.rows() {
            ensure!(rows.iter().any(|row| row.id == id), "{}: there is no row {id}", proof.name);
            of_row.entry(id).or_default().push(proof);
        }
    }
    let mut table = String::from(HEADING);
    for row in rows {
        let proofs = of_row.get(&row.id).map(Vec::as_slice).unwrap_or_default();
        let (tests, result) = cells(row, proofs)?;
        writeln!(table, "| {} | {} | {tests} | {result} |", row.id, row.says)?;
    }
    let proved = rows.iter().filter(|row| of_row.contains_key(&row.id)).count();
    writeln!(
        table,
        "\n{proved} of {} rows have a proof, {} wait.",
        rows.len(),
        rows.len() - proved
    )?;
    Ok(table)
}

const HEADING: &str = "# Partitioning, statement by statement\n\n\
    What Microsoft's articles on partitioning and horizontal scaling say, and the test that shows it from outside,\n\
    over HTTP, against the built binary: in `crates/server/tests/articles`, and with official SDKs in\n\
    `tests/conformance` (`java::`, `node::`). Written by `cargo xtask partitioning`.\n\n\
    | row | statement | test | result |\n|---|---|---|---|\n";

fn cells(row: &Row, proofs: &[&Proof]) -> Result<(String, String)> {
    let names: Vec<String> = proofs.iter().map(|proof| format!("`{}`", proof.name)).collect();
    let result = match (proofs, &row.pending) {
        ([], Some(pending)) => format!("*pending*: {pending}"),
        ([], None) => anyhow::bail!("row {} has neither a test nor a reason to wait", row.id),
        (proofs, _) if proofs.iter().any(|proof| !proof.passed) => "**failed**".to_owned(),
        (_, Some(pending)) => format!("passed; *pending*: {pending}"),
        (_, None) => "passed".to_owned(),
    };
    Ok((names.join("<br>"), result))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::server::Scheme;
    use crate::conformance::{Combination, Sdk};

    fn row(id: &str, pending: Option<&str>) -> Row {
        Row { id: id.to_owned(), says: "so".to_owned(), pending: pending.map(str::to_owned) }
    }

    fn proof(name: &str, passed: bool) -> Proof {
        Proof { name: name.to_owned(), passed }
    }

    #[test]
    fn a_test_names_its_rows() {
        assert_eq!(proof("logical::l3_p12_an_id_2", true).rows(), ["L3", "P12"]);
        assert_eq!(proof("a_test", true).rows(), [""; 0]);
        assert_eq!(Proof::from_line("test a::l3_x ... ok"), Some(proof("a::l3_x", true)));
        assert_eq!(Proof::from_line("test a::l3_x ... FAILED"), Some(proof("a::l3_x", false)));
        assert_eq!(Proof::from_line("test result: ok. 3 passed"), None);
    }

    #[test]
    fn a_case_of_an_sdk_names_its_rows() {
        let combination = Combination { sdk: Sdk::Java, scheme: Scheme::Http, partitions: 5 };
        let outcome = Outcome {
            combination,
            package: "sdk 1.0".to_owned(),
            passed: vec!["sample1Create".to_owned(), "a8_at_once".to_owned()],
            failed: vec!["a9_buffers: 3 instead of 4: odd".to_owned(), "no reason".to_owned()],
        };
        let expected = [proof("java::a8_at_once", true), proof("java::a9_buffers", false)];
        assert_eq!(Proof::of_cases(&outcome), expected);
        assert_eq!(expected[0].rows(), ["A8"]);
    }

    #[test]
    fn every_row_is_proved_or_waits() {
        let rows = [row("L1", None), row("L2", Some("queries"))];
        let table = render(&rows, &[proof("x::l1_so", true)]).unwrap();
        assert!(table.contains("| L1 | so | `x::l1_so` | passed |"), "{table}");
        assert!(table.contains("| L2 | so |  | *pending*: queries |"), "{table}");
        assert!(render(&rows, &[proof("x::l1_so", false)]).unwrap().contains("**failed**"));
        assert!(render(&rows, &[]).is_err(), "a forgotten row");
        assert!(render(&rows, &[proof("x::l1_l9_so", true)]).is_err(), "an unknown row");
    }
}
