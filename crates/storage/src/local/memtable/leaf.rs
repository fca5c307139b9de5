//! Some dozens of rows that are neighbours.
//!
//! All keys of a leaf share their first bytes, for most keys of a store do: container,
//! bucket, kind, path, often the value. A row's *head* is what follows in its key, as a
//! number. Heads lie side by side, so that a search in a leaf touches a few cache lines, and
//! keys themselves only where heads are equal.

use super::{Piece, Row, key_of};

/// Rows of a leaf at most.
const ROWS_MAX: usize = 128;

/// Which of the rows with a key itself count as before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// None.
    Before,
    /// All.
    After,
}

impl Side {
    pub(super) fn is_before(self, other: &[u8], key: &[u8]) -> bool {
        match self {
            Side::Before => other < key,
            Side::After => other <= key,
        }
    }
}

/// Neighbouring rows, one at least.
pub(super) struct Leaf {
    /// What all keys begin with.
    shared: Vec<u8>,
    heads: Vec<u64>,
    rows: Vec<Row>,
}

impl Leaf {
    pub(super) fn of(pieces: &[Piece], row: Row) -> Leaf {
        let shared = key_of(pieces, row).to_vec();
        Leaf { shared, heads: vec![0], rows: vec![row] }
    }

    pub(super) fn first(&self) -> Option<Row> {
        self.rows.first().copied()
    }

    pub(super) fn row(&self, at: usize) -> Option<Row> {
        self.rows.get(at).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Number of rows before a key.
    pub(super) fn rank(&self, pieces: &[Piece], key: &[u8], side: Side) -> usize {
        let (front, rest) = key.split_at(self.shared.len().min(key.len()));
        match front.cmp(&self.shared) {
            std::cmp::Ordering::Less => return 0,
            std::cmp::Ordering::Greater => return self.rows.len(),
            std::cmp::Ordering::Equal => {}
        }
        let head = head_of(rest);
        let first = self.heads.partition_point(|other| *other < head);
        let like = self.heads.get(first..).unwrap_or_default();
        let like = like.partition_point(|other| *other == head);
        let alike = self.rows.get(first..first + like).unwrap_or_default();
        let is_before = |row: &Row| side.is_before(key_of(pieces, *row), key);
        // New rows of a value mostly come after all others.
        match alike.last() {
            Some(last) if is_before(last) => first + like,
            _ => first + alike.partition_point(is_before),
        }
    }

    /// Inserts a row after all of its key. Returns the second part of a leaf that had to be
    /// split.
    pub(super) fn insert(&mut self, pieces: &[Piece], row: Row) -> Option<Leaf> {
        let key = key_of(pieces, row);
        let at = self.rank(pieces, key, Side::After);
        if self.rows.len() < ROWS_MAX {
            self.insert_at(pieces, (at, row));
            return None;
        }
        // Rows that come in order fill their leaves.
        if at == self.rows.len() {
            return Some(Leaf::of(pieces, row));
        }
        let mut second = self.split(pieces);
        match at.checked_sub(self.rows.len()) {
            Some(at) if at > 0 => second.insert_at(pieces, (at, row)),
            _ => self.insert_at(pieces, (at, row)),
        }
        Some(second)
    }

    fn insert_at(&mut self, pieces: &[Piece], (at, row): (usize, Row)) {
        let key = key_of(pieces, row);
        if !key.starts_with(&self.shared) {
            self.share(pieces, shared_bytes(&self.shared, key));
        }
        self.heads.insert(at, head_of(key.get(self.shared.len()..).unwrap_or_default()));
        self.rows.insert(at, row);
    }

    fn split(&mut self, pieces: &[Piece]) -> Leaf {
        let half = self.rows.len() / 2;
        let (heads, rows) = (self.heads.split_off(half), self.rows.split_off(half));
        let mut second = Leaf { shared: self.shared.clone(), heads, rows };
        self.share_more(pieces);
        second.share_more(pieces);
        second
    }

    /// Takes more of the keys as shared, where heads tell nothing.
    fn share_more(&mut self, pieces: &[Piece]) {
        if self.heads.first() == self.heads.last()
            && let (Some(first), Some(last)) = (self.rows.first(), self.rows.last())
        {
            let shared = shared_bytes(key_of(pieces, *first), key_of(pieces, *last));
            self.share(pieces, shared);
        }
    }

    /// Makes this many bytes of the keys the shared ones.
    fn share(&mut self, pieces: &[Piece], shared: usize) {
        let first = self.first().map_or(&[][..], |first| key_of(pieces, first));
        self.shared = first.get(..shared).unwrap_or(first).to_vec();
        let shared = self.shared.len();
        let keys = self.rows.iter().map(|row| key_of(pieces, *row));
        self.heads = keys.map(|key| head_of(key.get(shared..).unwrap_or_default())).collect();
    }
}

/// Number of bytes that two keys begin with alike.
fn shared_bytes(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// The first bytes of the rest of a key as a number, in whose order keys are unless it is
/// equal.
fn head_of(rest: &[u8]) -> u64 {
    match rest.first_chunk() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let mut head = [0; 8];
            head.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            u64::from_be_bytes(head)
        }
    }
}

/// The same of a whole key.
pub(super) fn leading(key: &[u8]) -> super::Beginning {
    let mut words = super::Beginning::default();
    words.iter_mut().zip(key.chunks(8)).for_each(|(word, bytes)| *word = head_of(bytes));
    words
}
