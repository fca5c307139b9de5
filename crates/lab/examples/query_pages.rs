//! Prints what this build answers to random queries, one line for each page. A `diff` with
//! the output of another build shows what a change to the query engine changed: rows,
//! charges, cursors.
//!
//! `query_pages SEED CONTAINERS QUERIES [ITEMS_MAX] [rows]`
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its output is what it is for")]

use std::io::{BufWriter, Write};

use lab::queries::transcript::{self, Detail};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise: u64| {
        arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    };
    let (seed, containers, queries) = (number(0, 1), number(1, 10), number(2, 50));
    let items_max = usize::try_from(number(3, 60)).unwrap_or(usize::MAX);
    let shows_rows = arguments.iter().any(|argument| argument == "rows");
    let detail = if shows_rows { Detail::Rows } else { Detail::Hash };
    let mut out = BufWriter::new(std::io::stdout().lock());
    let (mut pages, mut failed) = (0, Ok(()));
    for seed in seed..seed + containers {
        let queries = usize::try_from(queries).unwrap_or(usize::MAX);
        pages += transcript::write(seed, items_max, queries, detail, &mut |line| {
            if failed.is_ok() {
                failed = writeln!(out, "{line}");
            }
        });
    }
    eprintln!("{pages} pages");
    failed
}
