//! One client and one set of figures for every question about speed.
//!
//! `cargo xtask bench load` drives built servers over HTTP with a client that costs a few
//! microseconds per request, and reads what each operation took from `/proc`: processor time
//! by thread, context switches, bytes written, memory. Several servers take turns, so that a
//! busy moment of the machine does not hit one alone.
//!
//! Everything is on that a server has on in production: signatures, the default index, an
//! fsync before each answer. What is off is said at the top of each report.
//!
//! Must not know: production; no crate may need it outside its tests.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a tool that prints figures")]

mod answer;
mod callgrind;
mod client;
mod designs;
mod disk;
mod document;
mod driver;
mod instructions;
mod latency;
mod load;
mod measure;
mod operation;
mod process;
mod raw;
mod report;
mod request;
mod server;
mod sign;
mod system_calls;
mod target;
mod zipf;

use std::ffi::OsString;

use anyhow::Result;
use clap::Parser;

/// Measures servers, by whole loads and by single operations
#[derive(Debug, Parser)]
#[command(name = "bench", bin_name = "cargo xtask bench")]
enum Cli {
    /// Loads documents over HTTP, then measures every operation
    Load(load::Options),
    /// Counts the instructions and allocations of each operation, with callgrind
    Instructions(instructions::Options),
    /// Puts the documents straight through service, partition, storage and engine
    Raw(raw::Options),
    /// Writes and queries the index terms of documents in several layouts, side by side
    IndexDesigns(designs::Options),
}

/// Runs the tool with a command line, whose first word is the program's name.
///
/// # Errors
/// When a server does not start, or answers what was not expected.
pub fn run(words: impl IntoIterator<Item = OsString>) -> Result<()> {
    match Cli::parse_from(words) {
        Cli::Load(options) => load::run(&options),
        Cli::Instructions(options) => instructions::run(&options),
        Cli::Raw(options) => raw::run(&options),
        Cli::IndexDesigns(options) => designs::run(&options),
    }
}
