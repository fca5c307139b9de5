//! `orrery partitions`: shows and changes physical partitions of a running server.

use std::process::ExitCode;

use operator::HalveBy;
use serde_json::Value;

use super::remote::Remote;
use crate::data_dir::say;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show the physical partitions of a container.
    List {
        #[command(flatten)]
        target: Target,
    },
    /// Cut a physical partition in two.
    Split {
        #[command(flatten)]
        target: Target,
        /// The partition key range to cut, as `list` shows it.
        range: String,
        /// What to cut in half.
        #[arg(long, value_enum, default_value_t = Halve::Hashes)]
        halve: Halve,
    },
    /// Join neighbouring physical partitions into one.
    Merge {
        #[command(flatten)]
        target: Target,
        /// The partition key ranges to join, two or more.
        #[arg(required = true, num_args = 2..)]
        ranges: Vec<String>,
    },
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Halve {
    /// The hashes, and with them the throughput.
    Hashes,
    /// The bytes that are stored.
    Bytes,
}

#[derive(Debug, clap::Args)]
struct Target {
    /// The container, as dbs/DATABASE/colls/CONTAINER.
    container: String,
    #[command(flatten)]
    remote: Remote,
    /// Print the server's answer as it is.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (target, answer) = match &arguments.command {
            Command::List { target } => {
                (target, target.remote.client().partitions(&target.container).await?)
            }
            Command::Split { target, range, halve } => {
                let halve = match halve {
                    Halve::Hashes => HalveBy::Hashes,
                    Halve::Bytes => HalveBy::Bytes,
                };
                (target, target.remote.client().split(&target.container, range, halve).await?)
            }
            Command::Merge { target, ranges } => {
                (target, target.remote.client().merge(&target.container, ranges).await?)
            }
        };
        show(target, &answer);
        Ok(ExitCode::SUCCESS)
    })
}

fn show(target: &Target, answer: &Value) {
    if target.json {
        return say(&answer.to_string());
    }
    if let Some(pause) = answer["pauseMs"].as_f64() {
        let old = names(&answer["old"]);
        say(&format!("{old} became the following; writes waited {pause:.1} ms"));
    }
    let partitions = [&answer["partitions"], &answer["new"]];
    for partition in partitions.into_iter().filter_map(Value::as_array).flatten() {
        let text = |name: &str| partition[name].as_str().unwrap_or_default().to_owned();
        let parents = match names(&partition["parents"]) {
            none if none.is_empty() => String::new(),
            parents => format!("  from {parents}"),
        };
        say(&format!(
            "{:>4}  [{}, {})  {} items, {} bytes{parents}",
            text("id"),
            text("minInclusive"),
            text("maxExclusive"),
            partition["items"],
            partition["bytes"],
        ));
    }
}

fn names(ids: &Value) -> String {
    let ids = ids.as_array().into_iter().flatten().filter_map(Value::as_str);
    ids.collect::<Vec<_>>().join(", ")
}
