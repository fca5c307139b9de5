//! Everything that a bucket derives from its items, made again and compared.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::bytes::{Damage, Result, require};
use super::catalogue::{Container, Map, Span, json};
use super::epk::{names, value_at};
use super::partition::{Bucket, Item, Record};

/// What an item counts besides its text.
const SYSTEM_BYTES: u64 = 205;

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, derived: &T) -> Result<()> {
    require(found == derived, || format!("{what}: {found:?} instead of {derived:?}"))
}

/// What all buckets derive from their items, the system's among them.
pub(crate) fn bucket(bucket: &Bucket) -> Result<()> {
    let items = || bucket.items.iter();
    let name = |item: &Item| (item.position.clone(), item.id.clone());
    same("ordinals", &bucket.ordinals, &items().map(|item| (item.ordinal, name(item))).collect())?;
    let member = |item: &Item| ((item.position.clone(), item.ordinal), item.id.clone());
    same("members", &bucket.members, &items().map(member).collect())?;
    let logged = |item: &Item| ((item.lsn, item.ordinal), item.position.clone());
    same("log", &bucket.log, &items().map(logged).collect())?;
    let mut statistics: BTreeMap<Vec<u8>, (u64, u64)> = BTreeMap::new();
    for item in items() {
        let (items, bytes) = statistics.entry(item.position.clone()).or_default();
        *items += 1;
        *bytes += item.text.len() as u64 + SYSTEM_BYTES;
    }
    same("statistics", &bucket.statistics, &statistics)?;
    history(bucket)?;
    head(bucket, statistics.values())
}

/// The history of each item has a story: it is created, replaced version by version, removed,
/// and if it was not, it is there as it was written last.
fn history(bucket: &Bucket) -> Result<()> {
    let by_key = bucket
        .history
        .iter()
        .map(|((lsn, number), record)| (record.position.clone(), *lsn, *number));
    same("key history", &bucket.key_history, &by_key.collect())?;
    let Some(horizon) = bucket.horizon else {
        return require(bucket.history.is_empty(), || "a history without a horizon".to_owned());
    };
    let mut last: BTreeMap<u64, ((u64, u16), &Record)> = BTreeMap::new();
    for ((lsn, _), record) in bucket.history.iter().filter(|((lsn, _), _)| *lsn > horizon) {
        let (before, step, _) = record.before;
        require((record.kind == 1) == (before == 0), || format!("{record:?} after {before}"))?;
        let known = last.insert(record.ordinal, ((*lsn, record.step), record));
        let expected = known.map(|(at, _)| at).or((before > horizon).then_some((0, 0)));
        require(expected.is_none_or(|at| at == (before, step)), || {
            format!("{record:?} follows {expected:?}")
        })?;
    }
    for item in bucket.items.iter().filter(|item| item.lsn > horizon) {
        let written = last.remove(&item.ordinal).filter(|(_, record)| record.kind < 3);
        let written = written.map(|(at, record)| (at, record.position.clone(), &record.text));
        let stored = ((item.lsn, item.step), item.position.clone(), &item.text);
        same("the last version of an item", &written, &Some(stored))?;
    }
    let removed = |(_, record): &&((u64, u16), &Record)| record.kind > 2;
    let left = last.values().find(|last| !removed(last));
    require(left.is_none(), || format!("{left:?} is not there"))
}

fn head<'a>(bucket: &Bucket, counted: impl Iterator<Item = &'a (u64, u64)>) -> Result<()> {
    let Some(head) = bucket.head else {
        return require(bucket.items.is_empty(), || "a bucket without a head".to_owned());
    };
    let all = counted.fold((0, 0), |(items, bytes), one| (items + one.0, bytes + one.1));
    same("items and bytes of a head", &(head.items, head.bytes), &all)?;
    let later = |item: &&Item| item.lsn > head.lsn || item.ts_millis > head.ts_millis;
    let later = bucket.items.iter().find(later);
    require(later.is_none(), || format!("{later:?} is later than its bucket's head"))
}

/// What a container's definition makes of the items of one bucket.
pub(crate) fn container(
    container: &Container,
    map: &Map,
    span: &Span,
    bucket: &Bucket,
) -> Result<()> {
    let (mut entries, mut expiry, mut unique) = (BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
    for item in &bucket.items {
        place(container, span, item)?;
        require(item.ordinal > 0 && item.ordinal < map.next_number, || {
            format!("item {} has the ordinal {}", item.id, item.ordinal)
        })?;
        let policy = container.policies.get(&item.policy_version);
        let policy =
            policy.ok_or_else(|| Damage(format!("there is no policy {}", item.policy_version)))?;
        for mut entry in policy.entries(&container.indexed(item)?) {
            entry.extend(item.ordinal.to_be_bytes());
            entries.insert(entry);
        }
        let own_ttl = json(item)?["ttl"].as_i64().unwrap_or(0);
        same("own ttl", &i64::from(item.own_ttl), &own_ttl)?;
        if let Ok(ttl @ 1..) = u32::try_from(item.own_ttl) {
            expiry.insert((ttl, item.ts_millis / 1_000, item.ordinal));
        }
        unique.extend(unique_values(container, item)?);
    }
    for record in bucket.history.values() {
        let body: Value = serde_json::from_str(&record.text)
            .map_err(|error| Damage(format!("a history record: {error}")))?;
        let (epk, position) = container.key.place(&body);
        require(record.position == position && span.min <= epk && epk < span.max, || {
            format!("{record:?} is in a wrong place")
        })?;
    }
    same_entries(container, &bucket.entries, &entries)?;
    same("expiry", &bucket.expiry, &expiry)?;
    same("unique values", &bucket.unique, &unique)
}

/// Two sets of thousands of entries say little side by side: only the first difference is
/// shown.
fn same_entries(
    container: &Container,
    found: &BTreeSet<Vec<u8>>,
    derived: &BTreeSet<Vec<u8>>,
) -> Result<()> {
    let (missing, foreign) = (derived.difference(found).next(), found.difference(derived).next());
    require(missing.is_none() && foreign.is_none(), || {
        format!(
            "index entries of container {}: {missing:02x?} is missing, {foreign:02x?} is no item's",
            container.number
        )
    })
}

/// The position is that of the item's key, and its EPK lies within the bucket.
fn place(container: &Container, span: &Span, item: &Item) -> Result<()> {
    let (epk, position) = container.key.place(&json(item)?);
    require(item.position == position, || {
        format!("item {} is at {:02x?} instead of {position:02x?}", item.id, item.position)
    })?;
    require(span.min <= epk && epk < span.max, || format!("item {} is in a wrong bucket", item.id))
}

type UniqueValue = ((Vec<u8>, u8, [u8; 32]), u64);

fn unique_values(container: &Container, item: &Item) -> Result<Vec<UniqueValue>> {
    let body = json(item)?;
    let keys = container.definition["uniqueKeyPolicy"]["uniqueKeys"].as_array();
    let values = (0..).zip(keys.into_iter().flatten()).map(|(number, key)| {
        let mut hasher = Sha256::new();
        for path in key["paths"].as_array().into_iter().flatten() {
            let path = names(path.as_str().unwrap_or_default())?;
            hasher.update(unique_text(value_at(&body, &path).unwrap_or(&Value::Null)));
            hasher.update([0]);
        }
        Ok(((item.position.clone(), number, hasher.finalize().into()), item.ordinal))
    });
    values.collect()
}

/// From here on doubles are no 64-bit integers.
const INTEGERS_END: f64 = 9_223_372_036_854_775_808.0;

/// A value as unique constraints hash it.
fn unique_text(value: &Value) -> String {
    match value {
        Value::Number(number) => {
            let double = number.as_f64().unwrap_or(f64::NAN);
            let is_integer =
                double.fract() == 0.0 && (-INTEGERS_END..INTEGERS_END).contains(&double);
            let is_plain = is_integer || (1e-7..INTEGERS_END).contains(&double.abs());
            // Adding 0.0 turns -0.0 into 0.0.
            if is_plain { format!("{}", double + 0.0) } else { format!("{double:e}") }
        }
        Value::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(unique_text).collect();
            format!("[{}]", elements.join(","))
        }
        Value::Object(members) => {
            let members: BTreeMap<&String, &Value> = members.iter().collect();
            let member = |(name, value)| {
                format!("{}:{}", Value::String(String::clone(name)), unique_text(value))
            };
            format!("{{{}}}", members.into_iter().map(member).collect::<Vec<String>>().join(","))
        }
        Value::Null | Value::Bool(_) | Value::String(_) => value.to_string(),
    }
}
