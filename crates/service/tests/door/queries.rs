//! A query built as a tree returns what its text returns.

use model::json::Value;
use service::syntax::{Expr, ExprKind, Select};
use service::{
    Approach, Cursor, ItemQuery, QueryRows, QuerySource, Scope, ServiceError, Throughput,
};

use crate::fixture::Fixture;

const TEXT: &str = "SELECT VALUE c.id FROM c WHERE c.n > 3 ORDER BY c.n";

fn page(
    fixture: &Fixture,
    source: QuerySource,
    after: Option<Cursor>,
) -> Result<QueryRows, ServiceError> {
    let query = ItemQuery { items_max: 4, ..first_page(source, after) };
    Ok(fixture.within("c", query)?.reply)
}

fn first_page(source: QuerySource, after: Option<Cursor>) -> ItemQuery {
    ItemQuery {
        source,
        parameters: Value::Null,
        scope: Scope::default(),
        across_partitions: true,
        merges: true,
        session: None,
        after,
        resume: None,
        items_max: 1_000,
        approach: Approach::default(),
        system: None,
        is_timed: false,
        names_indexes: false,
    }
}

/// A page keeps what it can return: large items are sorted although all of them together
/// are more than a query may keep.
#[test]
fn items_larger_together_than_the_memory_of_a_query_are_sorted() {
    const ITEMS: usize = 80;
    let fixture = Fixture::new();
    fixture.create_container("c", 2, Throughput::Manual(18_000));
    let text = "x".repeat(900_000);
    for n in 0..ITEMS {
        let body = format!(r#"{{"id":"{n}","pk":"{n}","n":{n},"text":"{text}"}}"#);
        fixture.create_item("c", body).unwrap();
    }
    let sorted = "SELECT c.n, c.text FROM c ORDER BY c.n DESC";
    for (skipped, source) in [(0, sorted.to_owned()), (7, format!("{sorted} OFFSET 7 LIMIT 90"))] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let query = first_page(source.as_str().into(), after);
            let query = ItemQuery { approach: Approach::Scan, ..query };
            let page = fixture.within("c", query).unwrap().reply;
            let bytes: usize = page.rows.iter().map(|row| row.len()).sum();
            assert!(bytes <= 4 << 20, "{bytes} bytes");
            let number = |row: &[u8]| {
                let text = String::from_utf8(row.strip_prefix(br#"{"n":"#).unwrap().to_vec());
                text.unwrap().split(',').next().unwrap().parse::<u64>().unwrap()
            };
            found.extend(page.rows.iter().map(|row| number(row)));
            after = page.rest;
            if after.is_none() {
                break;
            }
        }
        let expected: Vec<u64> = (0..ITEMS as u64).rev().skip(skipped).collect();
        assert_eq!(found, expected, "{source}");
    }
}

fn rows(fixture: &Fixture, source: &QuerySource) -> Vec<String> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = page(fixture, source.clone(), after).unwrap();
        rows.extend(page.rows.iter().map(|row| String::from_utf8(row.to_vec()).unwrap()));
        after = page.rest;
        if after.is_none() {
            return rows;
        }
    }
}

fn tree(text: &str) -> Select {
    query::Query::parse(text).unwrap().syntax().clone()
}

#[test]
fn a_tree_and_its_text_give_the_same_pages() {
    let fixture = Fixture::new();
    fixture.create_container("c", 2, Throughput::Manual(30_000));
    for item in 0..20 {
        let body = format!(r#"{{"id":"{item}","pk":"k{item}","n":{item}}}"#);
        fixture.create_item("c", body).unwrap();
    }
    let by_text = rows(&fixture, &TEXT.into());
    assert_eq!(by_text.len(), 16);
    assert_eq!(rows(&fixture, &QuerySource::Tree(Box::new(tree(TEXT)))), by_text);
}

#[test]
fn a_tree_that_says_nothing_is_refused() {
    let fixture = Fixture::new();
    fixture.create_container("c", 2, Throughput::Manual(400));
    let wrong = Expr::made(ExprKind::Identifier("c; --".to_owned())).unwrap();
    let select = Select { filter: Some(wrong), ..tree(TEXT) };
    let refused = page(&fixture, QuerySource::Tree(Box::new(select)), None).unwrap_err();
    assert!(matches!(refused, ServiceError::Query { .. }), "{refused}");
}
