//! Asking our planner what Microsoft's was asked, and writing the answer down in one form.

use std::sync::Arc;

use model::json::{Object, Value};
use model::partition_key::PartitionKeyDefinition;
use query::{
    Context, Features, KeyShape, Parameters, Plan, PlanOptions, Query, QueryError, QueryLimits,
    Refusal, SyntaxError,
};

/// The text of a row's query; long ones are described by what they repeat.
pub(crate) fn text(row: &Value) -> String {
    let Some(build) = row.get("build") else { return member(row, "query").to_owned() };
    let count = build.get("n").and_then(Value::as_number).map_or(0.0, |n| n.as_f64());
    let item = member(build, "item");
    let mut text = member(build, "head").to_owned();
    let mut at = 0;
    while f64::from(at) < count {
        if at > 0 {
            text.push_str(member(build, "sep"));
        }
        text.push_str(&item.replace("{i}", &at.to_string()));
        at += 1;
    }
    text.push_str(member(build, "tail"));
    text
}

/// What we answer to a row, in the form of [`recorded`].
pub(crate) fn answer(row: &Value) -> Value {
    let text = text(row);
    match asked(row).and_then(|row| plan(&row, &text)) {
        Ok((plan, definition)) => {
            let ranges = plan.to_value(&definition).get("queryRanges").cloned();
            planned(plan.info.to_value(), ranges.unwrap_or(Value::Null))
        }
        Err(error) => refused(error_value(&error, &text)),
    }
}

/// A row whose request was sent as it stands, taken apart.
fn asked(row: &Value) -> Result<Value, QueryError> {
    let Some(spec) = row.get("spec").and_then(Value::as_str) else { return Ok(row.clone()) };
    let body = model::json::parse(spec.as_bytes()).map_err(|_| Refusal::Input)?;
    let query = body.get("query").filter(|query| query.as_str().is_some());
    let mut asked = row.as_object().cloned().unwrap_or_default();
    asked.insert("query", query.cloned().ok_or(Refusal::Input)?);
    if let Some(parameters) = body.get("parameters") {
        asked.insert("parameters", parameters.clone());
    }
    Ok(asked.into())
}

fn plan(row: &Value, text: &str) -> Result<(Plan, PartitionKeyDefinition), QueryError> {
    let definition = row.get("pk").and_then(|pk| PartitionKeyDefinition::parse(pk).ok());
    let definition = definition.unwrap_or_else(PartitionKeyDefinition::none);
    let parameters = match row.get("parameters") {
        Some(Value::Null) if row.get("spec").is_none() => Parameters::none(),
        Some(list) => Parameters::from_list(list)?,
        None => Parameters::none(),
    };
    let text = if row.get("spec").is_some() { member(row, "query") } else { text };
    let query = Query::parse_within(text, limits(row))?;
    let shape = KeyShape::from(&definition);
    let context = Arc::new(Context::default());
    let plan = query.plan_with(&parameters, &context, &shape, (&Features::all(), options(row)))?;
    Ok((plan, definition))
}

/// The account's settings, where a row has others than the ordinary ones.
fn limits(row: &Value) -> QueryLimits {
    let ordinary = QueryLimits::default();
    let setting = |name: &str, ordinary: usize| {
        let given =
            row.get("config").and_then(|config| config.get(name)).and_then(Value::as_number);
        given.and_then(|number| number.to_string().parse().ok()).unwrap_or(ordinary)
    };
    QueryLimits {
        text_units: setting("maxSqlQueryInputLength", ordinary.text_units),
        joins: setting("maxJoinsPerSqlQuery", ordinary.joins),
    }
}

/// The options of the planner, where a row has others than the ordinary ones.
fn options(row: &Value) -> PlanOptions {
    let flag = |name: &str, ordinary: bool| {
        let given = row.get("flags").and_then(|flags| flags.get(name));
        given.and_then(Value::as_bool).unwrap_or(ordinary)
    };
    PlanOptions {
        formattable_order: flag("requireFormattableOrderByQuery", true),
        continuation_expected: flag("isContinuationExpected", false),
        non_value_aggregates: flag("allowNonValueAggregateQuery", true),
        logical_key: flag("hasLogicalPartitionKey", false),
        distinct_counts: flag("allowDCount", true),
        system_prefix: flag("useSystemPrefix", false),
    }
}

/// As [`QueryError::to_value`], but places count characters, as the library does here.
fn error_value(error: &QueryError, text: &str) -> Value {
    let QueryError::Invalid(errors) = error else { return error.to_value(text) };
    let one = |error: &SyntaxError| {
        let count = |at: usize| {
            let chars = text.get(..at).unwrap_or(text).chars().count();
            i64::try_from(chars).unwrap_or(i64::MAX)
        };
        let location = Object::from_iter([
            ("start", count(error.position.start)),
            ("end", count(error.position.end)),
        ]);
        let mut object = Object::from_iter([("severity", "Error")]);
        object.insert("location", location);
        object.insert("code", error.code.as_str());
        object.insert("message", error.message.as_str());
        Value::from(object)
    };
    Object::from_iter([("errors", errors.iter().map(one).collect::<Vec<_>>())]).into()
}

/// What the library answered to a row, in one form: members that say nothing are left out.
pub(crate) fn recorded(row: &Value) -> Option<Value> {
    let answer = row.get("answer")?;
    if answer.get("ok").and_then(Value::as_bool) == Some(true) {
        let info = answer.get("plan")?.get("queryInfo").cloned().unwrap_or(Value::Null);
        let ranges = answer.get("epkRanges").cloned().unwrap_or(Value::Null);
        return Some(planned(info, ranges));
    }
    Some(refused(answer.get("error")?.clone()))
}

fn planned(info: Value, ranges: Value) -> Value {
    let mut answer = Object::new();
    answer.insert("ok", true);
    answer.insert("info", plain(&info));
    answer.insert("ranges", ranges);
    answer.into()
}

fn refused(error: Value) -> Value {
    let mut answer = Object::new();
    answer.insert("ok", false);
    answer.insert("error", error);
    answer.into()
}

/// Truth as the library writes it, sorted members, nothing that is empty.
fn plain(value: &Value) -> Value {
    match value {
        Value::Bool(truth) => Value::from(i64::from(*truth)),
        Value::Object(object) => {
            let plain = |(name, value): (&str, &Value)| match name {
                "groupByAliasToAggregateType" => (name.to_owned(), without_nulls(value)),
                _ => (name.to_owned(), plain(value)),
            };
            let mut members: Vec<(String, Value)> = object.iter().map(plain).collect();
            members.retain(|(_, value)| says_something(value));
            members.sort_by(|a, b| a.0.cmp(&b.0));
            members.into_iter().collect::<Object>().into()
        }
        Value::Array(_) | Value::Null | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// The library writes an empty text where there is no aggregate.
fn without_nulls(value: &Value) -> Value {
    let Some(object) = value.as_object() else { return value.clone() };
    let mut members: Vec<(String, Value)> = object
        .iter()
        .map(|(name, value)| {
            let value = if value.is_null() { Value::from("") } else { value.clone() };
            (name.to_owned(), value)
        })
        .collect();
    members.sort_by(|a, b| a.0.cmp(&b.0));
    members.into_iter().collect::<Object>().into()
}

fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != 0.0,
        Value::String(_) => true,
        Value::Array(items) => !items.is_empty(),
        Value::Object(object) => !object.is_empty(),
    }
}

fn member<'r>(row: &'r Value, name: &str) -> &'r str {
    row.get(name).and_then(Value::as_str).unwrap_or_default()
}
