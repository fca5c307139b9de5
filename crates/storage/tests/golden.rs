//! Scripts that run on every backend; any difference between them fails.
//!
//! Commands: `submit SESSION [key=value | key]…` (a key alone is deleted), `view NAME`,
//! `drop NAME`, `get VIEW KEY…`, `scan VIEW [start=K] [end=K] [prefix=K] [rows=N]
//! [bytes=N] [backward]`, `counters`, `verify`, `reopen`, `close`. Keys and values may
//! hold `\xNN`. Update with `UPDATE_GOLDENFILES=1`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use goldenscript::{Argument, Command, Context};
use runtime::Runtime;
use storage::local::{self, LocalConfig};
use storage::{
    Chunk, Direction, KeyRange, ScanLimit, Store, View, WriteBatch, WriteSession, memory,
};
use tempfile::TempDir;

#[test]
fn scripts() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
    let mut scripts: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    for script in scripts {
        goldenscript::run(&mut Mirror::new(), &script)
            .unwrap_or_else(|error| panic!("{}: {error}", script.display()));
    }
}

/// Runs every command on all backends.
struct Mirror {
    worlds: Vec<World>,
}

impl Mirror {
    fn new() -> Mirror {
        Mirror { worlds: vec![World::memory(), World::local()] }
    }
}

impl goldenscript::Runner for Mirror {
    type Command = Command;

    fn run(&mut self, command: &Command, _context: &Context) -> Result<String, Box<dyn Error>> {
        let mut answers = self.worlds.iter_mut().map(|world| {
            let answer = world.run(command).map_err(|error| error.to_string());
            (world.name, answer)
        });
        let (first_name, first) = answers.next().ok_or("no backend")?;
        for (name, answer) in answers {
            assert_eq!(answer, first, "{name} differs from {first_name} at {command}");
        }
        Ok(first?)
    }
}

/// One backend and what the script has opened on it.
struct World {
    name: &'static str,
    folder: Option<TempDir>,
    store: Arc<dyn Store>,
    sessions: BTreeMap<String, Box<dyn WriteSession>>,
    views: BTreeMap<String, Box<dyn View>>,
}

impl World {
    fn memory() -> World {
        World::new("memory", None, memory::create())
    }

    fn local() -> World {
        let folder = tempfile::tempdir().unwrap();
        let store = local::create(folder.path(), LocalConfig::default(), &Runtime::real());
        World::new("local", Some(folder), store.unwrap())
    }

    fn new(name: &'static str, folder: Option<TempDir>, store: Arc<dyn Store>) -> World {
        World { name, folder, store, sessions: BTreeMap::new(), views: BTreeMap::new() }
    }

    fn run(&mut self, command: &Command) -> Result<String, Box<dyn Error>> {
        match command.name.as_str() {
            "submit" => self.submit(command),
            "view" => self.open_view(command),
            "drop" => self.drop_view(command),
            "get" => self.get(command),
            "scan" => self.scan(command),
            "counters" => Ok(self.counters()),
            "verify" => Ok(self.verify()?),
            "reopen" => self.reopen(),
            "close" => Ok(self.store.close().map(|()| "closed\n".to_owned())?),
            name => Err(format!("unknown command {name}").into()),
        }
    }

    fn submit(&mut self, command: &Command) -> Result<String, Box<dyn Error>> {
        let mut args = command.consume_args();
        let name = args.next_pos().ok_or("which session?")?.to_owned();
        let mut batch = WriteBatch::new();
        for arg in args {
            match arg {
                Argument::KeyValue(key, value) => batch.put(bytes(key), bytes(value)),
                Argument::Positional(key) => batch.delete(bytes(key)),
                other => return Err(format!("unexpected {other}").into()),
            }
        }
        let session = self.sessions.entry(name).or_insert_with(|| self.store.write_session());
        Ok(format!("{:?}\n", session.submit(batch).wait()).to_lowercase())
    }

    fn open_view(&mut self, command: &Command) -> Result<String, Box<dyn Error>> {
        let name = command.consume_args().next_pos().ok_or("which view?")?.to_owned();
        self.views.insert(name, self.store.view()?);
        Ok(String::new())
    }

    fn drop_view(&mut self, command: &Command) -> Result<String, Box<dyn Error>> {
        let name = command.consume_args().next_pos().ok_or("which view?")?;
        self.views.remove(name).ok_or("no such view")?;
        Ok(String::new())
    }

    fn get(&mut self, command: &Command) -> Result<String, Box<dyn Error>> {
        let mut args = command.consume_args();
        let view = self.view(args.next_pos())?;
        let mut keys = Vec::new();
        while let Some(key) = args.next_pos() {
            keys.push(bytes(key));
        }
        let mut output = String::new();
        for (key, many) in keys.iter().zip(view.multi_get(&keys)?) {
            assert_eq!(view.get(key)?, many, "get and multi_get differ");
            let value = many.map_or("none".to_owned(), |value| show(&value));
            writeln!(output, "{} = {value}", show(key))?;
        }
        Ok(output)
    }

    fn scan(&mut self, command: &Command) -> Result<String, Box<dyn Error>> {
        let mut args = command.consume_args();
        let view = self.view(args.next_pos())?;
        let mut range = args
            .take_key("prefix")
            .map_or(KeyRange::all(), |prefix| KeyRange::prefix(&bytes(prefix)));
        if let Some(start) = args.take_key("start") {
            range.start = bytes(start);
        }
        if let Some(end) = args.take_key("end") {
            range.end = Some(bytes(end));
        }
        let mut limit = ScanLimit::default();
        if let Some(rows) = args.take_key("rows") {
            limit.rows = rows.parse()?;
        }
        if let Some(bytes) = args.take_key("bytes") {
            limit.bytes = bytes.parse()?;
        }
        let direction = match args.next_pos() {
            None => Direction::Forward,
            Some("backward") => Direction::Backward,
            Some(other) => return Err(format!("unexpected {other}").into()),
        };
        args.reject_next()?;
        Ok(show_chunk(&view.scan(&range, direction, limit)?))
    }

    fn counters(&self) -> String {
        let counters = self.store.counters();
        format!(
            "batches submitted {} durable {}, commits {}, keys {}, bytes {}\n",
            counters.batches_submitted,
            counters.batches_durable,
            counters.commits,
            counters.keys,
            counters.bytes
        )
    }

    fn verify(&self) -> Result<String, storage::StorageError> {
        let report = self.store.verify()?;
        Ok(format!("rows {} bytes {}\n", report.rows, report.bytes))
    }

    /// Memory cannot be reopened, so there only the handles go.
    fn reopen(&mut self) -> Result<String, Box<dyn Error>> {
        self.sessions.clear();
        self.views.clear();
        if let Some(folder) = &self.folder {
            self.store.close()?;
            self.store = local::open(folder.path(), LocalConfig::default(), &Runtime::real())?;
        }
        Ok(String::new())
    }

    fn view(&self, name: Option<&str>) -> Result<&dyn View, Box<dyn Error>> {
        let view = name.and_then(|name| self.views.get(name)).ok_or("which view?")?;
        Ok(view.as_ref())
    }
}

fn show_chunk(chunk: &Chunk) -> String {
    let mut output = String::new();
    for (key, value) in &chunk.rows {
        writeln!(output, "{} = {}", show(key), show(value)).unwrap();
    }
    match &chunk.rest {
        None => output.push_str("end\n"),
        Some(rest) => {
            let end = rest.end.as_deref().map_or("…".to_owned(), show);
            writeln!(output, "rest [{}, {end})", show(&rest.start)).unwrap();
        }
    }
    output
}

fn show(bytes: &[u8]) -> String {
    if bytes.is_empty() { "(empty)".to_owned() } else { bytes.escape_ascii().to_string() }
}

/// Text with `\xNN` for single bytes.
fn bytes(text: &str) -> Bytes {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(digits, 16).expect("two hexadecimal digits"));
        bytes.extend_from_slice(rest.as_bytes());
    }
    bytes.into()
}
