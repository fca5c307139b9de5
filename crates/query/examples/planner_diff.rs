//! Random queries against Microsoft's planner: `planner_diff COUNT SEED [functions]`.
//! `cargo xtask planner-diff` runs it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

#[path = "../tests/planner/diff.rs"]
mod diff;

use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(open) => {
            println!("{open} differences that no entry covers");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// How many differences no entry covers.
fn run() -> Result<usize, String> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |what: &str| {
        let text = arguments.next().ok_or_else(|| format!("{what} is missing"))?;
        text.parse::<u64>().map_err(|error| format!("{what}: {error}"))
    };
    let (count, seed) = (number("the count")?, number("the seed")?);
    let count = usize::try_from(count).map_err(|error| error.to_string())?;
    diff::available()?;
    if arguments.next().is_some() {
        let different = diff::run_functions(seed, count)?;
        different.iter().for_each(|told| println!("{told}"));
        return Ok(different.len());
    }
    let outcome = diff::run(seed, count, |so_far| {
        eprint!("\r{} of {count} queries, {} differences", so_far.asked, so_far.open);
    })?;
    eprintln!();
    for told in &outcome.told {
        println!("{told}");
    }
    println!("seed {seed}: {outcome}");
    Ok(outcome.open)
}
