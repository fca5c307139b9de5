//! Random histories of a layout, with partitions that give out positions and ordinals.

use std::collections::{BTreeMap, BTreeSet};

use model::partition_key::{HashVersion, KeyKind, KeyPath};
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    /// A partition takes some commands, each of which takes an item number.
    Write {
        range: Index,
        commands: u8,
    },
    Split {
        range: Index,
        bound: Index,
    },
    Merge {
        first: Index,
        count: usize,
    },
    Allocate {
        range: Index,
    },
    Rebucket {
        bucket: Index,
    },
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<Index>;
    prop_oneof![
        4 => (index(), any::<u8>()).prop_map(|(range, commands)| Step::Write { range, commands }),
        3 => (index(), index()).prop_map(|(range, bound)| Step::Split { range, bound }),
        2 => (index(), 2usize..4).prop_map(|(first, count)| Step::Merge { first, count }),
        1 => index().prop_map(|range| Step::Allocate { range }),
        1 => index().prop_map(|bucket| Step::Rebucket { bucket }),
        1 => Just(Step::Reopen),
    ]
}

/// What a partition knows that the map does not.
#[derive(Clone, Debug)]
struct Simulated {
    lsn: Lsn,
    ordinal_blocks: Vec<Range<u64>>,
}

struct Life {
    key: PartitionKeyDefinition,
    map: ContainerMap,
    partitions: BTreeMap<PartitionId, Simulated>,
    given_out: BTreeSet<u64>,
    ids_ever: BTreeSet<PartitionId>,
}

impl Life {
    fn new(key: PartitionKeyDefinition, ranges: u32) -> Life {
        let map = ContainerMap::fresh(&key, ranges);
        let (partitions, given_out, ids_ever) = Default::default();
        let mut life = Life { key, map, partitions, given_out, ids_ever };
        life.adopt(life.map.clone());
        life
    }

    fn record(&self, index: &Index) -> PartitionRecord {
        index.get(self.map.ranges()).clone()
    }

    fn final_position(&self, id: PartitionId) -> FinalPosition {
        let Simulated { lsn, ordinal_blocks } = self.partitions[&id].clone();
        FinalPosition { lsn, ordinal_blocks }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Write { range, commands } => self.write(self.record(range).id, *commands),
            Step::Split { range, bound } => {
                let parent = self.record(range);
                let buckets = self.map.buckets_of(&parent);
                let at = bound.get(&buckets).range.min.clone();
                let final_position = self.final_position(parent.id);
                match self.map.split(parent.id, &at, &final_position) {
                    Ok(map) => self.adopt(map),
                    Err(error) => assert!(at == parent.range.min, "{error}"),
                }
            }
            Step::Merge { first, count } => {
                let from = first.index(self.map.ranges().len());
                let run = self.map.ranges().iter().skip(from).take(*count);
                let parts: Vec<_> =
                    run.map(|record| (record.id, self.final_position(record.id))).collect();
                match self.map.merge(&parts) {
                    Ok(map) => self.adopt(map),
                    Err(error) => assert_eq!((parts.len(), error), (1, LayoutError::TooFew)),
                }
            }
            Step::Allocate { range } => {
                let id = self.record(range).id;
                let map = self.map.with_more_ordinals(id);
                let block = map.range(id).unwrap().ordinal_blocks.last().unwrap().clone();
                self.partitions.get_mut(&id).unwrap().ordinal_blocks.push(block);
                self.map = map;
            }
            Step::Rebucket { bucket } => self.rebucket(bucket.get(&self.map.buckets).clone()),
            Step::Reopen => self.map = parsed(&stored(&self.map)).unwrap(),
        }
        self.map.audit().unwrap();
        assert_eq!(parsed(&stored(&self.map)).unwrap(), self.map);
    }

    fn write(&mut self, id: PartitionId, commands: u8) {
        let partition = self.partitions.get_mut(&id).unwrap();
        for _ in 0..commands {
            partition.lsn = partition.lsn.next();
            let Some(block) = partition.ordinal_blocks.iter_mut().find(|block| !block.is_empty())
            else {
                continue;
            };
            assert!(self.given_out.insert(block.start), "{} was given out before", block.start);
            block.start += 1;
        }
        partition.ordinal_blocks.retain(|block| !block.is_empty());
    }

    fn rebucket(&mut self, bucket: Bucket) {
        let Some(at) = self.key.midpoint(&bucket.range) else { return };
        self.map = self.map.begin_move(bucket.number, &[at]).unwrap();
        self.map.audit().unwrap();
        self.map = self.map.finish_move(bucket.number).unwrap();
    }

    /// Adopts a new layout, and compares it with the one before.
    fn adopt(&mut self, map: ContainerMap) {
        let before = std::mem::replace(&mut self.map, map);
        let layout_changed = before.ranges != self.map.ranges;
        assert_eq!(self.map.change, before.change + u64::from(layout_changed));
        for record in self.map.ranges.clone() {
            if let Some(old) =
                before.range(record.id).filter(|_| self.ids_ever.contains(&record.id))
            {
                assert_eq!(*old, record, "others are left alone");
                continue;
            }
            assert!(self.ids_ever.insert(record.id), "ids are never used again");
            assert_eq!(record.change, self.map.change);
            let origins: Vec<_> =
                before.ranges.iter().filter(|old| old.range.overlaps(&record.range)).collect();
            for old in origins.iter().filter(|_| layout_changed) {
                assert!(record.lsn_floor > self.partitions[&old.id].lsn, "positions never go back");
                let line = old.parents.iter().chain([&old.id]);
                assert!(line.into_iter().all(|id| record.parents.contains(id)), "whole ancestry");
            }
            let opened =
                Simulated { lsn: record.lsn_floor, ordinal_blocks: record.ordinal_blocks.clone() };
            self.partitions.insert(record.id, opened);
        }
        let map = &self.map;
        self.partitions.retain(|id, _| map.range(*id).is_some());
    }
}

fn keys() -> [PartitionKeyDefinition; 3] {
    let version_1 = vec![KeyPath::parse("/pk").unwrap()];
    [
        PartitionKeyDefinition::hash(["/pk"]).unwrap(),
        PartitionKeyDefinition::new(version_1, KeyKind::Hash, HashVersion::V1).unwrap(),
        PartitionKeyDefinition::hash(["/a", "/b", "/c"]).unwrap(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_layout_stays_sound_through_any_life(
        which in 0usize..3,
        ranges in 1u32..6,
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        let mut life = Life::new(keys()[which].clone(), ranges);
        for step in &steps {
            life.step(step);
        }
    }
}
