//! What is written between two pages of a query may make another access path the better
//! one. Rows come in the same order on every path, so nothing that was there is missed or
//! repeated.

use model::limits::Limits;
use service::Approach;

use super::fixture::Fixture;
use super::reindex::{query, query_while};

/// Items that have `n` and `m`, and items that have only `m`, at the beginning.
const BOTH: usize = 40;

struct Case {
    text: &'static str,
    only_m: usize,
    way: &'static str,
    /// What is added after the first page, and how often.
    added: (&'static str, usize),
    /// The access path that is chosen from then on.
    other_way: &'static str,
}

#[test]
fn pages_may_go_another_way() {
    let cases = [
        Case {
            text: "SELECT VALUE c.id FROM c WHERE c.n >= 0 AND c.m >= 0",
            only_m: 120,
            way: "range /n",
            added: (r#""n":5"#, 200),
            other_way: "scan",
        },
        Case {
            text: "SELECT VALUE c.id FROM c WHERE c.n >= 0 ORDER BY c.m",
            only_m: 120,
            way: "index /n, sort",
            added: (r#""n":5"#, 1_000),
            other_way: "index /m, filter",
        },
        Case {
            text: "SELECT VALUE c.id FROM c WHERE c.m >= 0 AND (c.n >= 0 OR c.k >= 0)",
            only_m: 200,
            way: "(range /n or range /k)",
            added: (r#""n":5"#, 1_000),
            other_way: "range /m",
        },
    ];
    for Case { text, only_m, way, added: (added, count), other_way } in cases {
        let fixture = Fixture::new();
        fixture.create_container("c", 2, service::Throughput::Manual(400));
        let create = |id: String, members: &str| {
            let body = format!(r#"{{"id":"{id}","pk":"{id}",{members}}}"#);
            fixture.create_item("c", body).unwrap();
        };
        (0..BOTH).for_each(|n| create(format!("old{n}"), &format!(r#""n":{n},"m":{}"#, BOTH - n)));
        (0..only_m).for_each(|m| create(format!("m{m}"), r#""m":1000"#));
        let (_, before) = query(&fixture, text, Approach::Index);
        assert!(before.access.starts_with(way), "{text}: {} at first", before.access);
        let mut pages = 0;
        let (mut rows, _) = query_while(&fixture, text, Approach::Index, || {
            if pages == 0 {
                (0..count).for_each(|new| create(format!("new{new}"), added));
            }
            pages += 1;
        });
        let (_, now) = query(&fixture, text, Approach::Index);
        assert!(now.access.starts_with(other_way), "{text}: {}", now.access);
        let given = rows.len();
        rows.sort();
        rows.dedup();
        assert_eq!(rows.len(), given, "{text}: none of them twice");
        assert_eq!(rows.iter().filter(|row| row.contains("old")).count(), BOTH, "{text}: each");
    }
}

#[test]
fn a_page_ends_when_it_has_looked_at_enough() {
    let limits = Limits { query_page_items_max: 10, ..Limits::default() };
    let fixture = Fixture::with_limits(limits);
    fixture.create_container("c", 2, service::Throughput::Manual(400));
    for n in 0..BOTH {
        fixture.create_item("c", format!(r#"{{"id":"{n}","pk":"{n}","n":{n}}}"#)).unwrap();
    }
    let text = "SELECT VALUE c.id FROM c WHERE LENGTH(c.id) = 1";
    let mut pages = 1;
    let (rows, report) = query_while(&fixture, text, Approach::Index, || pages += 1);
    assert_eq!(rows.len(), 10, "0 to 9");
    assert!(pages >= BOTH / 10, "{pages} pages");
    assert!(report.items <= 11, "{} items on the last page", report.items);
}
