//! One container as this process serves it.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use index::IndexPlan;
use model::epk::Epk;
use model::limits::Limits;
use model::policy::{ContainerDefinition, IndexingPolicy};
use model::rid::ContainerRid;
use partition::{ContainerNumber, Setup};
use storage::Store;

use crate::error::ClusterError;
use crate::map::{ContainerMap, RangeId, RangeRecord};
use crate::slot::Slot;

/// What the catalogue knows about a container, as far as partitions need it.
#[derive(Clone, Debug)]
pub struct ContainerSpec {
    pub number: ContainerNumber,
    pub rid: ContainerRid,
    pub definition: Arc<ContainerDefinition>,
    /// Every indexing policy the container ever had; stored items name the
    /// version they were written under. The last one is in force.
    pub policies: BTreeMap<u32, IndexingPolicy>,
    /// Seed of the path hashes in index entries.
    pub index_seed: u64,
}

/// A container with its map and the slots of its partitions.
#[derive(Debug)]
pub struct Container {
    store: Arc<dyn Store>,
    limits: Arc<Limits>,
    state: RwLock<State>,
}

#[derive(Clone, Debug)]
struct State {
    spec: Arc<ContainerSpec>,
    map: Arc<ContainerMap>,
    slots: BTreeMap<RangeId, Arc<Slot>>,
    dropped: bool,
}

impl Container {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        limits: Arc<Limits>,
        spec: ContainerSpec,
        map: ContainerMap,
    ) -> Container {
        let slots = setups(&spec, &map, &limits)
            .into_iter()
            .map(|(id, setup)| (id, Arc::new(Slot::new(setup, Arc::clone(&store)))))
            .collect();
        let state = State { spec: Arc::new(spec), map: Arc::new(map), slots, dropped: false };
        Container { store, limits, state: RwLock::new(state) }
    }

    #[must_use]
    pub fn spec(&self) -> Arc<ContainerSpec> {
        Arc::clone(&self.read().spec)
    }

    #[must_use]
    pub fn map(&self) -> Arc<ContainerMap> {
        Arc::clone(&self.read().map)
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Takes over a changed definition or map with the same ranges.
    pub(crate) fn reconfigure(&self, spec: ContainerSpec, map: ContainerMap) {
        let setups = setups(&spec, &map, &self.limits);
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        for (id, setup) in setups {
            if let Some(slot) = state.slots.get(&id) {
                slot.reconfigure(setup);
            }
        }
        state.spec = Arc::new(spec);
        state.map = Arc::new(map);
    }

    /// Refuses whoever still holds it, and waits until what they have begun is
    /// on the disk: only then can its keys be removed for good.
    pub(crate) async fn retire(&self) {
        self.state.write().unwrap_or_else(PoisonError::into_inner).dropped = true;
        for slot in self.slots() {
            if let Some(ticket) = slot.retire() {
                // Whatever became of it, nothing comes after it.
                let _ = ticket.await;
            }
        }
    }

    /// The partition that owns a key.
    pub(crate) fn route(&self, epk: &Epk) -> Result<(RangeId, Arc<Slot>), ClusterError> {
        let state = self.served()?;
        let number = state.spec.number.0;
        let record = state.map.range_of(epk).ok_or(ClusterError::NoContainer(number))?;
        let slot = state.slots.get(&record.id).ok_or(ClusterError::NoRange(record.id.0))?;
        Ok((record.id, Arc::clone(slot)))
    }

    pub(crate) fn slot(&self, id: RangeId) -> Result<Arc<Slot>, ClusterError> {
        self.served()?.slots.get(&id).cloned().ok_or(ClusterError::NoRange(id.0))
    }

    pub(crate) fn slots(&self) -> Vec<Arc<Slot>> {
        self.read().slots.values().cloned().collect()
    }

    /// The state, as long as the container was not dropped.
    fn served(&self) -> Result<RwLockReadGuard<'_, State>, ClusterError> {
        let state = self.read();
        let number = state.spec.number.0;
        if state.dropped { Err(ClusterError::NoContainer(number)) } else { Ok(state) }
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The setup of each partition under a definition and a map.
fn setups(
    spec: &ContainerSpec,
    map: &ContainerMap,
    limits: &Arc<Limits>,
) -> Vec<(RangeId, Arc<Setup>)> {
    let compile = |policy| Arc::new(IndexPlan::compile(policy, spec.index_seed));
    let plans: BTreeMap<u32, Arc<IndexPlan>> =
        spec.policies.iter().map(|(version, policy)| (*version, compile(policy))).collect();
    let policy_version = plans.keys().next_back().copied().unwrap_or(0);
    let setup = |record: &RangeRecord| Setup {
        container: spec.number,
        container_rid: spec.rid,
        definition: Arc::clone(&spec.definition),
        policy_version,
        plans: plans.clone(),
        buckets: map.buckets_of(record),
        moves: Vec::new(),
        lsn_floor: record.lsn_floor,
        numbers: record.numbers.clone(),
        limits: Arc::clone(limits),
    };
    map.ranges().iter().map(|record| (record.id, Arc::new(setup(record)))).collect()
}
