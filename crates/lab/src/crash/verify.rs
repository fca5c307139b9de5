//! Compares what is stored with what must be stored.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use model::json;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use service::{Feed, ItemAction, ItemOperation, ListItems, Scope, Service};

use super::ledger::Possible;
use super::workload::padding;
use super::{Attempt, CONTAINERS, HOT_ID, HOT_KEY, Ledger, LogicalPartition, execute};

/// Items of one page while everything is read.
const PAGE_ITEMS: usize = 500;

/// One item in seven is also read by its key.
const POINT_READ_EVERY: usize = 7;

/// The findings, by kind of fault; all lists are empty when all is well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    pub items: u64,
    /// Acknowledged writes that are not there, or not as they were acknowledged.
    pub lost: Vec<String>,
    /// Batches that are there in part.
    pub torn: Vec<String>,
    /// Items that were never written, or whose parts do not fit together.
    pub strange: Vec<String>,
}

impl Verdict {
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.lost.is_empty() && self.torn.is_empty() && self.strange.is_empty()
    }
}

/// The items that are there, with their versions.
pub type Found = BTreeMap<(LogicalPartition, String), u64>;

/// Reads everything and compares.
pub fn verify(service: &Service, ledger: &mut Ledger) -> Result<Verdict> {
    let mut verdict = Verdict::default();
    let mut found = Found::new();
    for container in 0..CONTAINERS.len() {
        read_all(service, container, &mut found, &mut verdict)?;
    }
    verify_point_reads(service, &found, &mut verdict)?;
    judge(found, ledger, &mut verdict);
    Ok(verdict)
}

/// Compares what was found with what must be there. Open operations are settled afterwards:
/// the ledger then holds what was found.
pub fn judge(mut found: Found, ledger: &mut Ledger, verdict: &mut Verdict) {
    verdict.items = found.len() as u64;
    for (container, counts) in ledger.increments.iter_mut().enumerate() {
        let partition = LogicalPartition { container, key: HOT_KEY.to_owned() };
        let value = found.remove(&(partition, HOT_ID.to_owned()));
        verify_increments(value, counts, verdict);
    }
    for ((partition, id), possible) in &mut ledger.items {
        let version = found.remove(&(partition.clone(), id.clone()));
        settle(&format!("{partition:?} {id}"), version, possible, verdict);
    }
    for ((partition, size), possible) in &mut ledger.families {
        let remove = |id| found.remove(&(partition.clone(), id));
        let versions: Vec<Option<u64>> = Attempt::family(*size).map(remove).collect();
        let name = format!("{partition:?} family {size}");
        match versions.as_slice() {
            [first, rest @ ..] if rest.iter().all(|version| version == first) => {
                settle(&name, *first, possible, verdict);
            }
            _ => verdict.torn.push(format!("{name} has {versions:?}")),
        }
    }
    verdict.strange.extend(found.keys().map(|item| format!("{item:?} was never written")));
}

fn settle(name: &str, version: Option<u64>, possible: &mut Possible, verdict: &mut Verdict) {
    if !possible.contains(&version) {
        verdict.lost.push(format!("{name} is {version:?}, not one of {possible:?}"));
    }
    *possible = vec![version];
}

fn verify_increments(value: Option<u64>, counts: &mut (u64, u64), verdict: &mut Verdict) {
    let (acknowledged, attempted) = *counts;
    let value = value.unwrap_or_default();
    if value < acknowledged {
        verdict.lost.push(format!("{} of {acknowledged} increments", acknowledged - value));
    }
    if value > attempted {
        verdict.strange.push(format!("{value} increments where {attempted} were tried"));
    }
    *counts = (value, value);
}

fn read_all(
    service: &Service,
    container: usize,
    found: &mut Found,
    verdict: &mut Verdict,
) -> Result<()> {
    let mut after = None;
    loop {
        let scope = Scope::default();
        let (session, items_max, system) = (None, PAGE_ITEMS, None);
        let list = ListItems { scope, session, after, items_max, system };
        let Feed { bodies, rest, .. } = execute(service, container, list)?.reply;
        for body in &bodies {
            add_item(container, body, found, verdict)?;
        }
        match rest {
            Some(position) => after = Some(position),
            None => return Ok(()),
        }
    }
}

/// Adds an item of a container as it is stored.
pub fn add_item(
    container: usize,
    body: &[u8],
    found: &mut Found,
    verdict: &mut Verdict,
) -> Result<()> {
    let (key, id, version) = parse_item(body, verdict)?;
    let item = (LogicalPartition { container, key }, id);
    if found.insert(item.clone(), version).is_some() {
        verdict.strange.push(format!("{item:?} came twice"));
    }
    Ok(())
}

fn parse_item(body: &[u8], verdict: &mut Verdict) -> Result<(String, String, u64)> {
    let raw = json::parse_raw(body)?;
    let text = |name| raw.get(name).and_then(|value| value.as_str()).map(String::from);
    let (id, key) = text("id").zip(text("pk")).context("every item has an id and a key")?;
    let version = raw.get("version").and_then(|value| value.text().parse().ok());
    let version: u64 = version.context("every item has a version")?;
    // The hot item changes its version only.
    if key != HOT_KEY && text("padding") != Some(padding(version)) {
        verdict.strange.push(format!("{key} {id} has the padding of another version"));
    }
    Ok((key, id, version))
}

/// A point read and a list must agree.
fn verify_point_reads(service: &Service, found: &Found, verdict: &mut Verdict) -> Result<()> {
    for ((partition, id), version) in found.iter().step_by(POINT_READ_EVERY) {
        let key = Some(PartitionKey::new([partition.key.as_str()]));
        let read = ItemOperation::Read { id: ItemId::parse(id)?, if_none_match: None };
        let read = execute(service, partition.container, ItemAction::new(key, read))?;
        let body = read.reply.text.context("a read gives a text")?;
        if parse_item(&body, verdict)? != (partition.key.clone(), id.clone(), *version) {
            verdict.strange.push(format!("{partition:?} {id} reads differently by its key"));
        }
    }
    Ok(())
}
