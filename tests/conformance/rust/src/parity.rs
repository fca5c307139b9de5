//! What a program notices only when it moves to the service or from it: cases of the program.

use azure_data_cosmos::models::ContainerProperties;
use azure_data_cosmos::options::{BatchOptions, QueryOptions};
use azure_data_cosmos::{FeedScope, Query, TransactionalBatch};
use futures::TryStreamExt as _;
use serde_json::{Value, json};

use crate::{Failure, Outcome, World, ensure, model, query, refused, with_content};

/// Items of the container that is sorted; every third has no value to sort by.
const SORTED: u64 = 36;

pub(crate) async fn numbers_have_one_form(world: &World) -> Outcome {
    let container = world.container("coll").await?;
    let item = json!({"id": "numbers", "deviceId": "n", "whole": 5.0, "part": 0.1, "zero": -0.0,
                      "exact": 9_007_199_254_740_993_i64, "large": 12_345_678_901_234_567_890_u64});
    container.create_item("n", "numbers", item, None).await?;
    let read = model(container.read_item("n", "numbers", None).await?)?;
    ensure(
        read["whole"].as_i64() == Some(5) && read["zero"].as_i64() == Some(0),
        &read.to_string(),
    )?;
    ensure(read["exact"] == 9_007_199_254_740_993_i64, &read.to_string())?;
    let large = &read["large"];
    ensure(large.is_f64() && *large == 1.234_567_890_123_456_7e19, &read.to_string())?;
    ensure(read["part"] == 0.1, &read.to_string())
}

/// A slash this SDK does not encode, and a backslash becomes one: such an item can be
/// written and found, but not read.
pub(crate) async fn ids_with_slashes(world: &World) -> Outcome {
    let container = world.container("coll").await?;
    for id in ["a/b", "a\\b", "a?b"] {
        refused(404, container.read_item("odd", id, None).await)?;
        container.create_item("odd", id, json!({"id": id, "deviceId": "odd"}), None).await?;
        let text = Query::from("SELECT * FROM c WHERE c.id = @id").with_parameter("@id", id)?;
        let rows = container.query_items::<Value>(text, FeedScope::partition("odd"), None).await?;
        let rows: Vec<Value> = rows.try_collect().await?;
        ensure(rows.len() == 1, &format!("{} items {id}", rows.len()))?;
    }
    ensure(model(container.read_item("odd", "a?b", None).await?)?["id"] == "a?b", "another item")
}

pub(crate) async fn a_parameter_that_nobody_gave_is_undefined(world: &World) -> Outcome {
    let text = "SELECT * FROM c WHERE NOT IS_DEFINED(@type) OR c.metricType = @type";
    let scope = || FeedScope::partition("XMS-0001");
    let (every, _) = query(world, text, scope(), QueryOptions::default()).await?;
    let given = Query::from(text).with_parameter("@type", "Humidity")?;
    let (some, _) = query(world, given, scope(), QueryOptions::default()).await?;
    ensure((every.len(), some.len()) == (12, 6), &format!("{} and {}", every.len(), some.len()))
}

pub(crate) async fn rows_without_a_sort_value_come_first(world: &World) -> Outcome {
    world.create_container(ContainerProperties::new("sorted", "/pk".into())).await?;
    let container = world.container("sorted").await?;
    for n in 0..SORTED {
        let (id, pk) = (n.to_string(), format!("key {}", n % 7));
        let mut item = json!({"id": id, "pk": pk});
        if n % 3 > 0 {
            item["n"] = (n / 2).into();
        }
        container.create_item(pk, &id, item, None).await?;
    }
    let rows = async |text: &str| -> Result<Vec<i64>, Failure> {
        let rows = container.query_items::<Value>(text, FeedScope::full_container(), None).await?;
        let rows: Vec<Value> = rows.try_collect().await?;
        Ok(rows.iter().map(|row| row["n"].as_i64().unwrap_or(-1)).collect())
    };
    let ascending = rows("SELECT c.n FROM c ORDER BY c.n").await?;
    ensure(ascending.is_sorted() && ascending.len() as u64 == SORTED, &format!("{ascending:?}"))?;
    let mut descending = rows("SELECT c.n FROM c ORDER BY c.n DESC").await?;
    descending.reverse();
    ensure(descending == ascending, &format!("{descending:?} backwards"))
}

pub(crate) async fn no_bodies_of_a_batch_when_not_wanted(world: &World) -> Outcome {
    let container = world.container("coll").await?;
    for wanted in [false, true] {
        let item = json!({"id": "quiet", "deviceId": "batch"});
        let batch = TransactionalBatch::new("batch").upsert_item(item, None)?;
        let options = BatchOptions::default();
        let options = if wanted { options.with_operation_options(with_content()) } else { options };
        let done =
            container.execute_transactional_batch(batch, Some(options)).await?.into_model()?;
        let given = done.results().iter().any(|result| result.resource_body().is_some());
        ensure(given == wanted, &format!("a body is wanted: {wanted}, given: {given}"))?;
    }
    Ok(())
}
