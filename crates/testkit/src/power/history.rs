//! What a recorded process writes: batches that follow from a seed and their number.
//!
//! One session submits them in order, so the history is linear, and an intact store that
//! holds batch `n` holds exactly what [`state_after`] `n` says.

use std::collections::BTreeMap;

use anyhow::{Result, bail, ensure};
use bytes::Bytes;
use runtime::{Random, SeededRandom};
use storage::{Direction, KeyRange, ScanLimit, Store, WriteBatch};

/// Holds the number of the newest batch.
const COUNT: &str = "count";

/// Prefix of all keys that are written and given up again; what is left of them does not
/// matter.
pub const GARBAGE: &str = "garbage/";

/// Keys that are overwritten again and again, so that compactions have something to drop.
const KEYS: u64 = 160;
const WRITES_MAX: u64 = 6;
/// Most values are small; some span several pages.
const SMALL_BYTES_MAX: u64 = 300;
const LARGE_BYTES_MAX: u64 = 12_000;
const GARBAGE_BYTES: usize = 3_000;
/// Garbage that fills a segment of the journal with a few batches.
const LARGE_GARBAGE_BYTES: usize = 2 << 20;

/// What is there, without garbage.
pub type State = BTreeMap<String, Bytes>;

/// The batch of that number, sometimes with garbage; a large one is almost only garbage.
#[must_use]
pub fn batch(seed: u64, number: u64, large: bool) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for (key, value) in writes(seed, number) {
        match value {
            Some(value) => batch.put(key, value),
            None => batch.delete(key),
        }
    }
    if large || number.is_multiple_of(5) {
        let len = if large { LARGE_GARBAGE_BYTES } else { GARBAGE_BYTES };
        batch.put(format!("{GARBAGE}{number:06}"), vec![b'x'; len]);
    }
    batch
}

/// The state after `number` batches.
#[must_use]
pub fn state_after(seed: u64, number: u64) -> State {
    let mut state = State::new();
    for (key, value) in (1..=number).flat_map(|number| writes(seed, number)) {
        match value {
            Some(value) => state.insert(key, value),
            None => state.remove(&key),
        };
    }
    state
}

fn writes(seed: u64, number: u64) -> BTreeMap<String, Option<Bytes>> {
    let random = SeededRandom::new(seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let below = |limit: u64| random.next_u64() % limit;
    let mut writes = BTreeMap::new();
    for _ in 0..=below(WRITES_MAX) {
        let key = format!("key/{:04}", below(KEYS));
        let len = match below(8) {
            0 => None,
            1 => Some(below(LARGE_BYTES_MAX)),
            _ => Some(below(SMALL_BYTES_MAX)),
        };
        let value = len.map(|len| {
            let mut bytes = vec![0; usize::try_from(len).unwrap_or_default()];
            random.fill(&mut bytes);
            bytes.into()
        });
        writes.insert(key, value);
    }
    writes.insert(COUNT.to_owned(), Some(number.to_string().into()));
    writes
}

/// The number of the newest batch in a store.
pub fn newest(store: &dyn Store) -> Result<u64> {
    let found = store.view()?.get(COUNT.as_bytes())?;
    found.map_or(Ok(0), |count| Ok(std::str::from_utf8(&count)?.parse()?))
}

/// Reads everything, and compares it with the state after the newest batch, whose number it
/// returns.
pub fn check(store: &dyn Store, seed: u64) -> Result<u64> {
    let (number, mut expected) = (newest(store)?, State::new());
    if number > 0 {
        expected = state_after(seed, number);
    }
    let (view, mut range) = (store.view()?, Some(KeyRange::all()));
    while let Some(next) = range {
        let chunk = view.scan(&next, Direction::Forward, ScanLimit::default())?;
        for (key, value) in chunk.rows {
            let key = String::from_utf8(key.to_vec())?;
            if key.starts_with(GARBAGE) {
                continue;
            }
            match expected.remove(&key) {
                Some(right) => ensure!(right == value, "{key} is not as batch {number} left it"),
                None => bail!("{key} is there after batch {number}, and should not be"),
            }
        }
        range = chunk.rest;
    }
    let missing: Vec<&String> = expected.keys().collect();
    ensure!(missing.is_empty(), "{missing:?} are missing after batch {number}");
    Ok(number)
}
