//! The `orrery` program: reads the command line, wires the layers together and
//! talks to people.
//!
//! Must not know: what the layers decide; it wires them.

mod admin;
mod allocator;
mod backup;
mod backups;
mod banner;
mod bench;
mod cert;
mod certificate;
mod check;
mod compact;
mod connection;
mod counters;
mod data;
mod expirer;
mod front;
mod host;
mod indexer;
mod layout;
mod listener;
mod log;
mod memory;
mod metrics;
mod partitions;
mod remote;
mod restore;
mod rules;
mod scaler;
mod serve;
mod settings;
mod statistics;
mod stop;
mod sweeper;
mod throughput;
mod transport;

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
    Serve(serve::Arguments),
    /// Print the certificate that clients of https:// have to trust, in PEM.
    Cert(cert::Arguments),
    /// Read everything in a data folder and say whether it all agrees.
    ///
    /// Nothing in the folder is changed, but by --reset-time: it may be a snapshot, or one that cannot be written to. It must not be in use.
    Check(check::Arguments),
    /// Give the disk back what was dropped, deleted and replaced in a data folder.
    ///
    /// The folder must not be in use. Takes as long as copying what is kept, and for that
    /// time as much room again, which a server leaves free.
    Compact(compact::Arguments),
    /// Write a consistent copy of everything into a new folder, while the server runs.
    Backup(backup::Arguments),
    /// Make a new data folder from a backup, and check it.
    Restore(restore::Arguments),
    /// Measure durable writes and point reads on this machine.
    Bench(bench::Arguments),
    /// Look at the physical partitions of a container on a running server, split or merge them.
    Partitions(partitions::Arguments),
}

fn main() -> ExitCode {
    let arguments = CommandLine::parse();
    data::keep_private();
    let command = arguments.command.unwrap_or(Command::Serve(arguments.serve));
    if !matches!(command, Command::Serve(_)) {
        log::start(settings::LogLevel::default());
    }
    let outcome = match command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Cert(arguments) => cert::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Compact(arguments) => compact::run(&arguments),
        Command::Backup(arguments) => backup::run(&arguments),
        Command::Restore(arguments) => restore::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Partitions(arguments) => partitions::run(&arguments),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            data::say_error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}
