//! The consistency check of a bucket: does everything that is stored agree?
//!
//! Items are the truth; all other groups are derived from them. Each item is decoded (which
//! verifies its checksum), every entry that a maintainer ([`crate::derived`]) derives from
//! it is looked up, and then the entries of each group are counted: if all expected entries
//! exist and the counts agree, there is nothing else. Only if they do not agree is the item
//! of each entry looked up, to report entries without one. Memory stays bounded whatever
//! the size of the bucket: logical partitions are compared with their statistics one after
//! the other, as items come in their order. The history does not follow from the items; its
//! rules are in [`history`].

mod history;

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;
use model::epk::Epk;
use model::system_properties::SYSTEM_PROPERTIES;
use storage::{Direction, KeyRange, ScanLimit, View};

use crate::command::PartitionError;
use crate::config::{Bucket, PartitionConfig};
use crate::derived::{self, Entry, MAINTAINERS, Scope, Version};
use crate::key::{self, Group, Keys, ReservedGroup, describe_key};
use crate::record::{Head, Item, KeyStatistics};

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

/// One inconsistency.
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
pub fn check_bucket(
    config: &PartitionConfig,
    bucket: &Bucket,
    view: &dyn View,
) -> Result<Report, PartitionError> {
    let keys = config.keys(bucket);
    let mut check = Check {
        config,
        bucket,
        keys,
        view,
        demanded: BTreeMap::new(),
        missing: BTreeMap::new(),
        lsn: 0,
        key: None,
        report: Report::default(),
    };
    check.items()?;
    check.groups()?;
    check.gaps()?;
    check.head()?;
    check.history()?;
    Ok(check.report)
}

struct Check<'a> {
    config: &'a PartitionConfig,
    bucket: &'a Bucket,
    keys: Keys,
    view: &'a dyn View,
    /// The number of entries of each group that items require, and of those that are
    /// missing.
    demanded: BTreeMap<Group, u64>,
    missing: BTreeMap<Group, u64>,
    /// The highest LSN of any item.
    lsn: u64,
    /// The logical partition being counted.
    key: Option<(Epk, KeyStatistics)>,
    report: Report,
}

impl Check<'_> {
    fn items(&mut self) -> Result<(), PartitionError> {
        self.each(Group::Item, Check::item)?;
        self.close_key()
    }

    fn item(&mut self, key: &Bytes, value: &Bytes) -> Result<(), PartitionError> {
        let name = key::split(key).and_then(|(_, _, _, rest)| key::parse_item_name(rest));
        let Some((epk, id)) = name else {
            self.found(format!("{} is not the key of an item", describe_key(key)));
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
        for (group, entry) in self.expected(&epk, &Version::new(id, &item))? {
            self.compare(group, format_args!("item {id:?}"), &entry)?;
        }
        Ok(())
    }

    fn count_item(&mut self, epk: &Epk, item: &Item) -> Result<(), PartitionError> {
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
        if raw.members().any(|(name, _)| SYSTEM_PROPERTIES.contains(&name.as_ref())) {
            self.found(format!("item {id:?} has a system property in its text"));
        }
        let definition = self.config.definition.partition_key();
        let location = definition.extract(raw).and_then(|key| definition.locate(&key));
        if location.ok().as_ref() != Some(epk) {
            self.found(format!("item {id:?} is not where its partition key belongs"));
        }
    }

    /// Looks up an entry that must be there.
    fn compare(
        &mut self,
        group: Group,
        subject: fmt::Arguments<'_>,
        expected: &Entry,
    ) -> Result<(), PartitionError> {
        *self.demanded.entry(group).or_default() += 1;
        let noun = group.noun();
        match self.view.get(&expected.key)? {
            Some(found) if found == expected.value => {}
            Some(found) => {
                let difference = difference(group, &found, &expected.value);
                self.found(format!("{noun} of {subject} {difference}"));
            }
            None => {
                *self.missing.entry(group).or_default() += 1;
                self.found(format!("{noun} of {subject} is missing"));
            }
        }
        Ok(())
    }

    /// Everything that must exist because a version of an item does.
    fn expected(
        &self,
        epk: &Epk,
        version: &Version<'_>,
    ) -> Result<Vec<(Group, Entry)>, PartitionError> {
        let (scope, mut expected) = (self.scope(epk), Vec::new());
        for maintainer in MAINTAINERS {
            let entries = derived::sorted(maintainer.entries(&scope, version)?);
            expected.extend(entries.into_iter().map(|entry| (maintainer.group(), entry)));
        }
        Ok(expected)
    }

    fn scope<'s>(&'s self, epk: &'s Epk) -> Scope<'s> {
        Scope { config: self.config, keys: self.keys, epk }
    }

    /// Compares the logical partition that ended with its stored statistics.
    fn close_key(&mut self) -> Result<(), PartitionError> {
        let Some((epk, counted)) = self.key.take() else { return Ok(()) };
        self.report.logical_partitions += 1;
        for maintainer in MAINTAINERS {
            if let Some(entry) = maintainer.summary(&self.scope(&epk), &counted) {
                self.compare(maintainer.group(), format_args!("key {epk}"), &entry)?;
            }
        }
        Ok(())
    }

    /// Checks that every group has exactly as many entries as the items require.
    fn groups(&mut self) -> Result<(), PartitionError> {
        let derived = MAINTAINERS.iter().filter(|maintainer| maintainer.follows_from_items());
        for group in derived.map(|maintainer| maintainer.group()) {
            let (demanded, missing) =
                (count_of(&self.demanded, group), count_of(&self.missing, group));
            let mut counted = 0;
            self.each(group, |_, _, _| {
                counted += 1;
                Ok(())
            })?;
            if counted + missing != demanded {
                self.each(group, Check::check_owner)?;
            }
        }
        self.report.index_entries = count_of(&self.demanded, Group::Index);
        Ok(())
    }

    pub(super) fn each(
        &mut self,
        group: Group,
        mut visit: impl FnMut(&mut Self, &Bytes, &Bytes) -> Result<(), PartitionError>,
    ) -> Result<(), PartitionError> {
        let mut remaining = Some(KeyRange::prefix(&self.keys.group(group)));
        while let Some(range) = remaining {
            let chunk = self.view.scan(&range, Direction::Forward, ScanLimit::default())?;
            for (key, value) in &chunk.rows {
                visit(self, key, value)?;
            }
            remaining = chunk.rest;
        }
        Ok(())
    }

    /// Reports an entry that no item requires.
    fn check_owner(&mut self, key: &Bytes, value: &Bytes) -> Result<(), PartitionError> {
        if !self.is_demanded(key, value)? {
            self.found(format!("{} belongs to no item", describe_key(key)));
        }
        Ok(())
    }

    fn is_demanded(&self, key: &Bytes, value: &Bytes) -> Result<bool, PartitionError> {
        let Some((_, _, group, rest)) = key::split(key) else { return Ok(false) };
        if group == Group::Statistics {
            let Some((epk, [])) = key::take_epk(rest) else { return Ok(false) };
            let items = KeyRange::prefix(&self.keys.item(&epk, ""));
            let first = self.view.scan(&items, Direction::Forward, ScanLimit::rows(1))?;
            return Ok(!first.rows.is_empty());
        }
        let ordinal = if group == Group::Unique { value } else { rest };
        let Some((_, ordinal)) = key::parse_trailing_ordinal(ordinal) else { return Ok(false) };
        let Some(name) = self.view.get(&self.keys.ordinal(ordinal))? else { return Ok(false) };
        let Some((epk, id)) = key::parse_item_name(&name) else { return Ok(false) };
        let Some(item) = self.view.get(&self.keys.item(&epk, id))? else { return Ok(false) };
        let Ok(item) = Item::decode(&item) else { return Ok(false) };
        let expected = self.expected(&epk, &Version::new(id, &item))?;
        Ok(expected.iter().any(|(_, entry)| entry.key == *key))
    }

    /// Keys of groups that this version does not know: damage, or those of a later version,
    /// whose data this one would leave behind when it writes.
    fn gaps(&mut self) -> Result<(), PartitionError> {
        for range in self.keys.outside_groups() {
            let chunk = self.view.scan(&range, Direction::Forward, ScanLimit::default())?;
            for (key, _) in &chunk.rows {
                let fault = match ReservedGroup::of(key) {
                    Some(_) => "is of a group for later versions: use a newer Orrery",
                    None => "belongs to no group",
                };
                self.found(format!("{} {fault}", describe_key(key)));
            }
        }
        Ok(())
    }

    fn head(&mut self) -> Result<(), PartitionError> {
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

    pub(super) fn found(&mut self, what: String) {
        self.report.findings_count += 1;
        if self.report.findings.len() < FINDINGS_MAX {
            self.report.findings.push(Finding { bucket: self.bucket.number.0, what });
        }
    }
}

/// How a stored value differs from the one that must be there.
fn difference(group: Group, found: &[u8], expected: &[u8]) -> String {
    if group != Group::Statistics {
        return "says something else".to_owned();
    }
    match (KeyStatistics::decode(found), KeyStatistics::decode(expected)) {
        (Ok(found), Ok(counted)) => format!("say {found:?}, counted {counted:?}"),
        (Err(error), _) | (_, Err(error)) => format!("cannot be read: {error}"),
    }
}

fn count_of(counts: &BTreeMap<Group, u64>, group: Group) -> u64 {
    counts.get(&group).copied().unwrap_or(0)
}
