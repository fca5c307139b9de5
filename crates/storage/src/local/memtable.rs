//! Commits that are in no table yet, sorted: every version of every key since the last flush.
//!
//! A document of one kilobyte is two dozen keys, each of which is inserted among half a
//! million others: what that costs is above all cache misses. So rows are kept in leaves of
//! some dozens (`leaf.rs`), where a search compares numbers that lie side by side, and the
//! bytes of keys and values stand together by commit, so that a row is sixteen bytes and
//! nothing is allocated or freed for it alone.
//!
//! One thread writes. Readers hold the lock for a lookup, or to copy a block of rows; the
//! writer holds it for a few rows at a time. Writes that a reader's snapshot does not have
//! yet are skipped by their number.

mod leaf;

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use bytes::Bytes;
use lsm_tree::{InternalValue, UserKey, ValueType};

use self::leaf::{Leaf, Side, leading};

/// Bytes of a piece of a commit from which on another one is begun. A reader that keeps a
/// value keeps the piece that it is in.
const PIECE_BYTES: usize = 16 << 10;

/// Rows that are inserted while readers wait: some tens of microseconds.
const ROWS_AT_ONCE: usize = 64;

/// Rows that are copied for a range at first, and at most: most ranges are short.
const FIRST_BLOCK: usize = 8;
const BLOCK_MAX: usize = 512;

/// The length of a value that says that the key was removed.
const REMOVED: u32 = u32::MAX;

/// Memory of a row besides its bytes: itself, its head, and what its leaf has room for.
const ROW_BYTES: usize = 32;

/// The writes of a commit in the order of keys, `None` for a removed one.
pub(super) trait Writes<'w>:
    Iterator<Item = (&'w Bytes, &'w Option<Bytes>)> + Clone
{
}

impl<'w, I: Iterator<Item = (&'w Bytes, &'w Option<Bytes>)> + Clone> Writes<'w> for I {}

/// The first bytes of a leaf's first key.
type Beginning = [u64; 4];

/// Sorted rows in memory.
pub(super) struct Memtable {
    rows: RwLock<Rows>,
    bytes: AtomicU64,
}

/// All rows, in the order of keys, and of commits for one key.
#[derive(Default)]
struct Rows {
    pieces: Vec<Piece>,
    #[expect(clippy::vec_box, reason = "a split moves all leaves after it: eight bytes each")]
    leaves: Vec<Box<Leaf>>,
    /// Of each leaf, so that most searches need not look into leaves.
    beginnings: Vec<Beginning>,
}

/// The bytes of a commit, or of a part of it: keys and values one after the other.
struct Piece {
    /// The number of the commit's writes.
    number: u64,
    bytes: Bytes,
}

/// Where the bytes of a row are.
#[derive(Clone, Copy)]
struct Row {
    piece: u32,
    start: u32,
    key: u32,
    /// [`REMOVED`] for no value.
    value: u32,
}

/// A place among the rows.
#[derive(Clone, Copy)]
struct Place {
    leaf: usize,
    at: usize,
}

impl Memtable {
    pub(super) fn new() -> Memtable {
        Memtable { rows: RwLock::default(), bytes: AtomicU64::new(0) }
    }

    /// Adds the writes of a commit, under a number above those of all commits before it.
    pub(super) fn insert<'w>(&self, number: u64, mut writes: impl Writes<'w>) {
        while let Some(len) = piece_bytes(writes.clone()) {
            let (mut bytes, mut rows) = (Vec::with_capacity(len), Vec::new());
            while bytes.len() < len
                && let Some((key, value)) = writes.next()
            {
                let value = value.as_deref();
                rows.push(Row {
                    piece: 0,
                    start: length(bytes.len()),
                    key: length(key.len()),
                    value: value.map_or(REMOVED, |value| length(value.len())),
                });
                bytes.extend_from_slice(key);
                bytes.extend_from_slice(value.unwrap_or_default());
            }
            self.bytes.fetch_add((len + rows.len() * ROW_BYTES) as u64, Ordering::AcqRel);
            self.insert_piece(Piece { number, bytes: bytes.into() }, &mut rows);
        }
    }

    fn insert_piece(&self, piece: Piece, new: &mut [Row]) {
        let write = || self.rows.write().unwrap_or_else(PoisonError::into_inner);
        let number = write().add(piece);
        for few in new.chunks_mut(ROWS_AT_ONCE) {
            let mut rows = write();
            for row in few {
                row.piece = number;
                rows.insert(*row);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Memory that it takes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// The newest write of a key with a number below `number`.
    pub(super) fn get(&self, key: &[u8], number: u64) -> Option<InternalValue> {
        let rows = self.rows();
        let end = rows.seek(key, Side::After);
        let (_, row) = rows.newest(end, key, number)?;
        Some(rows.shown(row))
    }

    /// The newest write below `number` of each key from `start` to before `end`.
    pub(super) fn range(
        self: &Arc<Memtable>,
        start: Bytes,
        end: Option<Bytes>,
        number: u64,
    ) -> MemtableRange {
        MemtableRange {
            memtable: Arc::clone(self),
            number,
            rest: Some(Rest { start, is_after: false, end }),
            ahead: VecDeque::new(),
            behind: VecDeque::new(),
            block: FIRST_BLOCK,
        }
    }

    /// The newest write of each key.
    pub(super) fn all(self: &Arc<Memtable>) -> MemtableRange {
        self.range(Bytes::new(), None, u64::MAX)
    }

    fn rows(&self) -> RwLockReadGuard<'_, Rows> {
        self.rows.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of the next piece of a commit, if there is more of it. No key is empty.
fn piece_bytes<'w>(rest: impl Writes<'w>) -> Option<usize> {
    let mut bytes = 0;
    for (key, value) in rest {
        bytes += key.len() + value.as_ref().map_or(0, Bytes::len);
        if bytes >= PIECE_BYTES {
            break;
        }
    }
    (bytes > 0).then_some(bytes)
}

/// The journal refuses what is longer, before it comes here.
fn length(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(REMOVED - 1)
}

impl Rows {
    fn add(&mut self, piece: Piece) -> u32 {
        self.pieces.push(piece);
        length(self.pieces.len() - 1)
    }

    /// Inserts a row after all of its key.
    fn insert(&mut self, row: Row) {
        let Rows { pieces, leaves, beginnings } = self;
        let key = key_of(pieces, row);
        let at = leaf_of(pieces, leaves, beginnings, key, Side::After);
        let Some(leaf) = leaves.get_mut(at) else {
            leaves.push(Box::new(Leaf::of(pieces, row)));
            beginnings.push(leading(key));
            return;
        };
        let split = leaf.insert(pieces, row);
        if let Some(first) = leaf.first()
            && let Some(beginning) = beginnings.get_mut(at)
        {
            *beginning = leading(key_of(pieces, first));
        }
        if let Some(split) = split
            && let Some(first) = split.first()
        {
            beginnings.insert(at + 1, leading(key_of(pieces, first)));
            leaves.insert(at + 1, Box::new(split));
        }
    }

    /// The place before all rows of a key and of those above it, or after all of the key.
    fn seek(&self, key: &[u8], side: Side) -> Place {
        let leaf = leaf_of(&self.pieces, &self.leaves, &self.beginnings, key, side);
        let at = self.leaves.get(leaf).map_or(0, |found| found.rank(&self.pieces, key, side));
        Place { leaf, at }
    }

    /// The first row from a place on, and the place after it.
    fn next(&self, place: Place) -> Option<(Place, Row)> {
        let Place { mut leaf, mut at } = place;
        loop {
            if let Some(row) = self.leaves.get(leaf)?.row(at) {
                return Some((Place { leaf, at: at + 1 }, row));
            }
            (leaf, at) = (leaf + 1, 0);
        }
    }

    /// The last row before a place, and its place.
    fn previous(&self, place: Place) -> Option<(Place, Row)> {
        let Place { mut leaf, mut at } = place;
        loop {
            if let Some(before) = at.checked_sub(1) {
                let row = self.leaves.get(leaf)?.row(before)?;
                return Some((Place { leaf, at: before }, row));
            }
            leaf = leaf.checked_sub(1)?;
            at = self.leaves.get(leaf)?.len();
        }
    }

    /// The newest row of a key below a number, where all of its rows end at a place.
    fn newest(&self, end: Place, key: &[u8], number: u64) -> Option<(Place, Row)> {
        let mut place = end;
        loop {
            let (before, row) = self.previous(place).filter(|(_, row)| self.key(*row) == key)?;
            if self.number(row) < number {
                return Some((before, row));
            }
            place = before;
        }
    }

    fn key(&self, row: Row) -> &[u8] {
        key_of(&self.pieces, row)
    }

    fn number(&self, row: Row) -> u64 {
        self.pieces.get(row.piece as usize).map_or(u64::MAX, |piece| piece.number)
    }

    /// A row as readers get it: parts of its piece, without copying.
    fn shown(&self, row: Row) -> InternalValue {
        let bytes = self.pieces.get(row.piece as usize).map(|piece| &piece.bytes);
        let part = |start: usize, len: usize| -> Bytes {
            bytes
                .filter(|all| start + len <= all.len())
                .map_or_else(Bytes::new, |all| all.slice(start..start + len))
        };
        let (start, key) = (row.start as usize, row.key as usize);
        let (key, number) = (UserKey::from(part(start, key)), self.number(row));
        if row.value == REMOVED {
            return InternalValue::new_tombstone(key, number);
        }
        let value = part(start + row.key as usize, row.value as usize);
        InternalValue::from_components(key, value, number, ValueType::Value)
    }

    /// Up to `limit` rows from the beginning of what is left.
    fn block(&self, rest: &Rest, number: u64, limit: usize) -> (Vec<InternalValue>, bool) {
        let mut found = Vec::new();
        let side = if rest.is_after { Side::After } else { Side::Before };
        let mut place = self.seek(&rest.start, side);
        while let Some((after, first)) = self.next(place) {
            let key = self.key(first);
            if rest.end.as_ref().is_some_and(|end| *key >= **end) {
                return (found, true);
            }
            if found.len() >= limit {
                return (found, false);
            }
            let is_alone = self.next(after).is_none_or(|(_, next)| self.key(next) != key);
            place = if is_alone { after } else { self.seek(key, Side::After) };
            found.extend(self.newest(place, key, number).map(|(_, row)| self.shown(row)));
        }
        (found, true)
    }

    /// Up to `limit` rows from the end of what is left, the last one first.
    fn block_back(&self, rest: &Rest, number: u64, limit: usize) -> (Vec<InternalValue>, bool) {
        let mut found = Vec::new();
        let mut place = match &rest.end {
            Some(end) => self.seek(end, Side::Before),
            None => Place { leaf: self.leaves.len(), at: 0 },
        };
        while let Some((before, last)) = self.previous(place) {
            let key = self.key(last);
            if *key < *rest.start || (rest.is_after && *key == *rest.start) {
                return (found, true);
            }
            if found.len() >= limit {
                return (found, false);
            }
            found.extend(self.newest(place, key, number).map(|(_, row)| self.shown(row)));
            let is_alone = self.previous(before).is_none_or(|(_, next)| self.key(next) != key);
            place = if is_alone { before } else { self.seek(key, Side::Before) };
        }
        (found, true)
    }
}

fn key_of(pieces: &[Piece], row: Row) -> &[u8] {
    let (start, end) = (row.start as usize, row.start as usize + row.key as usize);
    let piece = pieces.get(row.piece as usize);
    piece.and_then(|piece| piece.bytes.get(start..end)).unwrap_or_default()
}

/// The leaf that a key belongs to: the last one that does not begin after it. With
/// [`Side::Before`] the last one that begins before it.
fn leaf_of(
    pieces: &[Piece],
    leaves: &[Box<Leaf>],
    beginnings: &[Beginning],
    key: &[u8],
    side: Side,
) -> usize {
    let beginning = leading(key);
    let first = beginnings.partition_point(|other| *other < beginning);
    let like = beginnings.get(first..).unwrap_or_default();
    let like = like.partition_point(|other| *other == beginning);
    let begins_before =
        |leaf: &Leaf| leaf.first().is_some_and(|row| side.is_before(key_of(pieces, row), key));
    let alike = leaves.get(first..first + like).unwrap_or_default();
    // New rows of a value mostly come after all others.
    let before = match alike.last() {
        Some(last) if begins_before(last) => like,
        _ => alike.partition_point(|leaf| begins_before(leaf)),
    };
    (first + before).saturating_sub(1)
}

/// Keys of which no row was copied yet.
struct Rest {
    start: Bytes,
    is_after: bool,
    end: Option<Bytes>,
}

/// The rows of a range, copied block by block.
pub(super) struct MemtableRange {
    memtable: Arc<Memtable>,
    number: u64,
    rest: Option<Rest>,
    ahead: VecDeque<InternalValue>,
    /// From the end of the range, the last one first.
    behind: VecDeque<InternalValue>,
    block: usize,
}

impl MemtableRange {
    fn grow(&mut self) -> usize {
        let block = self.block;
        self.block = (block * 4).min(BLOCK_MAX);
        block
    }
}

impl Iterator for MemtableRange {
    type Item = InternalValue;

    fn next(&mut self) -> Option<InternalValue> {
        while self.ahead.is_empty()
            && let Some(mut rest) = self.rest.take()
        {
            let block = self.grow();
            let (found, is_all) = self.memtable.rows().block(&rest, self.number, block);
            self.ahead.extend(found);
            if let Some(last) = self.ahead.back().filter(|_| !is_all) {
                (rest.start, rest.is_after) = (last.key.user_key.clone().into(), true);
                self.rest = Some(rest);
            }
        }
        self.ahead.pop_front().or_else(|| self.behind.pop_back())
    }
}

impl DoubleEndedIterator for MemtableRange {
    fn next_back(&mut self) -> Option<InternalValue> {
        while self.behind.is_empty()
            && let Some(mut rest) = self.rest.take()
        {
            let block = self.grow();
            let (found, is_all) = self.memtable.rows().block_back(&rest, self.number, block);
            self.behind.extend(found);
            if let Some(first) = self.behind.back().filter(|_| !is_all) {
                rest.end = Some(first.key.user_key.clone().into());
                self.rest = Some(rest);
            }
        }
        self.behind.pop_front().or_else(|| self.ahead.pop_back())
    }
}

impl fmt::Debug for Memtable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memtable").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
