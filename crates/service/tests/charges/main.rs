//! What requests cost: how close it comes to what the service is known to charge, and what
//! it must not depend on.
//!
//! `cargo xtask ru` runs this and shows the table that it prints.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]
#![allow(clippy::print_stdout, reason = "tests tell figures, and what they left out")]

mod anchors;
mod lab;
mod measure;
mod queries;

use std::collections::BTreeMap;

use anchors::Anchor;
use lab::{Lab, item};
use measure::Measured;
use model::charge::{Charge, Tariff};
use model::position::Lsn;
use queries::Labs;
use service::ChangeStart;

/// Queries with different access paths and outputs.
const QUERIES: [&str; 9] = [
    "SELECT * FROM c",
    "SELECT * FROM c WHERE c.id = '7'",
    "SELECT * FROM c WHERE c.team = 't1'",
    "SELECT c.id FROM c WHERE c.team = 't1' AND c.number >= 9",
    "SELECT TOP 3 * FROM c WHERE (c.number BETWEEN 4 AND 30) ORDER BY c.number DESC",
    "SELECT * FROM c WHERE CONTAINS(c.text, 'some')",
    "SELECT VALUE tag FROM c JOIN tag IN c.tags WHERE tag = 3",
    "SELECT VALUE COUNT(1) FROM c WHERE c.team = 't2'",
    "SELECT c.team, SUM(c.number) AS sum FROM c GROUP BY c.team",
];

/// Relative errors, in per cent, by which the exact numbers of 2026 may be missed.
const MEAN_MAX: f64 = 3.0;
const WORST_MAX: f64 = 10.0;

/// Rows that the tariff has parameters for, besides the exact ones: the rules on terms,
/// replace, patch and delete, the traces of failed requests, and two charges of queries.
const ADOPTED: [&str; 10] = ["W13", "W14", "W15", "W16", "W18", "T1", "T2", "T3", "Q1", "Q5"];

#[test]
fn published_charges_are_met() {
    let Some(anchors) = anchors::read() else {
        println!("left out: the published charges (ru_anchors.csv) are not there");
        return;
    };
    let (exact, others): (Vec<_>, Vec<_>) =
        anchors.iter().partition(|anchor| anchor.calibrates_2026());
    let (adopted, predicted): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|anchor| ADOPTED.contains(&anchor.id.as_str()));
    assert_eq!(exact.len(), 24, "R1 to R13 without R8, W1 to W12");

    println!("exact numbers of 2026, on which the tariff rests");
    let labs = Labs::default();
    let errors = report(&exact, &labs);
    let (mean, worst) = print_summary(&errors);

    println!("\nrules and traces that the tariff takes up");
    print_summary(&report(&adopted, &labs));
    let (queries, operations): (Vec<_>, Vec<_>) =
        predicted.into_iter().partition(|anchor| anchor.is_query());
    println!("\nother reads and writes, predicted");
    print_summary(&report(&operations, &labs));
    println!("\nother queries, predicted");
    print_summary(&report(&queries, &labs));

    assert_eq!(errors.len(), exact.len(), "every exact row is measured");
    assert!(mean <= MEAN_MAX && worst <= WORST_MAX, "mean {mean:.2} %, worst {worst:.2} %");
}

/// Prints each row and returns the errors of those that could be measured.
fn report(anchors: &[&Anchor], labs: &Labs) -> Vec<f64> {
    let mut errors = Vec::new();
    let mut left_out: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    println!("  row   published      ours    error  of (~ a rule of thumb)");
    for anchor in anchors {
        let parts = measure::measure(anchor, labs);
        let letters = if parts.len() == 1 { [""; 2] } else { ["a", "b"] };
        for (measured, letter) in parts.into_iter().zip(letters) {
            let row = format!("{}{letter}", anchor.id);
            match measured {
                Measured::Charge { published, ours, of } => {
                    let error = 100.0 * (ours - published) / published;
                    errors.push(error.abs());
                    let published = format!("{}{published:.2}", anchor.sign());
                    println!("  {row:4} {published:>10} {ours:9.2} {error:+7.1}%  {of}");
                }
                Measured::Not(reason) => left_out.entry(reason).or_default().push(row),
            }
        }
    }
    for (reason, rows) in left_out {
        println!("  {reason}: {}", rows.join(" "));
    }
    errors
}

fn print_summary(errors: &[f64]) -> (f64, f64) {
    let count = u32::try_from(errors.len().max(1)).unwrap();
    let mean = errors.iter().sum::<f64>() / f64::from(count);
    let mut sorted = errors.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
    let worst = sorted.last().copied().unwrap_or_default();
    println!("mean {mean:.1} %, median {median:.1} %, worst {worst:.1} % of {count} rows");
    (mean, worst)
}

/// T3: reading a kilobyte costs one unit. T5: larger items cost more.
#[test]
fn a_kilobyte_costs_one_and_more_costs_more() {
    let lab = Lab::new(1);
    let read = |bytes: usize| {
        lab.create(&item(bytes));
        let charge = lab.read("item");
        lab.delete("item");
        charge
    };
    assert_eq!(read(1024).to_string(), "1");
    let sizes = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048];
    let charges: Vec<Charge> = sizes.into_iter().map(|kb| read(kb * 1024)).collect();
    assert!(charges.is_sorted_by(|smaller, larger| smaller < larger), "{charges:?}");
}

/// T4: neither the number of items nor that of clients is in the charge.
#[test]
fn a_charge_does_not_depend_on_what_else_is_stored_or_done() {
    let (few, many) = (Lab::new(1), Lab::new(1));
    for number in 0..2_000 {
        many.create(&format!(r#"{{"id":"{number}","pk":"key","text":"as in the others"}}"#));
    }
    assert_eq!(life(&few), life(&many));

    let alone = few.create(&numbered(0));
    let together = few.create_all((1..=64).map(numbered).collect());
    assert!(together.iter().all(|charge| *charge == alone), "{alone} but {together:?}");
    let reads = few.read_all((0..=64).map(|number| number.to_string()).collect());
    assert!(reads.iter().all(|charge| charge.units() == 21), "{reads:?}");
}

/// Whatever the seed and the clock, the same requests cost the same, and all of it is
/// whole units.
#[test]
fn the_same_life_costs_the_same() {
    let (one, other) = (Lab::new(1), Lab::new(2));
    let first = life(&one);
    other.sleep_between_requests(700);
    assert_eq!(first, life(&other));
    // Repeated on what the first run left.
    assert_eq!(first, life(&one));
}

/// A failed request is charged like the service's, and a successful one costs what its
/// parts cost.
#[test]
fn refusals_and_parts() {
    let lab = Lab::new(1);
    lab.create(&item(200));
    assert_eq!(lab.create(&item(200)).units(), 26, "conflict");
    assert_eq!(lab.delete("missing").units(), 26, "a write that finds nothing");
    assert_eq!(lab.create(r#"{"pk":"key"}"#).units(), 26, "no id");
    assert_eq!(lab.replace_if_match("item", &item(200), "other").units(), 26, "precondition");
    assert_eq!(lab.read("missing").units(), 21, "a read that finds nothing");
    assert_eq!(lab.read_unless("item", "*").units(), 21, "not modified");

    let (whole, parts) = lab.batch(&[&numbered(1), &numbered(2)]);
    assert_eq!(whole, parts.iter().copied().sum());
    assert_eq!(parts, [lab.create(&numbered(3)); 2]);
    let (whole, parts) = lab.bulk(&[&numbered(4), &numbered(4), r#"{"pk":"key"}"#]);
    assert_eq!(whole, parts.iter().copied().sum());
    assert_eq!(parts.iter().map(|charge| charge.units()).collect::<Vec<_>>(), [104, 26, 26]);
}

/// A feed costs what reading its items one by one costs.
#[test]
fn a_feed_is_the_sum_of_its_reads() {
    let lab = Lab::new(1);
    assert_eq!(lab.list().units(), 21, "an empty page is one look");
    let sizes = [100, 3_000, 40_000];
    let reads = sizes.iter().enumerate().map(|(at, bytes)| {
        let id = format!("i{at}");
        lab.create(&item(*bytes).replace(r#""id":"item""#, &format!(r#""id":"{id}""#)));
        lab.read(&id)
    });
    let sum: Charge = reads.collect::<Vec<_>>().into_iter().sum();
    assert_eq!(lab.list(), sum);
}

/// Changes cost what reading their items costs; finding out that there are none is one
/// probe. Those of other keys are not free.
#[test]
fn changes_cost_what_reading_costs() {
    let (lab, beginning) = (Lab::new(1), ChangeStart::After(Lsn::ZERO));
    assert_eq!(lab.list_changes("key", beginning).units(), 21, "there are none");
    lab.create(&item(200));
    lab.create(&numbered(1));
    let sum = [lab.read("item"), lab.read("1")].into_iter().sum();
    assert_eq!(lab.list_changes("key", beginning), sum);
    assert_eq!(lab.list_changes("key", ChangeStart::Now).units(), 21, "nothing new");
    lab.create_all((0..4_000).map(|n| format!(r#"{{"id":"{n}","pk":"{n}"}}"#)).collect());
    assert_eq!(lab.list_changes("key", ChangeStart::Now).units(), 21);
    let on_the_way = lab.list_changes("key", beginning);
    assert!(on_the_way > sum, "{on_the_way}, as if there were no others");
}

/// Whatever the seed and the clock, the same queries on the same items cost the same.
#[test]
fn the_same_query_costs_the_same() {
    let (one, other) = (Lab::new(1), Lab::new(2));
    other.sleep_between_requests(700);
    for lab in [&one, &other] {
        for number in 0..400 {
            lab.create(&member("key", number));
        }
    }
    for text in QUERIES {
        let first = one.query(text);
        assert!(first.rows > 0, "{text}");
        assert_eq!(first, one.query(text), "again: {text}");
        assert_eq!(first, other.query(text), "elsewhere: {text}");
    }
}

/// Items of other keys cost a query nothing that is about one key.
#[test]
fn a_query_of_one_key_does_not_pay_for_others() {
    let (few, many) = (Lab::new(1), Lab::new(1));
    let own: Vec<String> = (0..40).map(|number| member("key", number)).collect();
    few.load(&own);
    many.load(&own);
    let others = (0..2_000).map(|number| member(&format!("other{}", number % 50), number));
    many.load(&others.collect::<Vec<_>>());
    let all = few.query("SELECT * FROM c WHERE c.pk = 'key'").charge;
    for text in QUERIES {
        let text = pinned(text);
        let (alone, among) = (few.query(&text), many.query(&text));
        assert_eq!(alone, among, "{text}");
        assert!(alone.charge <= all, "more than all of the key: {text}");
    }
}

/// Nor does it read them: what the store is asked for stays as it is while the other keys
/// of the bucket grow a thousandfold. (A seek reads a few entries ahead, which may be of
/// others.)
#[test]
fn a_query_of_one_key_reads_what_the_key_has() {
    let lab = Lab::new(1);
    lab.load(&(0..40).map(|number| member("key", number)).collect::<Vec<_>>());
    let others = |numbers: std::ops::Range<u32>| -> Vec<String> {
        numbers.map(|number| member(&format!("other{}", number % 1_000), number)).collect()
    };
    lab.load(&others(0..16));
    let texts = QUERIES.map(pinned).into_iter().chain([
        "SELECT * FROM c WHERE c.pk = 'key' AND c.number > 20".to_owned(),
        "SELECT TOP 5 * FROM c WHERE c.pk = 'key' ORDER BY c.number".to_owned(),
        "SELECT DISTINCT VALUE c.team FROM c WHERE c.pk = 'key'".to_owned(),
    ]);
    let texts: Vec<String> = texts.collect();
    let few: Vec<u64> = texts.iter().map(|text| lab.keys_read(text)).collect();
    lab.load(&others(16..16_000));
    for (text, few) in texts.iter().zip(few) {
        let many = lab.keys_read(text);
        println!("{few} keys among 16 other items, {many} among 16,000: {text}");
        assert!(many <= few + few / 2, "{few}, then {many}: {text}");
    }
}

/// The items of a key are counted by their entries and not loaded, and entries that the
/// zig-zag intersection only passes are not counted.
#[test]
fn items_of_a_key_are_counted_by_entries() {
    let lab = Lab::new(1);
    for key in ["key", "other"] {
        lab.load(&(0..1_200).map(|number| member(key, number)).collect::<Vec<_>>());
    }
    let units = |text: &str| lab.query(text).charge.units();
    let text = "SELECT VALUE COUNT(1) FROM c";
    let known = units(text);
    let of_entries = |entries: u64| known + entries / Tariff::YEAR_2026.entries_per_item;
    assert_eq!(units(&pinned(text)), of_entries(1_200));
    // Those of the key and of the team for each item that has both.
    let of_team = "SELECT VALUE COUNT(1) FROM c WHERE c.team = 't1'";
    assert_eq!(units(&pinned(of_team)), of_entries(2 * 300));
}

fn pinned(text: &str) -> String {
    if text.contains(" WHERE ") {
        text.replace(" WHERE ", " WHERE c.pk = 'key' AND ")
    } else {
        text.replace(" FROM c", " FROM c WHERE c.pk = 'key'")
    }
}

/// Q1: two to three request units for each physical partition that is queried, and none for
/// the others.
#[test]
fn every_partition_that_is_asked_costs_the_same() {
    let charge = |partitions: u32, text: &str| {
        let lab = Lab::with_partitions(1, partitions);
        lab.create(&item(200));
        lab.query(text).charge.units()
    };
    let found = |partitions| charge(partitions, "SELECT * FROM c WHERE c.text != 'none'");
    let pinned = |partitions| charge(partitions, "SELECT * FROM c WHERE c.pk = 'key'");
    let (first, base) = (found(1), pinned(1));
    for partitions in 2..=5 {
        let further = found(partitions) - first;
        assert_eq!(further, u64::from(partitions - 1) * 52, "2.5 RU each");
        assert_eq!(pinned(partitions), base, "one key is in one partition");
    }
}

/// One of everything that an item can go through.
fn life(lab: &Lab) -> Vec<u64> {
    let small = r#"{"id":"item","pk":"key","n":1,"list":[1,2,{"a":null}],"text":"some"}"#;
    let charges = [
        lab.create(small),
        lab.create(small),
        lab.read("item"),
        lab.replace("item", &small.replace("some", "other")),
        lab.replace("item", &small.replace("some", "other")),
        lab.upsert(&item(5_000)),
        lab.patch("item", r#"[{"op":"add","path":"/more","value":"text"}]"#),
        lab.read("item"),
        lab.delete("item"),
        lab.delete("item"),
        lab.read("item"),
    ];
    charges.iter().map(|charge| charge.units()).collect()
}

fn member(key: &str, number: u32) -> String {
    let (team, tag) = (number % 4, number % 7);
    format!(
        r#"{{"id":"{number}","pk":"{key}","team":"t{team}","number":{number},"tags":[{tag},9],"text":"some"}}"#
    )
}

fn numbered(number: u32) -> String {
    format!(r#"{{"id":"{number}","pk":"key","text":"small"}}"#)
}
