//! Reads for clients: from snapshot views of what is durable.

use std::sync::Arc;

use bytes::Bytes;
use model::epk::{Epk, EpkRange};
use model::name::ItemId;
use model::partition_key::PartitionKey;
use model::position::{Lsn, Ordinal, Timestamp};
use storage::{Direction, KeyRange, ScanLimit, View};

use crate::command::{Effect, EtagMatch, PartitionError};
use crate::config::{Bucket, PartitionConfig};
use crate::items;
use crate::key::{self, Group, Keys};
use crate::query::{AccessPlan, Approach, OrderError, Statistics, index_use, plan};
use crate::record::{Head, Item, KeyStatistics, RecordError};

/// Reads a partition's items from views.
#[derive(Clone, Debug)]
pub struct Reader {
    config: Arc<PartitionConfig>,
}

/// Some items in key order, and where to continue.
#[derive(Debug, Default)]
pub struct ItemPage {
    pub items: Vec<Item>,
    pub rest: Option<Position>,
}

/// A position between two items: everything up to this item has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    pub epk: Epk,
    pub id: String,
}

impl Reader {
    #[must_use]
    pub fn new(config: Arc<PartitionConfig>) -> Reader {
        Reader { config }
    }

    /// The end of the partition's last bucket.
    #[must_use]
    pub fn end(&self) -> &Epk {
        self.config.buckets.last().map_or(&Epk::MIN, |bucket| &bucket.range.max)
    }

    /// Reads one item.
    pub fn read(
        &self,
        view: &dyn View,
        now: Timestamp,
        (epk, id): (&Epk, &ItemId),
        if_none_match: Option<&EtagMatch>,
    ) -> Result<Effect, PartitionError> {
        let item = self.find(view, now, epk, id.as_str())?.ok_or(PartitionError::NotFound)?;
        Ok(items::read(&item, self.config.container_rid, if_none_match))
    }

    /// The live item of that key and id.
    pub fn find(
        &self,
        view: &dyn View,
        now: Timestamp,
        epk: &Epk,
        id: &str,
    ) -> Result<Option<Item>, PartitionError> {
        let bucket = self.bucket(epk)?;
        let Some(value) = view.get(&self.config.keys(bucket).item(epk, id))? else {
            return Ok(None);
        };
        let item = Item::decode(&value)?;
        Ok(Some(item).filter(|item| !self.config.is_expired(item, now)))
    }

    /// The id of the item with that ordinal, if it is in that logical partition.
    pub fn id_of(
        &self,
        view: &dyn View,
        epk: &Epk,
        ordinal: Ordinal,
    ) -> Result<Option<String>, PartitionError> {
        let keys = self.config.keys(self.bucket(epk)?);
        let Some(name) = view.get(&keys.ordinal(ordinal))? else { return Ok(None) };
        let malformed = RecordError::Malformed { what: "ordinal" };
        let (found, id) = key::parse_item_name(&name).ok_or(malformed)?;
        Ok((found == *epk).then(|| id.to_owned()))
    }

    /// Reads items in the order of EPK and id, after `after`, within `range`, those whose
    /// keys begin with `prefix`. The page may end early, even empty; only `rest` says
    /// whether there is more. A page has room for at least one item, however large.
    pub fn list(
        &self,
        view: &dyn View,
        now: Timestamp,
        (range, prefix): (&EpkRange, Option<&PartitionKey>),
        after: Option<&Position>,
        room: (usize, u64),
    ) -> Result<ItemPage, PartitionError> {
        self.list_while(&mut || true, (view, now), (range, prefix), after, room)
    }

    /// The same as long as `go_on` returns true, which is called now and then.
    pub fn list_while(
        &self,
        go_on: &mut dyn FnMut() -> bool,
        (view, now): (&dyn View, Timestamp),
        (range, prefix): (&EpkRange, Option<&PartitionKey>),
        after: Option<&Position>,
        (items_max, bytes_max): (usize, u64),
    ) -> Result<ItemPage, PartitionError> {
        let start = after.map_or(&range.min, |position| &position.epk);
        let items_max = items_max.max(1);
        let mut listing = Listing {
            reader: self,
            go_on,
            view,
            now,
            range,
            prefix,
            items_max,
            bytes_left: bytes_max,
            rows: 0,
            page: ItemPage::default(),
        };
        for bucket in self.config.buckets.iter().filter(|bucket| bucket.range.overlaps(range)) {
            if *start < bucket.range.max && !listing.bucket(bucket, after)? {
                return Ok(listing.page);
            }
        }
        listing.page.rest = None;
        Ok(listing.page)
    }

    /// Reads the items of one logical partition whose ids begin with `prefix`, after
    /// `after`, in order, and whether there are more. Limited by a number of items and of
    /// bytes, but there is always room for one item.
    pub fn list_prefix(
        &self,
        view: &dyn View,
        (epk, prefix): (&Epk, &str),
        after: Option<&str>,
        (items_max, bytes_max): (usize, u64),
    ) -> Result<(Vec<Item>, bool), PartitionError> {
        let keys = self.config.keys(self.bucket(epk)?);
        let mut range = KeyRange::prefix(&keys.item(epk, prefix));
        if let Some(after) = after {
            range.start = range.start.max(keys.after_item(epk, after));
        }
        let (mut items, mut bytes) = (Vec::new(), 0);
        loop {
            // One more than the page holds, to detect whether there are more.
            let rows = items_max.saturating_sub(items.len()).saturating_add(1);
            let chunk =
                view.scan(&range, Direction::Forward, ScanLimit { rows, ..ScanLimit::default() })?;
            for (_, value) in &chunk.rows {
                let item = Item::decode(value)?;
                bytes += item.bytes();
                if items.len() >= items_max.max(1) || (bytes > bytes_max && !items.is_empty()) {
                    return Ok((items, true));
                }
                items.push(item);
            }
            match chunk.rest {
                Some(rest) => range = rest,
                None => return Ok((items, false)),
            }
        }
    }

    /// The LSN of the partition.
    pub fn lsn(&self, view: &dyn View) -> Result<Lsn, PartitionError> {
        let mut lsn = self.config.lsn_floor;
        for bucket in self.config.written_buckets() {
            lsn = lsn.max(Lsn::from_u64(self.head(view, bucket)?.lsn));
        }
        Ok(lsn)
    }

    /// The sizes of all buckets together.
    pub fn size(&self, view: &dyn View) -> Result<Head, PartitionError> {
        let mut total = Head::default();
        for bucket in &self.config.buckets {
            let head = self.head(view, bucket)?;
            total.lsn = total.lsn.max(head.lsn);
            total.ts_millis = total.ts_millis.max(head.ts_millis);
            total.items += head.items;
            total.bytes += head.bytes;
        }
        Ok(total)
    }

    /// The size of one bucket.
    pub fn head(&self, view: &dyn View, bucket: &Bucket) -> Result<Head, PartitionError> {
        match view.get(&self.config.keys(bucket).head())? {
            Some(value) => Ok(Head::decode(&value)?),
            None => Ok(Head::default()),
        }
    }

    /// The size of one logical partition.
    pub fn key_statistics(
        &self,
        view: &dyn View,
        epk: &Epk,
    ) -> Result<KeyStatistics, PartitionError> {
        let bucket = self.bucket(epk)?;
        match view.get(&self.config.keys(bucket).statistics(epk))? {
            Some(value) => Ok(KeyStatistics::decode(&value)?),
            None => Ok(KeyStatistics::default()),
        }
    }

    /// Whether it reads by this configuration and no other.
    #[must_use]
    pub fn follows(&self, config: &Arc<PartitionConfig>) -> bool {
        Arc::ptr_eq(&self.config, config)
    }

    /// The buckets of the partition, in the order of their ranges.
    #[must_use]
    pub fn buckets(&self) -> &[Bucket] {
        &self.config.buckets
    }

    /// Chooses how to find the items of a query, for every bucket of the container.
    pub fn plan(
        &self,
        query: (&query::Bound, Approach),
        statistics: &dyn Statistics,
    ) -> Result<Result<AccessPlan, OrderError>, PartitionError> {
        plan(&self.config, query, statistics)
    }

    /// The indexes that a query can be served from, and those that it lacks.
    #[must_use]
    pub fn index_use(&self, query: &query::Bound) -> query::IndexUse {
        index_use(&self.config, query)
    }

    pub(crate) fn shared_config(&self) -> &Arc<PartitionConfig> {
        &self.config
    }

    pub(crate) fn config(&self) -> &PartitionConfig {
        &self.config
    }

    fn bucket(&self, epk: &Epk) -> Result<&Bucket, PartitionError> {
        self.config.bucket_of(epk).ok_or(PartitionError::Gone)
    }
}

/// The key and id of the item with that ordinal, which an entry refers to.
pub(crate) fn stored_name(
    view: &dyn View,
    keys: &Keys,
    ordinal: Ordinal,
) -> Result<Position, PartitionError> {
    let malformed = RecordError::Malformed { what: "ordinal" };
    let name = view.get(&keys.ordinal(ordinal))?.ok_or(malformed)?;
    let (epk, id) = key::parse_item_name(&name).ok_or(malformed)?;
    Ok(Position { epk, id: id.to_owned() })
}

/// Rows that one page reads, whether or not they are in it: a run of expired items, or of
/// other keys' items, must not make a page endless.
const PAGE_ROWS_MAX: usize = 10_000;

/// A page under construction.
struct Listing<'a> {
    reader: &'a Reader,
    go_on: &'a mut dyn FnMut() -> bool,
    view: &'a dyn View,
    now: Timestamp,
    range: &'a EpkRange,
    prefix: Option<&'a PartitionKey>,
    items_max: usize,
    bytes_left: u64,
    rows: usize,
    /// Its `rest` is the last item read.
    page: ItemPage,
}

impl Listing<'_> {
    /// Reads through one bucket; false when the page ended inside it.
    fn bucket(
        &mut self,
        bucket: &Bucket,
        after: Option<&Position>,
    ) -> Result<bool, PartitionError> {
        let keys = self.reader.config.keys(bucket);
        let mut remaining = KeyRange::prefix(&keys.group(Group::Item));
        remaining.start = remaining.start.max(keys.item(&self.range.min, ""));
        if self.range.max < bucket.range.max {
            remaining.end = Some(keys.item(&self.range.max, ""));
        }
        if let Some(position) = after {
            let after = keys.after_item(&position.epk, &position.id);
            remaining.start = remaining.start.max(after);
        }
        loop {
            let chunk = self.view.scan(&remaining, Direction::Forward, ScanLimit::default())?;
            for (key, value) in &chunk.rows {
                if !self.row(key, value)? {
                    return Ok(false);
                }
            }
            match chunk.rest {
                Some(_) if !(self.go_on)() => return Ok(false),
                Some(rest) => remaining = rest,
                None => return Ok(true),
            }
        }
    }

    /// Adds one row; false when the page was full before it.
    fn row(&mut self, key: &Bytes, value: &Bytes) -> Result<bool, PartitionError> {
        if self.page.items.len() >= self.items_max || self.rows >= PAGE_ROWS_MAX {
            return Ok(false);
        }
        let item = Item::decode(value)?;
        let config = &self.reader.config;
        let wanted = !config.is_expired(&item, self.now) && config.has_prefix(&item, self.prefix);
        if wanted && !self.page.items.is_empty() && item.bytes() > self.bytes_left {
            return Ok(false);
        }
        self.rows += 1;
        self.page.rest = Some(parse_item_key(key)?);
        if wanted {
            self.bytes_left = self.bytes_left.saturating_sub(item.bytes());
            self.page.items.push(item);
        }
        Ok(true)
    }
}

pub(crate) fn parse_item_key(key: &Bytes) -> Result<Position, PartitionError> {
    let parsed = key::split(key).and_then(|(_, _, _, rest)| key::parse_item_name(rest));
    let (epk, id) = parsed.ok_or(RecordError::Malformed { what: "item key" })?;
    Ok(Position { epk, id: id.to_owned() })
}
