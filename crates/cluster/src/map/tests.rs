use model::json;

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
fn grants_never_overlap() {
    let key = PartitionKeyDefinition::hash(["/pk"]).unwrap();
    let map =
        ContainerMap::fresh(&key, 2).with_more_numbers(RangeId(1)).with_more_numbers(RangeId(0));
    let mut blocks: Vec<_> =
        map.ranges().iter().flat_map(|record| record.numbers.clone()).collect();
    blocks.sort_by_key(|block| block.start);
    assert_eq!(blocks.len(), 4);
    assert!(blocks.windows(2).all(|pair| pair[0].end <= pair[1].start));
}
