use super::testing::record;
use super::*;

const ID: u64 = 7;

fn commits(bytes: &[u8]) -> Vec<u64> {
    find_records(ID, bytes, 0).iter().map(|record| record.commit).collect()
}

#[test]
fn whole_records_are_read_whatever_follows() {
    let records = [record(ID, 5), record(ID, 6)].concat();
    for tail in [vec![], vec![0; 200_000], vec![0xFF; 3_000], record(ID - 1, 7)] {
        let bytes = [records.as_slice(), &tail].concat();
        assert_eq!(commits(&bytes), [5, 6], "{} bytes more", tail.len());
    }
    let found = find_records(ID, &records, 5);
    assert_eq!(found, [Record { commit: 6, range: record(ID, 5).len()..records.len() }]);
}

#[test]
fn a_record_that_is_cut_off_or_changed_anywhere_is_none_and_the_others_stay() {
    let (one, two, three) = (record(ID, 5), record(ID, 6), record(ID, 7));
    for len in 0..two.len() {
        assert_eq!(commits(&[one.as_slice(), &two[..len]].concat()), [5], "cut to {len}");
    }
    for (at, bit) in (0..two.len()).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
        let mut bad = two.clone();
        bad[at] ^= 1 << bit;
        let bytes = [one.as_slice(), &bad, &three].concat();
        assert_eq!(commits(&bytes), [5, 7], "byte {at} bit {bit}");
    }
}

#[test]
fn a_segment_is_written_over_and_shows_nothing_of_its_former_life() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(FOLDER)).unwrap();
    let segments = Segments::new(folder.path(), &[]);
    let writes =
        |commit: u64| MergedBatch::from([(commit.to_string().into(), Some(vec![7; 1_000].into()))]);
    let mut writer = segments.start().unwrap();
    for commit in 1..=20 {
        writer.append(commit, &writes(commit), Durability::Full).unwrap();
    }
    let first = writer.segment().clone();
    assert_eq!(first.records(0).unwrap().len(), 20);
    let len = std::fs::metadata(&first.path).unwrap().len();
    segments.release(vec![first.clone()]).unwrap();
    let mut writer = segments.start().unwrap();
    let second = writer.segment().clone();
    assert!(second.id > first.id && !first.path.exists());
    assert_eq!(second.records(0).unwrap(), []);
    writer.append(21, &writes(21), Durability::Full).unwrap();
    assert_eq!(std::fs::metadata(&second.path).unwrap().len(), len, "no new blocks");
    let found = second.records(20).unwrap();
    assert_eq!(found.len(), 1);
    let mut replayed = Vec::new();
    second.replay(&found, |commit, writes| replayed.push((commit, writes))).unwrap();
    assert_eq!(replayed, [(21, writes(21))]);
    segments.release(vec![second]).unwrap();
    segments.clear().unwrap();
    assert_eq!(list(folder.path()).unwrap(), []);
}
