//! The `orrery` program: reads the command line, wires the layers together and
//! talks to people.
//!
//! Must not know: what the layers decide; it wires them.

mod bench;
mod check;
mod data;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A database that speaks Azure Cosmos DB's protocols.
///
/// The network comes with the next version; today the program can check a data
/// folder and measure what the core does on this machine.
#[derive(Debug, Parser)]
#[command(name = "orrery", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Read everything in a data folder and say whether it all agrees.
    Check(check::Arguments),
    /// Measure durable writes and point reads on this machine.
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).init();
    let outcome = match Arguments::parse().command {
        Command::Check(arguments) => check::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            data::say_error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
