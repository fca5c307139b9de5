//! Every design gives the answers that a sorted set of postings gives.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use clap::ValueEnum as _;
use index::EntryRange;
use proptest::prelude::*;
use storage::{CommitStatus, Direction, Store, memory};

use super::change::{Bucket, Change};
use super::design::{Design, Name};
use super::term_store::{Reading, TermStore, Wanted};
use super::watch;
use crate::raw::recorder::Recorder;

/// So few that runs of some dozen commands fold several times.
const GATHERED: usize = 5;
/// So few that pages end inside of what is asked for.
const ABOUT: usize = 3;

type Oracle = BTreeMap<Bucket, BTreeSet<Bytes>>;

#[derive(Clone, Debug)]
enum Step {
    Write { id: u8, value: u8, text: String },
    Delete { id: u8 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let write = (0..12_u8, 0..6_u8, "[a-c]{0,40}");
    let write = write.prop_map(|(id, value, text)| Step::Write { id, value, text });
    let step = prop_oneof![4 => write, 1 => (0..12_u8).prop_map(|id| Step::Delete { id })];
    prop::collection::vec(step, 1..80)
}

/// What a partition writes for the steps, in groups. Deletes of absent documents are left out.
fn recorded(steps: &[Step], group: usize) -> Vec<Vec<Change>> {
    let mut ids = BTreeSet::new();
    let changes = watch(&mut Recorder::new().unwrap(), |partition| {
        for step in steps {
            match step {
                Step::Write { id, value, text } => {
                    ids.insert(*id);
                    let common = "n".repeat(usize::from(*value) * 30);
                    partition.upsert(format!(
                        r#"{{"id":"{id}","pk":"{}","n":{value},"s":"{text}","c":"{common}","t":[{value},"{text}"]}}"#,
                        id % 3
                    ))?;
                }
                Step::Delete { id } if ids.remove(id) => {
                    partition.delete(format!(r#"{{"id":"{id}","pk":"{}"}}"#, id % 3))?;
                }
                Step::Delete { .. } => {}
            }
        }
        Ok(())
    });
    changes.unwrap().chunks(group).map(<[Change]>::to_vec).collect()
}

fn apply(oracle: &mut Oracle, group: &[Change]) {
    for change in group {
        let postings = oracle.entry(change.bucket).or_default();
        for (posting, added) in &change.postings {
            let changed =
                if *added { postings.insert(posting.clone()) } else { postings.remove(posting) };
            assert!(changed, "a change that changes nothing");
        }
    }
}

fn commit(store: &Arc<dyn Store>, design: &mut Design, group: &[Change]) {
    let mut session = store.write_session();
    let view = store.view().unwrap();
    let batch = design.write(&Reading::new(view.as_ref()), group).unwrap();
    assert_eq!(session.submit(batch).wait(), CommitStatus::Durable);
    loop {
        let view = store.view().unwrap();
        let Some(batch) = design.terms.fold(&Reading::new(view.as_ref())).unwrap() else { break };
        assert_eq!(session.submit(batch).wait(), CommitStatus::Durable);
    }
}

fn found(
    terms: &dyn TermStore,
    reading: &Reading<'_>,
    wanted: Wanted<'_>,
    limit: usize,
) -> Vec<Bytes> {
    let mut all = Vec::new();
    terms
        .scan(reading, wanted, &mut |posting| {
            all.push(Bytes::copy_from_slice(posting));
            let enough = all.len() == limit;
            Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })
        .unwrap();
    all
}

/// Compares every path as a whole, every value, and what lies between two values.
fn compare(store: &Arc<dyn Store>, name: Name, terms: &dyn TermStore, oracle: &Oracle) {
    let view = store.view().unwrap();
    let reading = Reading::new(view.as_ref());
    for (bucket, postings) in oracle {
        for range in ranges(postings) {
            let inside = |posting: &&Bytes| ***posting >= *range.start && ***posting < *range.end;
            let mut expected: Vec<Bytes> = postings.iter().filter(inside).cloned().collect();
            let wanted =
                |direction| Wanted { bucket: *bucket, range: &range, direction, about: ABOUT };
            let forward = wanted(Direction::Forward);
            assert_eq!(
                terms.count(&reading, forward).unwrap(),
                expected.len() as u64,
                "{:?}",
                name
            );
            for direction in [Direction::Forward, Direction::Backward] {
                for limit in [usize::MAX, 2] {
                    let first = &expected[..expected.len().min(limit)];
                    let found = found(terms, &reading, wanted(direction), limit);
                    assert_eq!(found, first, "{:?} {direction:?}", name);
                }
                expected.reverse();
            }
        }
    }
}

fn ranges(postings: &BTreeSet<Bytes>) -> Vec<EntryRange> {
    let entries: BTreeSet<&[u8]> =
        postings.iter().map(|posting| &posting[..posting.len() - 8]).collect();
    let range = |start: &[u8], end: Vec<u8>| EntryRange { start: start.to_vec(), end, exact: true };
    let mut ranges = Vec::new();
    for path in entries.iter().map(|entry| &entry[..8]).collect::<BTreeSet<_>>() {
        ranges.push(range(path, [path, &[0xFF]].concat()));
        let of_path: Vec<_> = entries.iter().filter(|entry| entry.starts_with(path)).collect();
        // An entry's end is the end of all keys that it begins.
        ranges.extend(of_path.iter().map(|entry| range(entry, [entry, &[0xFF; 9][..]].concat())));
        ranges.extend(of_path.windows(3).map(|three| range(three[0], three[2].to_vec())));
    }
    ranges
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn all_designs_give_the_same_answers(steps in steps(), group in 1..9_usize, reopened in 0..20_usize) {
        let groups = recorded(&steps, group);
        for name in Name::value_variants() {
            let (store, mut oracle) = (memory::create(), Oracle::new());
            let mut design = Design::gathering(*name, GATHERED);
            for (at, changes) in groups.iter().enumerate() {
                apply(&mut oracle, changes);
                commit(&store, &mut design, changes);
                let can_reopen = !matches!(name, Name::LazyKeys | Name::Lazy4k);
                if at == reopened && can_reopen {
                    let view = store.view().unwrap();
                    design.terms.reopen(&Reading::new(view.as_ref())).unwrap();
                }
            }
            compare(&store, *name, design.terms.as_ref(), &oracle);
        }
    }
}
