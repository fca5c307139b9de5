//! A changed indexing policy: answers stay right at every moment, items are re-indexed, and
//! then the new index is used.

use model::json::Value;
use service::{
    Approach, Conditions, Cursor, ItemQuery, Link, QueryReport, QueryRows, ReadRanges,
    ResourceAction, Scope,
};
use testkit::wait::block_on;

use super::fixture::Fixture;

const ITEMS: usize = 200;
const QUERY: &str = "SELECT VALUE c.id FROM c WHERE c.a = 3 AND c.b = 1 ORDER BY c.a";

pub(crate) fn set_policy(fixture: &Fixture, policy: &str) {
    let body = format!(
        r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"version":2}},"indexingPolicy":{policy}}}"#
    );
    let body = model::json::parse(body.as_bytes()).unwrap();
    let (link, conditions) = (Link::parse("dbs/d/colls/c").unwrap(), Conditions::default());
    fixture.execute(ResourceAction::Replace { link, body, conditions }).unwrap();
}

pub(crate) fn query(
    fixture: &Fixture,
    text: &str,
    approach: Approach,
) -> (Vec<String>, QueryReport) {
    query_while(fixture, text, approach, || {})
}

/// Asks for all pages, with an action between each two.
pub(crate) fn query_while(
    fixture: &Fixture,
    text: &str,
    approach: Approach,
    mut between: impl FnMut(),
) -> (Vec<String>, QueryReport) {
    let (mut rows, mut after): (Vec<String>, Option<Cursor>) = (Vec::new(), None);
    loop {
        let query = ItemQuery {
            source: text.into(),
            parameters: Value::Array(Vec::new()),
            scope: Scope::default(),
            across_partitions: true,
            merges: true,
            session: None,
            after,
            resume: None,
            items_max: 7,
            approach,
            system: None,
            is_timed: false,
            names_indexes: true,
        };
        let QueryRows { rows: more, rest, report, .. } = fixture.within("c", query).unwrap().reply;
        rows.extend(more.iter().map(|row| String::from_utf8(row.to_vec()).unwrap()));
        after = rest;
        if after.is_none() {
            return (rows, *report);
        }
        between();
    }
}

fn index_percent(fixture: &Fixture) -> u8 {
    fixture.within("c", ReadRanges).unwrap().reply.index_percent
}

#[test]
fn items_are_indexed_anew_when_the_policy_changes() {
    let fixture = Fixture::new();
    fixture.create_container("c", 2, service::Throughput::Manual(18_000));
    let narrow = r#"{"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]}"#;
    set_policy(&fixture, narrow);
    assert_eq!(block_on(fixture.service.maintenance().reindex()).unwrap(), 1, "an empty one, too");
    for n in 0..ITEMS {
        let body = format!(r#"{{"id":"{n}","pk":"{n}","a":{},"b":{}}}"#, n % 7, n % 3);
        fixture.create_item("c", body).unwrap();
    }
    let (expected, _) = query(&fixture, QUERY, Approach::Scan);
    assert!(expected.len() > 7, "more than a page: {expected:?}");
    let same = |what: &str| {
        let (rows, report) = query(&fixture, QUERY, Approach::Index);
        assert_eq!(rows, expected, "{what}: {}", report.access);
        report
    };
    let wanted = |report: &service::QueryReport| -> Vec<String> {
        report.usage.wanted.iter().map(ToString::to_string).collect()
    };
    assert_eq!(wanted(&same("narrow")), ["/b/?"]);
    assert_eq!(index_percent(&fixture), 100);

    let other = r#"{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/x/?"}]}"#;
    set_policy(&fixture, other);
    same("changed");
    assert_eq!(index_percent(&fixture), 0);
    fixture.create_item("c", r#"{"id":"new","pk":"n","a":3,"b":2}"#.to_owned()).unwrap();
    assert_eq!(wanted(&same("mixed")), ["/b/?"], "until all items are indexed by it");
    fixture.logical_partitions();

    assert_eq!(block_on(fixture.service.maintenance().reindex()).unwrap(), 1);
    let report = same("re-indexed");
    assert_eq!(wanted(&report), [""; 0], "{:?}", report.usage);
    assert!(report.access.contains("/b"), "{}", report.access);
    assert_eq!(index_percent(&fixture), 100);
    assert_eq!(
        block_on(fixture.service.maintenance().reindex()).unwrap(),
        0,
        "nothing is left to do"
    );
    fixture.logical_partitions();
}

/// A policy that names a path has entries for items without a value there, one that only
/// covers it has none. Until the backfill is complete, some have such an entry and some do
/// not, and each item is found once all the same.
#[test]
fn items_without_a_value_are_met_once_while_policies_differ() {
    const NAMED: &str = r#"{"includedPaths":[{"path":"/*"},{"path":"/a/?"}]}"#;
    const COVERED: &str = r#"{"includedPaths":[{"path":"/*"}]}"#;
    for (before, after) in [(NAMED, COVERED), (COVERED, NAMED)] {
        let fixture = Fixture::new();
        fixture.create_container("c", 2, service::Throughput::Manual(18_000));
        set_policy(&fixture, before);
        block_on(fixture.service.maintenance().reindex()).unwrap();
        let create = |numbers: std::ops::Range<usize>| {
            for n in numbers {
                let a = if n % 3 == 0 { String::new() } else { format!(r#","a":{}"#, n % 40) };
                let body = format!(r#"{{"id":"{n}","pk":"{n}"{a},"b":{}}}"#, n % 2);
                fixture.create_item("c", body).unwrap();
            }
        };
        create(0..ITEMS);
        set_policy(&fixture, after);
        create(ITEMS..ITEMS + 20);
        for text in [
            "SELECT VALUE c.id FROM c ORDER BY c.a",
            "SELECT VALUE c.id FROM c ORDER BY c.a DESC",
            "SELECT c.a, c.b, COUNT(1) AS n FROM c GROUP BY c.a, c.b",
            "SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a ORDER BY c.a DESC",
            "SELECT DISTINCT c.a, c.b FROM c",
        ] {
            let (mut expected, _) = query(&fixture, text, Approach::Scan);
            let (mut rows, report) = query(&fixture, text, Approach::Index);
            assert!(report.access.starts_with("index /a"), "{text}: {}", report.access);
            expected.sort();
            rows.sort();
            assert_eq!(rows, expected, "{text} along {}", report.access);
        }
    }
}
