//! Does everything that is stored agree with everything else?
//!
//! Items are the truth; all other groups repeat something about them. Each item
//! is decoded (which checks its checksum), every entry it must have is looked
//! up, and then the entries of each group are counted: if all that must be there
//! are there and the counts agree, there is nothing else. Memory stays bounded
//! whatever the size of the bucket, but for the sizes of logical partitions,
//! which are compared one after the other as items come in their order.

use std::fmt;

use bytes::Bytes;
use model::epk::Epk;
use storage::{Direction, KeyRange, ScanLimit, View};

use crate::command::Problem;
use crate::key::{self, Group, Keys};
use crate::record::{Head, Item, KeyStatistics};
use crate::setup::{Bucket, Setup};
use crate::transaction::{expiry_key, unique_keys};

/// Findings kept in a report; more are only counted.
const FINDINGS_MAX: usize = 100;

/// What a check has seen.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub items: u64,
    pub bytes: u64,
    pub index_entries: u64,
    pub logical_partitions: u64,
    pub findings: Vec<Finding>,
    /// All findings, also those beyond what is kept.
    pub findings_count: u64,
}

/// One thing that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub bucket: u32,
    pub what: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bucket {}: {}", self.bucket, self.what)
    }
}

impl Report {
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings_count == 0
    }

    /// Adds what another check has seen.
    pub fn merge(&mut self, other: Report) {
        self.items += other.items;
        self.bytes += other.bytes;
        self.index_entries += other.index_entries;
        self.logical_partitions += other.logical_partitions;
        self.findings_count += other.findings_count;
        self.findings.extend(other.findings);
        self.findings.truncate(FINDINGS_MAX);
    }
}

/// Checks one bucket of a partition.
pub fn check_bucket(setup: &Setup, bucket: &Bucket, view: &dyn View) -> Result<Report, Problem> {
    let keys = setup.keys(bucket);
    let mut check = Check {
        setup,
        bucket,
        keys,
        view,
        expected: Counts::default(),
        lsn: 0,
        key: None,
        report: Report::default(),
    };
    check.items()?;
    check.groups()?;
    check.head()?;
    Ok(check.report)
}

/// How many entries the items ask for.
#[derive(Debug, Default)]
struct Counts {
    ordinals: u64,
    index: u64,
    unique: u64,
    expiry: u64,
    log: u64,
    statistics: u64,
}

struct Check<'a> {
    setup: &'a Setup,
    bucket: &'a Bucket,
    keys: Keys,
    view: &'a dyn View,
    expected: Counts,
    /// The highest LSN of any item.
    lsn: u64,
    /// The logical partition being counted.
    key: Option<(Epk, KeyStatistics)>,
    report: Report,
}

impl Check<'_> {
    fn items(&mut self) -> Result<(), Problem> {
        let mut remaining = Some(KeyRange::prefix(&self.keys.group(Group::Item)));
        while let Some(range) = remaining {
            let chunk = self.view.scan(&range, Direction::Forward, ScanLimit::default())?;
            for (key, value) in &chunk.rows {
                self.item(key, value)?;
            }
            remaining = chunk.rest;
        }
        self.close_key()
    }

    fn item(&mut self, key: &Bytes, value: &Bytes) -> Result<(), Problem> {
        let name = key::split(key).and_then(|(_, _, _, rest)| key::parse_item_name(rest));
        let Some((epk, id)) = name else {
            self.found(format!("item key {key:02x?} is malformed"));
            return Ok(());
        };
        let item = match Item::decode(value) {
            Ok(item) => item,
            Err(error) => {
                self.found(format!("item {id:?}: {error}"));
                return Ok(());
            }
        };
        self.count_item(&epk, &item)?;
        self.check_text(&epk, id, &item);
        self.check_entries(&epk, id, &item)
    }

    fn count_item(&mut self, epk: &Epk, item: &Item) -> Result<(), Problem> {
        if self.key.as_ref().is_none_or(|(current, _)| current != epk) {
            self.close_key()?;
            self.key = Some((epk.clone(), KeyStatistics::default()));
        }
        if let Some((_, statistics)) = &mut self.key {
            statistics.items += 1;
            statistics.bytes += item.bytes();
        }
        self.report.items += 1;
        self.report.bytes += item.bytes();
        self.lsn = self.lsn.max(item.lsn.get());
        Ok(())
    }

    /// The text must be the JSON of an item with this id and key.
    fn check_text(&mut self, epk: &Epk, id: &str, item: &Item) {
        if !self.bucket.range.contains(epk) {
            self.found(format!("item {id:?} with EPK {epk} is outside its bucket"));
        }
        let Ok(raw) = model::json::parse_raw(&item.text) else {
            self.found(format!("item {id:?} is not valid JSON"));
            return;
        };
        if raw.get("id").and_then(|id| id.as_str()).as_deref() != Some(id) {
            self.found(format!("item {id:?} has another id in its text"));
        }
        if raw.get("_etag").and_then(|etag| etag.as_str()).as_deref() != Some(item.etag().as_str())
        {
            self.found(format!("item {id:?} has another etag in its text"));
        }
        let definition = self.setup.definition.partition_key();
        let location = definition.extract(raw).and_then(|key| definition.locate(&key));
        if location.map(|location| location.epk).ok().as_ref() != Some(epk) {
            self.found(format!("item {id:?} is not where its partition key belongs"));
        }
    }

    fn check_entries(&mut self, epk: &Epk, id: &str, item: &Item) -> Result<(), Problem> {
        let name = key::item_name(epk, id);
        self.expect(self.keys.ordinal(item.ordinal), &name, id, "ordinal")?;
        self.expected.ordinals += 1;
        self.expect(self.keys.log(item.lsn, item.ordinal), &key::terminated(epk), id, "log entry")?;
        self.expected.log += 1;
        if let Some(key) = expiry_key(&self.keys, item) {
            self.expect(key, b"", id, "expiry entry")?;
            self.expected.expiry += 1;
        }
        let ordinal = item.ordinal.as_u64().to_be_bytes();
        for key in unique_keys(self.setup, &self.keys, epk, item) {
            self.expect(key, &ordinal, id, "unique value")?;
            self.expected.unique += 1;
        }
        let mut entries = Vec::new();
        self.setup
            .index_entries(item, |entry| entries.push(self.keys.index(entry, item.ordinal)))?;
        self.expected.index += entries.len() as u64;
        for key in entries {
            self.expect(key, b"", id, "index entry")?;
        }
        Ok(())
    }

    fn expect(&mut self, key: Bytes, value: &[u8], id: &str, what: &str) -> Result<(), Problem> {
        match self.view.get(&key)? {
            Some(found) if found == value => {}
            Some(_) => self.found(format!("{what} of item {id:?} says something else")),
            None => self.found(format!("{what} of item {id:?} is missing")),
        }
        Ok(())
    }

    /// Compares the logical partition that ended with its statistics.
    fn close_key(&mut self) -> Result<(), Problem> {
        let Some((epk, counted)) = self.key.take() else { return Ok(()) };
        self.expected.statistics += 1;
        self.report.logical_partitions += 1;
        match self.view.get(&self.keys.statistics(&epk))?.map(|value| KeyStatistics::decode(&value))
        {
            Some(Ok(stored)) if stored == counted => {}
            Some(Ok(stored)) => {
                self.found(format!("statistics of key {epk} say {stored:?}, counted {counted:?}"))
            }
            Some(Err(error)) => self.found(format!("statistics of key {epk}: {error}")),
            None => self.found(format!("statistics of key {epk} are missing")),
        }
        Ok(())
    }

    /// Every group has exactly as many entries as the items asked for.
    fn groups(&mut self) -> Result<(), Problem> {
        let expected = [
            (Group::Statistics, self.expected.statistics),
            (Group::Ordinal, self.expected.ordinals),
            (Group::Index, self.expected.index),
            (Group::Unique, self.expected.unique),
            (Group::Expiry, self.expected.expiry),
            (Group::Log, self.expected.log),
        ];
        for (group, expected) in expected {
            let counted = self.count(group)?;
            if counted != expected {
                self.found(format!(
                    "{group:?} has {counted} entries, the items ask for {expected}"
                ));
            }
        }
        self.report.index_entries = self.expected.index;
        Ok(())
    }

    fn count(&self, group: Group) -> Result<u64, Problem> {
        let mut count = 0;
        let mut remaining = Some(KeyRange::prefix(&self.keys.group(group)));
        while let Some(range) = remaining {
            let chunk = self.view.scan(&range, Direction::Forward, ScanLimit::default())?;
            count += chunk.rows.len() as u64;
            remaining = chunk.rest;
        }
        Ok(count)
    }

    fn head(&mut self) -> Result<(), Problem> {
        let head = match self.view.get(&self.keys.head())?.map(|value| Head::decode(&value)) {
            Some(Ok(head)) => head,
            Some(Err(error)) => {
                self.found(format!("head: {error}"));
                return Ok(());
            }
            None => Head::default(),
        };
        if (head.items, head.bytes) != (self.report.items, self.report.bytes) {
            let (items, bytes) = (self.report.items, self.report.bytes);
            self.found(format!(
                "head says {} items of {} bytes, counted {items} of {bytes}",
                head.items, head.bytes
            ));
        }
        if head.lsn < self.lsn {
            self.found(format!("head says LSN {}, an item has {}", head.lsn, self.lsn));
        }
        Ok(())
    }

    fn found(&mut self, what: String) {
        self.report.findings_count += 1;
        if self.report.findings.len() < FINDINGS_MAX {
            self.report.findings.push(Finding { bucket: self.bucket.number.0, what });
        }
    }
}
