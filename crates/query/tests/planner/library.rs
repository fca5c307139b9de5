//! Microsoft's planner as a process that answers one line for each line.
#![allow(clippy::disallowed_methods, reason = "a pipe is written to and read from at once")]

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use model::json::{self, Object, Value};
use model::partition_key::{KeyComponent, PartitionKey, PartitionKeyDefinition};

/// A request that is not answered for so long never will be.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The library, behind the program that asks it.
pub(crate) struct Library {
    program: PathBuf,
    running: Option<Running>,
}

struct Running {
    child: Child,
    answers: Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where the program is, if it is there.
pub(crate) fn program() -> Option<PathBuf> {
    let shared = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/dotnet/planner.py");
    Some(PathBuf::from(shared)).filter(|path| path.exists())
}

impl Library {
    pub(crate) fn new(program: PathBuf) -> Library {
        Library { program, running: None }
    }

    /// What the library answers to each request, in the form of a corpus; `None` where it
    /// breaks down, which it does for some.
    pub(crate) fn answers(&mut self, requests: &[Value]) -> Result<Vec<Option<Value>>, String> {
        let mut answers = Vec::with_capacity(requests.len());
        while let Some(rest) = requests.get(answers.len()..).filter(|rest| !rest.is_empty()) {
            let before = answers.len();
            self.ask(rest, &mut answers)?;
            if answers.len() < requests.len() {
                self.running = None;
                answers.push(None);
            }
            if answers.len() == before + 1 && requests.len() > 1 && before == 0 {
                self.probe()?;
            }
        }
        Ok(answers)
    }

    /// Fails if the library does not answer the plainest query either.
    fn probe(&mut self) -> Result<(), String> {
        let plain = Object::from_iter([("query", "SELECT * FROM c")]).into();
        let mut answers = Vec::new();
        self.ask(std::slice::from_ref(&plain), &mut answers)?;
        if answers.is_empty() { Err("the library does not answer".to_owned()) } else { Ok(()) }
    }

    fn ask(&mut self, rows: &[Value], answers: &mut Vec<Option<Value>>) -> Result<(), String> {
        if self.running.is_none() {
            self.running = Some(start(&self.program).map_err(|error| error.to_string())?);
        }
        let Some(running) = &mut self.running else { return Ok(()) };
        let Some(mut input) = running.child.stdin.take() else { return Ok(()) };
        let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
        let writer = std::thread::spawn(move || {
            // A library that broke down takes no more.
            let _ = input.write_all(lines.as_bytes()).and_then(|()| input.flush());
            input
        });
        for row in rows {
            let Ok(line) = running.answers.recv_timeout(SILENCE_MAX) else { return Ok(()) };
            let answer = json::parse(line.as_bytes()).map_err(|error| error.to_string())?;
            answers.push(Some(with_answer(row, &answer)));
        }
        running.child.stdin = writer.join().ok();
        Ok(())
    }
}

fn start(program: &std::path::Path) -> std::io::Result<Running> {
    let mut command = Command::new(program);
    command.arg("--worker").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let (sender, answers) = mpsc::channel();
    if let Some(output) = child.stdout.take() {
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                // The library itself says something now and then.
                if !line.starts_with('{') {
                    continue;
                }
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
    }
    Ok(Running { child, answers })
}

/// The row of a corpus that the answer to a request makes.
fn with_answer(request: &Value, answer: &Value) -> Value {
    let definition = request.get("pk").and_then(|pk| PartitionKeyDefinition::parse(pk).ok());
    let mut answer = answer.as_object().cloned().unwrap_or_default();
    let ranges = answer.get("plan").and_then(|plan| plan.get("queryRanges"));
    if let (Some(definition), Some(ranges)) = (definition, ranges.and_then(Value::as_array)) {
        let mut places: Vec<Value> =
            ranges.iter().map(|range| on_ring(range, &definition)).collect();
        places.sort_by_key(Value::to_string);
        answer.insert("epkRanges", places);
    }
    let mut row = request.as_object().cloned().unwrap_or_default();
    row.insert("answer", answer);
    row.into()
}

/// A range of keys as the range of the ring that it is.
fn on_ring(range: &Value, definition: &PartitionKeyDefinition) -> Value {
    let told = |min: String, max: String, own: bool| {
        let mut object = Object::new();
        object.insert("min", min);
        object.insert("max", max);
        object.insert("isMinInclusive", true);
        object.insert("isMaxInclusive", own);
        Value::from(object)
    };
    let min = range.get("min");
    if min != range.get("max") {
        return told(String::new(), "FF".to_owned(), false);
    }
    let key = min.filter(|min| min.as_array().is_some_and(|all| !all.is_empty()));
    let Some(key) = key.and_then(Value::as_array).map(key_of) else {
        return told(String::new(), String::new(), true);
    };
    if key.components().len() == definition.paths().len() {
        let epk = definition.epk(&key).map_or_else(|_| "?".to_owned(), |epk| epk.to_string());
        return told(epk.clone(), epk, true);
    }
    definition.prefix_range(&key).map_or_else(
        |_| range.clone(),
        |places| told(places.min.to_string(), places.max.to_string(), false),
    )
}

/// Arrays and objects are no keys: they count as undefined.
fn key_of(values: &[Value]) -> PartitionKey {
    let component = |value: &Value| match value {
        Value::Null => KeyComponent::Null,
        Value::Bool(truth) => KeyComponent::Bool(*truth),
        Value::Number(number) => KeyComponent::Number(number.as_f64()),
        Value::String(text) => KeyComponent::String(text.clone()),
        Value::Array(_) | Value::Object(_) => KeyComponent::Undefined,
    };
    values.iter().map(component).collect()
}
