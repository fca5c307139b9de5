//! The check of a bucket's history: its two groups have the same records, and what is live or
//! was replaced since the horizon is in there.

use bytes::Bytes;
use model::epk::Epk;
use model::position::Lsn;
use storage::{Direction, KeyRange, ScanLimit};

use super::Check;
use crate::command::PartitionError;
use crate::history::{HistoryRecord, decode_horizon};
use crate::key::{self, Group, HistoryPosition, describe_key};
use crate::record::{Head, Item};

impl Check<'_> {
    /// Every record is found by its key, no entry of a key is without a record, and after the
    /// horizon nothing is missing.
    pub(super) fn history(&mut self) -> Result<(), PartitionError> {
        let horizon = self.horizon()?;
        let (mut records, mut entries) = (0_u64, 0_u64);
        let head = self.view.get(&self.keys.head())?.and_then(|head| Head::decode(&head).ok());
        let last = Lsn::from_u64(head.unwrap_or_default().lsn);
        self.each(Group::History, |check, key, value| {
            records += 1;
            check.record(key, value, horizon, last)
        })?;
        self.each(Group::KeyHistory, |_, _, _| {
            entries += 1;
            Ok(())
        })?;
        if records != entries {
            self.each(Group::KeyHistory, |check, key, _| check.key_entry(key))?;
        }
        match horizon {
            Some(horizon) => {
                self.each(Group::Item, |check, key, value| check.is_recorded(key, value, horizon))
            }
            None => Ok(()),
        }
    }

    fn horizon(&mut self) -> Result<Option<Lsn>, PartitionError> {
        let Some(value) = self.view.get(&self.keys.horizon())? else { return Ok(None) };
        let horizon = decode_horizon(&value);
        if let Err(error) = horizon {
            self.found(error.to_string());
        }
        Ok(horizon.ok())
    }

    fn record(
        &mut self,
        key: &Bytes,
        value: &Bytes,
        horizon: Option<Lsn>,
        last: Lsn,
    ) -> Result<(), PartitionError> {
        let Some((at, record)) = self.decoded(key, value) else { return Ok(()) };
        let what = describe_key(key);
        if at.lsn > last {
            self.found(format!("{what} is after the last commit, {last}"));
        }
        if !self.bucket.range.contains(&record.epk) {
            self.found(format!("{what} with EPK {} is outside its bucket", record.epk));
        }
        if self.view.get(&self.keys.key_history(&record.epk, at))?.is_none() {
            self.found(format!("{what} is not in the history of its key"));
        }
        let definition = self.config.definition.partition_key();
        let located = definition.extract(record.json()).and_then(|key| definition.locate(&key));
        if located.ok().as_ref() != Some(&record.epk) {
            self.found(format!("{what} is not where its partition key belongs"));
        }
        let before = record.before.map(|before| before.lsn);
        if let Some(before) = before.filter(|before| horizon.is_some_and(|h| h < *before))
            && !self.has_records(&record.epk, before)?
        {
            self.found(format!("{what} follows position {before}, of which there is no record"));
        }
        Ok(())
    }

    fn decoded(&mut self, key: &Bytes, value: &Bytes) -> Option<(HistoryPosition, HistoryRecord)> {
        let at = key::split(key).and_then(|(_, _, _, rest)| HistoryPosition::take(rest));
        let Some(([], at)) = at else {
            self.found(format!("{} is not the key of a record", describe_key(key)));
            return None;
        };
        let record = match HistoryRecord::decode(at.lsn, value) {
            Ok(record) => record,
            Err(error) => {
                self.found(format!("{}: {error}", describe_key(key)));
                return None;
            }
        };
        if model::json::parse_raw(record.json().text().as_bytes()).is_err() {
            self.found(format!("{} is not valid JSON", describe_key(key)));
            return None;
        }
        Some((at, record))
    }

    fn key_entry(&mut self, key: &Bytes) -> Result<(), PartitionError> {
        let rest = key::split(key).map(|(_, _, _, rest)| rest);
        let at = rest.and_then(HistoryPosition::take).map(|(_, at)| at);
        let record = at.map(|at| self.view.get(&self.keys.history(at))).transpose()?;
        if record.flatten().is_none() {
            self.found(format!("{} belongs to no record", describe_key(key)));
        }
        Ok(())
    }

    /// What was written after the horizon must be in the history.
    fn is_recorded(
        &mut self,
        key: &Bytes,
        value: &Bytes,
        horizon: Lsn,
    ) -> Result<(), PartitionError> {
        let name = key::split(key).and_then(|(_, _, _, rest)| key::parse_item_name(rest));
        let (Some((epk, id)), Ok(item)) = (name, Item::decode(value)) else {
            // Found before.
            return Ok(());
        };
        if item.lsn > horizon && !self.has_records(&epk, item.lsn)? {
            self.found(format!("item {id:?} of position {} is not in the history", item.lsn));
        }
        Ok(())
    }

    fn has_records(&self, epk: &Epk, lsn: Lsn) -> Result<bool, PartitionError> {
        let range = KeyRange::prefix(&self.keys.key_history_from(epk, lsn));
        let chunk = self.view.scan(&range, Direction::Forward, ScanLimit::rows(1))?;
        Ok(!chunk.rows.is_empty())
    }
}
