//! What requests cost: how near it comes to what the service is known to charge, and
//! what it must not depend on.
//!
//! `cargo xtask ru` runs this and shows the table that it prints.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]
#![allow(clippy::print_stdout, reason = "tests tell figures, and what they left out")]

mod anchors;
mod lab;
mod measure;

use std::collections::BTreeMap;

use anchors::Anchor;
use lab::{Lab, item};
use measure::Measured;
use model::charge::Charge;

/// Relative errors, in per cent, that the exact numbers of 2026 may be missed by.
const MEAN_MAX: f64 = 3.0;
const WORST_MAX: f64 = 10.0;

/// Rows that the tariff has parameters for, besides the exact ones: the rules on terms,
/// replace, patch and delete, and the traces of requests that came to nothing.
const ADOPTED: [&str; 8] = ["W13", "W14", "W15", "W16", "W18", "T1", "T2", "T3"];

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
    let errors = report(&exact);
    let (mean, worst) = print_summary(&errors);

    println!("\nrules and traces that the tariff takes up");
    print_summary(&report(&adopted));
    println!("\nall others, predicted");
    print_summary(&report(&predicted));

    assert_eq!(errors.len(), exact.len(), "every exact row is measured");
    assert!(mean <= MEAN_MAX && worst <= WORST_MAX, "mean {mean:.2} %, worst {worst:.2} %");
}

/// Prints each row and gives back the errors of those that could be measured.
fn report(anchors: &[&Anchor]) -> Vec<f64> {
    let mut errors = Vec::new();
    let mut left_out: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    println!("  row   published      ours    error  of");
    for anchor in anchors {
        match measure::measure(anchor) {
            Measured::Charge { published, ours, of } => {
                let error = 100.0 * (ours - published) / published;
                errors.push(error.abs());
                println!("  {:4} {published:10.2} {ours:9.2} {error:+7.1}%  {of}", anchor.id);
            }
            Measured::Not(reason) => left_out.entry(reason).or_default().push(&anchor.id),
        }
    }
    for (reason, ids) in left_out {
        println!("  {reason}: {}", ids.join(" "));
    }
    errors
}

fn print_summary(errors: &[f64]) -> (f64, f64) {
    let count = u32::try_from(errors.len().max(1)).unwrap();
    let mean = errors.iter().sum::<f64>() / f64::from(count);
    let worst = errors.iter().copied().fold(0.0, f64::max);
    println!("mean {mean:.1} %, worst {worst:.1} % of {count} rows");
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
    // Done again on what the first left behind.
    assert_eq!(first, life(&one));
}

/// A failed request is charged like the service's, and a request that is done costs what
/// its parts cost.
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

fn numbered(number: u32) -> String {
    format!(r#"{{"id":"{number}","pk":"key","text":"small"}}"#)
}
