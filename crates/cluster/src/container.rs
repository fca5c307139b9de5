//! One container as this process serves it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use index::IndexPlan;
use model::charge::Charge;
use model::epk::Epk;
use model::limits::{Growth, Limits};
use model::policy::{ContainerDefinition, IndexingPolicy};
use model::rid::ContainerRid;
use partition::{ContainerNumber, Setup, Size};
use runtime::Clock;
use storage::Store;
use tokio::sync::Semaphore;

use crate::budget::Caller;
use crate::cluster::ATTEMPTS_MAX;
use crate::error::ClusterError;
use crate::expire::Searched;
use crate::governor::{Governor, Pass};
use crate::map::{ContainerMap, RangeId, RangeRecord};
use crate::reindex::Reindexed;
use crate::slot::Slot;

/// What the catalogue knows about a container, as far as partitions need it.
#[derive(Clone, Debug)]
pub struct ContainerSpec {
    pub number: ContainerNumber,
    pub rid: ContainerRid,
    pub definition: Arc<ContainerDefinition>,
    /// The indexing policies that items may have been written under, which name the
    /// version. The last one is in force.
    pub policies: BTreeMap<u32, IndexingPolicy>,
    /// Seed of the path hashes in index entries.
    pub index_seed: u64,
    /// Whether it may ever have more than one physical partition.
    pub growth: Growth,
}

/// A container with its map and the slots of its partitions.
#[derive(Debug)]
pub struct Container {
    store: Arc<dyn Store>,
    limits: Arc<Limits>,
    governor: Governor,
    state: RwLock<State>,
    /// Room for commands that wait for the end of a switch.
    waiting: Semaphore,
    /// One transition at a time: a second one would choose its cut from a layout
    /// that the first is about to change.
    transitions: tokio::sync::Mutex<()>,
    clock: Arc<dyn Clock>,
    pub(crate) reindexed: Reindexed,
    pub(crate) searched: Searched,
    /// When the layout last changed, or when it was read.
    changed_at: Mutex<Duration>,
}

/// Commands that may wait for the end of a switch: as many as an executor takes
/// at once. Whoever comes later is told to try again.
const WAITING_MAX: usize = 1024;

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
        clock: Arc<dyn Clock>,
        spec: ContainerSpec,
        map: ContainerMap,
    ) -> Container {
        let slots = setups(&spec, &map, &limits)
            .into_iter()
            .map(|(id, setup)| (id, Arc::new(Slot::new(setup, Arc::clone(&store)))))
            .collect();
        let state = State { spec: Arc::new(spec), map: Arc::new(map), slots, dropped: false };
        let governor = Governor::new(Arc::clone(&clock), Arc::clone(&limits));
        Container {
            store,
            limits,
            governor,
            state: RwLock::new(state),
            waiting: Semaphore::new(WAITING_MAX),
            transitions: tokio::sync::Mutex::default(),
            reindexed: Reindexed::default(),
            searched: Searched::default(),
            changed_at: Mutex::new(clock.monotonic()),
            clock,
        }
    }

    #[must_use]
    pub fn spec(&self) -> Arc<ContainerSpec> {
        Arc::clone(&self.read().spec)
    }

    /// Who lets requests into its partitions.
    #[must_use]
    pub fn governor(&self) -> &Governor {
        &self.governor
    }

    #[must_use]
    pub fn number(&self) -> ContainerNumber {
        self.read().spec.number
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

    /// Puts a layout with other ranges in force. Ranges that it does not name take
    /// no more commands, and whoever waits for them is sent on.
    pub(crate) fn adopt(&self, map: ContainerMap) {
        let now = self.clock.monotonic();
        *self.changed_at.lock().unwrap_or_else(PoisonError::into_inner) = now;
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let setups = setups(&state.spec, &map, &self.limits);
        let kept = |id: RangeId, setup: &Arc<Setup>| {
            let slot = state.slots.get(&id)?;
            (slot.setup().buckets == setup.buckets).then(|| Arc::clone(slot))
        };
        let open = |setup| Arc::new(Slot::new(setup, Arc::clone(&self.store)));
        let slots: BTreeMap<RangeId, Arc<Slot>> = setups
            .into_iter()
            .map(|(id, setup)| (id, kept(id, &setup).unwrap_or_else(|| open(setup))))
            .collect();
        let replaced = std::mem::replace(&mut state.slots, slots);
        state.map = Arc::new(map);
        for (id, slot) in replaced {
            if state.slots.get(&id).is_none_or(|now| !Arc::ptr_eq(now, &slot)) {
                // It was drained before: there is nothing to wait for.
                slot.replace();
            }
        }
    }

    pub(crate) fn changed_at(&self) -> Duration {
        *self.changed_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn one_transition(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.transitions.lock().await
    }

    /// Waits until a partition's switch is over.
    pub(crate) async fn settled(&self, slot: &Slot) -> Result<(), ClusterError> {
        let _room = self.waiting.try_acquire().map_err(|_| ClusterError::Busy)?;
        slot.settled().await;
        Ok(())
    }

    /// Refuses whoever still holds it. What is left of it is to be retired.
    pub(crate) fn close(&self) -> BTreeMap<RangeId, Arc<Slot>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner).dropped = true;
        self.layout().1
    }

    /// Lets a request into the partition that owns a position, or says when to come
    /// back.
    pub fn admit(&self, epk: &Epk, caller: Caller) -> Result<Pass, ClusterError> {
        let mut attempts = ATTEMPTS_MAX;
        loop {
            let map = self.map();
            let number = self.number().0;
            let record = map.range_of(epk).ok_or(ClusterError::NoContainer(number))?;
            let range = record.id;
            // None if others have taken its place since.
            if let Some(gauge) = self.governor.gauge(&map, range) {
                let refused = |refusal| ClusterError::Throttled { range, refusal };
                return gauge.admit(caller).map_err(refused);
            }
            attempts -= 1;
            if attempts == 0 {
                return Err(ClusterError::Busy);
            }
        }
    }

    /// Has a partition's budget pay for what was done there without asking first.
    pub fn bill(&self, range: RangeId, caller: Caller, charge: Charge) {
        // Others may have taken its place: what it did has no budget any more.
        if let Some(gauge) = self.governor.gauge(&self.map(), range) {
            gauge.pass(caller).pay(None, charge);
        }
    }

    /// The partition that owns a key.
    pub(crate) fn route(&self, epk: &Epk) -> Result<(RangeId, Arc<Slot>), ClusterError> {
        let state = self.served()?;
        let number = state.spec.number.0;
        let record = state.map.range_of(epk).ok_or(ClusterError::NoContainer(number))?;
        let slot = state.slots.get(&record.id).ok_or(ClusterError::NoRange(record.id))?;
        Ok((record.id, Arc::clone(slot)))
    }

    /// What a physical partition holds, if it has been asked for something. Costs nothing.
    #[must_use]
    pub fn size_of(&self, id: RangeId) -> Option<Size> {
        self.slot(id).ok().map(|slot| slot.size())
    }

    pub(crate) fn slot(&self, id: RangeId) -> Result<Arc<Slot>, ClusterError> {
        self.served()?.slots.get(&id).cloned().ok_or(ClusterError::NoRange(id))
    }

    /// The layout and its partitions, of one moment.
    pub(crate) fn layout(&self) -> (Arc<ContainerMap>, BTreeMap<RangeId, Arc<Slot>>) {
        let state = self.read();
        (Arc::clone(&state.map), state.slots.clone())
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
        moves: map.moves_of(record),
        lsn_floor: record.lsn_floor,
        numbers: record.numbers.clone(),
        growth: spec.growth,
        limits: Arc::clone(limits),
    };
    map.ranges().iter().map(|record| (record.id, Arc::new(setup(record)))).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use runtime::{Tasks as _, ThreadTasks};

    use super::*;
    use crate::system;

    const LONG: Duration = Duration::from_secs(60);

    /// An executor keeps its sequencer while it waits for the store. Nobody else may wait
    /// for that, least of all with the lock on the container in hand.
    #[test]
    fn neither_a_change_nor_a_reader_waits_for_a_sequencer() {
        let (spec, map) = (system::spec(), system::map());
        let clock = Arc::new(runtime::SimulatedClock::new());
        let store = storage::memory::create();
        let container = Container::new(store, Arc::default(), clock, spec.clone(), map.clone());
        let container = Arc::new(container);
        let (range, slot) = container.route(&system::epk()).unwrap();
        let (begun, has_begun) = sync_channel(1);
        let (release, released) = sync_channel::<()>(1);
        let kept = Arc::clone(&slot);
        let keep = move || {
            let kept = kept.with(|_| {
                begun.send(()).unwrap();
                released.recv().unwrap();
                Ok(())
            });
            kept.unwrap();
        };
        let busy = ThreadTasks.spawn("busy", Box::new(keep)).unwrap();
        has_begun.recv_timeout(LONG).unwrap();
        let (done, is_done) = sync_channel(1);
        let (changed, changing) = (map.with_more_numbers(range), Arc::clone(&container));
        let numbers = changed.range(range).unwrap().numbers.clone();
        let change = move || {
            changing.reconfigure(spec, changed);
            let (_, slot) = changing.route(&system::epk()).unwrap();
            done.send((changing.map(), slot.durable_lsn().unwrap())).unwrap();
        };
        drop(ThreadTasks.spawn("changing", Box::new(change)).unwrap());
        let (map, _) = is_done.recv_timeout(LONG).expect("nobody waits for the sequencer");
        assert_eq!(map.range(range).unwrap().numbers, numbers);
        release.send(()).unwrap();
        busy.join().unwrap();
        let followed = slot.with(|partition| Ok(partition.setup().numbers.clone()));
        assert_eq!(followed.unwrap(), numbers, "the next command follows the change");
    }
}
