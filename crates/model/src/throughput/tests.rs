use super::*;
use crate::limits::Profile;

const GB: u64 = 1 << 30;

fn manual(rate: u32) -> Throughput {
    Throughput::Manual(rate)
}

fn autoscale(max: u32) -> Throughput {
    Throughput::Autoscale { max, increment_percent: None }
}

/// A container that splits, with this many GB stored and this highest throughput ever.
fn grown(gb: u64, highest: u32) -> Footprint {
    Footprint { growth: Growth::Unlimited, stored_bytes: gb * GB, highest, containers: None }
}

fn shared(containers: usize) -> Footprint {
    Footprint { containers: Some(containers), ..grown(0, 0) }
}

#[test]
fn the_minimum_grows_with_storage_history_and_containers() {
    let limits = Limits::default();
    for (footprint, as_manual, as_autoscale) in [
        (grown(0, 0), 400, 1_000),
        (grown(400, 0), 400, 4_000),
        (grown(401, 0), 500, 5_000),
        (grown(1_000, 0), 1_000, 10_000),
        (grown(0, 40_000), 400, 4_000),
        (grown(0, 50_000), 500, 5_000),
        (grown(0, 50_100), 600, 6_000),
        (grown(2_000, 1_000_000), 10_000, 100_000),
        (shared(25), 400, 1_000),
        (shared(26), 500, 2_000),
        (shared(30), 900, 6_000),
    ] {
        assert_eq!(manual(1).minimum(&limits, &footprint), as_manual, "{footprint:?}");
        assert_eq!(autoscale(1).minimum(&limits, &footprint), as_autoscale, "{footprint:?}");
    }
}

#[test]
fn a_scale_model_asks_for_as_much_as_the_original() {
    let (limits, model) = (Limits::default(), Limits::default().scaled(1_000));
    let stored = Footprint { stored_bytes: 900 * GB, ..grown(0, 0) };
    let small = Footprint { stored_bytes: 900 * GB / 1_000, ..stored };
    assert_eq!(manual(1).minimum(&model, &small), manual(1).minimum(&limits, &stored));
}

#[test]
fn what_is_not_offered_is_refused_in_the_services_words() {
    let limits = Limits::default();
    let text = |throughput: Throughput, keyless| {
        throughput.check_new(&limits, keyless).unwrap_err().to_string()
    };
    let between = |min: u32, max: u32, step: u32| {
        format!(
            "The offer should have valid throughput values between {min} and {max} inclusive in increments of {step}."
        )
    };
    for rate in [0, 300, 450, 1_000_100] {
        assert_eq!(text(manual(rate), false), between(400, 1_000_000, 100), "{rate}");
    }
    assert_eq!(text(manual(10_100), true), between(400, 10_000, 100));
    for max in [400, 1_500, 1_001_000] {
        assert_eq!(text(autoscale(max), false), between(1_000, 1_000_000, 1_000), "{max}");
    }
    let below = manual(400).check(&limits, &grown(0, 50_000)).unwrap_err();
    assert_eq!(below.to_string(), between(500, 1_000_000, 100));
    for fine in [manual(400), manual(1_000_000), autoscale(1_000), autoscale(1_000_000)] {
        assert_eq!(fine.check_new(&limits, false), Ok(fine));
    }
    assert_eq!(manual(10_000).check_new(&limits, true), Ok(manual(10_000)));
}

#[test]
fn earlier_years_have_other_bounds() {
    let fixed = Footprint { growth: Growth::Fixed, ..grown(0, 0) };
    for (profile, footprint, min, max) in [
        (Profile::Y2018, fixed, 400, 10_000),
        (Profile::Y2018, grown(0, 0), 1_000, 1_000_000),
        (Profile::Y2018, grown(200, 0), 2_000, 1_000_000),
        (Profile::Y2016, fixed, 400, 10_000),
        (Profile::Y2016, grown(0, 0), 10_100, 250_000),
    ] {
        let refused = manual(0).check(&profile.limits(), &footprint).unwrap_err();
        assert_eq!((refused.min, refused.max), (min, max), "{profile} {footprint:?}");
    }
}

#[test]
fn a_migration_begins_with_what_there_was() {
    let limits = Limits::default();
    for (from, footprint, max) in [
        (manual(400), grown(0, 400), 1_000),
        (manual(10_000), grown(25, 10_000), 10_000),
        (manual(10_100), grown(0, 10_100), 11_000),
        (manual(50_000), grown(2_500, 50_000), 50_000),
        (manual(400), grown(0, 123_400), 13_000),
        (manual(400), grown(900, 400), 9_000),
    ] {
        let migrated = from.migrated_to_autoscale(&limits, &footprint);
        assert_eq!(migrated, autoscale(max), "{from:?} {footprint:?}");
        assert_eq!(migrated.migrated_to_manual(), manual(max));
    }
    let fixed = Footprint { growth: Growth::Fixed, ..grown(0, 400_000) };
    assert_eq!(manual(400).migrated_to_autoscale(&limits, &fixed), autoscale(10_000));
}

#[test]
fn a_layout_carries_so_much_per_partition() {
    let limits = Limits::default();
    assert!(limits.carries(5, 50_000) && !limits.carries(5, 50_100));
    assert!(limits.carries(1, 400));
}
