//! The commands of query scripts.
//!
//! `container DEFINITION` recreates the container. `put ITEM…` stores items, `remove ID
//! KEY` removes one. `query TEXT [key=JSON] [parameters=JSON]` shows all rows and the
//! access path: without ORDER BY they are sorted here, as they have no order. `begin TEXT
//! max=N [approach=scan]` shows the first page and `next` the following ones, with `split`,
//! `merge`, `reopen` and `put` in between. `advance SECONDS` changes the time.
//! `function NAME TEXT` stores a user-defined function.
//!
//! `@x*N@` stands for N times `x`. Update with `UPDATE_GOLDENFILES=1`.

use std::error::Error;
use std::fmt::Write as _;
use std::time::Duration;

use goldenscript::{ArgumentConsumer, Command};
use lab::queries::{Ask, definition};
use model::json::{self, Object, Value};
use model::partition_key::PartitionKey;

use crate::worlds::Worlds;

macro_rules! scripts {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(#[test]
        fn $name() {
            let script = format!("{FOLDER}/{}", stringify!($name));
            goldenscript::run(&mut Script::default(), script).unwrap();
        })*
    };
}

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/query_scripts");

scripts! {
    aggregates composites computed filters functions groups keys long nested order pages policies
    time wide_integers
}

#[test]
fn no_script_is_left_out() {
    let entries = std::fs::read_dir(FOLDER).unwrap();
    let mut found: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    assert_eq!(found, NAMES);
}

#[derive(Default)]
struct Script {
    worlds: Option<Worlds>,
}

type Answer = Result<String, Box<dyn Error>>;

impl goldenscript::Runner for Script {
    type Command = Command;

    fn run(&mut self, command: &Command, _: &goldenscript::Context) -> Answer {
        let mut args = command.consume_args();
        let answer = match command.name.as_str() {
            "container" => self.container(&mut args),
            name => self.worlds.as_mut().ok_or("there is no container")?.obey(name, &mut args),
        };
        args.reject_next()?;
        answer.map(|shown| folded(&shown))
    }
}

impl Script {
    fn container(&mut self, args: &mut ArgumentConsumer<'_>) -> Answer {
        self.worlds = None;
        self.worlds = Some(Worlds::new(&definition(next(args)?))?);
        Ok(String::new())
    }
}

impl Worlds {
    fn obey(&mut self, name: &str, args: &mut ArgumentConsumer<'_>) -> Answer {
        match name {
            "put" => {
                while let Some(item) = args.next_pos() {
                    let item = unfolded(item);
                    self.each(|lab| lab.put(&item))?;
                }
            }
            "remove" => {
                let (id, key) = (next(args)?, PartitionKey::parse_json(next(args)?)?);
                self.each(|lab| lab.remove(id, key.clone()))?;
            }
            "function" => self.create_function(next(args)?, next(args)?)?,
            "query" => return self.query(&ask(args)?),
            "begin" => {
                let rows_max = args.take_key("max").ok_or("how many at once?")?.parse()?;
                let scans = args.take_key("approach") == Some("scan");
                return self.begin(ask(args)?, rows_max, scans);
            }
            "next" => return self.next(),
            "split" => self.split(),
            "merge" => self.merge(),
            "reopen" => self.reopen(),
            "advance" => {
                let seconds = Duration::from_secs(next(args)?.parse()?);
                self.each(|lab| {
                    lab.advance(seconds);
                    Ok(())
                })?;
            }
            _ => return Err(format!("unknown command {name}").into()),
        }
        Ok(String::new())
    }
}

fn ask(args: &mut ArgumentConsumer<'_>) -> Result<Ask, Box<dyn Error>> {
    let key = args.take_key("key").map(PartitionKey::parse_json).transpose()?;
    let parameters = args.take_key("parameters").map(|list| json::parse(list.as_bytes()));
    let mut ask = Ask::new(unfolded(next(args)?));
    ask.parameters = parameters.transpose()?.unwrap_or(Value::Null);
    ask.scope.key = key;
    Ok(ask)
}

fn next<'a>(args: &mut ArgumentConsumer<'a>) -> Result<&'a str, Box<dyn Error>> {
    Ok(args.next_pos().ok_or("there is something missing")?)
}

/// A row without what depends on the number of partitions.
pub(crate) fn shown(row: &Value) -> Value {
    match row {
        Value::Object(object) => {
            let own = object.iter().filter(|(name, _)| !name.starts_with('_'));
            own.map(|(name, member)| (name, shown(member))).collect::<Object>().into()
        }
        Value::Array(items) => items.iter().map(shown).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => row.clone(),
    }
}

/// Writes out `@x*N@`.
fn unfolded(text: &str) -> String {
    let mut output = String::new();
    for (at, part) in text.split('@').enumerate() {
        let run = part.split_once('*').and_then(|(text, count)| Some((text, count.parse().ok()?)));
        match run {
            Some((text, count)) if at % 2 == 1 => output.push_str(&text.repeat(count)),
            _ if at % 2 == 1 => write!(output, "@{part}").unwrap(),
            _ => output.push_str(part),
        }
    }
    output
}

/// Repeated letters from which on they are counted instead of shown.
const RUN_MIN: usize = 20;

/// Writes long runs of a letter as `@x*N@`.
fn folded(text: &str) -> String {
    let mut output = String::new();
    let letters: Vec<char> = text.chars().collect();
    for run in letters.chunk_by(|a, b| a == b) {
        match run {
            [letter, ..] if run.len() >= RUN_MIN => {
                write!(output, "@{letter}*{}@", run.len()).unwrap();
            }
            letters => output.extend(letters),
        }
    }
    output
}
