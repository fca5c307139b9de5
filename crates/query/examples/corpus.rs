//! Judges a folder of query corpora: `corpus FOLDER [--wrong]`.
//!
//! Prints the counts of each file; with `--wrong`, also every row that is wrong.
//! `cargo xtask corpus` runs this.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

#[path = "../tests/corpus/folder.rs"]
mod folder;
#[path = "../tests/corpus/grammar.rs"]
mod grammar;
#[path = "../tests/corpus/indexes.rs"]
mod indexes;
#[path = "../tests/corpus/judge.rs"]
mod judge;
#[path = "../tests/corpus/plans.rs"]
mod plans;
#[path = "../tests/corpus/report.rs"]
mod report;
#[path = "../tests/corpus/results.rs"]
mod results;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(folder) = arguments.next() else {
        eprintln!("usage: corpus FOLDER [--wrong]");
        return ExitCode::FAILURE;
    };
    let shows_wrong = arguments.next().as_deref() == Some("--wrong");
    match judge::judge(Path::new(&folder)) {
        Ok(reports) => {
            for report in &reports {
                println!("{report}");
                if shows_wrong {
                    report.wrong.iter().for_each(|row| println!("  {row}"));
                }
            }
            let sum =
                |count: fn(&report::Report) -> usize| reports.iter().map(count).sum::<usize>();
            let (right, judged) = (sum(|r| r.right), sum(report::Report::judged));
            println!("all: {right} of {judged} right, {} wrong", sum(|r| r.wrong.len()));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
