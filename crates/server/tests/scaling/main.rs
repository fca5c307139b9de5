//! Every published case of scaling, through the public interface of the built binary.
//!
//! The cases are data: where a container stands, what is asked of it, how many
//! physical partitions it then has and what each serves.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod account;
mod case;
#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "../serve/client.rs"]
mod client;
#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "../serve/program.rs"]
mod program;

use account::{Account, Container};
use case::{Case, Expected, Start, Step};

const CASES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/conformance/partitioning/scaling_cases.csv"
);

/// What a new container has for each physical partition, if it is to have several.
const AT_CREATION: u32 = 6_000;

#[test]
fn published_cases() {
    let Ok(text) = std::fs::read_to_string(CASES) else {
        assert!(std::env::var("CI").as_deref() != Ok("true"), "{CASES} is missing");
        println!("left out: the published cases of scaling, as {CASES} is missing");
        return;
    };
    let cases: Vec<Case> = text.lines().skip(1).map(Case::parse).collect();
    assert_eq!(cases.len(), 15, "a case was added: read it");
    let failures = cases.iter().flat_map(|case| {
        case.expected.iter().filter_map(|expected| {
            let outcome = play(case, expected);
            println!("{} {}: {outcome:?}", case.name, expected.division);
            outcome.err().map(|error| format!("{}: {error}", case.name))
        })
    });
    let failures: Vec<String> = failures.collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Plays a case in an account of its own and compares.
fn play(case: &Case, expected: &Expected) -> Result<String, String> {
    let account = Account::open(&case.profile, expected.division);
    if let Step::Refused { throughput, text } = &case.step {
        let refused =
            account.try_create("c", None, &format!("x-ms-offer-throughput: {throughput}\r\n"));
        return check(refused.status == 400 && refused.body.contains(text), &refused.body);
    }
    let container = stand(&account, &case.start, &case.step);
    take(&container, &case.step, expected)?;
    container.wait_until_scaled();
    let (ids, shares) = (container.ranges(), container.shares());
    let shown = format!("ranges {ids:?} with {shares:?} RU/s");
    check(ids.len() == expected.partitions, &shown)?;
    check(expected.ids.as_ref().is_none_or(|wanted| *wanted == ids), &shown)?;
    let mut rounded: Vec<u32> = shares.iter().map(|share| rounded(*share)).collect();
    let mut wanted = expected.shares.clone();
    if let [each] = *wanted {
        wanted = vec![each; expected.partitions];
    }
    rounded.sort_unstable();
    wanted.sort_unstable();
    check(rounded == wanted, &format!("{shown}, expected {wanted:?}"))
}

fn check(holds: bool, shown: &str) -> Result<String, String> {
    if holds { Ok(shown.to_owned()) } else { Err(shown.to_owned()) }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a throughput")]
fn rounded(share: f64) -> u32 {
    share.round() as u32
}

/// A container as the case begins.
fn stand<'a>(account: &'a Account, start: &Start, step: &Step) -> Container<'a> {
    match (start, step) {
        (Start::Nothing, Step::Create { headers }) => account.create("c", headers),
        (Start::Nothing, other) => panic!("{other:?} needs a container"),
        (Start::Stands { partitions, throughput }, _) => {
            let manual = if *partitions == 1 { *throughput } else { partitions * AT_CREATION };
            let container = account.create("c", &format!("x-ms-offer-throughput: {manual}\r\n"));
            if *throughput != manual {
                assert!(!container.scale(*throughput), "the start of a case is reached at once");
            }
            container
        }
    }
}

fn take(container: &Container<'_>, step: &Step, expected: &Expected) -> Result<(), String> {
    match step {
        Step::Create { .. } => {}
        Step::Refused { .. } => panic!("there is no container"),
        Step::Scale(rates) => {
            for rate in rates {
                let pending = container.scale(*rate);
                if let ([_], Some(instant)) = (rates.as_slice(), expected.instant) {
                    check(pending != instant, &format!("pending: {pending}"))?;
                }
                container.wait_until_scaled();
            }
        }
        Step::Redistribute(targets) => {
            let targets: Vec<String> =
                targets.iter().map(|(id, rate)| format!(r#""{id}":{rate}"#)).collect();
            container.redistribute(&format!("{{{}}}", targets.join(",")));
        }
        Step::LowerAndMerge(rate) => {
            assert!(!container.scale(*rate), "lowering is instant");
            container.merge_all();
        }
        Step::StorageSplit => {
            container.fill(200);
            container.split_by_bytes(&container.ranges()[0]);
        }
    }
    Ok(())
}
