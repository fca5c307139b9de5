//! Changing the layout of the containers all the time.

use anyhow::{Context, Result};
use runtime::{Random, SeededRandom};
use service::{Halve, Link, RangeId, Service, ServiceError};

use super::CONTAINERS;
use crate::wait::block_on;

/// Ranges of a container from which on they are merged, and up to which split.
const RANGES_MAX: usize = 8;

/// Splits, merges, re-buckets and sweeps until the process dies.
pub fn change_layouts(service: &Service, seed: u64) -> Result<()> {
    let random = SeededRandom::new(seed);
    loop {
        for (name, _) in CONTAINERS {
            let container = Link::parse(&format!("dbs/d/colls/{name}")).context("a link")?;
            change(service, &container, &random)?;
        }
        block_on(service.sweep())?;
    }
}

fn change(service: &Service, container: &Link, random: &dyn Random) -> Result<()> {
    let ids: Vec<RangeId> = service.partitions(container)?.iter().map(|one| one.id).collect();
    let draw = |among: usize| usize::try_from(random.next_u64()).unwrap_or(0) % among.max(1);
    let merges = ids.len() >= RANGES_MAX || (ids.len() > 1 && draw(3) == 0);
    let changed = if merges {
        let at = draw(ids.len() - 1);
        block_on(service.merge(container, ids.get(at..at + 2).unwrap_or_default()))
    } else {
        let range = *ids.get(draw(ids.len())).context("a container has ranges")?;
        // A cut by bytes is seldom a bound, so buckets move.
        let halve = if draw(2) == 0 { Halve::Hashes } else { Halve::Bytes };
        block_on(service.split(container, range, halve))
    };
    match changed {
        // A range with nothing in it, or with one key, has no middle of its bytes.
        Ok(_) | Err(ServiceError::Invalid { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
