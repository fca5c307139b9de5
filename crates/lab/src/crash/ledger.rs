//! What a writing process printed, and what must therefore be there.

use std::collections::BTreeMap;
use std::fmt;

use super::{Attempt, CONTAINERS, HOT_ID, HOT_KEY, LogicalPartition};

/// One line of a writing process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// The writer is about to do this.
    Try { writer: usize, attempt: Attempt },
    /// What it tried was acknowledged.
    Done { writer: usize },
    /// What it tried was refused, and so surely did not happen.
    Refused { writer: usize },
}

impl Line {
    /// `None` for a line cut off by the end of the process.
    #[must_use]
    pub fn parse(text: &str) -> Option<Line> {
        let (verb, rest) = text.strip_suffix('.')?.split_once(' ')?;
        let (writer, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let writer = writer.parse().ok()?;
        Some(match verb {
            "try" => Line::Try { writer, attempt: Attempt::parse(rest)? },
            "done" => Line::Done { writer },
            "refused" => Line::Refused { writer },
            _ => return None,
        })
    }
}

/// The full stop distinguishes a complete line from one that was cut off.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Line::Try { writer, attempt } => write!(f, "try {writer} {attempt}."),
            Line::Done { writer } => write!(f, "done {writer}."),
            Line::Refused { writer } => write!(f, "refused {writer}."),
        }
    }
}

/// The versions that an item may have; `None` means that it may be absent.
pub(super) type Possible = Vec<Option<u64>>;

/// Everything that is known about a folder from what its writers printed.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    pub(super) items: BTreeMap<(LogicalPartition, String), Possible>,
    /// Families by their size: all members have the same version.
    pub(super) families: BTreeMap<(LogicalPartition, usize), Possible>,
    /// Increments of the hot items: acknowledged ones, and those that may have happened.
    pub(super) increments: [(u64, u64); CONTAINERS.len()],
    pending: BTreeMap<usize, Attempt>,
    pub acknowledged: u64,
}

impl Ledger {
    pub fn hear(&mut self, line: Line) {
        match line {
            Line::Try { writer, attempt } => {
                let before = self.pending.insert(writer, attempt);
                assert_eq!(before, None, "a writer does one thing at a time");
            }
            Line::Refused { writer } => {
                self.pending.remove(&writer).expect("a refusal follows an attempt");
            }
            Line::Done { writer } => {
                let attempt = self.pending.remove(&writer).expect("an answer follows an attempt");
                self.acknowledged += 1;
                self.happened(attempt);
            }
        }
    }

    /// The process is gone: what was in flight happened or did not.
    pub fn writers_died(&mut self) {
        for attempt in std::mem::take(&mut self.pending).into_values() {
            if let Attempt::Increment { container } = attempt {
                self.increments[container].1 += 1;
                continue;
            }
            let (possible, after) = self.affected(attempt);
            if !possible.contains(&after) {
                possible.push(after);
            }
        }
    }

    /// Every item that any writer tried to write, whether or not it exists.
    pub fn items(&self) -> impl Iterator<Item = (LogicalPartition, String)> {
        let members = self.families.keys().flat_map(|(partition, size)| {
            Attempt::family(*size).map(move |id| (partition.clone(), id))
        });
        let hot = (0..CONTAINERS.len()).map(|container| {
            (LogicalPartition { container, key: HOT_KEY.to_owned() }, HOT_ID.to_owned())
        });
        self.items.keys().cloned().chain(members).chain(hot)
    }

    fn happened(&mut self, attempt: Attempt) {
        if let Attempt::Increment { container } = attempt {
            self.increments[container].0 += 1;
            self.increments[container].1 += 1;
            return;
        }
        let (possible, after) = self.affected(attempt);
        *possible = vec![after];
    }

    /// The state that an attempt changes, and its new value.
    fn affected(&mut self, attempt: Attempt) -> (&mut Possible, Option<u64>) {
        let absent = || vec![None];
        match attempt {
            Attempt::Create { partition, id, version }
            | Attempt::Upsert { partition, id, version }
            | Attempt::Replace { partition, id, version }
            | Attempt::Patch { partition, id, version } => {
                (self.items.entry((partition, id)).or_insert_with(absent), Some(version))
            }
            Attempt::Delete { partition, id } => {
                (self.items.entry((partition, id)).or_insert_with(absent), None)
            }
            Attempt::Batch { partition, size, version } => {
                (self.families.entry((partition, size)).or_insert_with(absent), Some(version))
            }
            Attempt::Increment { .. } => unreachable!("increments are counted, not kept"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_back_and_torn_ones_do_not() {
        let partition = LogicalPartition { container: 0, key: "w0-0".to_owned() };
        let attempt = Attempt::Upsert { partition, id: "s1".to_owned(), version: 12 };
        for line in [
            Line::Try { writer: 3, attempt },
            Line::Done { writer: 3 },
            Line::Refused { writer: 31 },
        ] {
            let text = line.to_string();
            assert_eq!(Line::parse(&text), Some(line));
            for cut in 0..text.len() {
                assert_eq!(Line::parse(&text[..cut]), None, "{text} cut at {cut}");
            }
        }
    }

    #[test]
    fn an_answer_leaves_one_state_and_a_death_leaves_two() {
        let partition = LogicalPartition { container: 0, key: "w0-0".to_owned() };
        let upsert =
            |version| Attempt::Upsert { partition: partition.clone(), id: "s".to_owned(), version };
        let key = (partition.clone(), "s".to_owned());
        let mut ledger = Ledger::default();
        ledger.hear(Line::Try { writer: 0, attempt: upsert(1) });
        ledger.hear(Line::Done { writer: 0 });
        assert_eq!(ledger.items[&key], [Some(1)]);
        ledger.hear(Line::Try { writer: 0, attempt: upsert(2) });
        ledger.hear(Line::Refused { writer: 0 });
        assert_eq!(ledger.items[&key], [Some(1)]);
        let delete = Attempt::Delete { partition: partition.clone(), id: "s".to_owned() };
        ledger.hear(Line::Try { writer: 0, attempt: delete });
        ledger.writers_died();
        assert_eq!(ledger.items[&key], [Some(1), None]);
        assert_eq!(ledger.acknowledged, 1);
    }
}
