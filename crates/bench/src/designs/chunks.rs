//! Chunks of sorted postings that commands read, change and write again.
//!
//! A chunk has the postings of one path from its own key up to the next chunk's. The first
//! chunk of a path has the bare path as its key. One that grows beyond its limit is divided:
//! into halves, or, when it grew at its end, so that the front is full.
//!
//! Where chunks begin is kept in memory for the writer, so that it can get a chunk by its
//! key instead of seeking in every run of the store. That flatters this design: it is memory
//! that grows with the data, which a server would have to bound.

use std::collections::BTreeSet;
use std::ops::{Bound, ControlFlow};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use storage::{Direction, KeyRange, ScanLimit, WriteBatch};

use super::change::{
    self, Bucket, GROUP_END, INDEX, ORDINAL_BYTES, Postings, group_of, put_varint, take,
    take_varint,
};
use super::term_store::{Reading, TermStore, Visit, Wanted};

const PATH_BYTES: usize = 8;
/// Bytes of a chunk's key up to the end of its path.
const PATH_END: usize = GROUP_END + PATH_BYTES;

pub(super) struct Chunks {
    bytes_max: usize,
    /// The keys of all chunks.
    fences: BTreeSet<Bytes>,
}

/// Postings of one path, without the path.
type Run = Vec<Vec<u8>>;

impl Chunks {
    pub(super) fn new(bytes_max: usize) -> Chunks {
        Chunks { bytes_max, fences: BTreeSet::new() }
    }

    /// The key of the chunk that a posting belongs to, and of the next chunk.
    fn fence(&self, bucket: Bucket, posting: &[u8]) -> (Bytes, Option<Bytes>) {
        let key = change::key(bucket, INDEX, &[posting]);
        let path = key.slice(..PATH_END.min(key.len()));
        let own = self.fences.range(path.clone()..=key.clone()).next_back().cloned();
        let next = self.fences.range((Bound::Excluded(key), Bound::Unbounded)).next();
        (own.unwrap_or(path), next.cloned())
    }

    /// Replaces a chunk by what is left of it after `changes`.
    fn rewrite(
        &mut self,
        reading: &Reading<'_>,
        fence: &Bytes,
        changes: &[(&Bytes, bool)],
        batch: &mut WriteBatch,
    ) -> Result<()> {
        let old = match self.fences.contains(fence) {
            true => decode(&reading.get(fence)?.context("the chunk is there")?)?,
            false => Run::new(),
        };
        let changes: Vec<(&[u8], bool)> = changes
            .iter()
            .map(|(posting, added)| (posting.get(PATH_BYTES..).unwrap_or_default(), *added))
            .collect();
        let appended = changes.first().map(|(first, _)| *first) > old.last().map(Vec::as_slice);
        let run = merged(old, &changes);
        if run.is_empty() {
            self.fences.remove(fence);
            batch.delete(fence.clone());
            return Ok(());
        }
        let path = fence.slice(..PATH_END);
        for (at, (first, chunk)) in self.divided(&run, appended).into_iter().enumerate() {
            let key = if at == 0 { fence.clone() } else { [&path, first].concat().into() };
            batch.put(key.clone(), chunk);
            self.fences.insert(key);
        }
        Ok(())
    }

    /// The run as one or more chunks, with the first posting of each.
    fn divided<'r>(&self, run: &'r [Vec<u8>], appended: bool) -> Vec<(&'r [u8], Vec<u8>)> {
        let whole = encode(run);
        let first = |run: &'r [Vec<u8>]| run.first().map(Vec::as_slice).unwrap_or_default();
        if whole.len() <= self.bytes_max || run.len() == 1 {
            return vec![(first(run), whole)];
        }
        let postings = match appended {
            true => run.len() * self.bytes_max / whole.len(),
            false => run.len().div_ceil(whole.len().div_ceil(self.bytes_max)),
        };
        let parts = run.chunks(postings.max(1));
        parts.map(|part| (first(part), encode(part))).collect()
    }

    /// Calls `chunk` with the key and the value of each chunk that may have postings of a range.
    fn each_chunk(
        reading: &Reading<'_>,
        wanted: Wanted<'_>,
        chunk: impl FnMut(&Bytes, &Bytes) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let key = |entry: &[u8]| change::key(wanted.bucket, INDEX, &[entry]);
        let (mut start, end) = (key(&wanted.range.start), key(&wanted.range.end));
        let path = start.slice(..PATH_END.min(start.len()));
        // The chunk that the range begins in begins before it.
        let before = KeyRange::new(path, [&start[..], &[0]].concat());
        let floor = reading.scan(&before, Direction::Backward, 1)?;
        if let Some((key, _)) = floor.rows.into_iter().next() {
            start = key;
        }
        let about = wanted.about / POSTINGS_ABOUT + 1;
        reading.each(KeyRange::new(start, end), wanted.direction, about, chunk)
    }
}

/// Postings that even a small chunk is likely to have.
const POSTINGS_ABOUT: usize = 16;

impl TermStore for Chunks {
    fn write(
        &mut self,
        reading: &Reading<'_>,
        bucket: Bucket,
        changes: &Postings,
        batch: &mut WriteBatch,
    ) -> Result<()> {
        let mut changes = changes.iter().map(|(posting, added)| (posting, *added)).peekable();
        while let Some((posting, added)) = changes.next() {
            let (fence, next) = self.fence(bucket, posting);
            let path = posting.get(..PATH_BYTES);
            let belongs = |other: &Bytes| {
                let key = change::key(bucket, INDEX, &[other]);
                other.get(..PATH_BYTES) == path && next.as_ref().is_none_or(|next| key < *next)
            };
            let mut group = vec![(posting, added)];
            while let Some(more) = changes.next_if(|(other, _)| belongs(other)) {
                group.push(more);
            }
            self.rewrite(reading, &fence, &group, batch)?;
        }
        Ok(())
    }

    fn scan(&self, reading: &Reading<'_>, wanted: Wanted<'_>, visit: &mut Visit<'_>) -> Result<()> {
        Chunks::each_chunk(reading, wanted, |key, value| {
            let path = key.get(GROUP_END..PATH_END).context("a chunk has a path")?;
            match wanted.direction {
                Direction::Forward => forward(path, value, wanted, visit),
                Direction::Backward => backward(path, value, wanted, visit),
            }
        })
    }

    /// Chunks that lie inside the range say how many they have.
    fn count(&self, reading: &Reading<'_>, wanted: Wanted<'_>) -> Result<u64> {
        let (mut count, mut before) = (0, None::<(Bytes, Bytes)>);
        let mut partly = |key: &Bytes, value: &Bytes| {
            let path = key.get(GROUP_END..PATH_END).context("a chunk has a path")?;
            forward(path, value, wanted, &mut |_| {
                count += 1;
                Ok(ControlFlow::Continue(()))
            })
        };
        let mut inside = 0;
        Chunks::each_chunk(reading, wanted, |key, value| {
            // The one before ends here, so it lies inside unless it began before the range.
            if let Some((key, value)) = before.replace((key.clone(), value.clone())) {
                let begins = key.get(GROUP_END..).unwrap_or_default();
                if begins >= wanted.range.start.as_slice() {
                    inside += take_varint(&mut &value[..])?;
                } else {
                    _ = partly(&key, &value)?;
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if let Some((key, value)) = before {
            _ = partly(&key, &value)?;
        }
        Ok(count + inside)
    }

    fn reopen(&mut self, reading: &Reading<'_>) -> Result<()> {
        self.fences.clear();
        let (all, rows) = (KeyRange::all(), ScanLimit::ROWS_DEFAULT);
        reading.each(all, Direction::Forward, rows, |key, _| {
            if group_of(key) == Some(INDEX) {
                self.fences.insert(key.clone());
            }
            Ok(ControlFlow::Continue(()))
        })
    }
}

fn forward(
    path: &[u8],
    chunk: &[u8],
    wanted: Wanted<'_>,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>> {
    let mut posting = path.to_vec();
    let mut reader = ChunkReader::new(chunk)?;
    while reader.next(PATH_BYTES, &mut posting)? {
        if posting.as_slice() >= wanted.range.end.as_slice() {
            return Ok(ControlFlow::Break(()));
        }
        if wanted.has(&posting) && visit(&posting)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn backward(
    path: &[u8],
    chunk: &[u8],
    wanted: Wanted<'_>,
    visit: &mut Visit<'_>,
) -> Result<ControlFlow<()>> {
    for rest in decode(chunk)?.iter().rev() {
        let posting = [path, rest].concat();
        if wanted.has(&posting) && visit(&posting)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Both are sorted. A change replaces an equal posting.
fn merged(old: Run, changes: &[(&[u8], bool)]) -> Run {
    let mut run = Run::with_capacity(old.len() + changes.len());
    let mut changes = changes.iter().copied().peekable();
    for posting in old {
        let mut stays = true;
        while let Some((other, added)) = changes.next_if(|(other, _)| *other <= posting.as_slice())
        {
            if other == posting {
                stays = added;
            } else if added {
                run.push(other.to_vec());
            }
        }
        if stays {
            run.push(posting);
        }
    }
    run.extend(changes.filter(|(_, added)| *added).map(|(posting, _)| posting.to_vec()));
    run
}

/// Their number, then for each posting: bytes of the value in common with the one before,
/// number of further bytes, those, and the ordinal, as the distance to the one before if the
/// value is the same.
fn encode(run: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(run.len() as u64, &mut out);
    let (mut before, mut ordinal_before) = (&[][..], 0);
    for posting in run {
        let (value, ordinal) = posting.split_at(posting.len() - ORDINAL_BYTES);
        let ordinal = ordinal.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        let shared = before.iter().zip(value).take_while(|(one, other)| one == other).count();
        let (_, further) = value.split_at(shared);
        put_varint(shared as u64, &mut out);
        put_varint(further.len() as u64, &mut out);
        out.extend_from_slice(further);
        let is_same = further.is_empty() && shared == before.len();
        put_varint(if is_same { ordinal - ordinal_before } else { ordinal }, &mut out);
        (before, ordinal_before) = (value, ordinal);
    }
    out
}

fn decode(chunk: &[u8]) -> Result<Run> {
    let mut reader = ChunkReader::new(chunk)?;
    let (mut run, mut posting) = (Run::new(), Vec::new());
    while reader.next(0, &mut posting)? {
        run.push(posting.clone());
    }
    Ok(run)
}

struct ChunkReader<'c> {
    rest: &'c [u8],
    left: u64,
    value_len: usize,
    ordinal: u64,
}

impl<'c> ChunkReader<'c> {
    fn new(chunk: &'c [u8]) -> Result<ChunkReader<'c>> {
        let mut rest = chunk;
        let left = take_varint(&mut rest)?;
        Ok(ChunkReader { rest, left, value_len: 0, ordinal: 0 })
    }

    /// Turns the posting before, which follows `start` bytes of something else, into the next
    /// one.
    fn next(&mut self, start: usize, posting: &mut Vec<u8>) -> Result<bool> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(false) };
        self.left = left;
        let shared = usize::try_from(take_varint(&mut self.rest)?)?;
        let further = take_varint(&mut self.rest)?;
        let further = take(&mut self.rest, further)?;
        let ordinal = take_varint(&mut self.rest)?;
        let is_same = further.is_empty() && shared == self.value_len;
        self.ordinal = if is_same { self.ordinal + ordinal } else { ordinal };
        posting.truncate(start + shared);
        posting.extend_from_slice(further);
        self.value_len = shared + further.len();
        posting.extend(self.ordinal.to_be_bytes());
        Ok(true)
    }
}
