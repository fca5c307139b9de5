//! `orrery script`: the scripts of a container on a running server, from and to files.

mod files;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use operator::{OperatorClientError, ScriptKind};
use serde_json::Value;

use super::remote::Remote;
use crate::data_dir::{say, say_error};
use files::ScriptFile;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the scripts of a container, with what each has done since the server started.
    List {
        #[command(flatten)]
        target: Target,
        /// Print the server's answer as it is.
        #[arg(long)]
        json: bool,
    },
    /// Print the text of a script.
    Show {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        named: Named,
    },
    /// Store scripts from files, each under the name of its file; those of the same name are
    /// replaced.
    ///
    /// PROCEDURE.js, FUNCTION.js and TRIGGER.TIME.OPERATION.js, such as
    /// validate.pre.create.js, in the folders procedures, functions and triggers of a folder
    /// that is given, or in such a folder, or one by one. All files are read before the first
    /// is stored. What is no JavaScript is refused with its line and column, and the others
    /// are stored all the same.
    #[command(verbatim_doc_comment)]
    Upload {
        #[command(flatten)]
        target: Target,
        /// Files, and folders of files.
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// What the files are [default: by the name of their folder, else procedures].
        #[arg(long, value_enum)]
        kind: Option<KindName>,
    },
    /// Delete a script.
    Delete {
        #[command(flatten)]
        target: Target,
        #[command(flatten)]
        named: Named,
    },
    /// Run a stored procedure and print its result.
    ///
    /// What it printed with console.log and what it cost go to the standard error.
    Run {
        #[command(flatten)]
        target: Target,
        /// The name of the procedure.
        name: String,
        /// The partition key: a JSON value, or a list for hierarchical keys. A text may
        /// stand without quotes.
        #[arg(long, value_name = "JSON", value_parser = key_value)]
        partition_key: Option<Value>,
        /// Arguments of the procedure: JSON values.
        #[arg(value_name = "JSON", value_parser = json_value)]
        arguments: Vec<Value>,
    },
}

#[derive(Debug, clap::Args)]
struct Target {
    /// The container, as dbs/DATABASE/colls/CONTAINER.
    container: String,
    #[command(flatten)]
    remote: Remote,
}

#[derive(Debug, clap::Args)]
struct Named {
    /// The name of the script.
    name: String,
    #[arg(long, value_enum, default_value_t = KindName::Procedure)]
    kind: KindName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum KindName {
    Procedure,
    Trigger,
    Function,
}

impl KindName {
    fn kind(self) -> ScriptKind {
        match self {
            KindName::Procedure => ScriptKind::Procedure,
            KindName::Trigger => ScriptKind::Trigger,
            KindName::Function => ScriptKind::Function,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(execute(&arguments.command))
}

async fn execute(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::List { target, json } => {
            let answer = target.remote.client().scripts(&target.container).await?;
            say(&if *json { answer.to_string() } else { listed(&answer) });
        }
        Command::Show { target, named: Named { name, kind } } => {
            let client = target.remote.client();
            let answer = client.script(&target.container, kind.kind(), name).await?;
            say(answer["body"].as_str().unwrap_or_default());
        }
        Command::Upload { target, paths, kind } => {
            return upload(target, &files::read(paths, kind.map(KindName::kind))?).await;
        }
        Command::Delete { target, named: Named { name, kind } } => {
            target.remote.client().delete_script(&target.container, kind.kind(), name).await?;
        }
        Command::Run { target, name, partition_key, arguments } => {
            let (client, key) = (target.remote.client(), partition_key.as_ref());
            let answer = client.run_procedure(&target.container, name, key, arguments).await?;
            return Ok(show_run(name, &answer));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Stores all files that are JavaScript, and says of each what became of it.
async fn upload(target: &Target, files: &[ScriptFile]) -> anyhow::Result<ExitCode> {
    let (client, mut refused) = (target.remote.client(), false);
    for ScriptFile { path, script } in files {
        let path = path.display();
        match client.store_script(&target.container, script).await {
            Ok(answer) => {
                let created = answer["created"].as_bool() == Some(true);
                let done = if created { "created" } else { "replaced" };
                say(&format!("{done} {} {}", answer["kind"].as_str().unwrap_or("?"), script.name));
            }
            Err(error @ OperatorClientError::Script { .. }) => {
                refused = true;
                say_error(&format!("{path}:{error}"));
            }
            Err(error @ OperatorClientError::Refused(_)) => {
                refused = true;
                say_error(&format!("{path}: {error}"));
            }
            Err(error) => return Err(error).with_context(|| format!("{path} was not stored")),
        }
    }
    Ok(if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn show_run(name: &str, answer: &Value) -> ExitCode {
    for line in answer["log"].as_str().unwrap_or_default().lines() {
        say_error(line);
    }
    let charge = answer["requestUnits"].as_f64().unwrap_or_default();
    let failed = &answer["failed"];
    if failed.is_null() {
        say(&answer["result"].to_string());
        say_error(&format!("{charge:.2} RU"));
        return ExitCode::SUCCESS;
    }
    let message = failed["message"].as_str().unwrap_or_default();
    let place = match (failed["line"].as_u64(), failed["column"].as_u64()) {
        (Some(line), Some(column)) => format!("{name}:{line}:{column}"),
        _ => name.to_owned(),
    };
    say_error(&format!("{place}: {message}\n{charge:.2} RU, and nothing was changed"));
    ExitCode::FAILURE
}

/// The scripts in columns.
fn listed(answer: &Value) -> String {
    let scripts = answer["scripts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let width = |script: &Value| script["name"].as_str().unwrap_or_default().chars().count();
    let width = scripts.iter().map(width).max().unwrap_or_default();
    let mut lines = Vec::new();
    for script in scripts {
        let text = |name: &str| script[name].as_str().unwrap_or_default();
        let number = |name: &str| script[name].as_f64().unwrap_or_default();
        let mut line = format!(
            "{:<9}  {:<width$}  {} bytes, {} runs, {} failed, {:.2} RU, {:.3} s",
            text("kind"),
            text("name"),
            script["bytes"],
            script["runs"],
            script["failures"],
            number("requestUnits"),
            number("seconds"),
        );
        if !script["triggerType"].is_null() {
            let (time, operation) = (text("triggerType"), text("triggerOperation"));
            let written = write!(line, "  ({time}, {operation})");
            written.expect("a string takes all that is written to it");
        }
        lines.push(line);
    }
    lines.join("\n")
}

fn json_value(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))
}

/// A list of values, as clients write it.
fn key_value(text: &str) -> Result<Value, String> {
    let value = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
    match value {
        Value::Array(_) => Ok(value),
        Value::Object(_) => Err("a partition key is a value or a list of values".to_owned()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Ok(Value::Array(vec![value]))
        }
    }
}
