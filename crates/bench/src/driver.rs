//! Operations as requests and answers.
//!
//! A driver chooses what each connection does next, and knows what to make of the answers: a
//! query goes on with its continuation, a read before an update is followed by the update.
//! An answer that was not expected ends the run: a failed request is no request served.

use anyhow::{Result, bail, ensure};
use runtime::{Random as _, SeededRandom};

use crate::answer::Answer;
use crate::client::{Progress, Work};
use crate::operation::{Distribution, Mix, Operation};
use crate::request::{BATCH, Requests};
use crate::zipf::Zipf;

/// Numbers of documents that batches create, far from all others.
const BATCHES: u64 = 1 << 40;
/// Numbers of documents that bulk requests create.
const BULKS: u64 = 1 << 41;
/// Items that a scan of YCSB asks for at most.
const SCANNED_MAX: u64 = 100;

/// What has been written to a server so far.
#[derive(Clone, Debug)]
pub(crate) struct Stock {
    /// The number of the next document that is created alone.
    next: u64,
    batches: u64,
    bulks: u64,
    version: u64,
}

impl Stock {
    pub(crate) fn new() -> Stock {
        Stock { next: 0, batches: BATCHES, bulks: BULKS, version: 1 }
    }
}

/// One operation of a connection.
#[derive(Clone, Debug, Default)]
enum Action {
    #[default]
    None,
    Create(u64),
    Read,
    Write,
    Batch,
    Feed,
    Query {
        text: String,
        key: Option<String>,
    },
    ReadThenReplace(u64),
}

#[derive(Clone, Debug, Default)]
struct Slot {
    action: Action,
    /// Where the connection is in the change feed.
    etag: Vec<u8>,
}

pub(crate) struct Driver<'a> {
    operation: Operation,
    requests: &'a mut Requests,
    stock: &'a mut Stock,
    random: SeededRandom,
    zipf: Option<Zipf>,
    left: u64,
    slots: Vec<Slot>,
    pub(crate) rows: u64,
    pub(crate) pages: u64,
}

impl<'a> Driver<'a> {
    /// Does `count` operations.
    pub(crate) fn new(
        operation: Operation,
        requests: &'a mut Requests,
        stock: &'a mut Stock,
        connections: usize,
        count: u64,
    ) -> Driver<'a> {
        let loaded = requests.documents().loaded();
        let needs_zipf = matches!(operation, Operation::Ycsb(mix, distribution) if distribution == Distribution::Zipfian || mix == Mix::D);
        let zipf = needs_zipf.then(|| Zipf::new(loaded));
        let random = SeededRandom::new(stock.next ^ stock.version << 32);
        let slots = vec![Slot::default(); connections];
        Driver { operation, requests, stock, random, zipf, left: count, slots, rows: 0, pages: 0 }
    }

    /// A number below the loaded ones.
    fn choose(&self, distribution: Distribution) -> u64 {
        let loaded = self.requests.documents().loaded();
        match (distribution, &self.zipf) {
            (Distribution::Zipfian, Some(zipf)) => zipf.scattered(&self.random, loaded),
            _ => self.random.next_u64() % loaded,
        }
    }

    /// One of the newest documents that are certainly there.
    fn newest(&self) -> u64 {
        let in_flight = self.slots.iter().filter_map(|slot| {
            if let Action::Create(number) = slot.action { Some(number) } else { None }
        });
        let end = in_flight.min().unwrap_or(self.stock.next);
        let back = self.zipf.as_ref().map_or(0, |zipf| zipf.rank(&self.random));
        end.saturating_sub(1 + back)
    }

    fn create(&mut self, out: &mut Vec<u8>) -> Action {
        let number = self.stock.next;
        self.stock.next += 1;
        self.requests.create(number, out);
        Action::Create(number)
    }

    fn read(&mut self, number: u64, out: &mut Vec<u8>) -> Action {
        self.requests.read(number, out);
        Action::Read
    }

    fn replace(&mut self, number: u64, out: &mut Vec<u8>) -> Action {
        self.stock.version += 1;
        self.requests.replace(number, self.stock.version, out);
        Action::Write
    }

    fn query(&mut self, text: String, key: Option<String>, out: &mut Vec<u8>) -> Action {
        self.requests.query(&text, key.as_deref(), None, out);
        Action::Query { text, key }
    }

    fn mixed(&mut self, mix: Mix, distribution: Distribution, out: &mut Vec<u8>) -> Action {
        let percent = self.random.next_u64() % 100;
        let number = self.choose(distribution);
        match mix {
            Mix::A if percent < 50 => self.replace(number, out),
            Mix::B if percent < 5 => self.replace(number, out),
            Mix::D | Mix::E if percent < 5 => self.create(out),
            Mix::D => self.read(self.newest(), out),
            Mix::E => {
                let top = 1 + self.random.next_u64() % SCANNED_MAX;
                self.query(format!("SELECT TOP {top} * FROM c WHERE c.n >= {number}"), None, out)
            }
            Mix::F if percent < 50 => {
                self.requests.read(number, out);
                Action::ReadThenReplace(number)
            }
            Mix::A | Mix::B | Mix::C | Mix::F => self.read(number, out),
        }
    }

    fn write_next(&mut self, etag: &[u8], out: &mut Vec<u8>) -> Action {
        let uniform = self.choose(Distribution::Uniform);
        match self.operation {
            Operation::Create => self.create(out),
            Operation::Read => self.read(uniform, out),
            Operation::Replace => self.replace(uniform, out),
            Operation::Upsert => {
                self.stock.version += 1;
                self.requests.upsert(uniform, self.stock.version, out);
                Action::Write
            }
            Operation::Patch => {
                self.requests.patch(uniform, out);
                Action::Write
            }
            Operation::Batch => {
                self.requests.batch(self.stock.batches, out);
                self.stock.batches += BATCH;
                Action::Batch
            }
            Operation::Bulk => {
                self.stock.bulks = self.requests.bulk(self.stock.bulks, out);
                Action::Batch
            }
            Operation::Feed => {
                self.requests.feed(etag, out);
                Action::Feed
            }
            Operation::Query(query) => {
                let (text, key) = query.text(self.requests.documents());
                self.query(text, key, out)
            }
            Operation::Ycsb(mix, distribution) => self.mixed(mix, distribution, out),
        }
    }

    /// Goes on with a query, or ends it.
    fn paged(
        &mut self,
        (text, key): (&str, Option<&str>),
        answer: &Answer<'_>,
        out: &mut Vec<u8>,
    ) -> Progress {
        self.pages += 1;
        let count =
            answer.header("x-ms-item-count").and_then(|count| std::str::from_utf8(count).ok());
        self.rows += count.and_then(|count| count.parse().ok()).unwrap_or(0);
        match answer.header("x-ms-continuation").filter(|token| !token.is_empty()) {
            Some(token) => {
                self.requests.query(text, key, Some(token), out);
                Progress::Continues
            }
            None => Progress::Complete,
        }
    }

    /// Remembers where the feed goes on; at its end it is read from its beginning again.
    fn fed(&mut self, slot: &mut Slot, answer: &Answer<'_>, out: &mut Vec<u8>) -> Result<Progress> {
        if answer.status == 304 {
            ensure!(!slot.etag.is_empty(), "the change feed is empty");
            slot.etag.clear();
            self.requests.feed(&slot.etag, out);
            return Ok(Progress::Continues);
        }
        slot.etag = answer.header("etag").unwrap_or_default().to_vec();
        Ok(Progress::Complete)
    }
}

impl Work for Driver<'_> {
    fn begin(&mut self, connection: usize, out: &mut Vec<u8>) -> Result<bool> {
        if self.left == 0 {
            return Ok(false);
        }
        self.left -= 1;
        let etag = self.slots.get(connection).map(|slot| slot.etag.clone()).unwrap_or_default();
        let action = self.write_next(&etag, out);
        if let Some(slot) = self.slots.get_mut(connection) {
            slot.action = action;
        }
        Ok(true)
    }

    fn answered(
        &mut self,
        connection: usize,
        answer: &Answer<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Progress> {
        let Some(slot) = self.slots.get_mut(connection) else { bail!("an unknown connection") };
        let mut slot = std::mem::take(slot);
        check(&slot.action, answer)?;
        let progress = match &slot.action {
            Action::Query { text, key } => {
                let (text, key) = (text.clone(), key.clone());
                self.paged((&text, key.as_deref()), answer, out)
            }
            Action::Feed => self.fed(&mut slot, answer, out)?,
            Action::ReadThenReplace(number) => {
                slot.action = self.replace(*number, out);
                Progress::Continues
            }
            Action::None | Action::Create(_) | Action::Read | Action::Write | Action::Batch => {
                slot.action = Action::None;
                Progress::Complete
            }
        };
        if let Some(kept) = self.slots.get_mut(connection) {
            *kept = slot;
        }
        Ok(progress)
    }
}

fn check(action: &Action, answer: &Answer<'_>) -> Result<()> {
    let expected: &[u16] = match action {
        Action::Create(_) => &[201],
        Action::Write => &[200, 201],
        Action::Feed => &[200, 304],
        Action::None
        | Action::Read
        | Action::Batch
        | Action::Query { .. }
        | Action::ReadThenReplace(_) => &[200],
    };
    if !expected.contains(&answer.status) {
        let body = answer.body.get(..answer.body.len().min(300)).unwrap_or_default();
        bail!("status {} for {action:?}: {}", answer.status, String::from_utf8_lossy(body));
    }
    Ok(())
}
