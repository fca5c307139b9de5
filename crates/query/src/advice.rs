//! Advice on how a query could be written to cost less, as the service gives it.
//!
//! It depends on the text alone: neither data nor policy count, so some of it may not help.
//! Clients have the wording of each piece of advice by its number.

use crate::syntax::{
    BinaryOp, Child, Collection, Expr, ExprKind, From, OrderKeys, Select, Selection,
};

/// A construct that tends to cost more than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// `ARRAY_CONTAINS` of a part of an object, instead of EXISTS.
    PartialArrayContains,
    /// DISTINCT over a JOIN, instead of EXISTS.
    DistinctJoin,
    /// `CONTAINS`, where a prefix test may suffice.
    Contains,
    /// `STARTSWITH` and `StringEquals` ignoring case, instead of a computed property.
    CaselessBeginning,
    /// `ENDSWITH` ignoring case, instead of a computed property.
    CaselessEnd,
    /// GROUP BY something other than a path, instead of a computed property.
    GroupByExpression,
    /// A comparison with `UPPER` or `LOWER`, instead of a computed property.
    ComparedCase,
    /// Functions of the time that may change during the query.
    CurrentDateTime,
    CurrentTicks,
    CurrentTimestamp,
}

impl Advice {
    /// The number by which clients know it.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Advice::PartialArrayContains => "QA1000",
            Advice::DistinctJoin => "QA1001",
            Advice::Contains => "QA1002",
            Advice::CaselessBeginning => "QA1003",
            Advice::CaselessEnd => "QA1004",
            Advice::GroupByExpression => "QA1005",
            Advice::ComparedCase => "QA1006",
            Advice::CurrentDateTime => "QA1007",
            Advice::CurrentTicks => "QA1008",
            Advice::CurrentTimestamp => "QA1009",
        }
    }
}

/// The advice for a query, each piece only once: filters first, the select list last, in
/// the order of execution.
pub(crate) fn advice(select: &Select) -> Vec<Advice> {
    let mut found = Vec::new();
    on_select(select, &mut found);
    found
}

fn note(advice: Advice, found: &mut Vec<Advice>) {
    if !found.contains(&advice) {
        found.push(advice);
    }
}

fn on_select(select: &Select, found: &mut Vec<Advice>) {
    if select.distinct && select.from.as_ref().is_some_and(|from| !from.joins.is_empty()) {
        note(Advice::DistinctJoin, found);
    }
    for source in select.from.iter().flat_map(From::sources) {
        if let Collection::Subquery(inner) = &source.collection {
            on_select(inner, found);
        }
    }
    select.filter.iter().for_each(|filter| on_expr(filter, found));
    for key in &select.group_by {
        if !is_place(key) {
            note(Advice::GroupByExpression, found);
        }
        on_expr(key, found);
    }
    match select.order_by.as_ref().map(|order| &order.keys) {
        None => {}
        Some(OrderKeys::Items(items)) => items.iter().for_each(|item| on_expr(&item.expr, found)),
        Some(OrderKeys::Rank(item)) => on_expr(&item.expr, found),
    }
    match &select.selection {
        Selection::All(_) => {}
        Selection::Value(expr) => on_expr(expr, found),
        Selection::List(items) => items.iter().for_each(|item| on_expr(&item.expr, found)),
    }
}

fn on_expr(expr: &Expr, found: &mut Vec<Advice>) {
    if let ExprKind::Call { name, arguments } = expr.kind()
        && let Some(advice) = on_call(&name.text.to_ascii_uppercase(), arguments)
    {
        note(advice, found);
    }
    if let ExprKind::Binary(op, left, right) = expr.kind()
        && is_comparison(*op)
        && (changes_case(left) || changes_case(right))
    {
        note(Advice::ComparedCase, found);
    }
    expr.kind().for_each_child(&mut |child| match child {
        Child::Expr(expr) => on_expr(expr, found),
        Child::Select(select) => on_select(select, found),
    });
}

fn on_call(name: &str, arguments: &[Expr]) -> Option<Advice> {
    let third = || arguments.get(2).is_some_and(|third| *third.kind() == ExprKind::Bool(true));
    match name {
        "CONTAINS" => Some(Advice::Contains),
        "GETCURRENTDATETIME" => Some(Advice::CurrentDateTime),
        "GETCURRENTTICKS" => Some(Advice::CurrentTicks),
        "GETCURRENTTIMESTAMP" => Some(Advice::CurrentTimestamp),
        "ARRAY_CONTAINS" => third().then_some(Advice::PartialArrayContains),
        "STARTSWITH" | "STRINGEQUALS" => third().then_some(Advice::CaselessBeginning),
        "ENDSWITH" => third().then_some(Advice::CaselessEnd),
        _ => None,
    }
}

fn is_comparison(op: BinaryOp) -> bool {
    use BinaryOp::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
    matches!(op, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual)
}

fn changes_case(expr: &Expr) -> bool {
    let ExprKind::Call { name, .. } = expr.kind() else { return false };
    ["UPPER", "LOWER"].iter().any(|function| name.text.eq_ignore_ascii_case(function))
}

/// Whether it is a path of an item.
fn is_place(expr: &Expr) -> bool {
    if let ExprKind::Member(base, _) | ExprKind::Index(base, _) = expr.kind() {
        return is_place(base);
    }
    matches!(expr.kind(), ExprKind::Identifier(_))
}
