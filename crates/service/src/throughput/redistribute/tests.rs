use model::partition_key::PartitionKeyDefinition;

use super::*;

fn map(ranges: u32) -> ContainerMap {
    ContainerMap::fresh(&PartitionKeyDefinition::hash(["/pk"]).unwrap(), ranges)
}

/// What each range has after these targets and sources were given.
fn divided(ranges: u32, rate: u32, targets: &[(u32, u32)], sources: &[u32]) -> (u32, Vec<f64>) {
    let targets: Vec<_> = targets.iter().map(|(id, rate)| (PartitionId(*id), *rate)).collect();
    let sources: Vec<_> = sources.iter().copied().map(PartitionId).collect();
    let (map, rate) = divide(&map(ranges), rate, &targets, &sources).unwrap();
    let limits = Limits::default();
    let shares = map.ranges().iter().map(|record| limits.share(rate, map.fraction(record)));
    (rate, shares.collect())
}

#[test]
fn without_sources_the_whole_is_the_sum_of_the_parts() {
    assert_eq!(divided(2, 6_000, &[(0, 5_000), (1, 4_000)], &[]), (9_000, vec![5_000.0, 4_000.0]));
    let (rate, shares) = divided(3, 6_000, &[(1, 4_000)], &[]);
    assert_eq!((rate, shares), (8_000, vec![2_000.0, 4_000.0, 2_000.0]));
}

#[test]
fn sources_share_what_is_left() {
    let (rate, shares) = divided(3, 6_000, &[(1, 4_000)], &[0, 2]);
    assert_eq!((rate, shares), (6_000, vec![1_000.0, 4_000.0, 1_000.0]));
    let all = [(PartitionId(1), 6_000)];
    assert!(divide(&map(3), 6_000, &all, &[PartitionId(0)]).is_err(), "nothing is left");
    assert!(divide(&map(3), 6_000, &[(PartitionId(9), 100)], &[]).is_err(), "there is no range 9");
}

/// The service's example: parts of 1,000, 4,000 and 1,000 that are raised to 24,000 in
/// all serve 18,000, as no partition serves more than 10,000.
#[test]
fn parts_grow_with_the_whole_up_to_what_one_can_serve() {
    let targets = [(PartitionId(1), 4_000)];
    let (map, rate) = divide(&map(3), 6_000, &targets, &[PartitionId(0), PartitionId(2)]).unwrap();
    assert_eq!(rate, 6_000);
    let limits = Limits::default();
    let shares = map.ranges().iter().map(|record| limits.share(24_000, map.fraction(record)));
    assert!((shares.sum::<f64>() - 18_000.0).abs() < 1e-6);
}

#[test]
fn requests_have_limits() {
    let limits = Limits::default();
    let target = |rate| check_custom(&limits, &[(PartitionId(0), rate)], &[]);
    assert!(target(100).is_ok() && target(20_000).is_ok());
    assert!(target(0).is_err() && target(150).is_err() && target(20_100).is_err());
    let many: Vec<_> = (0..21).map(|id| (PartitionId(id), 100)).collect();
    assert!(check_custom(&limits, &many, &[]).is_err());
    assert!(check_custom(&limits, &many[..20], &[]).is_ok());
    assert!(check_custom(&limits, &[], &[PartitionId(0)]).is_err());
    assert!(check_custom(&limits, &[(PartitionId(0), 100)], &[PartitionId(0)]).is_err());
    let bucket = |id, percent_max| ThroughputBucket { id, percent_max };
    assert!(check_buckets(&limits, &[bucket(1, 1), bucket(5, 100)]).is_ok());
    for wrong in [bucket(0, 50), bucket(6, 50), bucket(1, 0), bucket(1, 101)] {
        assert!(check_buckets(&limits, &[wrong]).is_err());
    }
    assert!(check_buckets(&limits, &[bucket(1, 1), bucket(1, 2)]).is_err());
}
