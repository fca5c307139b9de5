//! The `orrery` program: reads the command line, wires the layers together and
//! talks to people.
//!
//! Must not know: what the layers decide; it wires them.

mod background;
mod commands;
mod data_dir;
mod http;
mod issuers;
mod keys;
mod log;
mod memory;
mod panics;
mod process;
mod serve;
mod settings;
mod stop;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A database that speaks Azure Cosmos DB's protocols.
///
/// Without a command it serves, on 127.0.0.1:8081 with the emulators' well-known key and with its data in ./orrery-data:
/// official SDKs connect to http://127.0.0.1:8081/ or, with TLS, to https://localhost:8081/.
#[derive(Debug, Parser)]
#[command(name = "orrery", version, args_conflicts_with_subcommands = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: serve::Arguments,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the database. The same as giving no command.
    Serve(Box<serve::Arguments>),
    #[command(flatten)]
    Other(commands::Command),
}

fn main() -> ExitCode {
    let arguments = CommandLine::parse();
    data_dir::keep_private();
    let command = arguments.command.unwrap_or(Command::Serve(Box::new(arguments.serve)));
    let outcome = match command {
        Command::Serve(arguments) => serve::run(*arguments),
        Command::Other(command) => {
            log::start(settings::LogLevel::default());
            command.run()
        }
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            data_dir::say_error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
