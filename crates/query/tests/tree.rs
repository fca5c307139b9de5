//! Queries that programs make as trees are the queries of their texts, within the same limits.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use model::json::{self, Raw, Value};
use query::syntax::{
    BinaryOp, Collection, Expr, ExprKind, From, Name, Property, Select, Selection, Source,
};
use query::{
    AND_MAX, EXPRESSION_HEIGHT_MAX, IN_ITEMS_MAX, JOINS_MAX, Numeric, Parameters, Query,
    QueryError, QueryLimits, Span,
};

fn made(kind: ExprKind) -> Expr {
    Expr::made(kind).unwrap()
}

fn named(text: &str) -> Name {
    Name { text: text.to_owned(), span: Span::default() }
}

fn member(property: &str) -> Expr {
    let property = Property { name: property.to_owned(), bracketed: false, span: Span::default() };
    made(ExprKind::Member(Box::new(made(ExprKind::Identifier("c".to_owned()))), property))
}

fn source(root: &str) -> Source {
    Source {
        collection: Collection::Path { root: named(root), steps: Vec::new() },
        alias: None,
        iterates: false,
        span: Span::default(),
        collection_span: Span::default(),
    }
}

/// `SELECT VALUE … FROM c WHERE …`.
fn select(value: Expr, filter: Expr) -> Select {
    Select {
        distinct: false,
        top: None,
        selection: Selection::Value(value),
        from: Some(From { first: source("c"), joins: Vec::new(), span: Span::default() }),
        filter: Some(filter),
        group_by: Vec::new(),
        order_by: None,
        page: None,
        span: Span::default(),
    }
}

fn is_one(property: &str) -> Expr {
    let one = made(ExprKind::Number(Numeric::Integer(1)));
    made(ExprKind::Binary(BinaryOp::Equal, Box::new(member(property)), Box::new(one)))
}

fn build(select: Select) -> Result<Query, QueryError> {
    Query::from_tree(select, QueryLimits::service())
}

fn is_limit(refused: &QueryError) -> bool {
    matches!(refused, QueryError::Limit { .. })
}

#[test]
fn a_tree_is_the_query_of_its_text() {
    // A name that needs quotes is printed with them, whatever the tree says.
    let query = build(select(member("a \"b\""), is_one("n"))).unwrap();
    let parsed = Query::parse(r#"SELECT VALUE c["a \"b\""] FROM c WHERE c.n = 1"#).unwrap();
    assert_eq!(query.syntax(), parsed.syntax());
    assert_eq!(Query::parse(query.text()).unwrap().syntax(), query.syntax());
    let documents = [r#"{"a \"b\"":7,"n":1}"#, r#"{"a \"b\"":8,"n":2}"#];
    let rows = |query: &Query| -> Vec<Value> {
        let bound = query.bind(&Parameters::none()).unwrap();
        bound.execute(documents.iter().map(|text| Raw::trusted(text))).unwrap()
    };
    assert_eq!(rows(&query), [json::parse(b"7").unwrap()]);
    assert_eq!(rows(&query), rows(&parsed));
}

#[test]
fn a_tree_gets_no_further_than_a_text() {
    let ands = |count: usize| made(ExprKind::And((0..=count).map(|_| is_one("n")).collect()));
    build(select(member("a"), ands(AND_MAX))).unwrap();
    assert!(is_limit(&build(select(member("a"), ands(AND_MAX + 1))).unwrap_err()));
    let list = |count: usize| {
        let list = (0..count).map(|_| made(ExprKind::Null)).collect();
        made(ExprKind::In { negated: false, needle: Box::new(member("n")), list })
    };
    build(select(member("a"), list(IN_ITEMS_MAX))).unwrap();
    assert!(is_limit(&build(select(member("a"), list(IN_ITEMS_MAX + 1))).unwrap_err()));
    let mut joined = select(member("a"), is_one("n"));
    joined.from.as_mut().unwrap().joins = vec![source("c"); JOINS_MAX + 1];
    assert!(is_limit(&build(joined).unwrap_err()));
    let long = made(ExprKind::String("x".repeat(600_000)));
    assert!(is_limit(&build(select(long, is_one("n"))).unwrap_err()));
}

#[test]
fn a_tree_has_only_so_many_levels() {
    let mut expr = made(ExprKind::Null);
    for _ in 1..EXPRESSION_HEIGHT_MAX {
        expr = made(ExprKind::Array(vec![expr]));
    }
    assert!(is_limit(&Expr::made(ExprKind::Array(vec![expr])).unwrap_err()));
    let mut deep = select(member("a"), is_one("n"));
    for _ in 0..EXPRESSION_HEIGHT_MAX {
        let mut around = select(member("a"), is_one("n"));
        let first = &mut around.from.as_mut().unwrap().first;
        first.collection = Collection::Subquery(Box::new(deep));
        first.alias = Some(named("c"));
        deep = around;
    }
    assert!(is_limit(&build(deep).unwrap_err()));
}

/// What a program takes from elsewhere must not become another query when it is printed.
#[test]
fn names_are_names() {
    for wrong in ["", "null", "SELECT", "c.a", "c WHERE true --", "@p", "a b", "1"] {
        let identifier = made(ExprKind::Identifier(wrong.to_owned()));
        let call = made(ExprKind::Call { name: named(wrong), arguments: Vec::new() });
        let parameter = made(ExprKind::Parameter(format!("@@{wrong}")));
        for expr in [identifier, call, parameter] {
            let refused = build(select(expr, is_one("n"))).unwrap_err();
            assert!(matches!(refused, QueryError::Invalid(_)), "{wrong}: {refused}");
        }
        let mut from = select(member("a"), is_one("n"));
        from.from.as_mut().unwrap().first.alias = Some(named(wrong));
        assert!(build(from).is_err(), "{wrong}");
    }
    let lonely = made(ExprKind::And(vec![is_one("n")]));
    assert!(build(select(member("a"), lonely)).is_err());
}
