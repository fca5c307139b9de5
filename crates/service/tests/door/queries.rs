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
    let query = ItemQuery {
        source,
        parameters: Value::Null,
        scope: Scope::default(),
        across_partitions: true,
        merges: true,
        session: None,
        after,
        resume: None,
        items_max: 4,
        approach: Approach::default(),
        system: None,
        is_timed: false,
        names_indexes: false,
    };
    Ok(fixture.within("c", query)?.reply)
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
