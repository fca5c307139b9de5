//! Reading a folder of corpora: JSON lines, and data sets beside them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use model::json::{self, Value};

/// A folder in the form of the conformance data.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// Data sets that were read before: many rows ask for the same one.
    read: RefCell<BTreeMap<String, Rc<Vec<Value>>>>,
}

impl Folder {
    pub(crate) fn new(path: &Path) -> Folder {
        Folder { path: path.to_owned(), read: RefCell::default() }
    }

    /// The names of the corpora in it, sorted.
    pub(crate) fn corpora(&self) -> std::io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name.ends_with(".jsonl") {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// The rows of a corpus; lines that are no JSON are told apart.
    pub(crate) fn rows(&self, name: &str) -> Result<Vec<Value>, String> {
        let text = self.text(name)?;
        let row = |(at, line): (usize, &str)| {
            json::parse(line.as_bytes()).map_err(|error| format!("{name}:{}: {error}", at + 1))
        };
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        lines.map(row).collect()
    }

    /// The documents of a data set: a list, or a list under `data`.
    pub(crate) fn documents(&self, name: &str) -> Result<Rc<Vec<Value>>, String> {
        if let Some(documents) = self.read.borrow().get(name) {
            return Ok(Rc::clone(documents));
        }
        let text = self.text(name)?;
        let value = json::parse(text.as_bytes()).map_err(|error| format!("{name}: {error}"))?;
        let list = value.as_array().or_else(|| value.get("data")?.as_array());
        let list = list.ok_or_else(|| format!("{name}: no list of documents"))?;
        let documents = Rc::new(list.to_vec());
        self.read.borrow_mut().insert(name.to_owned(), Rc::clone(&documents));
        Ok(documents)
    }

    fn text(&self, name: &str) -> Result<String, String> {
        std::fs::read_to_string(self.path.join(name)).map_err(|error| format!("{name}: {error}"))
    }
}

/// A member of a row that is a text; empty if it is not there.
pub(crate) fn text<'r>(row: &'r Value, name: &str) -> &'r str {
    row.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn list<'r>(row: &'r Value, name: &str) -> &'r [Value] {
    row.get(name).and_then(Value::as_array).unwrap_or_default()
}

pub(crate) fn flag(row: &Value, name: &str) -> bool {
    row.get(name).and_then(Value::as_bool).unwrap_or(false)
}
