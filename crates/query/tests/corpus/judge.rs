//! Which file is judged how. Files are known by the beginnings of their names, so
//! that other parts of the same corpora can lie beside them.

use std::path::Path;

use model::json::Value;

use super::folder::{Folder, flag};
use super::report::{Report, Verdict};
use super::{grammar, indexes, plans, results};

/// Judges all corpora of a folder.
pub(crate) fn judge(path: &Path) -> Result<Vec<Report>, String> {
    let folder = Folder::new(path);
    let names = folder.corpora().map_err(|error| format!("{}: {error}", path.display()))?;
    let mut reports = Vec::new();
    for name in names {
        reports.extend(judge_file(&folder, &name)?);
    }
    Ok(reports)
}

fn judge_file(folder: &Folder, name: &str) -> Result<Vec<Report>, String> {
    let is = |stem: &str| name.starts_with(stem);
    let rows = folder.rows(name)?;
    if is("doc_") {
        let upstream = |row: &Value| flag(row, "ci_validated");
        let parts = [("checked upstream", true), ("not checked upstream", false)];
        let part = |(label, checked)| {
            let rows = rows.iter().filter(|row| upstream(row) == checked);
            report(format!("{name}, {label}"), rows, results::documentation)
        };
        return Ok(parts.into_iter().map(part).collect());
    }
    let judged = |judge: &dyn Fn(&Value) -> Verdict| Ok(vec![report(name, rows.iter(), judge)]);
    if is("must_parse") {
        judged(&grammar::accept)
    } else if is("parse_accept") {
        judged(&grammar::accept_client_grammar)
    } else if is("parse_reject") {
        judged(&grammar::reject)
    } else if is("must_reject") {
        judged(&grammar::reject_as_service)
    } else if is("sqlobject") {
        judged(&grammar::canonical)
    } else if is("query_plan") {
        judged(&plans::judge)
    } else if is("aggregate_mixed") {
        let documents = folder.documents("aggregate_mixed_input.json")?;
        judged(&|row| results::mixed_types(row, &documents))
    } else if is("group_by") {
        let documents = folder.documents("group_by_input.json")?;
        judged(&|row| results::groups(row, &documents))
    } else if is("linq_results") {
        judged(&results::linq)
    } else if is("client_engine") {
        judged(&|row| results::client_engine(row, folder))
    } else if is("vscode_fixtures") {
        judged(&|row| results::fixture(row, folder))
    } else if is("subpartition_results") {
        judged(&results::subpartition)
    } else if is("index_metrics") {
        judged(&indexes::judge)
    } else {
        judged(&|_| Verdict::LeftOut("not about the language"))
    }
}

fn report<'r>(
    name: impl Into<String>,
    rows: impl Iterator<Item = &'r Value>,
    judge: impl Fn(&Value) -> Verdict,
) -> Report {
    let mut report = Report::new(name);
    rows.for_each(|row| report.add(judge(row)));
    report
}
