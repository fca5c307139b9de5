//! The change feed: cases of the program.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use azure_core::time::OffsetDateTime;
use azure_data_cosmos::FeedScope;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::feed::ContinuationToken;
use azure_data_cosmos::models::{ContainerProperties, ThroughputProperties};
use azure_data_cosmos::options::{
    ChangeFeedOptions, ChangeFeedStartFrom, MaxItemCountHint, ReadFeedRangesOptions,
};
use futures::TryStreamExt as _;
use serde_json::{Value, json};

use crate::{Failure, Outcome, World, ensure, model, write_options};

const KEYS: u64 = 7;
/// A layout changes within some writes; a machine may be busy with other things.
const WRITES_MAX: u64 = 2_000;

/// More ranges than any container here has. Each empty page is of one of them, in turn: as many
/// without a change say that nothing is new.
const RANGES_MAX: usize = 16;

/// Items in their versions, by key.
type Versions = BTreeMap<String, Vec<(String, u64)>>;

/// Writes items, and knows what a feed must tell that begins where `take` was last called.
struct Writer {
    container: ContainerClient,
    expected: Versions,
}

fn key(number: u64) -> String {
    format!("key {}", number % KEYS)
}

impl Writer {
    fn new(container: &ContainerClient) -> Writer {
        Writer { container: container.clone(), expected: Versions::new() }
    }

    fn forget(&mut self, number: u64) {
        let id = number.to_string();
        self.expected.entry(key(number)).or_default().retain(|(other, _)| *other != id);
    }

    async fn put(&mut self, number: u64, version: u64) -> Result<Value, Failure> {
        let (id, key) = (number.to_string(), key(number));
        let item = json!({"id": id, "pk": key, "version": version});
        let written =
            self.container.upsert_item(key.clone(), &id, item, Some(write_options())).await?;
        self.forget(number);
        self.expected.entry(key).or_default().push((id, version));
        model(written)
    }

    async fn delete(&mut self, number: u64) -> Outcome {
        self.container.delete_item(key(number), &number.to_string(), None).await?;
        self.forget(number);
        Ok(())
    }

    /// Creates items, changes some of them once or twice and deletes some.
    async fn write_some(&mut self, first: u64) -> Outcome {
        let numbers = first..first + 4 * KEYS;
        for (version, every) in [(0, 1), (1, 3), (2, 6)] {
            for number in numbers.clone().step_by(every) {
                self.put(number, version).await?;
            }
        }
        for number in numbers.step_by(5) {
            self.delete(number).await?;
        }
        Ok(())
    }

    fn take(&mut self) -> Versions {
        let mut taken = std::mem::take(&mut self.expected);
        taken.retain(|_, versions| !versions.is_empty());
        taken
    }
}

/// An item that changed, and the position of the change.
#[derive(Clone, Debug, PartialEq)]
struct Change {
    item: Value,
    lsn: i64,
}

impl Change {
    fn text(&self, name: &str) -> String {
        self.item[name].as_str().unwrap_or_default().to_owned()
    }
}

/// Of each key every item once, in its latest version, in the order of the writes.
fn check(changes: &[Change], expected: &Versions) -> Outcome {
    let (mut told, mut last) = (Versions::new(), BTreeMap::new());
    for change in changes {
        let version = change.item["version"].as_u64().ok_or("no version")?;
        told.entry(change.text("pk")).or_default().push((change.text("id"), version));
        let before = last.insert(change.text("pk"), change.lsn);
        ensure(Some(change.lsn) > before, &format!("LSN {} after {before:?}", change.lsn))?;
    }
    ensure(told == *expected, &format!("{told:?} instead of {expected:?}"))
}

/// Where a feed begins: both are arguments of the same call.
enum Start {
    At(ChangeFeedStartFrom),
    After(ContinuationToken),
}

/// All that there is now, and the position behind it.
async fn feed(
    container: &ContainerClient,
    scope: FeedScope,
    start: Start,
    size: u32,
) -> Result<(Vec<Change>, ContinuationToken), Failure> {
    let size = MaxItemCountHint::Limit(NonZeroU32::new(size).ok_or("no items")?);
    let options = ChangeFeedOptions::default().with_max_item_count(size);
    let (start, options) = match start {
        Start::At(start) => (start, options),
        Start::After(token) => {
            (ChangeFeedStartFrom::Beginning, options.with_continuation_token(token))
        }
    };
    let mut pages = container.query_change_feed::<Value>(scope, start, Some(options)).await?;
    let (mut changes, mut empty) = (Vec::new(), 0);
    while empty < RANGES_MAX {
        let page = pages.try_next().await?.ok_or("a feed has no end")?;
        empty = if page.items().is_empty() { empty + 1 } else { 0 };
        for change in page.into_items() {
            let item = change.current().ok_or("a change without its item")?.clone();
            let lsn = change.metadata().and_then(|metadata| metadata.lsn());
            changes.push(Change { item, lsn: lsn.ok_or("a change without its LSN")?.value() });
        }
    }
    Ok((changes, pages.to_continuation_token()?))
}

async fn from_beginning(
    container: &ContainerClient,
    scope: FeedScope,
    size: u32,
) -> Result<(Vec<Change>, ContinuationToken), Failure> {
    feed(container, scope, Start::At(ChangeFeedStartFrom::Beginning), size).await
}

async fn after(
    container: &ContainerClient,
    token: &ContinuationToken,
) -> Result<(Vec<Change>, ContinuationToken), Failure> {
    feed(container, FeedScope::full_container(), Start::After(token.clone()), 100).await
}

async fn nothing_new(container: &ContainerClient, token: &ContinuationToken) -> Outcome {
    let (changes, _) = after(container, token).await?;
    ensure(changes.is_empty(), &format!("{changes:?}"))
}

async fn new_container(world: &World, name: &'static str) -> Result<ContainerClient, Failure> {
    world.create_container(ContainerProperties::new(name, "/pk".into())).await?;
    world.container(name).await
}

pub async fn change_feed_from_the_beginning(world: &World) -> Outcome {
    let container = new_container(world, "changes").await?;
    let (nothing, _) = from_beginning(&container, FeedScope::full_container(), 100).await?;
    ensure(nothing.is_empty(), "changes where nothing is")?;
    let mut writer = Writer::new(&container);
    writer.write_some(0).await?;
    let expected = writer.take();
    for size in [100, 3, 1] {
        let (changes, _) = from_beginning(&container, FeedScope::full_container(), size).await?;
        check(&changes, &expected)?;
    }
    Ok(())
}

pub async fn change_feed_goes_on_from_its_continuation(world: &World) -> Outcome {
    let container = new_container(world, "continued").await?;
    let mut writer = Writer::new(&container);
    writer.write_some(0).await?;
    let (changes, mut token) = from_beginning(&container, FeedScope::full_container(), 2).await?;
    check(&changes, &writer.take())?;
    for first in [10, 20] {
        writer.write_some(first).await?;
        let (changes, next) = after(&container, &token).await?;
        check(&changes, &writer.take())?;
        token = next;
    }
    nothing_new(&container, &token).await?;
    // The delete of an item that was told before is no change in this mode.
    writer.delete(1).await?;
    nothing_new(&container, &token).await
}

pub async fn change_feed_from_now(world: &World) -> Outcome {
    let container = new_container(world, "now").await?;
    let mut writer = Writer::new(&container);
    writer.write_some(0).await?;
    writer.take();
    let now = Start::At(ChangeFeedStartFrom::Now);
    let (nothing, token) = feed(&container, FeedScope::full_container(), now, 100).await?;
    ensure(nothing.is_empty(), "changes of before")?;
    writer.write_some(2).await?;
    let (changes, token) = after(&container, &token).await?;
    check(&changes, &writer.take())?;
    nothing_new(&container, &token).await
}

pub async fn change_feed_from_a_point_in_time(world: &World) -> Outcome {
    let container = new_container(world, "since").await?;
    let mut writer = Writer::new(&container);
    writer.write_some(0).await?;
    let before = writer.put(0, 3).await?["_ts"].as_i64().ok_or("no time")?;
    // Times of changes are whole seconds; two of them leave one without a change in between.
    while writer.put(0, 4).await?["_ts"].as_i64() < Some(before + 2) {}
    writer.take();
    writer.put(0, 5).await?;
    writer.write_some(20).await?;
    let time = OffsetDateTime::from_unix_timestamp(before + 1)?;
    let start = Start::At(ChangeFeedStartFrom::PointInTime(time));
    let (changes, token) = feed(&container, FeedScope::full_container(), start, 4).await?;
    check(&changes, &writer.take())?;
    nothing_new(&container, &token).await?;
    writer.write_some(1).await?;
    let (changes, _) = after(&container, &token).await?;
    check(&changes, &writer.take())
}

pub async fn change_feed_of_one_key(world: &World) -> Outcome {
    let container = world.container("continued").await?;
    let (whole, _) = from_beginning(&container, FeedScope::full_container(), 100).await?;
    for key in (0..KEYS).map(key) {
        let scope = || FeedScope::partition(key.clone());
        let (changes, token) = from_beginning(&container, scope(), 2).await?;
        let of_key = whole.iter().filter(|change| change.text("pk") == key);
        ensure(!changes.is_empty() && of_key.eq(&changes), &format!("{changes:?}"))?;
        let (more, _) = feed(&container, scope(), Start::After(token), 100).await?;
        ensure(more.is_empty(), &format!("{more:?}"))?;
    }
    let scope = || FeedScope::partition("key 3");
    let now = Start::At(ChangeFeedStartFrom::Now);
    let (_, token) = feed(&container, scope(), now, 100).await?;
    let mut writer = Writer::new(&container);
    writer.write_some(100).await?;
    let (changes, _) = feed(&container, scope(), Start::After(token), 100).await?;
    let mut expected = writer.take();
    expected.retain(|key, _| key == "key 3");
    check(&changes, &expected)
}

pub async fn change_feed_of_feed_ranges(world: &World) -> Outcome {
    let container = world.container("continued").await?;
    let (mut whole, _) = from_beginning(&container, FeedScope::full_container(), 100).await?;
    let ranges = container.read_feed_ranges(None).await?;
    ensure(ranges.len() == world.partitions, &format!("{} ranges", ranges.len()))?;
    let (mut parts, mut tokens) = (Vec::new(), Vec::new());
    for range in ranges {
        let scope = FeedScope::range(range);
        let (changes, token) = from_beginning(&container, scope.clone(), 5).await?;
        ensure(changes.is_sorted_by_key(|change| change.lsn), "not in the order of commits")?;
        parts.extend(changes);
        tokens.push((scope, token));
    }
    parts.sort_by_key(|change| change.text("id"));
    whole.sort_by_key(|change| change.text("id"));
    ensure(parts == whole, "the ranges do not make up the whole")?;
    let mut writer = Writer::new(&container);
    writer.write_some(200).await?;
    let mut more = Vec::new();
    for (scope, token) in tokens {
        more.extend(feed(&container, scope, Start::After(token), 100).await?.0);
    }
    check(&more, &writer.take())
}

/// More throughput than the partitions can have makes the server split them all.
pub async fn change_feed_goes_on_through_splits(world: &World) -> Outcome {
    let container = new_container(world, "splitting").await?;
    let mut writer = Writer::new(&container);
    let now = Start::At(ChangeFeedStartFrom::Now);
    let (_, mut token) = feed(&container, FeedScope::full_container(), now, 100).await?;
    let (mut number, mut after_split) = (0, 0);
    while after_split < 2 * KEYS {
        ensure(number < WRITES_MAX, "no split")?;
        if number == KEYS {
            let more = ThroughputProperties::manual(10_000 * world.partitions as u64 + 1_000);
            container.begin_replace_throughput(more, None).await?.await?;
        }
        writer.put(number % (2 * KEYS), number).await?;
        number += 1;
        let (changes, next) = after(&container, &token).await?;
        check(&changes, &writer.take())?;
        token = next;
        let anew = ReadFeedRangesOptions::default().with_force_refresh(true);
        let ranges = container.read_feed_ranges(Some(anew)).await?;
        after_split += u64::from(ranges.len() > world.partitions);
    }
    nothing_new(&container, &token).await
}

pub async fn change_feed_position_is_kept(world: &World) -> Outcome {
    let container = new_container(world, "followed").await?;
    let mut writer = Writer::new(&container);
    writer.write_some(0).await?;
    let (_, token) = from_beginning(&container, FeedScope::full_container(), 100).await?;
    for number in [3, 1, 2] {
        writer.put(number, 7).await?;
    }
    let position = json!({"id": "position", "deviceId": "followed", "position": token.as_str()});
    world.container("coll").await?.upsert_item("followed", "position", position, None).await?;
    Ok(())
}

pub async fn verify_change_feed_after_restart(world: &World) -> Outcome {
    let container = world.container("followed").await?;
    let kept = world.container("coll").await?.read_item("followed", "position", None).await?;
    let kept = model(kept)?["position"].as_str().ok_or("no position")?.to_owned();
    let (changes, token) = after(&container, &ContinuationToken::from_string(kept)).await?;
    let missed = [1, 2, 3].map(|number| (key(number), vec![(number.to_string(), 7)]));
    check(&changes, &Versions::from(missed))?;
    let mut writer = Writer::new(&container);
    writer.write_some(30).await?;
    let (changes, token) = after(&container, &token).await?;
    check(&changes, &writer.take())?;
    nothing_new(&container, &token).await
}
