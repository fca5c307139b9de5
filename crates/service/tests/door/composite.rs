//! An order that begins with what the filter gives reads only its part of a composite
//! index.

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
    block_on(fixture.service.reindex()).unwrap();
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
    // Short names are told apart by the entries themselves.
    for n in 0..ITEMS {
        let body = format!(r#"{{"id":"s{n}","pk":"{}","team":"{}","n":{n}}}"#, n % 50, n % GROUPS);
        fixture.create_item("c", body).unwrap();
    }
    let text = "SELECT TOP 7 VALUE c.id FROM c WHERE c.team = '2' ORDER BY c.team, c.n DESC";
    let (rows, report) = query(&fixture, text, Approach::Index);
    assert_eq!(rows, query(&fixture, text, Approach::Scan).0);
    assert!(report.items < 30, "not all {} items of the team: {}", ITEMS / GROUPS, report.items);
}
