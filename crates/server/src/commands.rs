//! The subcommands of the program besides serving: each works on a data folder that is not
//! being served, or asks a running server.

mod backup;
mod bench;
mod cert;
mod check;
mod compact;
mod key;
mod partitions;
mod remote;
mod restore;
mod script;
mod upgrade;

use std::process::ExitCode;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Print the certificate that clients of https:// have to trust, in PEM.
    Cert(cert::Arguments),
    /// Read everything in a data folder and check that it is consistent.
    ///
    /// Nothing in the folder is changed, except by --reset-time: it may be a snapshot, or
    /// read-only. It must not be in use.
    Check(check::Arguments),
    /// Give the disk back what was dropped, deleted and replaced in a data folder.
    ///
    /// The folder must not be in use. Takes as long as copying what is kept, and
    /// temporarily as much space again, which a server leaves free.
    Compact(compact::Arguments),
    /// Write a consistent copy of everything into a new folder, while the server runs.
    Backup(backup::Arguments),
    /// Make a new data folder from a backup, and check it.
    Restore(restore::Arguments),
    /// Carry a data folder over from the version of the format before this one.
    ///
    /// The folder must not be in use. Its store is only read: a new one is made beside it,
    /// checked, and put in its place; the old one is kept as store.vN. Takes about as long
    /// as indexing everything again, and meanwhile up to twice the space of the old store
    /// beside it. An upgrade that was interrupted goes on when the command is given again.
    Upgrade(upgrade::Arguments),
    /// Measure durable writes and point reads on this machine.
    Bench(bench::Arguments),
    /// Look at the keys of a running server, or replace one.
    Key(key::Arguments),
    /// Look at the physical partitions of a container on a running server, split or merge them.
    Partitions(partitions::Arguments),
    /// List, show, upload, delete and run the scripts of a container on a running server.
    Script(script::Arguments),
}

impl Command {
    pub(crate) fn run(&self) -> anyhow::Result<ExitCode> {
        match self {
            Command::Cert(arguments) => cert::run(arguments),
            Command::Check(arguments) => check::run(arguments),
            Command::Compact(arguments) => compact::run(arguments),
            Command::Backup(arguments) => backup::run(arguments),
            Command::Restore(arguments) => restore::run(arguments),
            Command::Upgrade(arguments) => upgrade::run(arguments),
            Command::Bench(arguments) => bench::run(arguments),
            Command::Key(arguments) => key::run(arguments),
            Command::Partitions(arguments) => partitions::run(arguments),
            Command::Script(arguments) => script::run(arguments),
        }
    }
}
