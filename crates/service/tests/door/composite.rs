//! An order whose first values the filter fixes reads only that part of a composite index.

use service::Approach;
use testkit::wait::block_on;

use super::fixture::Fixture;
use super::reindex::{query, set_policy};

const ITEMS: usize = 330;
const GROUPS: usize = 3;

#[test]
fn a_given_first_value_narrows_a_composite_index() {
    let fixture = Fixture::new();
    fixture.create_container("c", 2, service::Throughput::Manual(18_000));
    set_policy(
        &fixture,
        r#"{"includedPaths":[{"path":"/*"}],"excludedPaths":[],"compositeIndexes":[
            [{"path":"/team","order":"descending"},{"path":"/n","order":"ascending"}]]}"#,
    );
    block_on(fixture.service.maintenance().reindex()).unwrap();
    // Names that share more than an entry keeps.
    let team = |n: usize| format!("{}{}", "x".repeat(200), n % GROUPS);
    for n in 0..ITEMS {
        let body =
            format!(r#"{{"id":"{n}","pk":"{}","team":"{}","n":{}}}"#, n % 50, team(n), n / 7);
        fixture.create_item("c", body).unwrap();
    }
    for order in ["c.team DESC, c.n", "c.team, c.n DESC"] {
        let text =
            format!("SELECT VALUE c.id FROM c WHERE c.team = '{}' ORDER BY {order}", team(1));
        let (rows, report) = query(&fixture, &text, Approach::Index);
        assert_eq!(rows, query(&fixture, &text, Approach::Scan).0, "{order}");
        assert_eq!(rows.len(), ITEMS / GROUPS);
        assert!(report.access.starts_with("index /team, /n"), "{}", report.access);
    }
    // Short names are distinguished by the entries themselves.
    for n in 0..ITEMS {
        let body = format!(r#"{{"id":"s{n}","pk":"{}","team":"{}","n":{n}}}"#, n % 50, n % GROUPS);
        fixture.create_item("c", body).unwrap();
    }
    let text = "SELECT TOP 7 VALUE c.id FROM c WHERE c.team = '2' ORDER BY c.team, c.n DESC";
    let (rows, report) = query(&fixture, text, Approach::Index);
    assert_eq!(rows, query(&fixture, text, Approach::Scan).0);
    assert!(report.items < 30, "not all {} items of the team: {}", ITEMS / GROUPS, report.items);
}

/// Values of every type, none at all, and texts that are longer than what entries keep.
fn value(n: usize) -> String {
    match n % 7 {
        0 => String::new(),
        1 => r#","b":null"#.to_owned(),
        2 => format!(r#","b":"{}{}""#, "y".repeat(300), n % 5),
        3 => format!(r#","b":"{n}""#),
        _ => format!(r#","b":{}"#, n % 40),
    }
}

#[test]
fn conditions_on_several_paths_share_a_composite_index() {
    let fixture = Fixture::new();
    fixture.create_container("c", 2, service::Throughput::Manual(18_000));
    set_policy(
        &fixture,
        r#"{"includedPaths":[{"path":"/*"},{"path":"/d/?"}],"excludedPaths":[],"compositeIndexes":[
            [{"path":"/a","order":"descending"},{"path":"/b","order":"descending"}],
            [{"path":"/a","order":"ascending"},{"path":"/d","order":"ascending"}],
            [{"path":"/e","order":"ascending"},{"path":"/d","order":"descending"}],
            [{"path":"/a","order":"ascending"},{"path":"/e","order":"ascending"},{"path":"/b","order":"ascending"}]]}"#,
    );
    block_on(fixture.service.maintenance().reindex()).unwrap();
    for n in 0..3 * ITEMS {
        let (b, a) = (value(n), n % 2);
        let d = b.replace("\"b\"", "\"d\"");
        let body = format!(r#"{{"id":"{n}","pk":"{}","a":{a},"e":{}{b}{d}}}"#, n % 50, n % 9);
        fixture.create_item("c", body).unwrap();
    }
    let long = "y".repeat(300);
    let filters = [
        "c.a = 1 AND c.b > 7 AND c.b <= 30",
        &format!("c.b >= '{long}2' AND c.a = 1"),
        "c.a = 0 AND c.d > 7 AND c.e < 4",
        "c.a = 0 AND c.e > 6",
        "c.e = 4 AND c.d >= 3",
    ];
    let orders = [
        "c.a = 1 ORDER BY c.b",
        "c.a = 1 ORDER BY c.b DESC",
        "c.a = 1 ORDER BY c.d",
        "c.a = 0 ORDER BY c.d DESC",
        "c.a = 1 AND c.b > 7 ORDER BY c.b DESC",
        "c.a = 1 AND c.b < 'yyz' ORDER BY c.b",
        "c.a = 1 AND c.e != 2 ORDER BY c.b",
    ];
    for filter in filters.into_iter().chain(orders) {
        let text = format!("SELECT VALUE c.id FROM c WHERE {filter}");
        let (mut rows, report) = query(&fixture, &text, Approach::Index);
        let mut expected = query(&fixture, &text, Approach::Scan).0;
        if !filter.contains("ORDER") {
            rows.sort();
            expected.sort();
        }
        assert_eq!(rows, expected, "{filter}: {}", report.access);
        let composite = ["index /a, /", "index /e, /", "range /a, /", "range /e, /"];
        let through = composite.iter().any(|index| report.access.starts_with(index));
        assert!(through, "{filter}: {}", report.access);
        let others = report.items.saturating_sub(u64::try_from(rows.len()).unwrap());
        assert!(others < 200, "{filter}: {others} items for nothing");
    }
}
