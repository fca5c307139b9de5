//! Where pages end, and invalid cursors.
#![allow(clippy::print_stdout, reason = "figures are to be seen")]

use std::time::Duration;

use lab::queries::{Ask, Dice, Lab, PAGE_ALL, definition};
use model::json::{DistinctHash, JsonKind, Value};
use model::rid::ItemRid;
use service::{
    Approach, Cursor, QueryReport, RangeInfo, ResumeFilter, Scope, ServiceError, SortValue,
};

/// Bytes of rows in a page.
const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

const SEED: u64 = 11;

fn lab(partitions: usize) -> Lab {
    furnished(Lab::memory(), partitions)
}

fn furnished(lab: Lab, partitions: usize) -> Lab {
    let key = r#"{"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;
    lab.create_container(&definition(key)).unwrap();
    lab.divide(partitions);
    lab
}

/// The number of rows, their bytes and where to continue.
fn query(
    lab: &Lab,
    ask: &Ask,
    after: Option<Cursor>,
    items_max: usize,
) -> Result<(usize, usize, Option<Cursor>), ServiceError> {
    let (rows, rest, _) = lab.raw_page(ask, Approach::Index, after, items_max)?;
    Ok((rows.len(), rows.iter().map(|row| row.len()).sum(), rest))
}

/// However many rows are requested; and a longer row is a page of its own.
#[test]
fn a_page_ends_before_it_has_four_megabytes() {
    let [one, three] = [1, 3].map(|partitions| {
        let lab = lab(partitions);
        for number in 0..7 {
            let text = "x".repeat(900_000);
            lab.put(&format!(r#"{{"id":"{number}","pk":"{number}","text":"{text}"}}"#)).unwrap();
        }
        lab
    });
    for (lab, text, pages) in [
        (&one, "SELECT * FROM c", vec![4, 3]),
        (&three, "SELECT * FROM c ORDER BY c.id", vec![4, 3]),
        (&three, "SELECT DISTINCT VALUE CONCAT(c.id, c.text) FROM c", vec![4, 3]),
        (&one, "SELECT c.text AS a, c.text AS b FROM c", vec![2, 2, 2, 1]),
        (&one, "SELECT VALUE c.id FROM c", vec![7]),
    ] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let (rows, bytes, rest) = query(lab, &Ask::new(text), after, PAGE_ALL).unwrap();
            assert!(bytes <= PAGE_BYTES_MAX, "{bytes} bytes");
            found.push(rows);
            after = rest;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(found, pages, "{text}");
    }
}

/// The limits on rows and bytes coincide on a page: its end is not that of the item.
#[test]
fn an_item_with_more_rows_than_a_page_gives_all_of_them() {
    let (lab, rows) = (lab(1), 1_500);
    let (text, list) = ("x".repeat(4_115), vec!["0"; rows].join(","));
    lab.put(&format!(r#"{{"id":"1","pk":"1","text":"{text}","l":[{list}]}}"#)).unwrap();
    for order in ["", " ORDER BY c.id", " ORDER BY c.text"] {
        let ask = Ask::new(format!("SELECT c.text, e FROM c JOIN e IN c.l{order}"));
        let answer = lab.all(&ask, Approach::Index, PAGE_ALL, |_| {}).unwrap();
        assert_eq!(answer.rows.len(), rows, "{}", ask.text);
    }
}

/// Queries that must see everything have a minute, even if they count entries and load no
/// item.
#[test]
fn a_count_of_many_entries_ends_in_time() {
    let lab = lab(3);
    (0..2_000).for_each(|id| lab.put(&format!(r#"{{"id":"{id}","pk":"{id}","n":1}}"#)).unwrap());
    let count = |text: &str| {
        let answer = lab.all(&Ask::new(text), Approach::Index, PAGE_ALL, |_| {})?;
        Ok::<_, ServiceError>((answer.rows, answer.report.items))
    };
    let through_entries = "SELECT VALUE COUNT(1) FROM c WHERE c.n = 1";
    let counted = (vec![Value::from(2_000_u32)], 0);
    assert_eq!(count(through_entries).unwrap(), counted);
    lab.slow_down(Duration::from_millis(500));
    let slow = count(through_entries);
    assert!(matches!(slow, Err(ServiceError::TimedOut)), "{slow:?}");
    // The number of items is stored.
    assert_eq!(count("SELECT VALUE COUNT(1) FROM c").unwrap(), counted);
}

/// The rows of a query, page by page, with an action after the first page.
fn pages(lab: &Lab, ask: &Ask, first: usize, happens: impl Fn()) -> Vec<Vec<Value>> {
    let mut page = lab.page(ask, Approach::Index, None, first).unwrap();
    happens();
    let mut pages = vec![page.rows];
    while let Some(rest) = page.rest {
        page = lab.page(ask, Approach::Index, Some(&rest), PAGE_ALL).unwrap();
        pages.push(page.rows);
    }
    pages
}

/// The rows of each partition.
fn rows_of_partitions(lab: &Lab, text: &str) -> Vec<Vec<Value>> {
    let of_one = |range: RangeInfo| {
        let scope = Scope { range: Some(range.id), ..Scope::default() };
        pages(lab, &Ask { scope, ..Ask::new(text) }, PAGE_ALL, || {}).concat()
    };
    lab.ranges().into_iter().map(of_one).collect()
}

/// Also of one that has nothing.
#[test]
fn a_page_is_of_one_partition_unless_an_order_asks_for_several() {
    let lab = lab(7);
    (0..9).for_each(|id| lab.put(&format!(r#"{{"id":"{id}","pk":"{id}"}}"#)).unwrap());
    let parts = rows_of_partitions(&lab, "SELECT VALUE c.id FROM c");
    assert_eq!(parts.len(), 7);
    assert!(parts.iter().any(Vec::is_empty), "{parts:?}");
    let everywhere = |text: &str| pages(&lab, &Ask::new(text), PAGE_ALL, || {});
    assert_eq!(everywhere("SELECT VALUE c.id FROM c"), parts);
    let is_of_one = |page: &Vec<Value>| {
        let has_all = |part: &Vec<Value>| page.iter().all(|row| part.contains(row));
        parts.iter().any(has_all)
    };
    let top = ("SELECT TOP 5 VALUE c.id FROM c", 0..5);
    let limit = ("SELECT VALUE c.id FROM c OFFSET 2 LIMIT 4", 2..6);
    for (text, wanted) in [top, limit] {
        let pages = everywhere(text);
        assert_eq!(pages.concat(), parts.concat()[wanted], "{text}");
        assert!(pages.iter().all(is_of_one), "{text}: {pages:?}");
    }
    for text in [
        "SELECT VALUE c.id FROM c ORDER BY c.id",
        "SELECT DISTINCT VALUE c.id FROM c",
        "SELECT c.id FROM c GROUP BY c.id",
    ] {
        let sizes: Vec<usize> = everywhere(text).iter().map(Vec::len).collect();
        assert_eq!(sizes, [9], "{text}");
    }
}

/// A partition that was split while a query read it is read to its end, in the order in
/// which its items were created.
#[test]
fn partitions_that_were_one_share_a_page() {
    let lab = lab(1);
    (0..200).for_each(|id| lab.put(&format!(r#"{{"id":"{id}","pk":"{id}","n":1}}"#)).unwrap());
    let text = "SELECT VALUE c.id FROM c WHERE c.n = 1";
    let pages = pages(&lab, &Ask::new(text), 1, || lab.divide(16));
    assert_eq!(rows_of_partitions(&lab, text).len(), 16);
    let created: Vec<Value> = (0..200).map(|id: u32| Value::from(id.to_string())).collect();
    assert_eq!(pages.concat(), created);
    assert_eq!(pages.len(), 2, "{pages:?}");
}

/// Pages that end after few items make progress even if a cursor cannot name the last of
/// them.
#[test]
fn pages_go_on_among_ids_and_values_that_begin_alike() {
    let lab = furnished(Lab::of_short_pages(3), 1);
    for number in 0..12 {
        let (id, text) = ("i".repeat(900), "p".repeat(200));
        let item = format!(r#"{{"id":"{id}{number:02}","pk":"x","s":"{text}{number:02}"}}"#);
        lab.put(&item).unwrap();
    }
    for (filter, rows) in [
        ("LENGTH(c.s) = 1", 0),
        ("RIGHT(c.id, 2) = '11'", 1),
        ("LENGTH(c.s) = 1 ORDER BY c.s", 0),
        ("RIGHT(c.s, 2) != '05' ORDER BY c.s DESC", 11),
        ("RIGHT(c.s, 2) != '05' ORDER BY c.id", 11),
    ] {
        let ask = Ask::new(format!("SELECT VALUE c.id FROM c WHERE {filter}"));
        for approach in [Approach::Index, Approach::Scan] {
            let answer = lab.all(&ask, approach, 2, |_| {}).unwrap();
            assert_eq!(answer.rows.len(), rows, "{filter}, {approach:?}");
        }
    }
}

/// A scan that finds few rows is divided into pieces that run in parallel. Its pages end,
/// and cost, as if there were one scan.
#[test]
fn a_scan_in_pieces_ends_pages_where_one_scan_would() {
    let lab = furnished(Lab::of_short_pages(4_500), 1);
    for number in 0..10_000 {
        lab.put(&format!(r#"{{"id":"{number}","pk":"{number}","n":{number}}}"#)).unwrap();
    }
    let ask = Ask::new("SELECT VALUE c.n FROM c WHERE c.n % 500 = 7");
    for (items_max, pages) in [(PAGE_ALL, Some(vec![4_500, 4_500, 1_000])), (3, None)] {
        let (mut found, mut looked_at, mut after) = (Vec::new(), Vec::new(), None);
        loop {
            let page = lab.raw_page(&ask, Approach::Index, after, items_max).unwrap();
            let (rows, rest, report) = page;
            assert!(rows.len() <= items_max && report.items <= 4_500);
            found.extend(rows);
            looked_at.push(report.items);
            after = rest;
            if after.is_none() {
                break;
            }
        }
        // Items that are scanned after a full page are scanned again by the next one.
        let ahead = u64::try_from(looked_at.len()).unwrap() * 33;
        assert!((10_000..10_000 + ahead).contains(&looked_at.iter().sum()), "{looked_at:?}");
        assert!(pages.is_none_or(|pages| pages == looked_at), "{items_max}");
        let expected: Vec<String> = (0..20).map(|n| (n * 500 + 7).to_string()).collect();
        assert_eq!(found, expected, "in the order of creation");
    }
}

/// Where the page has room for all that a scan is likely to find, items are read in the order of
/// their keys, which are hashed, instead of being looked up in the order of creation.
#[test]
fn a_scan_for_few_rows_reads_items_in_sequence() {
    const ITEMS: u64 = 4_000;
    /// They are looked up before the rest is read.
    const BEFORE: u64 = 250;
    let lab = lab(1);
    for number in 0..ITEMS {
        lab.put(&format!(r#"{{"id":"{number}","pk":"{number}","n":{number}}}"#)).unwrap();
    }
    for (window, expected) in [
        ("", vec!["300", "1200", "2100", "3000", "3900"]),
        (" OFFSET 2 LIMIT 50", vec!["2100", "3000", "3900"]),
    ] {
        let ask = Ask::new(format!("SELECT VALUE c.n FROM c WHERE c.n % 900 = 300{window}"));
        let (rows, rest, report) = lab.raw_page(&ask, Approach::Index, None, 100).unwrap();
        assert_eq!(rows, expected, "{}", ask.text);
        assert!(rest.is_none());
        assert_eq!(report.items, BEFORE + ITEMS);
    }
    // More than one page: its rest begins after the rows of the first.
    let ask = Ask::new("SELECT VALUE c.n FROM c WHERE c.n = 100 OR c.n % 1300 = 1200");
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let (rows, rest, _) = lab.raw_page(&ask, Approach::Index, after, 2).unwrap();
        found.extend(rows);
        after = rest;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, ["100", "1200", "2500", "3800"]);
}

#[test]
fn a_cursor_is_for_its_own_query_only() {
    let lab = lab(1);
    (0..3).for_each(|id| lab.put(&format!(r#"{{"id":"{id}","pk":"{id}"}}"#)).unwrap());
    let (_, _, rest) = query(&lab, &Ask::new("SELECT * FROM c"), None, 1).unwrap();
    let other = query(&lab, &Ask::new("SELECT VALUE c.id FROM c"), rest, 1);
    assert!(matches!(other, Err(ServiceError::Invalid { .. })), "{other:?}");
}

/// Whatever bytes a client sends back: the result is an error, or rows and an end.
#[test]
fn a_damaged_cursor_gives_an_error_or_rows() {
    let lab = lab(3);
    for id in 0..12 {
        let item = format!(r#"{{"id":"{id}","pk":"{id}","n":{},"l":[1,2]}}"#, id % 5);
        lab.put(&item).unwrap();
    }
    println!("seed {SEED}");
    let dice = Dice::new(SEED);
    for text in [
        "SELECT * FROM c",
        "SELECT * FROM c WHERE c.n > 1",
        "SELECT * FROM c WHERE c.n = 1 OR c.n = 2",
        "SELECT VALUE e FROM c JOIN e IN c.l ORDER BY c.n DESC",
        "SELECT VALUE c.id FROM c WHERE c.n > 1 ORDER BY c.n OFFSET 1 LIMIT 6",
        "SELECT DISTINCT VALUE c.n FROM c",
        "SELECT c.n, COUNT(1) AS count FROM c GROUP BY c.n",
    ] {
        let ask = Ask::new(text);
        let (_, _, rest) = query(&lab, &ask, None, 2).unwrap();
        let bytes = rest.unwrap().to_bytes();
        for _ in 0..200 {
            let mut damaged = bytes.clone();
            for _ in 0..=dice.below(3) {
                let at = dice.below(damaged.len());
                match dice.below(3) {
                    0 => drop(damaged.remove(at)),
                    1 => damaged.insert(at, u8::try_from(dice.below(256)).unwrap()),
                    _ => damaged[at] = u8::try_from(dice.below(256)).unwrap(),
                }
            }
            let mut after = Cursor::from_bytes(&damaged).ok();
            for _ in 0..100 {
                let Some(cursor) = after else { break };
                after = match query(&lab, &ask, Some(cursor), 2) {
                    Ok((_, _, rest)) => rest,
                    Err(ServiceError::Invalid { .. } | ServiceError::Query { .. }) => None,
                    Err(other) => panic!("{text}, {damaged:?}: {other}"),
                };
            }
            assert!(after.is_none(), "{text}: the pages after {damaged:?} do not end");
        }
    }
}

/// Items without a sort value come first, or last, and finding them costs nothing that
/// grows with the items that have one.
#[test]
fn items_without_a_sort_value_are_found_without_looking_at_the_others() {
    let effort = |items: usize, is_missing: &dyn Fn(usize) -> bool, text: &str| {
        let lab = lab(2);
        for number in 0..items {
            let value = if is_missing(number) { "" } else { r#","o":{"n":1},"n":1"# };
            lab.put(&format!(r#"{{"id":"{number}","pk":"{number}"{value}}}"#)).unwrap();
        }
        let (rows, _, report) = lab.raw_page(&Ask::new(text), Approach::Index, None, 10).unwrap();
        assert_eq!(rows.len(), 10, "{text}");
        assert!(report.access.starts_with("index /"), "{text}: {}", report.access);
        (report.entries, report.items)
    };
    for path in ["c.n", "c.o.n"] {
        for way in ["", " DESC"] {
            let text = format!("SELECT TOP 10 VALUE c.id FROM c ORDER BY {path}{way}");
            let cases: [(&str, &dyn Fn(usize) -> bool); 3] = [
                ("none", &|_| false),
                ("one", &|number| number == 77),
                ("half", &|number| number % 2 == 0),
            ];
            for (missing, is_missing) in cases {
                let [few, many] = [200, 1_000].map(|items| effort(items, is_missing, &text));
                println!("{text}, {missing} missing: {few:?} of 200, {many:?} of 1000");
                assert_eq!(few, many, "{text}, {missing} missing");
                assert!(many.0 <= 80 && many.1 <= 11, "{text}, {missing} missing: {many:?}");
            }
        }
    }
}

/// What the pages of a query read, one after the other: entries and items.
fn efforts(lab: &Lab, text: &str, rows_max: usize) -> Vec<(u64, u64)> {
    let (ask, mut rest, mut efforts) = (Ask::new(text), None, Vec::new());
    loop {
        let page = lab.page(&ask, Approach::Index, rest.as_deref(), rows_max).unwrap();
        assert!(page.report.access.starts_with("index /g"), "{text}: {}", page.report.access);
        efforts.push((page.report.entries, page.report.items));
        rest = page.rest;
        if rest.is_none() {
            return efforts;
        }
    }
}

/// Of a container with two partitions.
const BUCKETS: u64 = 16;

/// A page of groups reads the items of its groups, however many the others have, and one of
/// distinct rows no more items than rows.
#[test]
fn a_page_of_groups_costs_what_its_groups_do() {
    // Twelve groups; of every third there are `crowd` items, of the others two.
    let furnish = |crowd: usize| {
        let lab = lab(2);
        for group in 0..12 {
            for copy in 0..if group % 3 == 0 { crowd } else { 2 } {
                let id = format!("{group}-{copy}");
                let item = format!(r#"{{"id":"{id}","pk":"{id}","g":{group},"h":{}}}"#, copy % 2);
                lab.put(&item).unwrap();
            }
        }
        lab
    };
    let [few, many] = [10, 200].map(furnish);
    for text in [
        "SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g",
        "SELECT c.g, COUNT(1) AS n FROM c GROUP BY c.g ORDER BY c.g DESC",
        "SELECT c.g, c.h, MAX(c.id) AS last FROM c GROUP BY c.g, c.h",
    ] {
        let pages = [&few, &many].map(|lab| efforts(lab, text, 1));
        println!("{text}: {pages:?}");
        assert_eq!(pages[0].len(), pages[1].len(), "{text}");
        let rest = |page: &(u64, u64), other: &(u64, u64)| {
            // Of the next group each bucket reads its first entry.
            page.1 == other.1 && page.0.abs_diff(other.0) <= BUCKETS
        };
        let small = pages[0].iter().zip(&pages[1]).filter(|(few, many)| rest(few, many));
        assert!(small.count() >= 8, "{text}: {pages:?}");
    }
    for text in [
        "SELECT DISTINCT c.g FROM c",
        "SELECT DISTINCT VALUE c.g FROM c",
        "SELECT DISTINCT VALUE c.g FROM c ORDER BY c.g",
        "SELECT DISTINCT c.g FROM c ORDER BY c.g DESC",
    ] {
        let pages = [&few, &many].map(|lab| efforts(lab, text, 3));
        println!("{text}: {pages:?}");
        assert_eq!(pages[0].len(), 4, "{text}");
        for (_, items) in pages.iter().flatten() {
            assert!(*items <= 4, "{text}: {pages:?}");
        }
        let entries = pages[1].iter().map(|(entries, _)| *entries);
        assert!(entries.max() <= Some(4 * BUCKETS + BUCKETS), "{text}: {pages:?}");
    }
}

/// As clients page through groups in order: they narrow the filter when they resume.
#[test]
fn groups_in_order_go_on_with_another_filter() {
    let lab = lab(3);
    for id in 0..12 {
        lab.put(&format!(r#"{{"id":"{id}","pk":"{id}","n":{}}}"#, id % 5)).unwrap();
    }
    let text = |filter: &str| {
        format!(
            "SELECT c._rid, [{{\"item\": c.n}}] AS orderByItems, {{\"groupByItems\": \
             [{{\"item\": c.n}}], \"payload\": c.n}} AS payload \
             FROM c WHERE ({filter}) GROUP BY c.n ORDER BY c.n"
        )
    };
    let payload = |row: &Value| row.get("payload").and_then(|row| row.get("payload")).cloned();
    for ways in [[Approach::Index, Approach::Scan], [Approach::Scan, Approach::Index]] {
        let first = lab.page(&Ask::new(text("true")), ways[0], None, 2).unwrap();
        lab.put(r#"{"id":"new","pk":"new","n":-1}"#).unwrap();
        let rest = first.rest.expect("more groups");
        let next = lab.page(&Ask::new(text("c.n >= 1")), ways[1], Some(&rest), PAGE_ALL).unwrap();
        let rows: Vec<_> = first.rows.iter().chain(&next.rows).filter_map(payload).collect();
        assert_eq!(rows, [0_u32, 1, 2, 3, 4].map(Value::from), "{ways:?}");
        lab.remove("new", model::partition_key::PartitionKey::new(["new"])).unwrap();
    }
}

/// However far down its order a client resumes a query, among however many ties, and among
/// arrays and objects as among numbers.
#[test]
fn a_query_that_is_taken_up_again_seeks_its_place() {
    const ITEMS: i64 = 1_000;
    const PAGE: usize = 5;
    let lab = Lab::memory();
    let container = r#"{"partitionKey":{"paths":["/pk"],"kind":"Hash","version":2},
        "indexingPolicy":{"compositeIndexes":[[{"path":"/t"},{"path":"/n"}]]}}"#;
    lab.create_container(&definition(container)).unwrap();
    for n in 0..ITEMS {
        let nested = format!(r#""v":[{n}],"o":{{"n":{n}}}"#);
        lab.put(&format!(r#"{{"id":"{n}","pk":"{}","n":{n},"t":1,{nested}}}"#, n % 3)).unwrap();
    }
    let hashed = |kind: JsonKind, text: &str| {
        let value = model::json::parse(text.as_bytes()).unwrap();
        vec![SortValue::Hashed(kind, DistinctHash::of(&value))]
    };
    let (array, object) =
        (hashed(JsonKind::Array, "[980]"), hashed(JsonKind::Object, r#"{"n":980}"#));
    let rid = Ask::new("SELECT VALUE c._rid FROM c WHERE c.n = 980");
    let rid = lab.page(&rid, Approach::Index, None, 1).unwrap().rows.remove(0);
    let item = Some(ItemRid::parse(rid.as_str().unwrap()).unwrap().ordinal());
    let (one, far) = (SortValue::Value(1_i64.into()), SortValue::Value(980_i64.into()));
    for (order, keys, item) in [
        ("c.n", vec![far.clone()], None),
        ("c.n DESC", vec![far.clone()], None),
        ("c.t", vec![one.clone()], item),
        ("c.t DESC", vec![one.clone()], item),
        ("c.t, c.n", vec![one.clone(), far.clone()], item),
        ("c.t DESC, c.n DESC", vec![one, far], None),
        ("c.v", array.clone(), None),
        ("c.v DESC", array, None),
        ("c.o", object, None),
    ] {
        let resume = Some(ResumeFilter { keys, item, exclude: false });
        let ask = Ask { resume, ..Ask::new(format!("SELECT VALUE c.n FROM c ORDER BY {order}")) };
        let page = lab.page(&ask, Approach::Index, None, PAGE).unwrap();
        assert_eq!((page.rows.len(), &page.rows[0]), (PAGE, &Value::from(980_i64)), "{order}");
        let QueryReport { entries, items, .. } = page.report;
        assert!(entries + items < 50, "{order} looks at {entries} entries and {items} items");
    }
}
