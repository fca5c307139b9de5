//! The text that a client sends to each partition instead of its own.
//!
//! Clients match on these texts, so they are composed exactly as the service
//! prints them: one clause per line, every operator in brackets.

use super::{AggregateKind, Page, PlanOptions, QueryInfo};
use crate::syntax::{Collection, Expr, ExprKind, Select, SelectItem, Selection};

/// Where a client puts the condition that takes an ordered query up again.
const RESUME_FILTER: &str = "({documentdb-formattableorderbyquery-filter})";

/// A call of an aggregate, by the name that was written.
pub(super) struct AggregateCall<'e> {
    pub(super) kind: AggregateKind,
    pub(super) argument: &'e Expr,
    name: &'e str,
}

/// The aggregate that an expression is a call of.
pub(super) fn aggregate(expr: &Expr) -> Option<AggregateCall<'_>> {
    let ExprKind::Call { name, arguments } = expr.kind() else { return None };
    let [argument] = arguments.as_slice() else { return None };
    let kind = AggregateKind::find(&name.text)?;
    Some(AggregateCall { kind, argument, name: &name.text })
}

/// The names and expressions of a select list, unnamed ones as `$1`, `$2` and so on.
pub(super) fn named(items: &[SelectItem]) -> Vec<(String, &Expr)> {
    let mut unnamed = 0;
    let mut name = |item: &SelectItem| {
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
fn partial(AggregateCall { kind, argument, name }: &AggregateCall<'_>) -> String {
    let extreme = |plain: &str, key: &str| {
        format!(
            "{{\"item\": {name}({argument}), \"item2\": {{\"{key}\": {plain}({argument}), \
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
        | AggregateKind::MakeSet => format!("{{\"item\": {name}({argument})}}"),
    }
}

fn partial_or_value(expr: &Expr) -> String {
    aggregate(expr).map_or_else(|| expr.to_string(), |aggregate| partial(&aggregate))
}

/// The select list as one object.
fn object(items: &[SelectItem], value: fn(&Expr) -> String) -> String {
    let members: Vec<String> = named(items)
        .iter()
        .map(|(name, expr)| format!("{}: {}", crate::syntax::quote(name), value(expr)))
        .collect();
    format!("{{{}}}", members.join(", "))
}

/// Aggregates without groups. What a partition counts of one object is itself again, so
/// counts of rows may stay there.
pub(super) fn aggregated(select: &Select, page: Option<Page>) -> String {
    let selection = match &select.selection {
        Selection::Value(expr) => format!("VALUE [{}]", partial_or_value(expr)),
        Selection::List(items) => format!("{} AS payload", object(items, partial_or_value)),
        Selection::All(_) => "*".to_owned(),
    };
    let is_list = matches!(select.selection, Selection::List(_));
    let top = select.top.as_ref().filter(|_| is_list && !select.distinct);
    let top = top.map_or(String::new(), |top| format!("TOP {} ", top.count));
    let mut text = format!("SELECT {}{top}{selection}{}", distinct(select), tail(select));
    if let Some(order) = &select.order_by {
        text.push_str(&format!("\n{order}"));
    }
    text.push_str(&page_text(page));
    text
}

fn distinct(select: &Select) -> &'static str {
    if select.distinct { "DISTINCT " } else { "" }
}

/// What clients need of a group: its keys, and what it gives.
fn group_parts(select: &Select) -> (String, String) {
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
    (format!("[{}]", keys.join(", ")), payload)
}

pub(super) fn grouped(select: &Select) -> String {
    let (keys, payload) = group_parts(select);
    let order = select.order_by.as_ref().map_or(String::new(), |order| format!("\n{order}"));
    let distinct = distinct(select);
    format!("SELECT {distinct}{keys} AS groupByItems, {payload} AS payload{}{order}", tail(select))
}

/// The name by which a text tells the documents of its first source.
fn document_name(select: &Select) -> &str {
    let Some(first) = select.from.as_ref().map(|from| &from.first) else { return "root" };
    match (&first.alias, &first.collection) {
        (Some(alias), _) if !first.iterates => &alias.text,
        (_, Collection::Path { root, .. }) => &root.text,
        (Some(_), Collection::Subquery(inner)) => document_name(inner),
        (None, Collection::Subquery(_)) => "root",
    }
}

/// Rows with their sort keys, and a place for the condition to go on from.
pub(super) fn ordered(
    select: &Select,
    info: &QueryInfo,
    page: Option<Page>,
    options: PlanOptions,
) -> String {
    let name = document_name(select);
    let grouped = !select.group_by.is_empty();
    // Equal rows are left out by the client, so a partition may not stop early.
    let top = select.top.as_ref().filter(|_| !select.distinct && !grouped);
    let top = top.map_or(String::new(), |top| format!("TOP {} ", top.count));
    let items: Vec<String> =
        info.order_by.iter().map(|(expr, _)| format!("{{\"item\": {expr}}}")).collect();
    let (payload, defined) = match &select.selection {
        _ if grouped => {
            let (keys, payload) = group_parts(select);
            (format!("{{\"groupByItems\": {keys}, \"payload\": {payload}}}"), None)
        }
        Selection::All(_) => (name.to_owned(), None),
        Selection::List(items) => (object(items, Expr::to_string), None),
        Selection::Value(expr) => (expr.to_string(), Some(format!("IS_DEFINED({expr})"))),
    };
    let own = select.filter.as_ref().map(Expr::to_string);
    let resume = options.formattable_order.then(|| RESUME_FILTER.to_owned());
    let conditions = own.into_iter().chain(resume).chain(defined);
    let filter = conditions.reduce(|all, next| format!("({all} AND {next})"));
    let filter = filter.map_or(String::new(), |filter| format!("\nWHERE {filter}"));
    let from = select.from.as_ref().map_or(String::new(), |from| format!("\n{from}"));
    let order = select.order_by.as_ref().map_or(String::new(), |order| format!("\n{order}"));
    let rid = if options.system_prefix { "__sys_rid" } else { "_rid" };
    let items = items.join(", ");
    format!(
        "SELECT {top}{name}.{rid}, [{items}] AS orderByItems, {payload} AS \
         payload{from}{filter}{}{order}{}",
        group_by(select),
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
    text.push_str(&group_by(select));
    text
}

fn group_by(select: &Select) -> String {
    if select.group_by.is_empty() {
        return String::new();
    }
    let keys: Vec<String> = select.group_by.iter().map(Expr::to_string).collect();
    format!("\nGROUP BY {}", keys.join(", "))
}
