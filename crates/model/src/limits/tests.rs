use super::*;

#[test]
fn ranges_follow_the_throughput() {
    let limits = Limits::default();
    for (throughput, ranges) in [
        (Provisioned::Manual(400), 1),
        (Provisioned::Manual(6_000), 1),
        (Provisioned::Manual(10_000), 2),
        (Provisioned::Manual(20_000), 4),
        (Provisioned::Autoscale(10_000), 1),
        (Provisioned::Autoscale(11_000), 2),
        (Provisioned::Shared(20_000), 2),
        (Provisioned::Serverless, 1),
    ] {
        assert_eq!(limits.ranges_at_creation(throughput), ranges, "{throughput:?}");
    }
    assert_eq!(limits.ranges_for_scaling(10_000), 1);
    assert_eq!(limits.ranges_for_scaling(10_100), 2);
}

#[test]
fn a_test_may_shrink_every_limit() {
    let tiny = Limits {
        partition_throughput_max: 100,
        partition_throughput_at_creation: 50,
        ..Limits::default()
    };
    assert_eq!(tiny.ranges_at_creation(Provisioned::Manual(400)), 8);
    assert_eq!(tiny.ranges_for_scaling(400), 4);
    let none = Limits { partition_throughput_at_creation: 0, ..tiny };
    assert_eq!(none.ranges_at_creation(Provisioned::Manual(3)), 3);
}

#[test]
fn the_year_decides_what_grows() {
    use Growth::{Fixed, Unlimited};
    use Profile::{Y2016, Y2018, Y2026};
    for (profile, keyless, rate, growth) in [
        (Y2016, true, 400, Fixed),
        (Y2016, false, 10_000, Fixed),
        (Y2016, false, 10_100, Unlimited),
        (Y2018, true, 10_000, Fixed),
        (Y2018, false, 900, Fixed),
        (Y2018, false, 1_000, Unlimited),
        (Y2026, true, 10_000, Fixed),
        (Y2026, false, 400, Unlimited),
    ] {
        let limits = profile.limits();
        let found = limits.growth_at_creation(keyless, Provisioned::Manual(rate));
        assert_eq!(found, growth, "{profile} keyless={keyless} {rate}");
    }
    let shared = Y2016.limits().growth_at_creation(false, Provisioned::Shared(400));
    assert_eq!(shared, Unlimited);
}

#[test]
fn a_profile_is_named_by_its_year() {
    for profile in Profile::ALL {
        assert_eq!(profile.to_string().parse(), Ok(profile));
    }
    let error = "2020".parse::<Profile>().unwrap_err();
    assert_eq!(error.to_string(), "'2020' is none of the profiles 2016, 2018, 2026");
    assert_eq!(Profile::default().limits(), Limits::default());
}

#[test]
fn every_limit_can_be_set_by_its_name() {
    for (name, value) in Limits::default().values() {
        let mut limits = Limits::default();
        limits.set(&format!("{name}={value}")).unwrap();
        assert_eq!(limits, Limits::default(), "{name}");
        let other = if value == 7 { 8 } else { 7 };
        limits.set(&format!(" {} = {other} ", name.replace('_', "-"))).unwrap();
        let changed = limits.values().into_iter().filter(|now| *now != (name, value));
        let changed: Vec<_> = changed.filter(|(now, _)| *now == name).collect();
        assert_eq!(changed, [(name, other)]);
    }
}

#[test]
fn sizes_may_have_units() {
    let mut limits = Limits::default();
    for (text, bytes) in
        [("3KiB", 3 << 10), ("10 MiB", 10 << 20), ("1_000", 1_000), ("2GiB", 2 << 30)]
    {
        limits.set(&format!("physical_partition_bytes_max={text}")).unwrap();
        assert_eq!(limits.physical_partition_bytes_max, bytes, "{text}");
    }
}

#[test]
fn a_wrong_setting_says_what_would_be_right() {
    let mut limits = Limits::default();
    let refuse = |limits: &mut Limits, text: &str| limits.set(text).unwrap_err().to_string();
    assert_eq!(refuse(&mut limits, "scale"), "'scale' is not of the form NAME=VALUE");
    let unknown = refuse(&mut limits, "ru_max=1");
    assert!(unknown.starts_with("there is no limit 'ru_max'"), "{unknown}");
    assert!(unknown.contains("\n  partition_throughput_max=10000\n"), "{unknown}");
    for value in ["", "-1", "1.5", "many", "4294967296", "18446744073709551615GiB"] {
        let text = refuse(&mut limits, &format!("throughput_min={value}"));
        assert!(
            text.starts_with(&format!("'{value}' is not a value for throughput_min")),
            "{text}"
        );
    }
    assert_eq!(limits, Limits::default());
}

#[test]
fn a_scale_model_shrinks_storage_and_nothing_that_is_told() {
    let model = Limits::default().scaled(1_000);
    assert_eq!(model.physical_partition_bytes_max, 50 * GIB / 1_000);
    assert_eq!(model.gib_unscaled(model.logical_partition_bytes_max), 20);
    assert_eq!(model.gib_unscaled(model.physical_partition_bytes_max), 50);
    assert_eq!(model.container_bytes_max, u64::MAX);
    let told =
        ["item_bytes_max", "throughput_min", "partition_throughput_max", "burst_throughput_max"];
    for (here, there) in model.values().into_iter().zip(Limits::default().values()) {
        if told.contains(&here.0) {
            assert_eq!(here, there);
        }
    }
    assert_eq!(Limits::default().scaled(0), Limits::default());
}
