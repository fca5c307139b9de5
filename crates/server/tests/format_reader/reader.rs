//! A reader of data folders, written from `docs/formats/` alone: it shares no code with the
//! programs that write them. If a page lacks something, or says it wrongly, this reader
//! cannot know better.
//!
//! It reads all of a folder into memory and believes nothing: what is said twice is
//! compared.

pub(crate) mod backup;
pub(crate) mod bytes;
pub(crate) mod catalogue;
mod check;
pub(crate) mod distinct;
mod epk;
mod index;
mod murmur;
mod partition;
pub(crate) mod store;
pub(crate) mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use self::bytes::{Result, require};
use self::catalogue::{Catalogue, SYSTEM};
use self::partition::Bucket;
use self::store::{Rows, Store};

/// The version of the contents that the pages describe.
const CONTENTS: u32 = 3;

/// The one before, which has no history and nothing else that is different.
const CONTENTS_BEFORE: u32 = 2;

/// What a data folder holds.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) store: Store,
    pub(crate) contents: Contents,
}

/// What the rows of a store mean.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// By database and name.
    pub(crate) containers: BTreeMap<(String, String), Items>,
    /// Index entries that were compared.
    pub(crate) entries: usize,
}

/// The items of one container.
#[derive(Debug, Default)]
pub(crate) struct Items {
    /// As clients see them, by their resource ids.
    pub(crate) shown: BTreeMap<String, Value>,
    pub(crate) buckets: usize,
    pub(crate) ranges: usize,
}

/// Reads the data folder `data`.
pub(crate) fn read(data: &Path) -> Result<Folder> {
    let store = store::read(&data.join("store"))?;
    let contents = store.format.contents;
    require([CONTENTS_BEFORE, CONTENTS].contains(&contents), || format!("contents {contents}"))?;
    let contents = interpret(&store.rows)?;
    Ok(Folder { store, contents })
}

/// Finds all items, and compares what is derived from them with what they are.
pub(crate) fn interpret(rows: &Rows) -> Result<Contents> {
    let buckets = partition::buckets(rows)?;
    let empty = Bucket::default();
    let system = buckets.get(&SYSTEM).unwrap_or(&empty);
    check::bucket(system)?;
    let catalogue = Catalogue::of(system)?;
    for at in buckets.keys() {
        require(catalogue.knows(*at), || format!("bucket {at:?} is in no map"))?;
    }
    let mut contents = Contents::default();
    for (names, container) in &catalogue.containers {
        let map = catalogue.map(container)?;
        let (mut items, mut ordinals) = (Items::default(), BTreeSet::new());
        (items.buckets, items.ranges) = (map.buckets.len(), map.ranges.len());
        for span in &map.buckets {
            let bucket = buckets.get(&(container.number, span.number)).unwrap_or(&empty);
            check::bucket(bucket)?;
            check::container(container, map, span, bucket)?;
            contents.entries += bucket.entries.len();
            for item in &bucket.items {
                let is_new = ordinals.insert(item.ordinal);
                require(is_new, || format!("ordinal {} is there twice", item.ordinal))?;
                let shown = container.shown(item)?;
                items.shown.insert(shown["_rid"].as_str().unwrap_or_default().to_owned(), shown);
            }
        }
        contents.containers.insert(names.clone(), items);
    }
    Ok(contents)
}
