//! The map of one container: which bucket holds which hashes, which range owns
//! which buckets. Its stored form is specified in `docs/formats/map.md`.

use std::ops::Range;

use model::epk::{Epk, EpkRange};
use model::json::{Object, Raw, Value};
use model::partition_key::PartitionKeyDefinition;
use model::position::Lsn;
use partition::{Bucket, BucketNumber};

const VERSION: i64 = 1;

/// Item numbers in one grant. Large enough that grants are rare, small enough
/// that 2^40 numbers are 65,536 grants.
const BLOCK_NUMBERS: u64 = 1 << 24;

/// Clients take the item number zero for "none".
const FIRST_NUMBER: u64 = 1;

/// The change that every layout begins with.
const FIRST_CHANGE: u64 = 1;

/// Item numbers that there are: 40 bits of an ordinal.
const NUMBERS_MAX: u64 = 1 << 40;

/// Id of a physical partition: what clients see as the partition key range id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RangeId(pub u32);

impl std::fmt::Display for RangeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The layout of one container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerMap {
    buckets: Vec<Bucket>,
    ranges: Vec<RangeRecord>,
    next_range: u32,
    next_bucket: u32,
    next_number: u64,
    /// Counts the changes of the layout, so that clients can ask for what is new.
    change: u64,
}

/// One physical partition in the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeRecord {
    pub id: RangeId,
    pub range: EpkRange,
    /// All ranges that this one came from.
    pub parents: Vec<RangeId>,
    pub lsn_floor: Lsn,
    pub numbers: Vec<Range<u64>>,
    /// The change of the layout that made this range.
    pub change: u64,
}

/// A stored map that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the map of container {container} cannot be read: {problem}")]
pub struct MapError {
    pub container: u32,
    pub problem: &'static str,
}

impl ContainerMap {
    /// The layout of a new container: `ranges` physical partitions of equal
    /// share, cut into buckets so that the first splits need no data movement.
    #[must_use]
    pub fn fresh(key: &PartitionKeyDefinition, ranges: u32) -> ContainerMap {
        let per_range = buckets_per_range(ranges);
        let bounds = key.boundaries(ranges * per_range);
        let buckets: Vec<Bucket> = (0..)
            .zip(bounds)
            .map(|(number, range)| Bucket { number: BucketNumber(number), range })
            .collect();
        let chunk = usize::try_from(per_range).expect("a small number");
        let mut map = ContainerMap {
            ranges: Vec::new(),
            next_range: ranges,
            next_bucket: ranges * per_range,
            next_number: FIRST_NUMBER,
            change: FIRST_CHANGE,
            buckets: Vec::new(),
        };
        for (id, run) in (0..).zip(buckets.chunks(chunk)) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
            let range = EpkRange { min: first.range.min.clone(), max: last.range.max.clone() };
            let numbers = vec![map.next_block()];
            map.ranges.push(RangeRecord {
                id: RangeId(id),
                range,
                parents: Vec::new(),
                lsn_floor: Lsn::ZERO,
                numbers,
                change: FIRST_CHANGE,
            });
        }
        map.buckets = buckets;
        map
    }

    /// One bucket, one range, and all item numbers: the system container's.
    #[must_use]
    pub(crate) fn single_bucket() -> ContainerMap {
        let range = EpkRange::full();
        let numbers = std::iter::once(FIRST_NUMBER..NUMBERS_MAX).collect();
        let bucket = Bucket { number: BucketNumber(0), range: range.clone() };
        let record = RangeRecord {
            id: RangeId(0),
            range,
            parents: Vec::new(),
            lsn_floor: Lsn::ZERO,
            numbers,
            change: FIRST_CHANGE,
        };
        ContainerMap {
            buckets: vec![bucket],
            ranges: vec![record],
            next_range: 1,
            next_bucket: 1,
            next_number: NUMBERS_MAX,
            change: FIRST_CHANGE,
        }
    }

    /// The number of the last change of the layout.
    #[must_use]
    pub fn change(&self) -> u64 {
        self.change
    }

    #[must_use]
    pub fn ranges(&self) -> &[RangeRecord] {
        &self.ranges
    }

    /// The range that owns a key.
    #[must_use]
    pub fn range_of(&self, epk: &Epk) -> Option<&RangeRecord> {
        let after = self.ranges.partition_point(|record| record.range.min <= *epk);
        self.ranges.get(after.checked_sub(1)?).filter(|record| record.range.contains(epk))
    }

    #[must_use]
    pub fn range(&self, id: RangeId) -> Option<&RangeRecord> {
        self.ranges.iter().find(|record| record.id == id)
    }

    /// The buckets of a range, in order.
    pub fn buckets_of(&self, range: &RangeRecord) -> Vec<Bucket> {
        self.buckets.iter().filter(|bucket| bucket.range.overlaps(&range.range)).cloned().collect()
    }

    /// The same layout, with one more block of numbers for a range.
    #[must_use]
    pub fn with_more_numbers(&self, id: RangeId) -> ContainerMap {
        let mut map = self.clone();
        let block = map.next_block();
        if let Some(record) = map.ranges.iter_mut().find(|record| record.id == id) {
            record.numbers.push(block);
        }
        map
    }

    fn next_block(&mut self) -> Range<u64> {
        let start = self.next_number;
        self.next_number += BLOCK_NUMBERS;
        start..self.next_number
    }

    /// The stored form, without its id.
    #[must_use]
    pub fn to_object(&self) -> Object {
        let buckets: Value = self.buckets.iter().map(bucket_value).collect();
        let ranges: Value = self.ranges.iter().map(range_value).collect();
        let mut object = Object::new();
        object.insert("version", VERSION);
        object.insert("nextRange", self.next_range);
        object.insert("nextBucket", self.next_bucket);
        object.insert("nextNumber", number(self.next_number));
        object.insert("change", number(self.change));
        object.insert("buckets", buckets);
        object.insert("ranges", ranges);
        object
    }

    /// Reads the stored form and checks that it covers the ring.
    pub fn parse(container: u32, raw: Raw<'_>) -> Result<ContainerMap, MapError> {
        let fail = |problem| MapError { container, problem };
        let map = parse_map(raw).map_err(fail)?;
        if !covers(map.buckets.iter().map(|bucket| &bucket.range)) {
            return Err(fail("the buckets do not cover the ring"));
        }
        if !covers(map.ranges.iter().map(|record| &record.range)) {
            return Err(fail("the ranges do not cover the ring"));
        }
        let is_bound = |epk: &Epk| map.buckets.iter().any(|bucket| bucket.range.min == *epk);
        if !map.ranges.iter().all(|record| is_bound(&record.range.min)) {
            return Err(fail("a range does not begin with a bucket"));
        }
        Ok(map)
    }
}

/// Each bucket costs a seek in every query over all of the container, so the
/// more ranges there are to begin with, the fewer buckets each gets.
fn buckets_per_range(ranges: u32) -> u32 {
    match ranges {
        0 | 1 => 8,
        2..=4 => 4,
        _ => 2,
    }
}

fn covers<'a>(mut ranges: impl Iterator<Item = &'a EpkRange>) -> bool {
    let full = EpkRange::full();
    let end = ranges.try_fold(full.min, |at, range| {
        (range.min == at && range.min < range.max).then(|| range.max.clone())
    });
    end == Some(full.max)
}

fn bucket_value(bucket: &Bucket) -> Value {
    let mut object = Object::new();
    object.insert("bucket", bucket.number.0);
    write_range(&mut object, &bucket.range);
    object.into()
}

fn range_value(record: &RangeRecord) -> Value {
    let mut object = Object::new();
    object.insert("range", record.id.0);
    write_range(&mut object, &record.range);
    object.insert("parents", record.parents.iter().map(|parent| parent.0).collect::<Value>());
    object.insert("lsnFloor", number(record.lsn_floor.get()));
    object.insert("change", number(record.change));
    let block = |block: &Range<u64>| Value::Array(vec![number(block.start), number(block.end)]);
    object.insert("numbers", record.numbers.iter().map(block).collect::<Value>());
    object.into()
}

fn write_range(object: &mut Object, range: &EpkRange) {
    object.insert("min", range.min.to_string());
    object.insert("max", range.max.to_string());
}

fn number(value: u64) -> Value {
    Value::from(i64::try_from(value).expect("positions and numbers stay below 2^63"))
}

fn parse_map(raw: Raw<'_>) -> Result<ContainerMap, &'static str> {
    if int(raw, "version")? != 1 {
        return Err("its version is not known");
    }
    let list = |name| raw.get(name).map(Raw::elements).ok_or("a list is missing");
    Ok(ContainerMap {
        buckets: list("buckets")?.map(parse_bucket).collect::<Result<_, _>>()?,
        ranges: list("ranges")?.map(parse_range).collect::<Result<_, _>>()?,
        next_range: small(raw, "nextRange")?,
        next_bucket: small(raw, "nextBucket")?,
        next_number: int(raw, "nextNumber")?,
        change: int(raw, "change")?,
    })
}

fn parse_bucket(raw: Raw<'_>) -> Result<Bucket, &'static str> {
    Ok(Bucket { number: BucketNumber(small(raw, "bucket")?), range: parse_bounds(raw)? })
}

fn parse_range(raw: Raw<'_>) -> Result<RangeRecord, &'static str> {
    let parents = raw.get("parents").ok_or("parents are missing")?;
    let numbers = raw.get("numbers").ok_or("numbers are missing")?;
    Ok(RangeRecord {
        id: RangeId(small(raw, "range")?),
        range: parse_bounds(raw)?,
        parents: parents
            .elements()
            .map(|parent| as_small(parent).map(RangeId))
            .collect::<Result<_, _>>()?,
        lsn_floor: Lsn::from_u64(int(raw, "lsnFloor")?),
        change: int(raw, "change")?,
        numbers: numbers.elements().map(parse_block).collect::<Result<_, _>>()?,
    })
}

fn parse_block(raw: Raw<'_>) -> Result<Range<u64>, &'static str> {
    let mut ends = raw.elements().map(as_int);
    match (ends.next(), ends.next()) {
        (Some(Ok(start)), Some(Ok(end))) => Ok(start..end),
        _ => Err("a block of numbers is malformed"),
    }
}

fn parse_bounds(raw: Raw<'_>) -> Result<EpkRange, &'static str> {
    let bound = |name| {
        let text = raw.get(name).and_then(Raw::as_str).ok_or("a bound is missing")?;
        Epk::from_hex(&text).map_err(|_| "a bound is not hexadecimal")
    };
    Ok(EpkRange { min: bound("min")?, max: bound("max")? })
}

fn int(raw: Raw<'_>, name: &str) -> Result<u64, &'static str> {
    as_int(raw.get(name).ok_or("a number is missing")?)
}

fn small(raw: Raw<'_>, name: &str) -> Result<u32, &'static str> {
    as_small(raw.get(name).ok_or("a number is missing")?)
}

fn as_int(raw: Raw<'_>) -> Result<u64, &'static str> {
    raw.text().parse().map_err(|_| "a number is malformed")
}

fn as_small(raw: Raw<'_>) -> Result<u32, &'static str> {
    raw.text().parse().map_err(|_| "a number is malformed")
}

#[cfg(test)]
mod tests;
