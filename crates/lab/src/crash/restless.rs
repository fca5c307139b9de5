//! Constant transitions of the containers' layouts.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result};
use runtime::{Random, SeededRandom};
use service::{Halve, Link, PartitionId, Principal, Service, ServiceError, TransitionStep};

use super::CONTAINERS;
use testkit::wait::block_on;

/// Ranges of a container from which on they are merged, and up to which split.
const RANGES_MAX: usize = 8;

/// A kind of transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Split,
    Merge,
    /// A split by bytes: the cut is seldom a bound, so buckets move.
    Rebucket,
    Sweep,
}

/// Where to stop a process: a step of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halt {
    pub change: Change,
    pub stage: TransitionStep,
}

impl Change {
    const ALL: [Change; 4] = [Change::Split, Change::Merge, Change::Rebucket, Change::Sweep];

    /// The steps that it goes through.
    fn stages(self) -> &'static [TransitionStep] {
        use TransitionStep::{
            Committed, Copying, DoubleWriting, Drained, MovePlanned, Paused, Swept, Switched,
            Verified,
        };
        match self {
            Change::Split | Change::Merge => &[Paused, Drained, Committed, Switched],
            Change::Rebucket => &[
                MovePlanned,
                DoubleWriting,
                Copying,
                Verified,
                Paused,
                Drained,
                Committed,
                Switched,
            ],
            Change::Sweep => &[Swept],
        }
    }
}

impl Halt {
    /// Every step of every transition.
    pub fn all() -> impl Iterator<Item = Halt> {
        Change::ALL.into_iter().flat_map(|change| {
            change.stages().iter().map(move |stage| Halt { change, stage: *stage })
        })
    }
}

/// Also the line by which a process reports that it has stopped there.
impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}-{:?}", self.change, self.stage)
    }
}

impl FromStr for Halt {
    type Err = String;

    fn from_str(text: &str) -> Result<Halt, String> {
        Halt::all().find(|halt| halt.to_string() == text).ok_or_else(|| {
            let all: Vec<String> = Halt::all().map(|halt| halt.to_string()).collect();
            format!("one of {}", all.join(", "))
        })
    }
}

/// Splits, merges, re-buckets, sweeps and compacts until the process dies. `begin` is
/// called before each transition.
pub fn change_layouts(service: &Service, seed: u64, begin: impl Fn(Change)) -> Result<()> {
    let random = SeededRandom::new(seed);
    loop {
        for (name, _) in CONTAINERS {
            let container = Link::parse(&format!("dbs/d/colls/{name}")).context("a link")?;
            change(service, &container, &random, &begin)?;
        }
        begin(Change::Sweep);
        block_on(service.maintenance().sweep())?;
        if random.next_u64().is_multiple_of(4) {
            service.store().compact()?;
        }
    }
}

fn change(
    service: &Service,
    container: &Link,
    random: &dyn Random,
    begin: &impl Fn(Change),
) -> Result<()> {
    let ids: Vec<PartitionId> =
        block_on(service.operator(Principal::Account).partitions(container))?
            .iter()
            .map(|one| one.id)
            .collect();
    let draw = |among: usize| usize::try_from(random.next_u64()).unwrap_or(0) % among.max(1);
    let merges = ids.len() >= RANGES_MAX || (ids.len() > 1 && draw(3) == 0);
    let changed = if merges {
        let at = draw(ids.len() - 1);
        begin(Change::Merge);
        block_on(
            service
                .operator(Principal::Account)
                .merge(container, ids.get(at..at + 2).unwrap_or_default()),
        )
    } else {
        let range = *ids.get(draw(ids.len())).context("a container has ranges")?;
        let (change, halve) = match draw(2) {
            0 => (Change::Split, Halve::Hashes),
            _ => (Change::Rebucket, Halve::Bytes),
        };
        begin(change);
        block_on(service.operator(Principal::Account).split(container, range, halve))
    };
    match changed {
        // A range with nothing in it, or with one key, has no middle of its bytes.
        Ok(_) | Err(ServiceError::Invalid { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
