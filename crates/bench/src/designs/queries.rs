//! The questions that every design answers, in all buckets of the container.

use std::ops::{Bound, ControlFlow};

use anyhow::{Context as _, Result};
use index::{EntryRange, IndexPlan, IndexedPath};
use model::json::{Number, Value};
use model::policy::PolicyPathStep;
use storage::Direction;

use super::change::{self, Bucket, ITEM, ORDINAL};
use super::term_store::{Reading, TermStore, Wanted};
use crate::document::Documents;
use crate::raw::partitions::BUCKETS;

/// Rows of an ordered query, and of a range.
const TOP: usize = 10;
const RANGE: u64 = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Question {
    /// `s = …`, which one document has.
    Equal,
    /// `team = …`, which 64 documents have.
    EqualMany,
    /// `n >= … AND n < … + 100`.
    Range,
    /// `ORDER BY at`, ten rows.
    First,
    /// `ORDER BY at DESC`, ten rows.
    Last,
    /// How many have `g = …`: one in ten.
    Count,
    /// How many have `price`: all.
    CountAll,
}

impl Question {
    pub(super) const ALL: [(Question, &'static str); 7] = [
        (Question::Equal, "equal, 1 row"),
        (Question::EqualMany, "equal, 64 rows"),
        (Question::Range, "range, 100 rows"),
        (Question::First, "order by, top 10"),
        (Question::Last, "order by desc, top 10"),
        (Question::Count, "count of a tenth"),
        (Question::CountAll, "count of a path"),
    ];

    /// Point queries for one of these: what takes longer is asked less often.
    pub(super) fn rarity(self) -> u64 {
        match self {
            Question::Equal => 1,
            Question::EqualMany | Question::Range | Question::First | Question::Last => 4,
            Question::Count | Question::CountAll => 200,
        }
    }

    /// Asks about the document `number`. Returns the number of rows.
    pub(super) fn ask(
        self,
        terms: &dyn TermStore,
        reading: &Reading<'_>,
        plan: &IndexPlan,
        documents: Documents,
        number: u64,
    ) -> Result<u64> {
        let path = |name: &str| {
            let steps = [PolicyPathStep::Property(name.to_owned())];
            plan.path(&steps).context("the path is indexed")
        };
        let text = Value::String;
        match self {
            Question::Equal => {
                rows(terms, reading, &path("s")?.equal(&text(documents.name(number))))
            }
            Question::EqualMany => {
                rows(terms, reading, &path("team")?.equal(&text(format!("t{}", number / 64))))
            }
            Question::Range => rows(terms, reading, &between(path("n")?, number)?),
            Question::First => top(terms, reading, &path("at")?.all(), Direction::Forward),
            Question::Last => top(terms, reading, &path("at")?.all(), Direction::Backward),
            Question::Count => {
                let group = number_value(number % 10);
                count(terms, reading, &path("g")?.equal(&group))
            }
            Question::CountAll => count(terms, reading, &path("price")?.all()),
        }
    }
}

fn number_value(number: u64) -> Value {
    Value::Number(Number::from(i64::try_from(number).unwrap_or(i64::MAX)))
}

fn between(path: IndexedPath, number: u64) -> Result<EntryRange> {
    let [from, to] = [number, number + RANGE].map(number_value);
    path.between(Bound::Included(&from), Bound::Excluded(&to)).context("numbers compare")
}

pub(super) fn buckets() -> impl Iterator<Item = Bucket> {
    (0..BUCKETS).map(|number| {
        let mut bucket = [0, 0, 0, 1, 0, 0, 0, 0];
        bucket[4..].copy_from_slice(&number.to_be_bytes());
        bucket
    })
}

/// Fetches every document that has an entry in the range.
fn rows(terms: &dyn TermStore, reading: &Reading<'_>, range: &EntryRange) -> Result<u64> {
    let mut found = 0;
    for bucket in buckets() {
        let about = storage::ScanLimit::ROWS_DEFAULT;
        let wanted = Wanted { bucket, range, direction: Direction::Forward, about };
        let mut ordinals = Vec::new();
        terms.scan(reading, wanted, &mut |posting| {
            ordinals.push(change::split(posting)?.1);
            Ok(ControlFlow::Continue(()))
        })?;
        for ordinal in ordinals {
            fetch(reading, bucket, ordinal)?;
            found += 1;
        }
    }
    Ok(found)
}

/// Fetches the first documents of a range, of all buckets together.
fn top(
    terms: &dyn TermStore,
    reading: &Reading<'_>,
    range: &EntryRange,
    direction: Direction,
) -> Result<u64> {
    let mut all: Vec<(Vec<u8>, Bucket)> = Vec::new();
    for bucket in buckets() {
        let mut left = TOP;
        let wanted = Wanted { bucket, range, direction, about: TOP };
        terms.scan(reading, wanted, &mut |posting| {
            all.push((posting.to_vec(), bucket));
            left -= 1;
            Ok(if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
    }
    all.sort_unstable();
    if direction == Direction::Backward {
        all.reverse();
    }
    for (posting, bucket) in all.iter().take(TOP) {
        fetch(reading, *bucket, change::split(posting)?.1)?;
    }
    Ok(all.len().min(TOP) as u64)
}

fn count(terms: &dyn TermStore, reading: &Reading<'_>, range: &EntryRange) -> Result<u64> {
    let (direction, about) = (Direction::Forward, storage::ScanLimit::ROWS_DEFAULT);
    let of = |bucket| terms.count(reading, Wanted { bucket, range, direction, about });
    buckets().map(of).sum()
}

fn fetch(reading: &Reading<'_>, bucket: Bucket, ordinal: u64) -> Result<()> {
    let key = change::key(bucket, ORDINAL, &[&ordinal.to_be_bytes()]);
    let name = reading.get(&key)?.context("an ordinal has a name")?;
    let item = reading.get(&change::key(bucket, ITEM, &[&name]))?;
    item.map(|_| ()).context("the document is there")
}
