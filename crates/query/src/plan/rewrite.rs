//! The text that a client sends to each partition instead of its own.
//!
//! Clients match on these texts, so they are composed exactly as the service
//! prints them: one clause per line, every operator in brackets.

use super::{AggregateKind, Page, QueryInfo};
use crate::syntax::{Expr, ExprKind, Item, Select, Selection};

/// Where a client puts the condition that takes an ordered query up again.
const RESUME_FILTER: &str = "({documentdb-formattableorderbyquery-filter})";

/// The aggregate that an expression is a call of.
pub(super) fn aggregate(expr: &Expr) -> Option<(AggregateKind, &Expr)> {
    let ExprKind::Call { name, arguments } = expr.kind() else { return None };
    let [argument] = arguments.as_slice() else { return None };
    AggregateKind::find(&name.text).map(|kind| (kind, argument))
}

/// The names and expressions of a select list, unnamed ones as `$1`, `$2` and so on.
pub(super) fn named(items: &[Item]) -> Vec<(String, &Expr)> {
    let mut unnamed = 0;
    let mut name = |item: &Item| {
        item.name().map_or_else(
            || {
                unnamed += 1;
                format!("${unnamed}")
            },
            str::to_owned,
        )
    };
    items.iter().map(|item| (name(item), &item.expr)).collect()
}

/// What a partition gives of an aggregate, so that others can be added to it.
fn partial(kind: AggregateKind, argument: &Expr) -> String {
    let extreme = |name: &str, key: &str| {
        format!(
            "{{\"item\": {name}({argument}), \"item2\": {{\"{key}\": {name}({argument}), \
             \"count\": COUNT({argument})}}}}"
        )
    };
    match kind {
        AggregateKind::Average => {
            format!("{{\"item\": {{\"sum\": SUM({argument}), \"count\": COUNT({argument})}}}}")
        }
        AggregateKind::Min => extreme("MIN", "min"),
        AggregateKind::Max => extreme("MAX", "max"),
        AggregateKind::Count
        | AggregateKind::CountIf
        | AggregateKind::Sum
        | AggregateKind::MakeList
        | AggregateKind::MakeSet => format!("{{\"item\": {}({argument})}}", kind.name()),
    }
}

fn partial_or_value(expr: &Expr) -> String {
    aggregate(expr).map_or_else(|| expr.to_string(), |(kind, argument)| partial(kind, argument))
}

/// The select list as one object.
fn object(items: &[Item], value: fn(&Expr) -> String) -> String {
    let members: Vec<String> = named(items)
        .iter()
        .map(|(name, expr)| format!("{}: {}", crate::syntax::quote(name), value(expr)))
        .collect();
    format!("{{{}}}", members.join(", "))
}

/// Aggregates without groups.
pub(super) fn aggregated(select: &Select) -> String {
    let selection = match &select.selection {
        Selection::Value(expr) => format!("VALUE [{}]", partial_or_value(expr)),
        Selection::List(items) => format!("{} AS payload", object(items, partial_or_value)),
        Selection::All(_) => "*".to_owned(),
    };
    let distinct = if select.distinct { "DISTINCT " } else { "" };
    let mut text = format!("SELECT {distinct}{selection}{}", tail(select));
    if let Some(order) = &select.order_by {
        text.push_str(&format!("\n{order}"));
    }
    text
}

pub(super) fn grouped(select: &Select) -> String {
    let keys: Vec<String> =
        select.group_by.iter().map(|key| format!("{{\"item\": {key}}}")).collect();
    let payload = match &select.selection {
        Selection::Value(expr) if aggregate(expr).is_some() => {
            format!("[{}]", partial_or_value(expr))
        }
        Selection::Value(expr) => expr.to_string(),
        Selection::List(items) => object(items, partial_or_value),
        Selection::All(_) => "*".to_owned(),
    };
    let keys = keys.join(", ");
    format!("SELECT [{keys}] AS groupByItems, {payload} AS payload{}", tail(select))
}

/// Rows with their sort keys, and a place for the condition to go on from.
pub(super) fn ordered(select: &Select, info: &QueryInfo, page: Option<Page>) -> String {
    let alias = select.from.as_ref().and_then(|from| from.first.name()).unwrap_or("root");
    // Equal rows are left out by the client, so a partition may not stop early.
    let top = info.top.filter(|_| !select.distinct);
    let top = top.map_or(String::new(), |top| format!("TOP {top} "));
    let items: Vec<String> =
        info.order_by.iter().map(|(expr, _)| format!("{{\"item\": {expr}}}")).collect();
    let (payload, defined) = match &select.selection {
        Selection::All(_) => (alias.to_owned(), None),
        Selection::List(items) => (object(items, Expr::to_string), None),
        Selection::Value(expr) => (expr.to_string(), Some(format!("IS_DEFINED({expr})"))),
    };
    let filter = select.filter.as_ref().map(|filter| format!("({filter} AND {RESUME_FILTER})"));
    let filter = filter.unwrap_or_else(|| RESUME_FILTER.to_owned());
    let filter = match defined {
        Some(defined) => format!("({filter} AND {defined})"),
        None => filter,
    };
    let from = select.from.as_ref().map_or(String::new(), |from| format!("\n{from}"));
    let order = select.order_by.as_ref().map_or(String::new(), |order| format!("\n{order}"));
    let items = items.join(", ");
    format!(
        "SELECT {top}{alias}._rid, [{items}] AS orderByItems, {payload} AS payload{from}\n\
         WHERE {filter}{order}{}",
        page_text(page)
    )
}

/// The query itself with another count of rows.
pub(super) fn plain(select: &Select, page: Option<Page>) -> String {
    let kept = Select { top: None, page: None, ..select.clone() };
    format!("{kept}{}", page_text(page))
}

fn page_text(page: Option<Page>) -> String {
    page.map_or(String::new(), |(offset, limit)| format!("\nOFFSET {offset} LIMIT {limit}"))
}

/// FROM, WHERE and GROUP BY.
fn tail(select: &Select) -> String {
    let mut text = String::new();
    if let Some(from) = &select.from {
        text.push_str(&format!("\n{from}"));
    }
    if let Some(filter) = &select.filter {
        text.push_str(&format!("\nWHERE {filter}"));
    }
    if !select.group_by.is_empty() {
        let keys: Vec<String> = select.group_by.iter().map(Expr::to_string).collect();
        text.push_str(&format!("\nGROUP BY {}", keys.join(", ")));
    }
    text
}
