//! Answers plan requests: a JSON object per line in, our answer per line out.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

#[path = "../tests/planner/asked.rs"]
mod asked;

use std::io::{BufRead, Write};

fn main() -> std::io::Result<()> {
    let stdin = std::io::stdin().lock();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in stdin.lines() {
        let line = line?;
        match model::json::parse(line.as_bytes()) {
            Ok(row) => writeln!(
                out,
                "{{\"ours\":{},\"theirs\":{}}}",
                asked::answer(&row),
                asked::recorded(&row).unwrap_or(model::json::Value::Null)
            )?,
            Err(error) => writeln!(out, "{{\"bad\":\"{error}\"}}")?,
        }
    }
    Ok(())
}
