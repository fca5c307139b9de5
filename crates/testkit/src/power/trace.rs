//! What a recorded process did to the files of one folder, and what it printed.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

/// One event. Paths are relative to the folder, which itself is the empty path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Opened {
        path: String,
        inode: u64,
        created: bool,
        emptied: bool,
        folder: bool,
    },
    Written {
        inode: u64,
        position: u64,
        bytes: Arc<[u8]>,
    },
    Resized {
        inode: u64,
        len: u64,
    },
    /// What happened to the file or folder up to here is durable once the sync has ended.
    SyncBegun {
        inode: u64,
        number: u64,
    },
    SyncEnded {
        number: u64,
    },
    Renamed {
        from: String,
        to: String,
    },
    Unlinked {
        path: String,
    },
    FolderMade {
        path: String,
    },
    FolderRemoved {
        path: String,
    },
    /// On the standard output.
    Said {
        text: String,
    },
}

/// All events of one or several processes, in order.
#[derive(Debug)]
pub struct Trace {
    pub events: Vec<Event>,
}

impl Trace {
    /// Reads what the recorder wrote about the folder `root`.
    pub fn read(log: &Path, root: &Path) -> Result<Trace> {
        let bytes = std::fs::read(log).with_context(|| format!("cannot read {}", log.display()))?;
        let root = root.to_str().context("the folder has a name in UTF-8")?;
        let (mut records, mut events) = (Records { bytes: &bytes }, Vec::new());
        while !records.bytes.is_empty() {
            events.push(records.next(root).context("a record is cut off")??);
        }
        Ok(Trace { events })
    }
}

/// As `recorder.c` writes them: kind (1), two numbers (8), two texts with their lengths (4).
struct Records<'a> {
    bytes: &'a [u8],
}

const CREATED: u64 = 1;
const EMPTIED: u64 = 2;
const FOLDER: u64 = 4;

impl<'a> Records<'a> {
    /// `None` when the record does not end.
    fn next(&mut self, root: &str) -> Option<Result<Event>> {
        let kind = *self.take(1)?.first()?;
        let (first, second) = (self.number()?, self.number()?);
        let (one, two) = (self.text()?, self.text()?);
        Some(event(kind, first, second, one, two, root))
    }

    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(head)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_ne_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let len = u32::from_ne_bytes(self.take(4)?.try_into().ok()?);
        self.take(usize::try_from(len).ok()?)
    }
}

fn event(kind: u8, first: u64, second: u64, one: &[u8], two: &[u8], root: &str) -> Result<Event> {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).context("a text is not UTF-8");
    let path = |bytes: &[u8]| -> Result<String> {
        let path = text(bytes)?;
        let below = path.strip_prefix(root).with_context(|| format!("{path} is elsewhere"))?;
        Ok(below.trim_matches('/').to_owned())
    };
    Ok(match kind {
        1 => Event::Opened {
            path: path(one)?,
            inode: first,
            created: second & CREATED != 0,
            emptied: second & EMPTIED != 0,
            folder: second & FOLDER != 0,
        },
        2 => Event::Written { inode: first, position: second, bytes: one.into() },
        3 => Event::Resized { inode: first, len: second },
        4 => Event::SyncBegun { inode: first, number: second },
        5 => Event::SyncEnded { number: second },
        6 => Event::Renamed { from: path(one)?, to: path(two)? },
        7 => Event::Unlinked { path: path(one)? },
        8 => Event::FolderMade { path: path(one)? },
        9 => Event::FolderRemoved { path: path(one)? },
        10 => Event::Said { text: text(one)? },
        _ => bail!("there is no record of kind {kind}"),
    })
}
