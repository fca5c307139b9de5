//! `orrery key`: shows which keys a running server has, and replaces them.

use std::process::ExitCode;

use service::identity::AccountKeyKind;

use super::remote::Remote;
use crate::data_dir::{say, say_error};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show which keys there are, and not what they are.
    List {
        #[command(flatten)]
        remote: Remote,
    },
    /// Replace a key by a new one, and print that.
    ///
    /// The old key is refused from the next request on, on every connection, and so are the resource tokens that
    /// were signed with it. Move clients to the other key of the pair first. The server keeps the new one in its data
    /// folder, in the file KEYS, and goes on refusing the old one even if a setting names it.
    Rotate {
        #[arg(value_enum)]
        kind: Kind,
        #[command(flatten)]
        remote: Remote,
    },
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Kind {
    Primary,
    Secondary,
    PrimaryReadOnly,
    SecondaryReadOnly,
}

impl Kind {
    fn of_account(self) -> AccountKeyKind {
        match self {
            Kind::Primary => AccountKeyKind::Primary,
            Kind::Secondary => AccountKeyKind::Secondary,
            Kind::PrimaryReadOnly => AccountKeyKind::PrimaryReadOnly,
            Kind::SecondaryReadOnly => AccountKeyKind::SecondaryReadOnly,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match &arguments.command {
        Command::List { remote } => {
            let keys = tokio.block_on(remote.client().keys())?;
            for kind in AccountKeyKind::ALL {
                let state = if keys[kind.name()] == true { "there" } else { "none" };
                say(&format!("{:18} {state}", kind.name()));
            }
        }
        Command::Rotate { kind, remote } => {
            let kind = kind.of_account();
            let key = tokio.block_on(remote.client().rotate_key(kind))?;
            say_error(&format!("the {} key was replaced; the new one:", kind.name()));
            say(&key);
        }
    }
    Ok(ExitCode::SUCCESS)
}
