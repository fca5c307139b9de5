//! Random queries against Microsoft's planner; `cargo xtask planner-diff` runs it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

#[path = "../tests/planner/asked.rs"]
mod asked;
#[path = "../tests/planner/dice.rs"]
mod dice;
#[path = "../tests/planner/diff.rs"]
mod diff;
#[path = "../tests/planner/differences.rs"]
mod differences;
#[path = "../tests/planner/library.rs"]
mod library;
#[path = "../tests/planner/made.rs"]
mod made;
#[path = "../tests/planner/mutated.rs"]
mod mutated;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let number = |text: Option<String>| text.and_then(|text| text.parse().ok());
    let (count, seed) = (number(args.next()).unwrap_or(1000), number(args.next()).unwrap_or(1));
    let Some(program) = library::program() else { return ExitCode::FAILURE };
    let packed = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/query/planner.jsonl.gz")).unwrap();
    let rows = differences::rows(&packed).unwrap();
    let rows: Vec<_> = rows.into_iter().filter(|r| r.get("build").is_none() && r.get("spec").is_none() && asked::is_counted(r) && asked::text(r).len() < 400).collect();
    let entries = differences::parse(include_str!("../tests/planner-differences.toml")).unwrap();
    let mut library = library::Library::new(program);
    let out = diff::run(&mut library, &rows, &entries, (seed, usize::try_from(count).unwrap()), |o| {
        eprintln!("{} asked, {} accepted, {} broken, {} covered, {} open", o.asked, o.accepted, o.broken, o.covered, o.open);
    }).unwrap();
    for told in &out.told { println!("{told}"); }
    ExitCode::SUCCESS
}
