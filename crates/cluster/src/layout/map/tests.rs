//! Layouts by example, and through random histories.

mod life;

use model::json::{self, Value};

use super::*;

fn stored(map: &ContainerMap) -> String {
    Value::Object(map.to_object()).to_string()
}

fn parsed(text: &str) -> Result<ContainerMap, MapError> {
    ContainerMap::parse(7, json::parse_raw(text.as_bytes()).unwrap())
}

#[test]
fn fresh_layouts_cover_the_ring_and_come_back() {
    let key = PartitionKeyDefinition::hash(["/pk"]).unwrap();
    for ranges in [1, 2, 3, 4, 5, 25, 100] {
        let map = ContainerMap::fresh(&key, ranges);
        assert_eq!(map.ranges().len(), usize::try_from(ranges).unwrap());
        assert_eq!(parsed(&stored(&map)).unwrap(), map);
        // Users see the published boundaries, whatever the buckets below.
        let published: Vec<EpkRange> = key.boundaries(ranges);
        assert_eq!(map.ranges().iter().map(|r| r.range.clone()).collect::<Vec<_>>(), published);
    }
}

#[test]
fn every_key_has_one_owner() {
    let key = PartitionKeyDefinition::hash(["/pk"]).unwrap();
    let map = ContainerMap::fresh(&key, 3);
    for hex in
        ["", "00", "15555555555555555555555555555554", "15555555555555555555555555555555", "3FFF"]
    {
        let epk = Epk::from_hex(hex).unwrap();
        let owner = map.range_of(&epk).unwrap();
        assert!(owner.range.contains(&epk), "{hex}");
        assert_eq!(
            map.buckets_of(owner).iter().filter(|bucket| bucket.range.contains(&epk)).count(),
            1
        );
    }
}

#[test]
fn a_map_with_a_hole_is_refused() {
    let key = PartitionKeyDefinition::hash(["/pk"]).unwrap();
    let mut map = ContainerMap::fresh(&key, 3);
    let removed = map.ranges.remove(1);
    assert_eq!(parsed(&stored(&map)).unwrap_err().problem, "the ranges do not cover the ring");
    map.ranges.insert(1, removed);
    map.buckets.pop();
    assert_eq!(parsed(&stored(&map)).unwrap_err().problem, "the buckets do not cover the ring");
    assert_eq!(parsed(r#"{"version":2}"#).unwrap_err().problem, "its version is not known");
}

#[test]
fn ordinal_blocks_never_overlap() {
    let key = PartitionKeyDefinition::hash(["/pk"]).unwrap();
    let map = ContainerMap::fresh(&key, 2)
        .with_more_ordinals(PartitionId(1))
        .with_more_ordinals(PartitionId(0));
    let mut blocks: Vec<_> =
        map.ranges().iter().flat_map(|record| record.ordinal_blocks.clone()).collect();
    blocks.sort_by_key(|block| block.start);
    assert_eq!(blocks.len(), 4);
    assert!(blocks.windows(2).all(|pair| pair[0].end <= pair[1].start));
}

fn final_position(lsn: u64, blocks: &[Range<u64>]) -> FinalPosition {
    FinalPosition { lsn: Lsn::from_u64(lsn), ordinal_blocks: blocks.to_vec() }
}

fn epk(hex: &str) -> Epk {
    Epk::from_hex(hex).unwrap()
}

/// The history of the service's own example: 0 becomes 1 and 2, then 1 becomes 3 and 4.
#[test]
fn splits_name_their_whole_ancestry() {
    let key = PartitionKeyDefinition::hash(["/pk"]).unwrap();
    let map = ContainerMap::fresh(&key, 1);
    let half = epk("1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
    let map = map.split(PartitionId(0), &half, &final_position(41, &[8..50, 60..100])).unwrap();
    let [left, right] = map.ranges() else { panic!() };
    assert_eq!((left.id, right.id), (PartitionId(1), PartitionId(2)));
    assert_eq!((&left.range.max, &right.range.min), (&half, &half));
    assert_eq!((left.parents.as_slice(), map.change()), (&[PartitionId(0)][..], 2));
    assert_eq!((left.lsn_floor.get(), right.lsn_floor.get()), (42, 42));
    assert_eq!(left.ordinal_blocks, [8..50, 60..100], "what is left goes to one child");
    let new: Vec<u64> = right.ordinal_blocks.iter().map(|block| block.start).collect();
    assert_eq!(new, [16_777_217], "the other gets a new block");

    let quarter = epk("0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
    let map = map.split(PartitionId(1), &quarter, &final_position(50, &[])).unwrap();
    let ids: Vec<u32> = map.ranges().iter().map(|record| record.id.0).collect();
    assert_eq!(ids, [3, 4, 2]);
    assert_eq!(map.range(PartitionId(4)).unwrap().parents, [PartitionId(0), PartitionId(1)]);
    assert_eq!((map.change(), map.range(PartitionId(2)).unwrap().change), (3, 2));
    assert_eq!(parsed(&stored(&map)).unwrap(), map);
}

#[test]
fn a_merge_takes_the_furthest_position_and_the_highest_ordinals() {
    let key = PartitionKeyDefinition::hash(["/pk"]).unwrap();
    let map = ContainerMap::fresh(&key, 10);
    let parts: Vec<_> = map
        .ranges()
        .iter()
        .map(|range| (range.id, final_position(7, &range.ordinal_blocks)))
        .collect();
    let mut mixed = parts.clone();
    mixed.reverse();
    mixed[3].1.lsn = Lsn::from_u64(99);
    let merged = map.merge(&mixed).unwrap();
    let [only] = merged.ranges() else { panic!() };
    assert_eq!((only.id, only.lsn_floor.get(), merged.change()), (PartitionId(10), 100, 2));
    assert_eq!(only.parents, (0..10).map(PartitionId).collect::<Vec<_>>());
    let highest = &map.ranges().last().unwrap().ordinal_blocks;
    assert_eq!((&only.ordinal_blocks, only.range.clone()), (highest, EpkRange::full()));
    assert_eq!(merged.buckets_of(only).len(), 20, "the buckets are still the same");
    // How far a partition came that has used all its blocks is not known.
    mixed[0].1.ordinal_blocks.clear();
    let merged = map.merge(&mixed).unwrap();
    let fresh = map.next_number..merged.next_number;
    assert_eq!(merged.ranges()[0].ordinal_blocks, std::slice::from_ref(&fresh));
    assert_eq!(parsed(&stored(&merged)).unwrap(), merged);
}

#[test]
fn what_cannot_be_changed_is_refused() {
    let key = PartitionKeyDefinition::hash(["/pk"]).unwrap();
    let map = ContainerMap::fresh(&key, 3);
    let end = final_position(1, &[]);
    let merge = |ids: &[u32]| {
        let parts: Vec<_> = ids.iter().map(|id| (PartitionId(*id), end.clone())).collect();
        map.merge(&parts).unwrap_err()
    };
    assert_eq!(merge(&[]), LayoutError::TooFew);
    assert_eq!(merge(&[1]), LayoutError::TooFew);
    assert_eq!(merge(&[1, 1]), LayoutError::NotAdjacent);
    assert_eq!(merge(&[0, 2]), LayoutError::NotAdjacent);
    assert_eq!(merge(&[0, 7]), LayoutError::NoRange(PartitionId(7)));
    let split = |id, hex| map.split(PartitionId(id), &epk(hex), &end).unwrap_err();
    assert_eq!(split(7, "01"), LayoutError::NoRange(PartitionId(7)));
    for hex in ["", "15555555555555555555555555555555", "20"] {
        assert_eq!(split(0, hex), LayoutError::Outside { range: PartitionId(0), at: epk(hex) });
    }
    let inside = LayoutError::InsideBucket { at: epk("01"), bucket: BucketNumber(0) };
    assert_eq!(split(0, "01"), inside);
}

#[test]
fn a_moved_bucket_makes_the_cut_possible() {
    let key = PartitionKeyDefinition::hash(["/pk"]).unwrap();
    let map = ContainerMap::fresh(&key, 1);
    let at = epk("01");
    let moving = map.begin_move(BucketNumber(0), std::slice::from_ref(&at)).unwrap();
    assert_eq!(parsed(&stored(&moving)).unwrap(), moving);
    let again = moving.begin_move(BucketNumber(0), std::slice::from_ref(&at)).unwrap_err();
    assert_eq!(again, LayoutError::NoBucket(BucketNumber(0)));
    assert!(moving.check_split(PartitionId(0), &at).is_err(), "not before it is finished");
    let moved = moving.finish_move(BucketNumber(0)).unwrap();
    assert!(moved.moves().is_empty() && moved.audit().is_ok());
    assert_eq!(moved.change(), map.change(), "clients do not see buckets");
    assert!(moved.check_split(PartitionId(0), &at).is_ok());
    for cuts in [&[epk("FE")][..], &[epk("")], &[epk("02"), epk("01")]] {
        assert!(map.begin_move(BucketNumber(0), cuts).is_err(), "{cuts:?}");
    }
}

fn weights(map: &ContainerMap) -> Vec<(u32, u64)> {
    map.ranges().iter().map(|record| (record.id.0, record.weight)).collect()
}

/// The service's example of a redistribution: 5,000 and 20,000, the latter split.
#[test]
fn a_range_with_a_part_of_its_own_shares_it_with_its_children() {
    let key = PartitionKeyDefinition::hash(["/pk"]).unwrap();
    let even = ContainerMap::fresh(&key, 2);
    let given = [(PartitionId(0), 5_000), (PartitionId(1), 20_000)].into();
    let map = even.with_weights(&given).unwrap();
    assert_eq!(weights(&map), [(0, 1), (1, 4)]);
    let at = epk("2FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
    let split = map.split(PartitionId(1), &at, &final_position(1, &[])).unwrap();
    assert_eq!(weights(&split), [(0, 1), (2, 2), (3, 2)]);
    assert_eq!(parsed(&stored(&split)).unwrap(), split);
    let parts =
        [(PartitionId(2), final_position(1, &[])), (PartitionId(3), final_position(2, &[]))];
    assert_eq!(weights(&split.merge(&parts).unwrap()), [(0, 1), (4, 4)]);
    assert_eq!(weights(&split.divided_evenly()), [(0, 1), (2, 1), (3, 1)]);
    assert!(
        even.with_weights(&[(PartitionId(0), 5)].into()).is_err(),
        "every range needs a weight"
    );
    assert!(even.with_weights(&[(PartitionId(0), 0), (PartitionId(1), 1)].into()).is_err());
}

/// A split by storage: what the documentation says, and what users report.
#[test]
fn a_split_is_even_or_inherited() {
    let key = PartitionKeyDefinition::hash(["/pk"]).unwrap();
    let map = ContainerMap::fresh(&key, 2);
    let at = epk("0FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF");
    let fractions = |map: ContainerMap| {
        let split = map.split(PartitionId(0), &at, &final_position(1, &[])).unwrap();
        let parts = split.ranges().iter().map(|record| split.fraction(record));
        parts.collect::<Vec<_>>()
    };
    assert_eq!(fractions(map.clone()), [1.0 / 3.0; 3]);
    assert_eq!(fractions(map.divided_by_inheritance()), [0.25, 0.25, 0.5]);
}

#[test]
fn weights_survive_endless_halving() {
    let key = PartitionKeyDefinition::hash(["/pk"]).unwrap();
    let mut map = ContainerMap::fresh(&key, 1).divided_by_inheritance();
    for _ in 0..200 {
        let parent = map.ranges().first().unwrap().weight;
        let half = map.halve(parent);
        map.ranges.first_mut().unwrap().weight = half;
        map.ranges.push(PartitionRecord { weight: half, ..map.ranges[0].clone() });
        map.reduce();
    }
    assert!(map.weights_are_sound());
}
