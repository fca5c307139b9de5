//! What must hold for every key, range, id and token, not only for known ones.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop at the first surprise too")]

use model::epk::{Epk, EpkRange};
use model::etag::Etag;
use model::json;
use model::name::{ItemId, ResourceName};
use model::partition_key::{
    HashVersion, KeyComponent, KeyKind, KeyPath, PartitionKey, PartitionKeyDefinition,
};
use model::position::{Lsn, Ordinal, Timestamp};
use model::rid::{
    ChildKind, ChildRid, ContainerRid, DatabaseRid, ItemRid, OfferRid, PermissionRid, UserRid,
};
use model::session::{RangeToken, SessionToken};
use proptest::collection::vec;
use proptest::prelude::*;

fn component() -> impl Strategy<Value = KeyComponent> {
    let number = prop_oneof![
        any::<i32>().prop_map(f64::from),
        any::<f64>().prop_filter("JSON has finite numbers only", |n| n.is_finite()),
        Just(-0.0),
    ];
    prop_oneof![
        Just(KeyComponent::Undefined),
        Just(KeyComponent::Null),
        any::<bool>().prop_map(KeyComponent::Bool),
        number.prop_map(KeyComponent::Number),
        "\\PC{0,12}".prop_map(KeyComponent::String),
        // Around the lengths where version 1 cuts, in characters of every width.
        "[a-cé日🙂]{30,110}".prop_map(KeyComponent::String),
    ]
}

fn key(levels: usize) -> impl Strategy<Value = PartitionKey> {
    vec(component(), levels).prop_map(|components| components.into_iter().collect())
}

fn definition(kind: KeyKind, version: HashVersion, levels: usize) -> PartitionKeyDefinition {
    let paths = (0..levels).map(|level| KeyPath::parse(&format!("/level{level}")).unwrap());
    PartitionKeyDefinition::new(paths.collect(), kind, version).unwrap()
}

fn flat(version: HashVersion) -> PartitionKeyDefinition {
    definition(KeyKind::Hash, version, 1)
}

fn deep(levels: usize) -> PartitionKeyDefinition {
    definition(KeyKind::MultiHash, HashVersion::V2, levels)
}

fn all_definitions() -> Vec<PartitionKeyDefinition> {
    vec![flat(HashVersion::V1), flat(HashVersion::V2), deep(1), deep(2), deep(3)]
}

fn truncated(key: &PartitionKey, levels: usize) -> PartitionKey {
    key.components().iter().take(levels).cloned().collect()
}

fn container() -> impl Strategy<Value = ContainerRid> {
    (1..=u32::MAX, 1..1u32 << 31)
        .prop_map(|(db, n)| ContainerRid::new(DatabaseRid::new(db).unwrap(), n).unwrap())
}

fn ordinal() -> impl Strategy<Value = Ordinal> {
    (1..=Ordinal::MAX).prop_map(|number| Ordinal::from_u64(number).unwrap())
}

/// Ranges cover the ring without gap or overlap.
fn assert_covers(ranges: &[EpkRange]) {
    assert_eq!(ranges.first().unwrap().min, Epk::MIN);
    assert_eq!(ranges.last().unwrap().max, Epk::max());
    assert!(ranges.iter().all(|range| !range.is_empty()));
    assert!(ranges.windows(2).all(|pair| pair[0].max == pair[1].min));
}

#[test]
fn fresh_ranges_cover_the_ring() {
    for definition in all_definitions() {
        for count in 1..=200 {
            let ranges = definition.boundaries(count);
            assert_eq!(ranges.len(), usize::try_from(count).unwrap());
            assert_covers(&ranges);
        }
        assert_eq!(definition.boundaries(0), [EpkRange::full()]);
    }
    assert_eq!(PartitionKeyDefinition::none().boundaries(1), [EpkRange::full()]);
}

/// Buckets are cut as B·N ranges, so N must divide the boundaries of B·N.
#[test]
fn finer_cuts_keep_the_coarser_boundaries() {
    for definition in all_definitions() {
        for (coarse, factor) in [(1, 8), (2, 4), (3, 4), (4, 4), (5, 2), (25, 2), (100, 2)] {
            let fine = definition.boundaries(coarse * factor);
            for range in definition.boundaries(coarse) {
                assert!(fine.iter().any(|f| f.min == range.min), "{range} in {coarse} x {factor}");
            }
        }
    }
}

/// The hash spreads keys evenly enough that no range stands out.
#[test]
fn keys_spread_evenly_over_fresh_ranges() {
    const KEYS: u32 = 20_000;
    for definition in [flat(HashVersion::V1), flat(HashVersion::V2), deep(1)] {
        let ranges = definition.boundaries(5);
        let mut counts = vec![0u32; ranges.len()];
        for n in 0..KEYS {
            let key = PartitionKey::new([format!("user-{n}").as_str()]);
            let epk = definition.locate(&key).unwrap();
            counts[ranges.iter().position(|range| range.contains(&epk)).unwrap()] += 1;
        }
        // Four standard deviations of a binomial share of 1/5 are 226.
        assert!(counts.iter().all(|count| count.abs_diff(KEYS / 5) < 226), "{counts:?}");
    }
}

/// Keys that were made to have one hash (by `testkit::collide`): a name, a number and
/// no value, each with a string.
const COLLIDING: [(&str, &str); 3] = [
    (r#"["victim"]"#, "000000000000007@@@@CUEYBL]=&p3J~%\u{1}N\u{9}8x;collided"),
    ("[42]", "000000000000007@@@@AQTR\u{2}\u{3}v\u{e}e.mk]\u{16}\u{1b}A1k<7collided"),
    (
        "[{}]",
        "000000000000007@@@@BJKG]b\u{6}\u{9}xNk\u{22}\u{b}C>\u{b}\u{1c}\u{1}\u{f}\u{3}collided",
    ),
];

#[test]
fn keys_with_one_hash_have_one_epk_and_two_positions() {
    for (victim, like) in COLLIDING {
        let victim = PartitionKey::parse_json(victim).unwrap();
        let like = PartitionKey::new([like]);
        for definition in [flat(HashVersion::V2), deep(1)] {
            let epks = [&victim, &like].map(|key| definition.epk(key).unwrap());
            assert_eq!(epks[0], epks[1]);
            let [one, other] = [&victim, &like].map(|key| definition.locate(key).unwrap());
            assert_ne!(one, other);
            let ranges = [&victim, &like].map(|key| definition.prefix_range(key).unwrap());
            assert!(!ranges[0].overlaps(&ranges[1]));
        }
        for level in 0..3 {
            let definition = deep(3);
            let at = |key: &PartitionKey| -> PartitionKey {
                let other = KeyComponent::from("same");
                (0..3)
                    .map(|n| if n == level { &key.components()[0] } else { &other })
                    .cloned()
                    .collect()
            };
            let (victim, like) = (at(&victim), at(&like));
            assert_eq!(definition.epk(&victim), definition.epk(&like));
            assert_ne!(definition.locate(&victim), definition.locate(&like));
        }
        let first = flat(HashVersion::V1);
        assert_ne!(first.epk(&victim), first.epk(&like), "version 1 has the key in its EPK");
    }
}

/// Of long version 1 keys only the beginning counts, as in the service.
#[test]
fn long_version_1_keys_are_one() {
    let definition = flat(HashVersion::V1);
    let key = |end: &str| PartitionKey::new([format!("{}{end}", "k".repeat(100)).as_str()]);
    assert_eq!(definition.locate(&key("one")), definition.locate(&key("two")));
    assert_ne!(definition.locate(&key("one")), definition.locate(&PartitionKey::new(["k"])));
}

#[test]
fn a_key_covers_itself_and_what_is_below_it() {
    let key = |components: &[&str]| PartitionKey::new(components.iter().copied());
    let whole = key(&["t", "u", "s"]);
    for given in 1..=3 {
        assert!(deep(3).covers(&truncated(&whole, given), &whole));
        assert!(!deep(3).covers(&truncated(&key(&["x", "u", "s"]), given), &whole));
    }
    assert!(!deep(3).covers(&whole, &key(&["t", "u"])), "not what is above it");
    for definition in all_definitions() {
        assert!(
            !definition.covers(&PartitionKey::NONE, &truncated(&whole, definition.paths().len()))
        );
        assert!(!definition.covers(&PartitionKey::NONE, &PartitionKey::NONE));
    }
    assert!(!flat(HashVersion::V2).covers(&key(&["t"]), &whole), "there are no levels");
    assert!(PartitionKeyDefinition::none().covers(&PartitionKey::NONE, &PartitionKey::NONE));
}

proptest! {
    #[test]
    fn every_key_lies_in_one_fresh_range(key in key(3), count in 1u32..=200) {
        for definition in all_definitions() {
            let key = truncated(&key, definition.paths().len());
            let epk = definition.locate(&key).unwrap();
            let ranges = definition.boundaries(count);
            prop_assert_eq!(ranges.iter().filter(|range| range.contains(&epk)).count(), 1);
        }
    }

    #[test]
    fn prefix_ranges_hold_their_keys_and_nest(key in key(3), other in key(3)) {
        let definition = deep(3);
        let epk = definition.locate(&key).unwrap();
        let other_epk = definition.locate(&other).unwrap();
        let mut outer = EpkRange::full();
        for given in 0..=3 {
            let prefix = truncated(&key, given);
            let range = definition.prefix_range(&prefix).unwrap();
            prop_assert!(range.contains(&epk));
            prop_assert!(outer.covers(&range));
            // Only keys with the prefix are inside.
            prop_assert_eq!(range.contains(&other_epk), truncated(&other, given) == prefix);
            outer = range;
        }
    }

    /// The range of one key holds its position and no other.
    #[test]
    fn point_ranges_hold_one_position(a in key(1), b in key(1)) {
        for definition in [flat(HashVersion::V1), flat(HashVersion::V2), deep(1)] {
            let (at, other) =
                (definition.locate(&a).unwrap(), definition.locate(&b).unwrap());
            let range = definition.prefix_range(&a).unwrap();
            prop_assert!(range.contains(&at));
            prop_assert_eq!(range.contains(&other), at == other);
        }
    }

    /// A cut at an EPK, of any number of levels, leaves a position on the side of its EPK;
    /// and the ranges that clients make of an EPK hold all its positions.
    #[test]
    fn a_position_lies_where_its_epk_lies(key in key(3), bound in key(3), given in 0usize..=3) {
        for definition in all_definitions() {
            let levels = definition.paths().len();
            let key = truncated(&key, levels);
            let (epk, position) =
                (definition.epk(&key).unwrap(), definition.locate(&key).unwrap());
            prop_assert!(position.as_bytes().starts_with(epk.as_bytes()));
            prop_assert_eq!(&definition.epk_at(&position), &epk);
            prop_assert!(EpkRange::around(epk.clone()).contains(&position));
            let with_end = [epk.as_bytes(), &[0xFF]].concat();
            prop_assert!(position < Epk::from_bytes(&with_end).unwrap());
            let full = truncated(&bound, levels);
            let other = definition.epk(&full).unwrap();
            let kept = other.as_bytes().len().min(16 * given.min(levels));
            let bound = Epk::from_bytes(&other.as_bytes()[..kept]).unwrap();
            for bound in [bound, epk.clone(), other] {
                prop_assert_eq!(bound <= epk, bound <= position, "{} {}", bound, epk);
            }
            for range in definition.boundaries(7) {
                prop_assert_eq!(range.contains(&epk), range.contains(&position));
            }
        }
    }

    /// Equal keys have one position; in version 2 that is the only reason.
    #[test]
    fn equality_is_position(a in key(2), b in key(2)) {
        let definition = deep(2);
        let (at, other) = (definition.locate(&a).unwrap(), definition.locate(&b).unwrap());
        prop_assert_eq!(a == b, at == other);
    }

    #[test]
    fn headers_round_trip(key in key(3)) {
        prop_assert_eq!(PartitionKey::parse_json(&key.to_string()), Ok(key));
    }

    /// A document with the values of a key gives that key.
    #[test]
    fn documents_give_their_key(key in key(3)) {
        let mut document = json::Object::new();
        let header = json::parse(key.to_string().as_bytes()).unwrap();
        for (level, (value, component)) in
            header.as_array().unwrap().iter().zip(key.components()).enumerate()
        {
            if *component != KeyComponent::Undefined {
                document.insert(format!("level{level}"), value.clone());
            }
        }
        let text = json::Value::from(document).to_string();
        let raw = json::parse_raw(text.as_bytes()).unwrap();
        prop_assert_eq!(deep(3).extract(raw), Ok(key));
    }

    #[test]
    fn epks_order_as_bytes_and_round_trip(a in vec(any::<u8>(), 0..=128), b in vec(any::<u8>(), 0..=128)) {
        let (x, y) = (Epk::from_bytes(&a).unwrap(), Epk::from_bytes(&b).unwrap());
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        prop_assert_eq!(x.to_string().cmp(&y.to_string()), a.cmp(&b));
        prop_assert_eq!(x.as_bytes(), a.as_slice());
        prop_assert_eq!(Epk::from_hex(&x.to_string()), Ok(x));
    }

    #[test]
    fn intersections_are_what_both_contain(bounds in vec(0u8..8, 5)) {
        let at = |n: usize| Epk::from_bytes(&[bounds[n]]).unwrap();
        let (a, b) = (EpkRange::new(at(0), at(1)), EpkRange::new(at(2), at(3)));
        let both = a.contains(&at(4)) && b.contains(&at(4));
        let shared = a.intersect(&b);
        prop_assert_eq!(shared.as_ref().is_some_and(|range| range.contains(&at(4))), both);
        prop_assert_eq!(a.overlaps(&b), shared.is_some());
        prop_assert!(shared.is_none_or(|range| !range.is_empty() && a.covers(&range)));
    }

    #[test]
    fn ids_round_trip(container in container(), ordinal in ordinal(), number in 1u64..1 << 60) {
        let database = container.database();
        prop_assert_eq!(DatabaseRid::parse(&database.to_string()), Ok(database));
        prop_assert_eq!(ContainerRid::parse(&container.to_string()), Ok(container));
        let item = ItemRid::new(container, ordinal);
        prop_assert_eq!(ItemRid::parse(&item.to_string()), Ok(item));
        prop_assert!(!item.to_string().contains('/'));
        for kind in [ChildKind::StoredProcedure, ChildKind::Trigger, ChildKind::Conflict] {
            let child = ChildRid::new(container, kind, number).unwrap();
            prop_assert_eq!(ChildRid::parse(&child.to_string()), Ok(child));
        }
        let user = UserRid::new(database, container.number()).unwrap();
        prop_assert_eq!(UserRid::parse(&user.to_string()), Ok(user));
        let permission = PermissionRid::new(user, number);
        prop_assert_eq!(PermissionRid::parse(&permission.to_string()), Ok(permission));
        let offer = OfferRid::new(container.number() >> 7).unwrap();
        prop_assert_eq!(OfferRid::parse(&offer.to_string()), Ok(offer));
    }

    /// Clients compare documents by these eight bytes, read little-endian.
    #[test]
    fn item_ids_order_by_ordinal(a in ordinal(), b in ordinal()) {
        prop_assert_eq!(a.cmp(&b), a.as_u64().cmp(&b.as_u64()));
        prop_assert_eq!(Ordinal::from_u64(a.as_u64()), Some(a));
    }

    #[test]
    fn tokens_round_trip(
        parts in vec((any::<u32>(), any::<i64>(), any::<u64>(), vec((any::<u32>(), any::<u64>()), 0..3)), 0..5)
    ) {
        let range = |(range, version, lsn, regions): (u32, i64, u64, Vec<(u32, u64)>)| RangeToken {
            range,
            version,
            lsn: Lsn::from_u64(lsn),
            regions: regions.into_iter().map(|(region, lsn)| (region, Lsn::from_u64(lsn))).collect(),
        };
        let token = SessionToken::new(parts.into_iter().map(range).collect());
        prop_assert_eq!(SessionToken::parse(&token.to_string()), Ok(token));
    }

    #[test]
    fn different_writes_have_different_etags(a in 0u64..1 << 48, b in 0u64..1 << 48, step in 0u16..3, other in 0u16..3) {
        let now = Timestamp::from_millis(1_700_000_000_000);
        let (x, y) = (Etag::new(Lsn::from_u64(a), step, now), Etag::new(Lsn::from_u64(b), other, now));
        prop_assert_eq!(x.matches(y.as_str()), (a, step) == (b, other));
        prop_assert_eq!(x.as_str().len(), 38);
    }

    /// Anything at all may come over the wire.
    #[test]
    fn parsers_never_panic(text in "\\PC{0,40}", odd in "[/\"'\\\\a\\[\\]{},:#=0-9+-]{0,30}") {
        for text in [&text, &odd] {
            let _ = KeyPath::parse(text);
            let _ = PartitionKey::parse_json(text);
            let _ = Epk::from_hex(text);
            let _ = SessionToken::parse(text);
            let _ = ItemId::parse(text);
            let _ = ResourceName::parse(text);
            let _ = (DatabaseRid::parse(text), ContainerRid::parse(text), UserRid::parse(text));
            let _ = (ItemRid::parse(text), ChildRid::parse(text), PermissionRid::parse(text));
            let _ = OfferRid::parse(text);
            if let Ok(value) = json::parse(text.as_bytes()) {
                let _ = PartitionKeyDefinition::parse(&value);
            }
        }
    }

    /// An id that a parser accepts is written the same: no resource has two ids.
    #[test]
    fn accepted_ids_are_canonical(
        container in container(),
        ordinal in ordinal(),
        at in 0usize..24,
        symbol in "[A-Za-z0-9+=-]",
    ) {
        let mut text = ItemRid::new(container, ordinal).to_string();
        text.replace_range(at..=at, &symbol);
        let again = [
            ItemRid::parse(&text).map(|rid| rid.to_string()),
            ChildRid::parse(&text).map(|rid| rid.to_string()),
            PermissionRid::parse(&text).map(|rid| rid.to_string()),
        ];
        for written in again.into_iter().flatten() {
            prop_assert_eq!(&written, &text);
        }
    }

    /// A path that is accepted names at least one property, none of them empty.
    #[test]
    fn accepted_paths_have_names(path in "(/[a\"'\\\\ ?*é]{0,4}){0,4}") {
        if let Ok(parsed) = KeyPath::parse(&path) {
            prop_assert!(!parsed.names().is_empty());
            prop_assert!(parsed.names().iter().all(|name| !name.is_empty()));
            prop_assert_eq!(parsed.to_string(), path);
        }
    }
}
