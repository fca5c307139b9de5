//! One file: what is on the disk, and what has happened since.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;
use runtime::Random;

const PAGE: usize = 4_096;
/// Disks write sectors atomically.
const SECTOR: usize = 512;

/// One changed page in eight is torn.
const TORN_EVERY: u64 = 8;

#[derive(Clone, Debug)]
enum Change {
    Write { position: u64, bytes: Arc<[u8]> },
    Resize { len: u64 },
}

/// A file with a write-back cache.
#[derive(Debug, Default)]
pub(super) struct FileState {
    durable: Content,
    changes: Vec<Change>,
    /// Changes that have become durable, ever.
    settled: usize,
}

/// Pages that are not there are zeros.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pages: BTreeMap<u64, Arc<[u8; PAGE]>>,
    len: u64,
}

impl FileState {
    pub(super) fn write(&mut self, position: u64, bytes: &Arc<[u8]>) {
        self.changes.push(Change::Write { position, bytes: Arc::clone(bytes) });
    }

    pub(super) fn resize(&mut self, len: u64) {
        self.changes.push(Change::Resize { len });
    }

    /// How many changes there have been.
    pub(super) fn changes(&self) -> usize {
        self.settled + self.changes.len()
    }

    /// The first `changes` changes are on the disk.
    pub(super) fn settle(&mut self, changes: usize) {
        let count = changes.saturating_sub(self.settled).min(self.changes.len());
        for change in self.changes.drain(..count) {
            self.durable.apply(&change);
        }
        self.settled += count;
    }

    /// What is on the disk if the power is cut now.
    pub(super) fn cut(&self, random: &dyn Random) -> Content {
        let below = |limit: usize| usize::try_from(random.next_u64() % limit as u64).unwrap_or(0);
        let mut latest = self.durable.clone();
        if self.changes.is_empty() {
            return latest;
        }
        let way = below(6);
        let until = match way {
            0 => 0,
            // In order, up to some moment.
            1 => below(self.changes.len() + 1),
            _ => self.changes.len(),
        };
        let mut history = History::new(&self.durable);
        for change in self.changes.iter().take(until) {
            let touched = latest.apply(change);
            history.note(&latest, touched);
        }
        match way {
            0..=2 => latest,
            _ => history.draw(random),
        }
    }
}

/// What each page and the length have been since the last sync.
struct History<'a> {
    durable: &'a Content,
    pages: BTreeMap<u64, Vec<Arc<[u8; PAGE]>>>,
    lens: Vec<u64>,
}

impl History<'_> {
    fn new(durable: &Content) -> History<'_> {
        History { durable, pages: BTreeMap::new(), lens: vec![durable.len] }
    }

    fn note(&mut self, now: &Content, touched: BTreeSet<u64>) {
        for number in touched {
            let versions =
                self.pages.entry(number).or_insert_with(|| vec![self.durable.page(number)]);
            versions.push(now.page(number));
        }
        self.lens.push(now.len);
    }

    /// Every page as it was at some moment. One file in three prefers the latest versions,
    /// and one the earliest, so that late pages occur without early ones.
    fn draw(self, random: &dyn Random) -> Content {
        let below = |limit: usize| usize::try_from(random.next_u64() % limit as u64).unwrap_or(0);
        let taste = below(3);
        let pick = |count: usize| match (taste, below(8)) {
            (0, 1..) => count - 1,
            (1, 1..) => 0,
            (_, _) => below(count),
        };
        let mut content = self.durable.clone();
        // The length is usually the last one: it is a single number.
        content.len = match below(3) {
            0 => self.lens.get(below(self.lens.len())),
            _ => self.lens.last(),
        }
        .copied()
        .unwrap_or(self.durable.len);
        for (number, versions) in &self.pages {
            let at = pick(versions.len());
            let Some(mut page) = versions.get(at).cloned() else { continue };
            if let Some(next) = versions.get(at + 1)
                && random.next_u64().is_multiple_of(TORN_EVERY)
            {
                page = torn(next, &page, below(PAGE / SECTOR) * SECTOR);
            }
            content.pages.insert(*number, page);
        }
        content
    }
}

/// The beginning of one page and the end of another.
fn torn(head: &[u8; PAGE], tail: &[u8; PAGE], at: usize) -> Arc<[u8; PAGE]> {
    let mut page = *tail;
    for (to, from) in page.iter_mut().zip(head).take(at) {
        *to = *from;
    }
    Arc::new(page)
}

impl Content {
    fn page(&self, number: u64) -> Arc<[u8; PAGE]> {
        self.pages.get(&number).cloned().unwrap_or_else(|| Arc::new([0; PAGE]))
    }

    /// Which pages that touched.
    fn apply(&mut self, change: &Change) -> BTreeSet<u64> {
        match change {
            Change::Write { position, bytes } => self.write(*position, bytes),
            Change::Resize { len } => self.resize(*len),
        }
    }

    fn write(&mut self, position: u64, mut bytes: &[u8]) -> BTreeSet<u64> {
        let (mut touched, mut at) = (BTreeSet::new(), position);
        self.len = self.len.max(position + bytes.len() as u64);
        while !bytes.is_empty() {
            let (number, offset) = (at / PAGE as u64, usize::try_from(at % PAGE as u64));
            let offset = offset.expect("an offset in a page is small");
            let (now, later) = bytes.split_at((PAGE - offset).min(bytes.len()));
            let page = self.pages.entry(number).or_insert_with(|| Arc::new([0; PAGE]));
            let page = Arc::make_mut(page).get_mut(offset..offset + now.len());
            page.expect("cut to the page").copy_from_slice(now);
            touched.insert(number);
            at += now.len() as u64;
            bytes = later;
        }
        touched
    }

    fn resize(&mut self, len: u64) -> BTreeSet<u64> {
        let first = len / PAGE as u64;
        let touched: BTreeSet<u64> = self.pages.range(first..).map(|(number, _)| *number).collect();
        let gone = self.pages.split_off(&first);
        let kept = usize::try_from(len % PAGE as u64).expect("an offset in a page is small");
        if let Some(page) = gone.get(&first).filter(|_| kept > 0) {
            self.pages.insert(first, torn(page, &[0; PAGE], kept));
        }
        self.len = len;
        touched
    }

    pub(super) fn save(&self, path: &Path) -> Result<()> {
        let mut file = File::create(path)?;
        file.set_len(self.len)?;
        for (number, page) in &self.pages {
            let start = number * PAGE as u64;
            let len = usize::try_from(self.len.saturating_sub(start)).unwrap_or(PAGE).min(PAGE);
            file.seek(SeekFrom::Start(start))?;
            file.write_all(page.get(..len).unwrap_or_default())?;
        }
        Ok(())
    }
}
