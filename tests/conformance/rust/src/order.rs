//! Rows that nothing sorts: cases of the program. They come as their items were created: across
//! the keys of a physical partition, inside each key, and where the values that sort them are
//! equal. This SDK has no call that lists items, so all are queries.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::num::NonZeroU32;

use azure_data_cosmos::FeedScope;
use azure_data_cosmos::clients::ContainerClient;
use azure_data_cosmos::models::{ContainerProperties, ThroughputProperties};
use azure_data_cosmos::options::{
    CreateContainerOptions, MaxItemCountHint, QueryOptions, QueryPlanMode, ReadFeedRangesOptions,
};
use futures::TryStreamExt as _;
use serde_json::{Value, json};

use crate::{Failure, Outcome, World, ensure, model, texts};

/// The ids, as they are created: neither they nor their keys are in any other order.
const LETTERS: &str = "mzakqcxbtehwdnyfuljrgp";
const KEYS: usize = 5;
/// What many small pages cost in a second; a container with that still has one partition.
const ONE_PARTITION_MAX: u64 = 6000;

const QUERIES: [&str; 4] = [
    "SELECT * FROM c",
    "SELECT * FROM c WHERE c.same = 1",
    "SELECT * FROM c WHERE c.code > 0",
    "SELECT * FROM c ORDER BY c.same",
];

fn key_of(letter: char) -> String {
    format!("key {}", LETTERS.find(letter).unwrap_or_default() * 3 % KEYS)
}

fn item(letter: char, version: u32) -> Value {
    let code = u32::from(letter);
    json!({"id": letter, "pk": key_of(letter), "same": 1, "code": code, "version": version})
}

async fn create(container: &ContainerClient, letters: &str) -> Outcome {
    for letter in letters.chars() {
        let id = letter.to_string();
        container.create_item(key_of(letter), &id, item(letter, 0), None).await?;
    }
    Ok(())
}

fn of_key(letters: &str, key: &str) -> String {
    letters.chars().filter(|letter| key_of(*letter) == key).collect()
}

fn among(letters: &str, others: &str) -> String {
    letters.chars().filter(|letter| others.contains(*letter)).collect()
}

/// The letters that a query gives. Each page is read by an iterator of its own, which is given
/// the token of the page before.
async fn read(
    container: &ContainerClient,
    query: &str,
    scope: &FeedScope,
    options: &QueryOptions,
) -> Result<String, Failure> {
    let (mut letters, mut options) = (String::new(), options.clone());
    loop {
        let rows = container.query_items::<Value>(query, scope.clone(), Some(options.clone()));
        let mut pages = rows.await?.into_pages();
        let Some(page) = pages.try_next().await? else { return Ok(letters) };
        letters.extend(texts(page.items(), "id"));
        options = options.with_continuation_token(pages.to_continuation_token()?);
    }
}

/// Each way of reading gives every item once, and those of each sequence in its order.
async fn check(container: &ContainerClient, scope: FeedScope, sequences: &[String]) -> Outcome {
    let all: BTreeSet<char> = sequences.iter().flat_map(|sequence| sequence.chars()).collect();
    let two = MaxItemCountHint::Limit(NonZeroU32::new(2).ok_or("two")?);
    let paged = QueryOptions::default().with_max_item_count(two);
    let planned = paged.clone().with_query_plan_mode(QueryPlanMode::GatewayOnly);
    for options in [QueryOptions::default(), paged, planned] {
        for query in QUERIES {
            let letters = read(container, query, &scope, &options).await?;
            let found: Vec<String> = sequences.iter().map(|each| among(&letters, each)).collect();
            let what = format!("{query}: {letters} instead of {sequences:?}");
            ensure(found == sequences && letters.len() == all.len(), &what)?;
        }
    }
    Ok(())
}

async fn check_all(container: &ContainerClient, sequences: &[String]) -> Outcome {
    check(container, FeedScope::full_container(), sequences).await
}

async fn new_container(world: &World, name: &'static str) -> Result<ContainerClient, Failure> {
    let throughput = ThroughputProperties::manual(ONE_PARTITION_MAX);
    let options = CreateContainerOptions::default().with_throughput(throughput);
    let properties = ContainerProperties::new(name, "/pk".into());
    world.database().create_container(properties, Some(options)).await?;
    world.container(name).await
}

pub async fn rows_come_as_their_items_were_created(world: &World) -> Outcome {
    let container = new_container(world, "created").await?;
    let letters = LETTERS[..14].to_owned();
    create(&container, &letters).await?;
    check_all(&container, std::slice::from_ref(&letters)).await?;
    for key in ["key 0", "key 3"] {
        check(&container, FeedScope::partition(key), &[of_key(&letters, key)]).await?;
    }
    // Whatever changes an item leaves it where it is.
    container.replace_item(key_of('a'), "a", item('a', 1), None).await?;
    container.upsert_item(key_of('z'), "z", item('z', 1), None).await?;
    check_all(&container, std::slice::from_ref(&letters)).await?;
    // An item that is deleted and created again is a new one.
    container.delete_item(key_of('k'), "k", None).await?;
    create(&container, "k").await?;
    let letters = letters.replace('k', "") + "k";
    check_all(&container, std::slice::from_ref(&letters)).await?;
    let key = key_of('k');
    check(&container, FeedScope::partition(key.clone()), &[of_key(&letters, &key)]).await
}

/// Changes a layout as an operator would, and gives back the ids of the new ranges. The server's
/// one port takes plain requests as well.
fn operate(world: &World, verb: &str, body: &Value) -> Result<Vec<String>, Failure> {
    let (_, address) = world.endpoint.trim_end_matches('/').split_once("//").ok_or("no address")?;
    let (body, key) = (body.to_string(), &world.key);
    let mut stream = TcpStream::connect(address)?;
    write!(
        stream,
        "POST /_orrery/{verb} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
    ensure(head.starts_with("HTTP/1.1 200 "), &answer)?;
    let change: Value = serde_json::from_str(body)?;
    Ok(texts(change["new"].as_array().ok_or("no ranges")?, "id"))
}

/// The letters of each range, which must come in the same order among themselves.
async fn by_range(container: &ContainerClient, letters: &str) -> Result<Vec<String>, Failure> {
    let refreshed = ReadFeedRangesOptions::default().with_force_refresh(true);
    let mut parts = Vec::new();
    for range in container.read_feed_ranges(Some(refreshed)).await? {
        let scope = FeedScope::range(range);
        let found = read(container, QUERIES[0], &scope, &QueryOptions::default()).await?;
        let part = among(letters, &found);
        check(container, scope, std::slice::from_ref(&part)).await?;
        parts.push(part);
    }
    Ok(parts)
}

pub async fn rows_keep_their_order_through_splits_and_merges(world: &World) -> Outcome {
    let container = new_container(world, "moved").await?;
    let link = format!("dbs/{}/colls/moved", world.name);
    create(&container, &LETTERS[..10]).await?;
    let children = operate(world, "split", &json!({"container": link, "range": "0"}))?;
    ensure(by_range(&container, &LETTERS[..10]).await?.len() == 2, "not two ranges")?;
    create(&container, &LETTERS[10..16]).await?;
    let mut parts = by_range(&container, &LETTERS[..16]).await?;
    let many = parts.len() == 2 && parts.iter().all(|part| part.len() > 3);
    ensure(many, &format!("{parts:?}"))?;
    check_all(&container, &parts).await?;
    let merged = operate(world, "merge", &json!({"container": link, "ranges": children}))?;
    ensure(merged.len() == 1, &format!("{merged:?}"))?;
    // A client that still knows the old ranges asks for them first, and learns of the new one.
    check_all(&container, &parts).await?;
    create(&container, &LETTERS[16..20]).await?;
    parts.iter_mut().for_each(|part| part.push_str(&LETTERS[16..20]));
    check_all(&container, &parts).await?;
    let kept = json!({"id": "order", "deviceId": "order", "sequences": parts});
    world.container("coll").await?.upsert_item("order", "order", kept, None).await?;
    Ok(())
}

pub async fn verify_order_after_restart(world: &World) -> Outcome {
    let created = world.container("created").await?;
    create(&created, &LETTERS[14..16]).await?;
    check_all(&created, &[LETTERS[..14].replace('k', "") + "k" + &LETTERS[14..16]]).await?;
    let moved = world.container("moved").await?;
    let kept = world.container("coll").await?.read_item("order", "order", None).await?;
    let mut sequences: Vec<String> = serde_json::from_value(model(kept)?["sequences"].take())?;
    create(&moved, &LETTERS[20..]).await?;
    sequences.iter_mut().for_each(|sequence| sequence.push_str(&LETTERS[20..]));
    check_all(&moved, &sequences).await
}
