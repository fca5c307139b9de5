//! Documents that show which of two answers leaves something out.

use std::sync::Arc;

use model::json::{Raw, Value};
use model::partition_key::PartitionKeyDefinition;
use query::{Bound, Context, Parameters, Query};

use super::asked;
use super::dice::Dice;
use super::words::words;

/// Documents that a query is asked about.
const DOCUMENTS: usize = 400;

/// Values that planners get wrong, as JSON.
const VALUES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "2",
    "0.5",
    "1e16",
    "5e-324",
    "9007199254740992",
    "\"\"",
    "\"x\"",
    "\"X\"",
    "\"y\"",
    "\"xy\"",
    "\"\u{212A}\"",
    "\"\u{17F}\"",
    "[]",
    "[1]",
    "[true]",
    "[\"x\"]",
    "[{\"a\":1}]",
    "{}",
    "{\"a\":1}",
    "{\"a\":\"x\",\"b\":true}",
    "{\"pk\":\"x\"}",
];

const NAMES: &[&str] = &["pk", "a", "b", "k", "id", "t", "u", "s", "l", "z"];

/// A document that the query is about, although the ranges leave it out.
pub(crate) fn against(row: &Value, ranges: &Value) -> Option<String> {
    let definition = PartitionKeyDefinition::parse(row.get("pk")?).ok()?;
    let text = asked::text(row);
    let parameters = row.get("parameters").map(Parameters::from_list);
    let parameters = parameters.and_then(Result::ok).unwrap_or_else(Parameters::none);
    let query = Query::parse(&text).ok()?;
    let bound = query.bind_in(&parameters, &Arc::new(Context::default())).ok()?;
    let without = bound.execute(std::iter::empty::<Raw<'_>>()).ok()?;
    let mut dice = Dice::new(1);
    let values = values(&text);
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    (0..DOCUMENTS).map(|_| document(&values, &mut dice)).find(|document| {
        let document = Raw::trusted(document);
        matters(&bound, document, &without) && is_left_out(document, &definition, ranges)
    })
}

/// Whether the query gives something else with the document than without it.
fn matters(bound: &Bound, document: Raw<'_>, without: &[Value]) -> bool {
    bound.execute(std::iter::once(document)).is_ok_and(|rows| rows != without)
}

fn is_left_out(document: Raw<'_>, definition: &PartitionKeyDefinition, ranges: &Value) -> bool {
    // Some values are no keys, and no item has them.
    let key = definition.extract(document).ok();
    let Some(epk) = key.and_then(|key| definition.epk(&key).ok()) else { return false };
    let epk = epk.to_string();
    !ranges.as_array().is_some_and(|ranges| ranges.iter().any(|range| has(range, &epk)))
}

fn has(range: &Value, epk: &str) -> bool {
    let (min, max) = bounds(range);
    let own = range.get("isMaxInclusive").and_then(Value::as_bool) == Some(true);
    min <= epk && (epk < max || (own && epk == max))
}

fn bounds(range: &Value) -> (&str, &str) {
    let bound = |name: &str| range.get(name).and_then(Value::as_str).unwrap_or_default();
    (bound("min"), bound("max"))
}

/// Whether every range is part of one of the others.
pub(crate) fn is_within(ranges: &Value, others: &Value) -> bool {
    let list = |ranges: &Value| ranges.as_array().map(<[Value]>::to_vec).unwrap_or_default();
    let others = list(others);
    list(ranges).iter().all(|range| {
        let (min, max) = bounds(range);
        max.is_empty()
            || others.iter().any(|other| bounds(other).0 <= min && max <= bounds(other).1)
    })
}

/// Values for documents, those that the query names among them, and what lies beside them.
fn values(text: &str) -> Vec<String> {
    let mut values: Vec<String> = VALUES.iter().map(|value| (*value).to_owned()).collect();
    for word in words(text) {
        if let Ok(number) = word.parse::<f64>() {
            let complement = -number - 1.0;
            let near = [
                number,
                -number,
                number.next_up(),
                number.next_down(),
                number + 1.0,
                complement - 0.5,
                complement + 4_294_967_296.0,
            ];
            values.extend(near.iter().filter(|near| near.is_finite()).map(f64::to_string));
        }
        let inner = word.strip_prefix(['\'', '"']).and_then(|rest| rest.strip_suffix(['\'', '"']));
        if let Some(inner) = inner.filter(|inner| !inner.contains('\\')) {
            let texts = [inner.to_owned(), inner.to_uppercase(), format!("{inner}x")];
            values.extend(texts.iter().map(|text| Value::from(text.as_str()).to_string()));
        }
    }
    values
}

fn document(values: &[&str], dice: &mut Dice) -> String {
    let mut members = Vec::new();
    for name in NAMES {
        if dice.once_in(4) {
            continue;
        }
        let value = dice.pick(values);
        let value = match dice.below(6) {
            0 => format!("[{value}]"),
            1 => format!("{{\"b\":{value},\"a\":{value}}}"),
            _ => value.to_owned(),
        };
        members.push(format!("\"{name}\":{value}"));
    }
    format!("{{{}}}", members.join(","))
}
