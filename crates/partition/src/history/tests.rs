use proptest::prelude::*;

use super::*;

fn marks() -> impl Strategy<Value = VersionMark> {
    (any::<u64>(), any::<u16>(), any::<u64>()).prop_map(|(lsn, step, ts)| VersionMark {
        lsn: Lsn::from_u64(lsn),
        step,
        ts: Timestamp::from_millis(ts),
    })
}

fn records() -> impl Strategy<Value = HistoryRecord> {
    let kinds = prop::sample::select(&HistoryKind::ALL[..]);
    let epks = prop::collection::vec(any::<u8>(), 0..40);
    (kinds, marks(), 1..=Ordinal::MAX, marks(), any::<bool>(), ".*", epks).prop_map(
        |(kind, mark, ordinal, before, has_image, text, epk)| HistoryRecord {
            kind,
            mark,
            ordinal: Ordinal::from_u64(ordinal).unwrap(),
            before: (kind != HistoryKind::Create).then_some(before),
            has_image: has_image || !kind.is_removal(),
            text: text.into(),
            epk: Epk::from_bytes(&epk).unwrap(),
        },
    )
}

proptest! {
    #[test]
    fn records_come_back(record in records()) {
        prop_assert_eq!(HistoryRecord::decode(record.mark.lsn, &record.encode()), Ok(record));
    }

    #[test]
    fn foreign_bytes_never_panic(bytes: Vec<u8>) {
        let _ = HistoryRecord::decode(Lsn::ZERO, &bytes.clone().into());
        let _ = decode_horizon(&bytes);
        // The same with a valid seal, so that the payload is parsed.
        let sealed = record::seal(bytes.into_iter());
        let _ = HistoryRecord::decode(Lsn::ZERO, &sealed);
        let _ = decode_horizon(&sealed);
    }
}

#[test]
fn the_bytes_are_those_of_the_specification() {
    let record = HistoryRecord {
        kind: HistoryKind::Replace,
        mark: VersionMark { lsn: Lsn::from_u64(9), step: 2, ts: Timestamp::from_millis(3) },
        ordinal: Ordinal::from_u64(4).unwrap(),
        before: Some(VersionMark { lsn: Lsn::from_u64(5), step: 6, ts: Timestamp::from_millis(7) }),
        has_image: true,
        text: Bytes::from_static(b"{}"),
        epk: Epk::from_bytes(&[0x0A, 0]).unwrap(),
    };
    let mut payload = vec![2, 1];
    payload.extend(3_u64.to_le_bytes());
    payload.extend(2_u16.to_le_bytes());
    payload.extend(4_u64.to_le_bytes());
    payload.extend(5_u64.to_le_bytes());
    payload.extend(6_u16.to_le_bytes());
    payload.extend(7_u64.to_le_bytes());
    payload.extend([0x0A, 0, 0xFF, 0, 1]);
    payload.extend(b"{}");
    assert_eq!(record.encode(), record::seal(payload.into_iter()));
    assert_eq!(encode_horizon(Lsn::from_u64(7)), record::seal(7_u64.to_le_bytes().into_iter()));
}

#[test]
fn a_name_has_the_whole_key_and_nothing_else() {
    let paths = ["/a/b", "/a/c", "/id"];
    let key = PartitionKeyDefinition::hash(paths);
    let item = r#"{"id":"x","a":{"b":1,"c":null,"d":2},"e":3}"#;
    let names = only_names(&key.unwrap(), Raw::trusted(item));
    assert_eq!(names, r#"{"id":"x","a":{"b":1,"c":null}}"#);
}

#[test]
fn images_of_a_commit_are_bounded() {
    let mut recorder = Recorder::new(Lsn::from_u64(1), Timestamp::from_millis(1));
    assert!(recorder.take_room(IMAGE_BYTES_MAX - 10));
    assert!(!recorder.take_room(11));
    assert!(recorder.take_room(10));
    assert!(!recorder.take_room(1));
}
