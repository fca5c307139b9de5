use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::committer::MergedBatch;

/// Keys that share much and differ late, as those of a store do, and some of every kind.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (0..3_u8, 0..2_u8, 0..40_u64).prop_map(|(path, value, ordinal)| {
            [&[0, 0, 0, 1, 0, 0, 0, path, 0x30][..], &[value; 20], &ordinal.to_be_bytes()].concat()
        }),
        2 => any::<[u8; 3]>().prop_map(|key| [&[0, 0, 0, 1][..], &key].concat()),
        1 => proptest::collection::vec(0..3_u8, 1..6),
    ]
}

fn commits() -> impl Strategy<Value = Vec<MergedBatch>> {
    let value = proptest::option::of(proptest::collection::vec(any::<u8>(), 0..4));
    let commit = proptest::collection::btree_map(key(), value, 1..60);
    let shared = |commit: BTreeMap<Vec<u8>, Option<Vec<u8>>>| -> MergedBatch {
        commit.into_iter().map(|(key, value)| (key.into(), value.map(Bytes::from))).collect()
    };
    proptest::collection::vec(commit.prop_map(shared), 1..30)
}

type Model = BTreeMap<Vec<u8>, (u64, Option<Vec<u8>>)>;

fn shown(row: InternalValue) -> (Vec<u8>, (u64, Option<Vec<u8>>)) {
    let value = (!row.is_tombstone()).then(|| row.value.to_vec());
    (row.key.user_key.to_vec(), (row.key.seqno, value))
}

fn rows(memtable: &Arc<Memtable>, number: u64) -> MemtableRange {
    memtable.range(Bytes::new(), None, number)
}

proptest! {
    /// At every moment, for every moment before it: lookups, ranges in both directions and
    /// from both ends are those of a sorted map.
    #[test]
    fn it_is_a_sorted_map_of_versions(
        commits in commits(), (start, end) in (key(), key()), moment in any::<prop::sample::Index>(),
    ) {
        let (memtable, mut model, mut models) = (Arc::new(Memtable::new()), Model::new(), vec![]);
        models.push(model.clone());
        for (number, commit) in commits.iter().enumerate() {
            memtable.insert(number as u64, commit.iter());
            for (key, value) in commit {
                let value = value.as_ref().map(|value| value.to_vec());
                model.insert(key.to_vec(), (number as u64, value));
            }
            models.push(model.clone());
        }
        let number = moment.index(models.len());
        let model = &models[number];
        for key in models.last().unwrap().keys().chain([&start, &end]) {
            let found = memtable.get(key, number as u64).map(|row| shown(row).1);
            prop_assert_eq!(found.as_ref(), model.get(key));
        }
        let all: Vec<_> = model.clone().into_iter().collect();
        prop_assert_eq!(rows(&memtable, number as u64).map(shown).collect::<Vec<_>>(), all.clone());
        let (start, end) = (start.clone().min(end.clone()), start.max(end));
        let within: Vec<_> =
            all.into_iter().filter(|(key, _)| (&start..&end).contains(&key)).collect();
        let range = || {
            memtable.range(start.clone().into(), Some(end.clone().into()), number as u64).map(shown)
        };
        prop_assert_eq!(range().collect::<Vec<_>>(), within.clone());
        let mut back: Vec<_> = range().rev().collect();
        back.reverse();
        prop_assert_eq!(back, within.clone());
        let (mut range, mut fronts, mut backs) = (range(), vec![], vec![]);
        loop {
            let (front, back) = (range.next(), range.next_back());
            let is_end = back.is_none();
            fronts.extend(front);
            backs.extend(back);
            if is_end {
                break;
            }
        }
        fronts.extend(backs.into_iter().rev());
        prop_assert_eq!(fronts, within);
    }
}

/// Many rows of one value in the order of creation, keys that are written over and over, and
/// random ones: leaves split in every way.
#[test]
fn many_rows_stay_in_order() {
    let (memtable, mut model) = (Arc::new(Memtable::new()), Model::new());
    for number in 0..4_000_u64 {
        let hashed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        let keys = [
            b"0000head".to_vec(),
            [&b"0000item"[..], &hashed].concat(),
            [&b"0000value"[..], &[7; 30], &number.to_be_bytes()].concat(),
            [&b"0000value"[..], &[8; 30], &(number / 3).to_be_bytes()].concat(),
        ];
        let value = Bytes::from(number.to_string());
        let commit = keys.iter().map(|key| (key.clone().into(), Some(value.clone())));
        memtable.insert(number, commit.collect::<MergedBatch>().iter());
        for key in keys {
            model.insert(key, (number, Some(value.to_vec())));
        }
    }
    let all: Vec<_> = model.into_iter().collect();
    assert_eq!(rows(&memtable, u64::MAX).map(shown).collect::<Vec<_>>(), all);
    assert_eq!(rows(&memtable, u64::MAX).rev().map(shown).collect::<Vec<_>>().len(), all.len());
    let old = memtable.get(b"0000head", 17).map(shown).unwrap();
    assert_eq!(old.1, (16, Some(b"16".to_vec())));
    let leaves = memtable.rows().leaves.len();
    assert!(leaves < 4 * 4_000 / 64 + 8, "{leaves} leaves are half empty");
}

/// A commit that needs many pieces is one commit all the same.
#[test]
fn large_commits_are_cut_into_pieces() {
    let memtable = Arc::new(Memtable::new());
    let key = |n: u32| Bytes::copy_from_slice(&n.to_be_bytes());
    let large = Bytes::from(vec![1; 3 * PIECE_BYTES]);
    let commit: MergedBatch = (0..9).map(|n| (key(n), Some(large.clone()))).collect();
    memtable.insert(1, commit.iter());
    assert_eq!(memtable.rows().pieces.len(), 9);
    assert_eq!(rows(&memtable, 1).count(), 0);
    assert_eq!(rows(&memtable, 2).filter(|row| *row.value == *large).count(), 9);
    assert!(memtable.bytes() > 27 * PIECE_BYTES as u64);
}
