//! What was acknowledged to writers, and what they have begun since.

use std::collections::BTreeMap;

/// A key holds one item with a number, or none.
pub(crate) type Number = Option<u64>;

/// What is known of one key. Each has one writer, with one command at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    /// What the last answer said.
    acknowledged: Number,
    /// The position of that answer.
    lsn: u64,
    /// What was begun and has no answer yet.
    begun: Option<Number>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    keys: BTreeMap<String, Known>,
    /// The highest position that each partition has answered with.
    positions: BTreeMap<u32, u64>,
}

impl Model {
    pub(crate) fn keys(&self) -> Vec<String> {
        self.keys.keys().cloned().collect()
    }

    pub(crate) fn acknowledged(&self, key: &str) -> Number {
        self.keys.get(key).and_then(|known| known.acknowledged)
    }

    pub(crate) fn begin(&mut self, key: &str, number: Number) {
        self.keys.entry(key.to_owned()).or_default().begun = Some(number);
    }

    /// The begun command is done. Positions never go back: not those of a key, and those of
    /// a partition continue above those of all its ancestors.
    pub(crate) fn acknowledge(&mut self, key: &str, (partition, lsn): (u32, u64), parents: &[u32]) {
        for parent in parents {
            let before = self.positions.get(parent).copied().unwrap_or_default();
            assert!(
                lsn > before,
                "{parent} came to {before}, and its child {partition} is at {lsn}"
            );
        }
        let position = self.positions.entry(partition).or_default();
        *position = lsn.max(*position);
        let known = self.keys.get_mut(key).unwrap();
        assert!(lsn > known.lsn, "{key} was at {} and is at {lsn}", known.lsn);
        let acknowledged = known.begun.take().unwrap();
        *known = Known { acknowledged, lsn, begun: None };
    }

    /// Something was read: what was acknowledged, or what was begun after it.
    pub(crate) fn check(&self, key: &str, found: Number) {
        let known = self.keys.get(key).unwrap();
        let is_right = found == known.acknowledged || known.begun == Some(found);
        assert!(is_right, "{key} has {found:?}: {known:?}");
    }

    /// What was begun was surely not done.
    pub(crate) fn undo(&mut self, key: &str, found: Number) {
        let known = self.keys.get_mut(key).unwrap();
        known.begun = None;
        assert_eq!(found, known.acknowledged, "{key}");
    }

    /// After a crash, or after an unknown outcome, what is there counts.
    pub(crate) fn settle(&mut self, key: &str, found: Number) {
        self.check(key, found);
        let known = self.keys.get_mut(key).unwrap();
        (known.acknowledged, known.begun) = (found, None);
    }
}
