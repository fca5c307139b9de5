//! Plans, as the service's own planner recorded them.

use std::sync::Arc;

use model::json::{self, Value};
use model::partition_key::{KeyComponent, KeyKind, KeyPath};
use model::policy::GeospatialConfig;
use query::{
    Context, Features, KeyBound, KeyRanges, KeyShape, Parameters, Plan, PlannedRange, Query,
    QueryError,
};

use super::folder::{list, text};
use super::report::Verdict;

pub(crate) fn judge(row: &Value) -> Verdict {
    let query = text(row, "query");
    let hybrid = row.get("hybridSearchQueryInfo").is_some_and(|info| !info.is_null());
    if hybrid || is_later(query) {
        return Verdict::LeftOut("vectors and full text");
    }
    let planned = plan(row);
    let recorded = row.get("error").filter(|error| !error.is_null());
    let problem = match (planned, recorded) {
        (Err(error), Some(recorded)) => differs(&error.to_value(query), recorded),
        (Err(error), None) => Some(error.to_string()),
        // The client's own check failed, after the service had planned.
        (Ok(plan), Some(Value::String(report))) => against_report(&plan, report),
        (Ok(_), Some(recorded)) => Some(format!("is planned, theirs {recorded}")),
        (Ok(plan), None) => against_row(&plan, row),
    };
    problem.map_or(Verdict::Right, |problem| Verdict::Wrong(format!("{query:?}: {problem}")))
}

fn is_later(query: &str) -> bool {
    ["VectorDistance", "FullText", "RANK"].iter().any(|word| query.contains(word))
}

fn plan(row: &Value) -> Result<Plan, QueryError> {
    let spatial = match text(row, "input_GeospatialType") {
        "Geometry" => GeospatialConfig::Geometry,
        _ => GeospatialConfig::Geography,
    };
    let context = Arc::new(Context { spatial, ..Context::default() });
    let parameters = match json::parse(text(row, "input_QueryParameters").as_bytes()) {
        Ok(list) => Parameters::from_list(&list)?,
        Err(_) => Parameters::none(),
    };
    let query = Query::parse(text(row, "query"))?;
    query.plan(&parameters, &context, &shape(row), &Features::all())
}

fn shape(row: &Value) -> KeyShape {
    let kind = match text(row, "partitionKeyKind") {
        "Range" => KeyKind::Range,
        "MultiHash" => KeyKind::MultiHash,
        _ => KeyKind::Hash,
    };
    let names = |path: &Value| {
        let path = KeyPath::parse(path.as_str().unwrap_or_default());
        path.map(|path| path.names().to_vec()).unwrap_or_default()
    };
    KeyShape { kind, paths: list(row, "partitionKeyPaths").iter().map(names).collect() }
}

fn differs(ours: &Value, theirs: &Value) -> Option<String> {
    (ours != theirs).then(|| format!("\n    ours   {ours}\n    theirs {theirs}"))
}

/// Compares what the row records; members that it leaves out are not looked at.
fn against_row(plan: &Plan, row: &Value) -> Option<String> {
    let ours = plan.info.to_value();
    let theirs = row.get("queryInfo")?;
    let info = members_differ(&ours, theirs);
    let rewritten = text(row, "rewrittenQuery");
    let rewritten = || differs(ours.get("rewrittenQuery")?, &Value::from(rewritten));
    info.or_else(rewritten).or_else(|| ranges_differ(plan, list(row, "queryRanges")))
}

fn members_differ(ours: &Value, theirs: &Value) -> Option<String> {
    let theirs = theirs.as_object()?;
    theirs.iter().find_map(|(name, value)| {
        let own = ours.get(name).cloned().unwrap_or(Value::Null);
        let problem = differs(&own, &nulls(value))?;
        Some(format!("{name}{problem}"))
    })
}

/// The baselines write null as a text where it is no aggregate's name.
fn nulls(value: &Value) -> Value {
    let Some(object) = value.as_object() else { return value.clone() };
    let null = |value: &Value| match value.as_str() {
        Some("null") => Value::Null,
        _ => value.clone(),
    };
    let members = object.iter().map(|(name, value)| (name.to_owned(), null(value)));
    members.collect::<json::Object>().into()
}

/// The order of ranges is that of a hash table there, so they are compared as a bag.
fn ranges_differ(plan: &Plan, theirs: &[Value]) -> Option<String> {
    let mut ours = internal(&plan.ranges);
    let mut theirs: Vec<String> =
        theirs.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    ours.sort();
    theirs.sort();
    (ours != theirs).then(|| format!("\n    ours   {ours:?}\n    theirs {theirs:?}"))
}

/// Ranges in the engine's own form: values of keys, not their hashes.
fn internal(ranges: &KeyRanges) -> Vec<String> {
    match ranges {
        KeyRanges::Everything => vec!["[[],\"Infinity\")".to_owned()],
        KeyRanges::Nothing => vec!["[[],[]]".to_owned()],
        KeyRanges::Some(ranges) => ranges.iter().map(internal_range).collect(),
    }
}

fn internal_range(range: &PlannedRange) -> String {
    let bounds = |bounds: &[KeyBound]| {
        let bounds: Vec<String> = bounds.iter().map(internal_bound).collect();
        format!("[{}]", bounds.join(","))
    };
    let open = if range.min_inclusive { '[' } else { '(' };
    let close = if range.max_inclusive { ']' } else { ')' };
    format!("{open}{},{}{close}", bounds(&range.min), bounds(&range.max))
}

fn internal_bound(bound: &KeyBound) -> String {
    match bound {
        KeyBound::MinNumber => "{\"type\":\"MinNumber\"}".to_owned(),
        KeyBound::MaxNumber => "{\"type\":\"MaxNumber\"}".to_owned(),
        KeyBound::MaxString => "{\"type\":\"MaxString\"}".to_owned(),
        KeyBound::Value(KeyComponent::Undefined) => "{}".to_owned(),
        KeyBound::Value(KeyComponent::Null) => "null".to_owned(),
        KeyBound::Value(KeyComponent::Bool(truth)) => truth.to_string(),
        KeyBound::Value(KeyComponent::Number(number)) => format!("{number:?}"),
        KeyBound::Value(KeyComponent::String(text)) => Value::from(text.as_str()).to_string(),
    }
}

/// The service's plan stands as JSON in the client's report of its failure.
fn against_report(plan: &Plan, report: &str) -> Option<String> {
    let found = report.lines().find_map(|line| {
        let (_, rest) = line.split_once(" : {")?;
        json::parse(format!("{{{rest}").as_bytes()).ok()
    });
    let Some(theirs) = found else { return Some(format!("is planned, theirs {report}")) };
    let Some(info) = theirs.get("queryInfo").and_then(Value::as_object) else {
        return Some("their plan has no queryInfo".to_owned());
    };
    let ours = plan.info.to_value();
    info.iter().find_map(|(name, value)| {
        let own = ours.get(name).cloned().unwrap_or(Value::Null);
        // The service writes truth as a number here.
        let truth = value.as_number().map(|number| Value::Bool(number.as_f64() != 0.0));
        let same = own == *value || (own.as_bool().is_some() && Some(&own) == truth.as_ref());
        (!same).then(|| format!("{name}\n    ours   {own}\n    theirs {value}"))
    })
}
