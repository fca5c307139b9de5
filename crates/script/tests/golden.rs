//! Transcripts of scripts and what they do.
//!
//! Commands: `document JSON…` stores documents with `"pk":"a"`; `script NAME TEXT` parses a
//! script; `call NAME [ARGUMENTS]` runs it as a procedure, `pre NAME OPERATION [BODY]` and
//! `post NAME OPERATION [BODY] [ANSWER]` as a trigger, `function NAME ARGUMENTS…` as a
//! function, once for each array. Options of a run: `accepts=N` operations, `patience=N`
//! questions whether to go on, `ticks=N`, `memory=BYTES`, `calls=N`, `pages=N`, `log=BYTES`,
//! `result=BYTES`. `documents` shows what is stored.
//!
//! A run shows its result, then what it wrote, the log, and what it used if that is of
//! interest (tag `usage`). After a fault nothing is kept. Update with `UPDATE_GOLDENFILES=1`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[path = "golden/memory.rs"]
mod memory;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;

use goldenscript::{Argument, Command};
use memory::{Memory, surroundings};
use script::{
    Ended, Fault, Script, ScriptLimits, ScriptTask, StoredFunction, Thrown, TriggerOperation,
};

#[test]
fn scripts() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
    let mut scripts: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    for script in scripts {
        goldenscript::run(&mut World::default(), &script)
            .unwrap_or_else(|error| panic!("{}: {error}", script.display()));
    }
}

#[derive(Default)]
struct World {
    host: Memory,
    scripts: BTreeMap<String, Script>,
}

impl goldenscript::Runner for World {
    type Command = Command;

    fn run(
        &mut self,
        command: &Command,
        context: &goldenscript::Context,
    ) -> Result<String, Box<dyn Error>> {
        let shows_usage = context.tags.iter().any(|tag| tag == "usage");
        match command.name.as_str() {
            "document" => {
                for text in words(command) {
                    self.host.put(serde_json::from_str(text)?)?;
                }
                Ok(String::new())
            }
            "documents" => Ok(lines(self.host.documents.values())),
            "script" => self.compile(command),
            "call" => {
                let arguments = words(command).nth(1).unwrap_or_default();
                self.perform(command, &ScriptTask::Procedure { arguments }, shows_usage)
            }
            "pre" => {
                let body = words(command).nth(2);
                let operation = operation(command)?;
                self.perform(command, &ScriptTask::PreTrigger { operation, body }, shows_usage)
            }
            "post" => {
                let (body, answer) = (words(command).nth(2), words(command).nth(3));
                let operation = operation(command)?;
                self.perform(
                    command,
                    &ScriptTask::PostTrigger { operation, body, answer },
                    shows_usage,
                )
            }
            "function" => self.call_function(command),
            other => Err(format!("there is no command {other}").into()),
        }
    }
}

impl World {
    fn compile(&mut self, command: &Command) -> Result<String, Box<dyn Error>> {
        let mut words = words(command);
        let (name, text) = (words.next().unwrap(), words.next().unwrap());
        match Script::compile(name, text) {
            Ok(script) => {
                self.scripts.insert(name.to_owned(), script);
                Ok(String::new())
            }
            Err(fault) => Ok(describe(&fault)),
        }
    }

    fn script(&self, command: &Command) -> Result<&Script, Box<dyn Error>> {
        let name = words(command).next().unwrap();
        self.scripts.get(name).ok_or_else(|| format!("there is no script {name}").into())
    }

    fn perform(
        &mut self,
        command: &Command,
        task: &ScriptTask<'_>,
        shows_usage: bool,
    ) -> Result<String, Box<dyn Error>> {
        let mut host = self.host.clone();
        host.staged.clear();
        host.patience = option(command, "patience")?;
        host.accepts = option(command, "accepts")?.map_or(u32::MAX, |count: u32| count + 1);
        let limits = limits(command)?;
        let ended = script::run(self.script(command)?, task, &surroundings(), limits, host);
        let shown = show(&ended, shows_usage);
        if ended.result.is_ok() {
            self.host = ended.host;
        }
        Ok(shown)
    }

    fn call_function(&mut self, command: &Command) -> Result<String, Box<dyn Error>> {
        let mut host = self.host.clone();
        host.patience = option(command, "patience")?;
        let mut function = match StoredFunction::new(self.script(command)?, limits(command)?, host)
        {
            Ok(function) => function,
            Err(fault) => return Ok(describe(&fault)),
        };
        let mut out = Vec::new();
        for arguments in words(command).skip(1) {
            out.push(match function.call(arguments) {
                Ok(value) => value.unwrap_or_else(|| "undefined".to_owned()),
                Err(fault) => describe(&fault),
            });
        }
        out.push(format!("{} calls", function.calls()));
        Ok(lines(&out))
    }
}

fn limits(command: &Command) -> Result<ScriptLimits, Box<dyn Error>> {
    let all = ScriptLimits::default();
    Ok(ScriptLimits {
        ticks_max: option(command, "ticks")?.unwrap_or(all.ticks_max),
        memory_bytes_max: option(command, "memory")?.unwrap_or(all.memory_bytes_max),
        calls_max: option(command, "calls")?.unwrap_or(all.calls_max),
        pages_max: option(command, "pages")?.unwrap_or(all.pages_max),
        log_bytes_max: option(command, "log")?.unwrap_or(all.log_bytes_max),
        result_bytes_max: option(command, "result")?.unwrap_or(all.result_bytes_max),
        ..all
    })
}

fn show(ended: &Ended<Memory>, shows_usage: bool) -> String {
    let mut out = String::new();
    match &ended.result {
        Ok(body) => {
            writeln!(out, "→ {}", body.as_deref().unwrap_or("undefined")).unwrap();
            for write in &ended.host.staged {
                writeln!(out, "{write}").unwrap();
            }
        }
        Err(fault) => writeln!(out, "{}", describe(fault)).unwrap(),
    }
    for line in ended.log.lines() {
        writeln!(out, "log: {line}").unwrap();
    }
    if shows_usage {
        let usage = ended.usage;
        writeln!(out, "{} calls, {} pages", usage.calls, usage.pages).unwrap();
    }
    out
}

fn describe(fault: &Fault) -> String {
    if let Fault::Thrown(thrown) = fault {
        return format!("threw {}", thrown_lines(thrown));
    }
    if let Fault::Aborted(thrown) = fault {
        return format!("aborted with {}", thrown_lines(thrown));
    }
    format!("fault: {fault}")
}

fn thrown_lines(thrown: &Thrown) -> String {
    let mut out = if thrown.name.is_empty() { String::new() } else { format!("{}: ", thrown.name) };
    out.push_str(&thrown.message);
    if let Some(number) = thrown.number {
        write!(out, " (number {number})").unwrap();
    }
    for frame in &thrown.frames {
        write!(out, "\n  at {} {}", frame.function, frame.position).unwrap();
    }
    out
}

fn lines<T: ToString>(values: impl IntoIterator<Item = T>) -> String {
    values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>().join("\n")
}

fn words(command: &Command) -> impl Iterator<Item = &str> {
    command.args.iter().filter_map(|argument| {
        if let Argument::Positional(word) = argument { Some(word.as_str()) } else { None }
    })
}

fn option<T: std::str::FromStr>(command: &Command, name: &str) -> Result<Option<T>, Box<dyn Error>>
where
    T::Err: Error + 'static,
{
    for argument in &command.args {
        if let Argument::KeyValue(key, value) = argument
            && key == name
        {
            return Ok(Some(value.parse()?));
        }
    }
    Ok(None)
}

fn operation(command: &Command) -> Result<TriggerOperation, Box<dyn Error>> {
    let word = words(command).nth(1).unwrap_or_default();
    let all = [
        TriggerOperation::Create,
        TriggerOperation::Replace,
        TriggerOperation::Upsert,
        TriggerOperation::Delete,
    ];
    all.into_iter()
        .find(|operation| operation.name().eq_ignore_ascii_case(word))
        .ok_or_else(|| format!("there is no operation {word}").into())
}
