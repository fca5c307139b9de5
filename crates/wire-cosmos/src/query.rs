//! Queries on the items of a container, and the plans of clients that merge by themselves.
//!
//! A client sends a query as it is and follows the tokens of its pages, or it asks for a
//! plan first and sends what the plan says to one range after another. Both are the same
//! request here: which items it is about is in its headers. What would have to be merged
//! from several partitions is left to clients, as in the service, so that a program that
//! works here works there; people and tools can ask for the merged answer.

pub(crate) use protocol::metrics::explained;

use http::StatusCode;
use model::json::{Object, Value};
use service::{
    Approach, Features, ItemQuery, Link, PlanQuery, QueryReport, QueryRows, QuerySource, advice_on,
};

use crate::gateway::Call;
use crate::headers::{
    ACROSS_PARTITIONS, CONTINUATION, END_EPK, Headers, IS_QUERY, PARTITION_KEY, RANGE_ID, START_EPK,
};
use crate::items::scope;
use crate::page;
use crate::reply::Answer;
use crate::system_properties;
use protocol::error::{Detail, WireError};
use protocol::page::Envelope;
use protocol::statement::Statement;
use protocol::{continuation, metrics, plan, resume};

const FEATURES: &str = "x-ms-cosmos-supported-query-features";
const TOKEN_KB_MAX: &str = "x-ms-documentdb-responsecontinuationtokenlimitinkb";
/// Marks a request about a part of the ring, even if it names no bounds.
const READ_KEY_TYPE: &str = "x-ms-read-key-type";
const POPULATE_METRICS: &str = "x-ms-documentdb-populatequerymetrics";
const POPULATE_INDEX_METRICS: &str = "x-ms-cosmos-populateindexmetrics";
const POPULATE_INDEX_METRICS_V2: &str = "x-ms-cosmos-populateindexmetrics-v2";
const POPULATE_ADVICE: &str = "x-ms-cosmos-populatequeryadvice";
const INDEX_METRICS: &str = "x-ms-cosmos-index-utilization";

/// Our own: `scan` forces a full scan, whatever the index could do.
const APPROACH: &str = "x-orrery-query-approach";
/// Our own: asks for the merged answer of all partitions.
const MERGE: &str = "x-orrery-query-merge";
/// Our own: asks for the access path, and returns it.
const EXPLAIN: &str = "x-orrery-query-explain";

/// Rows of a page if the client leaves their number to the server: the most that a page is
/// documented to have. Bytes, time and charge end most pages before.
const PAGE_ROWS: usize = 1_000;

/// Whether a POST on a feed is a query.
pub(crate) fn is_query(headers: Headers<'_>) -> bool {
    let content_type = headers.text("content-type").unwrap_or_default();
    headers.flag(IS_QUERY)
        || headers.flag("x-ms-documentdb-query")
        || content_type.starts_with("application/query+json")
}

/// One page of a query on items.
pub(crate) async fn answer(call: &Call<'_>, container: Link) -> Result<Answer, WireError> {
    let query = item_query(call)?;
    let keyed = query.scope.key.is_some();
    let is_across = query.across_partitions && !routes_itself(call) && !keyed;
    let response = call.container(container, query).await?;
    let QueryRows { owner_rid, rows, rest, report } = response.reply;
    let rest = rest.as_ref().map(|rest| continuation::cursor_token(rest, is_across));
    let page = Envelope { owner_rid, name: "Documents", rows };
    let answer =
        page::answer(page, call, system_properties::view(call)).await?.with_meta(&response.meta);
    let answer = reported(call, answer, &report, keyed).with_report(report);
    Ok(answer.with_continuation(rest.as_deref()))
}

/// The plan for a client that asks each partition itself.
pub(crate) async fn plan(call: &Call<'_>, container: Link) -> Result<Answer, WireError> {
    let Statement { text, parameters } = Statement::read(&call.json()?)?;
    let features = Features::parse(call.headers.text(FEATURES).unwrap_or_default());
    let features = match call.headers.text(PARTITION_KEY) {
        Some(_) => features.with_key(),
        None => features,
    };
    let asked = PlanQuery { text, parameters, features };
    let response = call.container(container, asked).await.map_err(unplanned)?;
    let plan = plan::value(&response.reply).to_string();
    Ok(Answer::json(StatusCode::OK, plan).with_meta(&response.meta))
}

fn unplanned(error: WireError) -> WireError {
    match error.detail {
        Detail::Query(report) => WireError { detail: Detail::Unplanned(report), ..error },
        Detail::None | Detail::Unplanned(_) | Detail::Plan(_) => error,
    }
}

fn item_query(call: &Call<'_>) -> Result<ItemQuery, WireError> {
    let body = call.json()?;
    let Statement { text, parameters } = Statement::read(&body)?;
    check_token_limit(call)?;
    let after = call.headers.text(CONTINUATION);
    let merges = call.headers.flag(MERGE);
    Ok(ItemQuery {
        source: QuerySource::Text(text),
        parameters,
        scope: scope(call)?,
        across_partitions: merges || call.headers.flag(ACROSS_PARTITIONS) || routes_itself(call),
        merges,
        session: call.headers.session()?,
        after: after.map(continuation::parse_cursor).transpose()?.flatten(),
        resume: resume::filter(&body)?,
        items_max: call.headers.items_max(PAGE_ROWS)?,
        approach: approach(call)?,
        system: Some(system_properties::of_items()),
        is_timed: call.headers.flag(POPULATE_METRICS),
        names_indexes: names_indexes(call),
    })
}

/// Whether the client routes by itself. It need not enable cross-partition queries then.
fn routes_itself(call: &Call<'_>) -> bool {
    [RANGE_ID, START_EPK, END_EPK, READ_KEY_TYPE]
        .iter()
        .any(|name| call.headers.text(name).is_some_and(|value| !value.is_empty()))
}

/// Tokens are never longer than the least that can be asked for, which is a kilobyte.
fn check_token_limit(call: &Call<'_>) -> Result<(), WireError> {
    match call.headers.text(TOKEN_KB_MAX).map(str::trim) {
        None | Some("") => Ok(()),
        Some(text) => match text.parse::<u32>() {
            Ok(1..) => Ok(()),
            Ok(0) => Err(WireError::bad_request(
                "The continuation token limit specified is not large enough.",
            )),
            Err(_) => Err(call.headers.invalid(TOKEN_KB_MAX)),
        },
    }
}

fn approach(call: &Call<'_>) -> Result<Approach, WireError> {
    match call.headers.text(APPROACH).map(str::trim) {
        None | Some("index") => Ok(Approach::Index),
        Some("scan") => Ok(Approach::Scan),
        Some(_) => Err(call.headers.invalid(APPROACH)),
    }
}

/// Whether the client asked which indexes the query uses, in either form.
fn names_indexes(call: &Call<'_>) -> bool {
    call.headers.flag(POPULATE_INDEX_METRICS) || call.headers.flag(POPULATE_INDEX_METRICS_V2)
}

/// Adds the metrics that the client asked for.
fn reported(call: &Call<'_>, mut answer: Answer, report: &QueryReport, keyed: bool) -> Answer {
    if call.headers.flag(POPULATE_METRICS) {
        answer.set("x-ms-documentdb-query-metrics", &metrics::of(report));
    }
    // Clients of the second form take a later page that has it for an error.
    let is_first = call.headers.text(CONTINUATION).is_none();
    if call.headers.flag(POPULATE_INDEX_METRICS_V2) && is_first {
        answer.set(INDEX_METRICS, &metrics::index_use_v2(&report.usage, keyed));
    } else if call.headers.flag(POPULATE_INDEX_METRICS) {
        answer.set(INDEX_METRICS, &metrics::index_use(&report.usage, keyed));
    }
    if call.headers.flag(POPULATE_ADVICE)
        && let Ok(statement) = call.json().and_then(|body| Statement::read(&body))
        && let Some(advice) = metrics::advice(&advice_on(&statement.text))
    {
        answer.set("x-ms-cosmos-query-advice", &advice);
    }
    if call.headers.flag(EXPLAIN) {
        answer.set(EXPLAIN, &explained(report));
    }
    // Rows with equal sort values come in the direction of the first of them, which clients
    // must know to resume between two of them.
    let direction =
        Object::from_iter([("reverseRidEnabled", true), ("reverseIndexScan", report.backwards)]);
    answer.set("x-ms-cosmos-query-execution-info", &Value::Object(direction).to_string());
    answer
}
