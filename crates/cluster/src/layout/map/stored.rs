//! The map as JSON, in both directions. Specified in `docs/formats/map.md`.

use std::ops::Range;

use model::epk::{Epk, EpkRange};
use model::json::{Object, Raw, Value};
use model::position::Lsn;
use partition::{Bucket, BucketNumber, Move};

use super::{ContainerMap, MapError, PartitionId, PartitionRecord};

const VERSION: u32 = 1;

impl ContainerMap {
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
        if self.merged {
            object.insert("merged", true);
        }
        if self.weighted {
            object.insert("weighted", true);
        }
        if !self.moves.is_empty() {
            object.insert("moves", self.moves.iter().map(move_value).collect::<Value>());
        }
        object
    }

    /// Reads the stored form and checks that it is a layout at all.
    pub fn parse(container: u32, raw: Raw<'_>) -> Result<ContainerMap, MapError> {
        let map = parse_map(raw).and_then(|map| map.audit().map(|()| map));
        map.map_err(|problem| MapError { container, problem })
    }
}

fn bucket_value(bucket: &Bucket) -> Value {
    let mut object = Object::new();
    object.insert("bucket", bucket.number.0);
    write_range(&mut object, &bucket.range);
    object.into()
}

fn range_value(record: &PartitionRecord) -> Value {
    let mut object = Object::new();
    object.insert("range", record.id.0);
    write_range(&mut object, &record.range);
    object.insert("parents", record.parents.iter().map(|parent| parent.0).collect::<Value>());
    object.insert("lsnFloor", number(record.lsn_floor.get()));
    object.insert("change", number(record.change));
    let block = |block: &Range<u64>| Value::Array(vec![number(block.start), number(block.end)]);
    object.insert("numbers", record.ordinal_blocks.iter().map(block).collect::<Value>());
    if record.weight != 1 {
        object.insert("weight", number(record.weight));
    }
    object.into()
}

fn move_value(one: &Move) -> Value {
    let mut object = Object::new();
    object.insert("bucket", one.from.0);
    object.insert("into", one.into.iter().map(bucket_value).collect::<Value>());
    object.into()
}

fn write_range(object: &mut Object, range: &EpkRange) {
    object.insert("min", range.min.to_string());
    object.insert("max", range.max.to_string());
}

fn number(value: u64) -> Value {
    Value::from(i64::try_from(value).expect("positions and ordinals stay below 2^63"))
}

fn parse_map(raw: Raw<'_>) -> Result<ContainerMap, &'static str> {
    if small(raw, "version")? != VERSION {
        return Err("its version is not known");
    }
    let list = |name| raw.get(name).map(Raw::elements).ok_or("a list is missing");
    let moves = raw.get("moves").into_iter().flat_map(Raw::elements);
    Ok(ContainerMap {
        buckets: list("buckets")?.map(parse_bucket).collect::<Result<_, _>>()?,
        ranges: list("ranges")?.map(parse_range).collect::<Result<_, _>>()?,
        next_range: small(raw, "nextRange")?,
        next_bucket: small(raw, "nextBucket")?,
        next_number: int(raw, "nextNumber")?,
        change: int(raw, "change")?,
        moves: moves.map(parse_move).collect::<Result<_, _>>()?,
        merged: is(raw, "merged"),
        weighted: is(raw, "weighted"),
    })
}

fn parse_move(raw: Raw<'_>) -> Result<Move, &'static str> {
    let into = raw.get("into").ok_or("the targets of a move are missing")?;
    Ok(Move {
        from: BucketNumber(small(raw, "bucket")?),
        into: into.elements().map(parse_bucket).collect::<Result<_, _>>()?,
    })
}

fn parse_bucket(raw: Raw<'_>) -> Result<Bucket, &'static str> {
    Ok(Bucket { number: BucketNumber(small(raw, "bucket")?), range: parse_bounds(raw)? })
}

fn parse_range(raw: Raw<'_>) -> Result<PartitionRecord, &'static str> {
    let parents = raw.get("parents").ok_or("parents are missing")?;
    let blocks = raw.get("numbers").ok_or("numbers are missing")?;
    Ok(PartitionRecord {
        id: PartitionId(small(raw, "range")?),
        range: parse_bounds(raw)?,
        parents: parents
            .elements()
            .map(|parent| as_small(parent).map(PartitionId))
            .collect::<Result<_, _>>()?,
        lsn_floor: Lsn::from_u64(int(raw, "lsnFloor")?),
        change: int(raw, "change")?,
        ordinal_blocks: blocks.elements().map(parse_block).collect::<Result<_, _>>()?,
        weight: raw.get("weight").map_or(Ok(1), as_int)?,
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

/// Whether something holds that is left out when it does not.
fn is(raw: Raw<'_>, name: &str) -> bool {
    raw.get(name).is_some_and(|value| value.text() == "true")
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
