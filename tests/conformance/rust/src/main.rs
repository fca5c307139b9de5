//! The official Rust SDK, unmodified, against a running Orrery.
//!
//! Usage: conformance ENDPOINT KEY PARTITIONS [write|verify]
//!
//! `write` runs everything and leaves some items behind; `verify` runs after a
//! restart and expects them. Each case prints `ok NAME` or `FAILED NAME: why`, and
//! the last line counts them. This SDK writes items as binary JSON, which no other
//! does, and speaks HTTP/2 from the first byte. One option is not its default: over
//! https no certificate is checked, as for the emulators.

mod changes;
mod order;
mod parity;

use std::collections::BTreeSet;
use std::error::Error;
use std::process::ExitCode;

use azure_core::credentials::Secret;
use azure_data_cosmos::clients::{ContainerClient, DatabaseClient};
use azure_data_cosmos::models::{ContainerProperties, ItemResponse, ThroughputProperties};
use azure_data_cosmos::options::{
    BatchOptions, ConnectionPoolOptions, ContentResponseOnWrite, CreateContainerOptions,
    ItemWriteOptions, MaxItemCountHint, OperationOptions, OperationOptionsBuilder, Precondition,
    QueryOptions, QueryPlanMode, ServerCertificateValidation,
};
use azure_data_cosmos::{
    AccountReference, CosmosClient, CosmosRuntimeBuilder, FeedScope, PartitionKey, Query,
    RoutingStrategy, TransactionalBatch,
};
use futures::TryStreamExt as _;
use serde_json::{Value, json};

use crate::changes::{
    change_feed_from_a_point_in_time, change_feed_from_now, change_feed_from_the_beginning,
    change_feed_goes_on_from_its_continuation, change_feed_goes_on_through_splits,
    change_feed_of_feed_ranges, change_feed_of_one_key, change_feed_position_is_kept,
    verify_change_feed_after_restart,
};
use crate::order::{
    rows_come_as_their_items_were_created, rows_keep_their_order_through_splits_and_merges,
    verify_order_after_restart,
};
use crate::parity::{
    a_parameter_that_nobody_gave_is_undefined, ids_with_slashes,
    no_bodies_of_a_batch_when_not_wanted, numbers_have_one_form,
    rows_without_a_sort_value_come_first,
};

type Failure = Box<dyn Error>;
type Outcome = Result<(), Failure>;

/// Items that `write` leaves and `verify` expects.
const KEPT: u64 = 50;

/// What the cases share.
struct World {
    endpoint: String,
    key: String,
    client: CosmosClient,
    name: String,
    partitions: usize,
    throughput: u64,
}

impl World {
    async fn connect(endpoint: &str, key: &str, partitions: usize) -> Result<World, Failure> {
        let validation = ServerCertificateValidation::RequiredUnlessEmulator;
        let pool = ConnectionPoolOptions::builder().with_server_certificate_validation(validation);
        let runtime =
            CosmosRuntimeBuilder::new().with_connection_pool(pool.build()?).build().await?;
        let account = AccountReference::with_authentication_key(
            endpoint.parse()?,
            Secret::from(key.to_owned()),
        );
        let client = CosmosClient::builder()
            .with_runtime(runtime)
            .build(account, RoutingStrategy::ProximityTo("East US".into()))
            .await?;
        let throughput = if partitions == 1 { 400 } else { 6000 * partitions as u64 };
        let (endpoint, key) = (endpoint.to_owned(), key.to_owned());
        Ok(World { endpoint, key, client, name: format!("rs{partitions}"), partitions, throughput })
    }

    fn database(&self) -> DatabaseClient {
        self.client.database_client(self.name.clone())
    }

    async fn container(&self, name: &str) -> Result<ContainerClient, Failure> {
        Ok(self.database().container_client(name.to_owned(), None).await?)
    }

    async fn create_container(&self, properties: ContainerProperties) -> Outcome {
        let throughput = ThroughputProperties::manual(self.throughput);
        let options = CreateContainerOptions::default().with_throughput(throughput);
        self.database().create_container(properties, Some(options)).await?;
        Ok(())
    }
}

/// Asks for the written item in the answer, which this SDK leaves out otherwise.
fn with_content() -> OperationOptions {
    OperationOptionsBuilder::new()
        .with_content_response_on_write(ContentResponseOnWrite::Enabled)
        .build()
}

fn write_options() -> ItemWriteOptions {
    ItemWriteOptions::default().with_operation_options(with_content())
}

/// The request must have been refused with this status.
fn refused<T>(status: u16, outcome: azure_data_cosmos::Result<T>) -> Outcome {
    match outcome {
        Ok(_) => Err(format!("not refused with {status}").into()),
        Err(error) if u16::from(error.status().status_code()) == status => Ok(()),
        Err(error) => Err(format!("not {status}: {error}").into()),
    }
}

fn ensure(holds: bool, what: &str) -> Outcome {
    if holds { Ok(()) } else { Err(what.to_owned().into()) }
}

fn model(response: ItemResponse) -> Result<Value, Failure> {
    Ok(response.into_model()?)
}

fn reading(value: f64) -> Value {
    json!({"id": "XMS-001-FE24C", "deviceId": "XMS-0001", "metricType": "Temperature",
           "metricValue": value, "unit": "Fahrenheit", "tags": ["hot", null, true, -7, 1.5]})
}

async fn sample_1_create_database(world: &World) -> Outcome {
    world.client.create_database(&world.name, None).await?;
    world.database().read(None).await?;
    refused(409, world.client.create_database(&world.name, None).await)
}

async fn sample_2_create_container_with_key_and_throughput(world: &World) -> Outcome {
    world.create_container(ContainerProperties::new("coll", "/deviceId".into())).await?;
    let container = world.container("coll").await?;
    let read = container.read(None).await?.into_model()?;
    ensure(read.id == "coll", "the container has another name")?;
    let ranges = container.read_feed_ranges(None).await?;
    ensure(ranges.len() == world.partitions, &format!("{} ranges", ranges.len()))
}

async fn sample_3_create_item(world: &World) -> Outcome {
    let container = world.container("coll").await?;
    let create = || {
        container.create_item("XMS-0001", "XMS-001-FE24C", reading(105.5), Some(write_options()))
    };
    let created = model(create().await?)?;
    for name in ["_rid", "_etag", "_ts"] {
        ensure(!created[name].is_null(), name)?;
    }
    refused(409, create().await)
}

async fn sample_4_read_by_key_and_id(world: &World) -> Outcome {
    let container = world.container("coll").await?;
    let read = model(container.read_item("XMS-0001", "XMS-001-FE24C", None).await?)?;
    for (name, value) in reading(105.5).as_object().into_iter().flatten() {
        ensure(read.get(name) == Some(value), &format!("{name} is {}", read[name]))?;
    }
    refused(404, container.read_item("XMS-0002", "XMS-001-FE24C", None).await)
}

async fn sample_5_replace(world: &World) -> Outcome {
    let container = world.container("coll").await?;
    container.replace_item("XMS-0001", "XMS-001-FE24C", reading(104.0), None).await?;
    let read = model(container.read_item("XMS-0001", "XMS-001-FE24C", None).await?)?;
    ensure(read["metricValue"] == 104.0, "the value was not replaced")?;
    refused(
        404,
        container
            .replace_item("x", "nothing", json!({"id": "nothing", "deviceId": "x"}), None)
            .await,
    )
}

async fn sample_6_delete(world: &World) -> Outcome {
    let container = world.container("coll").await?;
    container.delete_item("XMS-0001", "XMS-001-FE24C", None).await?;
    refused(404, container.read_item("XMS-0001", "XMS-001-FE24C", None).await)?;
    refused(404, container.delete_item("XMS-0001", "XMS-001-FE24C", None).await)
}

/// Readings of ten devices, every second one a temperature.
fn readings() -> Vec<Value> {
    let kind = |n: u64| if n % 2 == 1 { "Humidity" } else { "Temperature" };
    let reading = |device: u64, n: u64| {
        json!({"id": format!("{device}-{n}"), "deviceId": format!("XMS-{device:04}"),
               "metricType": kind(n), "metricValue": 80 + (device * 37 + n * 11) % 50})
    };
    (1..=10).flat_map(|device| (0..12).map(move |n| reading(device, n))).collect()
}

fn hot() -> Vec<Value> {
    let is_hot = |each: &Value| {
        each["metricType"] == "Temperature" && each["metricValue"].as_u64() > Some(100)
    };
    readings().into_iter().filter(is_hot).collect()
}

const HOT_ONES: &str =
    r#"SELECT * FROM root WHERE root["metricType"] = "Temperature" AND root["metricValue"] > 100"#;

/// The rows of a query, and the partitions that gave its pages.
async fn query(
    world: &World,
    query: impl Into<Query>,
    scope: FeedScope,
    options: QueryOptions,
) -> Result<(Vec<Value>, BTreeSet<String>), Failure> {
    let container = world.container("readings").await?;
    let mut pages = container.query_items::<Value>(query, scope, Some(options)).await?.into_pages();
    let (mut rows, mut partitions) = (Vec::new(), BTreeSet::new());
    while let Some(page) = pages.try_next().await? {
        partitions.extend(page.headers().partition_key_range_id().map(str::to_owned));
        rows.extend(page.into_items());
    }
    Ok((rows, partitions))
}

/// The text of a property of each row.
fn texts(rows: &[Value], name: &str) -> Vec<String> {
    rows.iter().map(|row| row[name].as_str().unwrap_or_default().to_owned()).collect()
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}

async fn sample_7_query_by_key_asks_one_partition(world: &World) -> Outcome {
    world.create_container(ContainerProperties::new("readings", "/deviceId".into())).await?;
    let container = world.container("readings").await?;
    for reading in readings() {
        let (key, id) = (reading["deviceId"].as_str(), reading["id"].as_str());
        let (key, id) = (key.unwrap_or_default(), id.unwrap_or_default());
        container.create_item(key.to_owned(), id, &reading, None).await?;
    }
    let text =
        r#"SELECT * FROM root WHERE root["metricType"] = @type AND root["deviceId"] = @device"#;
    let expected: Vec<String> = (0..6).map(|n| format!("1-{}", 2 * n)).collect();
    for scope in [FeedScope::full_container(), FeedScope::partition("XMS-0001")] {
        let text = Query::from(text)
            .with_parameter("@type", "Temperature")?
            .with_parameter("@device", "XMS-0001")?;
        let (rows, partitions) = query(world, text, scope, QueryOptions::default()).await?;
        ensure(sorted(texts(&rows, "id")) == sorted(expected.clone()), &format!("{rows:?}"))?;
        ensure(partitions.len() <= 1, &format!("asked {partitions:?}"))?;
    }
    Ok(())
}

async fn sample_8_query_across_partitions(world: &World) -> Outcome {
    let (rows, partitions) =
        query(world, HOT_ONES, FeedScope::full_container(), QueryOptions::default()).await?;
    ensure(sorted(texts(&rows, "id")) == sorted(texts(&hot(), "id")), &format!("{rows:?}"))?;
    ensure(partitions.len() == world.partitions, &format!("asked {partitions:?}"))
}

async fn sample_9_query_in_order(world: &World) -> Outcome {
    let text = format!(r#"{HOT_ONES} ORDER BY root["metricValue"]"#);
    let values = |rows: &[Value]| -> Vec<Option<u64>> {
        rows.iter().map(|row| row["metricValue"].as_u64()).collect()
    };
    let mut expected = values(&hot());
    expected.sort();
    let small = MaxItemCountHint::Limit(std::num::NonZeroU32::new(3).ok_or("three")?);
    let mut orders = BTreeSet::new();
    for options in [
        QueryOptions::default(),
        QueryOptions::default().with_query_plan_mode(QueryPlanMode::GatewayOnly),
        QueryOptions::default().with_max_item_count(small),
    ] {
        let (rows, _) = query(world, text.as_str(), FeedScope::full_container(), options).await?;
        ensure(values(&rows) == expected, &format!("{:?}", values(&rows)))?;
        orders.insert(texts(&rows, "id"));
    }
    ensure(orders.len() == 1, "the order depends on the size of pages or on the plan")
}

async fn top_offset_and_distinct_across_partitions(world: &World) -> Outcome {
    let by_id = sorted(texts(&readings(), "id"));
    for mode in [QueryPlanMode::LocalPreferred, QueryPlanMode::GatewayOnly] {
        let rows = async |text: &str| {
            let options = QueryOptions::default().with_query_plan_mode(mode);
            query(world, text, FeedScope::full_container(), options).await.map(|(rows, _)| rows)
        };
        let top = rows("SELECT TOP 7 c.id FROM c ORDER BY c.id").await?;
        ensure(texts(&top, "id") == by_id[..7], &format!("{top:?}"))?;
        let page = rows("SELECT c.id FROM c ORDER BY c.id OFFSET 30 LIMIT 20").await?;
        ensure(texts(&page, "id") == by_id[30..50], &format!("{page:?}"))?;
        let kinds = rows("SELECT DISTINCT TOP 10 VALUE c.metricType FROM c").await?;
        ensure(kinds.len() == 2, &format!("{kinds:?}"))?;
    }
    Ok(())
}

async fn upsert_creates_and_replaces(world: &World) -> Outcome {
    let container = world.container("coll").await?;
    for n in [1, 2] {
        container
            .upsert_item("u", "up", json!({"id": "up", "deviceId": "u", "n": n}), None)
            .await?;
    }
    let read = model(container.read_item("u", "up", None).await?)?;
    ensure(read["n"] == 2, "the second upsert did not replace")
}

async fn every_type_of_key(world: &World) -> Outcome {
    let container = world.container("coll").await?;
    let keys: [(PartitionKey, Value); 7] = [
        ("text".into(), json!("text")),
        ("".into(), json!("")),
        ("ünï 🚀".into(), json!("ünï 🚀")),
        (1.into(), json!(1)),
        ((-3).into(), json!(-3)),
        (true.into(), json!(true)),
        (None::<String>.into(), Value::Null),
    ];
    for (at, (key, value)) in keys.into_iter().enumerate() {
        let id = format!("key{at}");
        container.create_item(key.clone(), &id, json!({"id": id, "deviceId": value}), None).await?;
        let read = model(container.read_item(key, &id, None).await?)?;
        ensure(read["deviceId"] == value, &format!("{value} came back as {}", read["deviceId"]))?;
    }
    Ok(())
}

async fn odd_ids(world: &World) -> Outcome {
    let container = world.container("coll").await?;
    for id in ["with space", "plus+", "per%cent", "quote'\"", "ünï", "(1)"] {
        container.upsert_item("odd", id, json!({"id": id, "deviceId": "odd"}), None).await?;
        ensure(model(container.read_item("odd", id, None).await?)?["id"] == id, id)?;
        container.delete_item("odd", id, None).await?;
    }
    Ok(())
}

async fn etags_guard_writes(world: &World) -> Outcome {
    let container = world.container("coll").await?;
    let item = |n: u32| json!({"id": "guarded", "deviceId": "e", "n": n});
    let created = container.create_item("e", "guarded", item(1), None).await?;
    let etag = created.headers().etag().ok_or("no etag")?.clone();
    let options = || Some(write_options().with_precondition(Precondition::IfMatch(etag.clone())));
    container.replace_item("e", "guarded", item(2), options()).await?;
    refused(412, container.replace_item("e", "guarded", item(3), options()).await)?;
    refused(412, container.delete_item("e", "guarded", options()).await)?;
    ensure(model(container.read_item("e", "guarded", None).await?)?["n"] == 2, "n changed")
}

async fn batch_is_all_or_nothing(world: &World) -> Outcome {
    let container = world.container("coll").await?;
    let item = |id: &str| json!({"id": id, "deviceId": "batch"});
    let batch = TransactionalBatch::new("batch")
        .create_item(item("b1"))?
        .upsert_item(item("b2"), None)?
        .read_item("b1", None)
        .delete_item("b2", None);
    let options = BatchOptions::default().with_operation_options(with_content());
    let done = container.execute_transactional_batch(batch, Some(options)).await?.into_model()?;
    let statuses: Vec<u16> = done.results().iter().map(|each| each.status_code()).collect();
    ensure(statuses == [201, 201, 200, 204], &format!("{statuses:?}"))?;
    let batch =
        TransactionalBatch::new("batch").create_item(item("b3"))?.create_item(item("b1"))?;
    let failed = container.execute_transactional_batch(batch, None).await?.into_model()?;
    let statuses: Vec<u16> = failed.results().iter().map(|each| each.status_code()).collect();
    ensure(statuses == [424, 409], &format!("{statuses:?}"))?;
    refused(404, container.read_item("batch", "b3", None).await)
}

async fn too_large_is_refused(world: &World) -> Outcome {
    let container = world.container("coll").await?;
    let large = json!({"id": "large", "deviceId": "x", "text": "x".repeat(2 << 20)});
    refused(413, container.create_item("x", "large", large, None).await)
}

async fn hierarchical_keys(world: &World) -> Outcome {
    world.create_container(ContainerProperties::new("tree", ("/tenant", "/user").into())).await?;
    let container = world.container("tree").await?;
    let item = json!({"id": "1", "tenant": "t", "user": "u"});
    container.create_item(("t", "u"), "1", item, None).await?;
    ensure(
        model(container.read_item(("t", "u"), "1", None).await?)?["user"] == "u",
        "another item",
    )?;
    refused(404, container.read_item(("t", "v"), "1", None).await)
}

async fn headers_tell_the_truth(world: &World) -> Outcome {
    let container = world.container("coll").await?;
    let item = json!({"id": "h", "deviceId": "h"});
    let first = container.upsert_item("h", "h", item.clone(), None).await?;
    let second = container.upsert_item("h", "h", item, None).await?;
    ensure(first.headers().request_charge().is_some(), "no charge")?;
    ensure(first.headers().session_token().is_some(), "no session token")?;
    ensure(first.headers().lsn().is_some() && first.headers().lsn() < second.headers().lsn(), "lsn")
}

async fn throughput_is_read_and_replaced(world: &World) -> Outcome {
    let container = world.container("coll").await?;
    let read = container.read_throughput(None).await?.ok_or("no offer")?;
    ensure(read.throughput() == Some(world.throughput), "another throughput")?;
    let more = ThroughputProperties::manual(world.throughput + 100);
    container.begin_replace_throughput(more, None).await?.await?;
    let read = container.read_throughput(None).await?.ok_or("no offer")?;
    ensure(read.throughput() == Some(world.throughput + 100), "it was not replaced")
}

async fn what_was_written_stays(world: &World) -> Outcome {
    world.create_container(ContainerProperties::new("kept", "/pk".into())).await?;
    let container = world.container("kept").await?;
    for n in 0..KEPT {
        let (id, pk) = (n.to_string(), (n % 7).to_string());
        container.create_item(pk.clone(), &id, json!({"id": id, "pk": pk, "n": n}), None).await?;
    }
    Ok(())
}

async fn verify_after_restart(world: &World) -> Outcome {
    let container = world.container("kept").await?;
    for n in 0..KEPT {
        let read = container.read_item((n % 7).to_string(), &n.to_string(), None).await?;
        ensure(model(read)?["n"] == n, &format!("item {n} is another"))?;
    }
    Ok(())
}

/// Runs cases in order under the names of their functions and counts failures.
macro_rules! run {
    ($world:expr, $($case:ident),+ $(,)?) => {{
        let mut failures = 0;
        let mut total = 0;
        $(
            total += 1;
            match $case($world).await {
                Ok(()) => println!("ok {}", stringify!($case)),
                Err(error) => {
                    failures += 1;
                    let why: String = error.to_string().replace('\n', " ").chars().take(400).collect();
                    println!("FAILED {}: {why}", stringify!($case));
                }
            }
        )+
        println!("{} passed, {failures} failed", total - failures);
        failures
    }};
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [endpoint, key, partitions, mode @ ..] = arguments.as_slice() else {
        return Err("usage: conformance ENDPOINT KEY PARTITIONS [write|verify]".into());
    };
    let world = World::connect(endpoint, key, partitions.parse()?).await?;
    let failures = if mode.first().is_some_and(|mode| mode == "verify") {
        run!(
            &world,
            verify_after_restart,
            verify_change_feed_after_restart,
            verify_order_after_restart,
        )
    } else {
        run!(
            &world,
            sample_1_create_database,
            sample_2_create_container_with_key_and_throughput,
            sample_3_create_item,
            sample_4_read_by_key_and_id,
            sample_5_replace,
            sample_6_delete,
            sample_7_query_by_key_asks_one_partition,
            sample_8_query_across_partitions,
            sample_9_query_in_order,
            top_offset_and_distinct_across_partitions,
            upsert_creates_and_replaces,
            every_type_of_key,
            odd_ids,
            etags_guard_writes,
            batch_is_all_or_nothing,
            too_large_is_refused,
            hierarchical_keys,
            headers_tell_the_truth,
            throughput_is_read_and_replaced,
            change_feed_from_the_beginning,
            change_feed_goes_on_from_its_continuation,
            change_feed_from_now,
            change_feed_from_a_point_in_time,
            change_feed_of_one_key,
            change_feed_of_feed_ranges,
            change_feed_goes_on_through_splits,
            change_feed_position_is_kept,
            numbers_have_one_form,
            ids_with_slashes,
            a_parameter_that_nobody_gave_is_undefined,
            rows_without_a_sort_value_come_first,
            no_bodies_of_a_batch_when_not_wanted,
            rows_come_as_their_items_were_created,
            rows_keep_their_order_through_splits_and_merges,
            what_was_written_stays,
        )
    };
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
