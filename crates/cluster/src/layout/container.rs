//! One container as this process serves it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use index::IndexPlan;
use model::epk::Epk;
use model::limits::{Growth, Limits};
use model::policy::{ContainerDefinition, IndexingPolicy};
use model::rid::ContainerRid;
use partition::{ContainerNumber, PartitionConfig};
use runtime::Clock;
use storage::Store;
use tokio::sync::Semaphore;

use crate::error::ClusterError;
use crate::layout::Layout;
use crate::layout::map::{ContainerMap, PartitionId, PartitionRecord};
use crate::layout::partition_handle::{PartitionHandle, ServingState};
use crate::layout::stored_map::StoredMap;
use crate::maintenance::expire::Searched;
use crate::maintenance::reindex::Reindexed;
use crate::throughput::ThroughputController;

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

/// A container with its layout as it changes.
#[derive(Debug)]
pub struct Container {
    number: ContainerNumber,
    store: Arc<dyn Store>,
    limits: Arc<Limits>,
    controller: ThroughputController,
    /// Taken once per request, and only to count a reference: a lock of a few nanoseconds.
    /// Changes are made in order under the write lock.
    layout: RwLock<Arc<Layout>>,
    /// Permits for commands that wait for the end of a switch.
    waiting: Semaphore,
    /// One transition at a time: a second one would choose its cut from a layout
    /// that the first is about to change.
    transitions: tokio::sync::Mutex<()>,
    clock: Arc<dyn Clock>,
    pub(crate) reindexed: Reindexed,
    pub(crate) searched: Searched,
    /// When the layout last changed, or when it was read.
    changed_at: Mutex<Duration>,
    /// Number of calls that took a layout.
    #[cfg(test)]
    taken: std::sync::atomic::AtomicUsize,
}

/// Commands that may wait for the end of a switch: as many as an executor takes at once.
/// Further ones are refused, to be retried later.
const WAITING_MAX: usize = 1024;

impl Container {
    pub(crate) fn new(
        store: Arc<dyn Store>,
        limits: Arc<Limits>,
        clock: Arc<dyn Clock>,
        spec: ContainerSpec,
        StoredMap { map, version }: StoredMap,
    ) -> Container {
        let (number, map) = (spec.number, Arc::new(map));
        let controller =
            ThroughputController::new(Arc::clone(&clock), Arc::clone(&limits), Arc::clone(&map));
        let (spec, partitions) = (Arc::new(spec), Vec::new());
        let nothing = Layout { spec, map, version, partitions, dropped: false };
        let container = Container {
            number,
            store,
            limits,
            controller,
            layout: RwLock::new(Arc::new(nothing.clone())),
            waiting: Semaphore::new(WAITING_MAX),
            transitions: tokio::sync::Mutex::default(),
            reindexed: Reindexed::default(),
            searched: Searched::default(),
            changed_at: Mutex::new(clock.steady()),
            clock,
            #[cfg(test)]
            taken: std::sync::atomic::AtomicUsize::new(0),
        };
        container.install(|_| Some(nothing));
        container
    }

    /// The layout in force. A caller that uses it more than once takes it once.
    #[must_use]
    pub fn layout(&self) -> Arc<Layout> {
        #[cfg(test)]
        self.taken.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Arc::clone(&self.layout.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The definition in force.
    #[must_use]
    pub fn spec(&self) -> Arc<ContainerSpec> {
        Arc::clone(self.layout().spec())
    }

    /// The map in force.
    #[must_use]
    pub fn map(&self) -> Arc<ContainerMap> {
        Arc::clone(self.layout().map())
    }

    /// The controller that divides its throughput between its partitions.
    #[must_use]
    pub fn throughput(&self) -> &ThroughputController {
        &self.controller
    }

    #[must_use]
    pub fn number(&self) -> ContainerNumber {
        self.number
    }

    pub(crate) fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Puts a changed definition in force.
    pub(crate) fn redefine(&self, spec: ContainerSpec) {
        self.install(|layout| Some(Layout { spec: Arc::new(spec), ..layout.clone() }));
    }

    /// Puts a stored map in force, unless a newer one is. Partitions that it does not name
    /// take no more commands, and requests that wait for them are routed again.
    pub(crate) fn adopt(&self, StoredMap { map, version }: StoredMap) {
        self.install(|layout| {
            let is_news = version.is_newer_than(&layout.version);
            is_news.then(|| Layout { map: Arc::new(map), version, ..layout.clone() })
        });
    }

    /// Puts the layout in force that `change` makes of the present one, if it makes one,
    /// with partitions that fit its map. Readers see it first, then the sequencers are
    /// reconfigured.
    fn install(&self, change: impl FnOnce(&Layout) -> Option<Layout>) {
        let mut layout = self.layout.write().unwrap_or_else(PoisonError::into_inner);
        let Some(mut next) = change(&layout).filter(|_| !layout.dropped) else { return };
        self.controller.follow(Arc::clone(&next.map));
        let configs = partition_configs(&next.spec, &next.map, &self.limits);
        let partitions = configs.iter().map(|(id, config)| {
            let kept = layout.find(*id).filter(|kept| kept.config().buckets == config.buckets);
            kept.cloned().unwrap_or_else(|| self.open(*id, config))
        });
        next.partitions = partitions.collect();
        let before = std::mem::replace(&mut *layout, Arc::new(next));
        for (partition, (_, config)) in layout.partitions.iter().zip(configs) {
            partition.reconfigure(config);
        }
        let is_kept = |old: &Arc<PartitionHandle>| {
            layout.find(old.id()).is_some_and(|now| Arc::ptr_eq(now, old))
        };
        let replaced: Vec<_> = before.partitions.iter().filter(|old| !is_kept(old)).collect();
        if !replaced.is_empty() {
            *self.changed_at.lock().unwrap_or_else(PoisonError::into_inner) = self.clock.steady();
        }
        for partition in replaced {
            // It was drained before: there is nothing to wait for.
            partition.replace();
        }
    }

    fn open(&self, id: PartitionId, config: &Arc<PartitionConfig>) -> Arc<PartitionHandle> {
        let throttle =
            self.controller.throttle(id).expect("the map that was divided by has the range");
        Arc::new(PartitionHandle::new(id, Arc::clone(config), Arc::clone(&self.store), throttle))
    }

    pub(crate) fn changed_at(&self) -> Duration {
        *self.changed_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn one_transition(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.transitions.lock().await
    }

    /// Waits until a partition's switch is over.
    pub(crate) async fn settled(&self, handle: &PartitionHandle) -> Result<(), ClusterError> {
        let _room = self.waiting.try_acquire().map_err(|_| ClusterError::Busy)?;
        handle.settled().await;
        Ok(())
    }

    /// Refuses requests to it from now on. Returns its partitions, which are to be retired.
    pub(crate) fn close(&self) -> Vec<Arc<PartitionHandle>> {
        let mut layout = self.layout.write().unwrap_or_else(PoisonError::into_inner);
        *layout = Arc::new(Layout { dropped: true, ..layout.as_ref().clone() });
        layout.partitions.clone()
    }

    /// The partition that owns a key by the request's layout, or by the one in force if
    /// that partition was replaced.
    pub fn route_by(
        &self,
        layout: &Layout,
        epk: &Epk,
    ) -> Result<Arc<PartitionHandle>, ClusterError> {
        let partition = layout.route(epk)?;
        if partition.serving_state() == ServingState::Gone {
            return self.route(epk);
        }
        Ok(Arc::clone(partition))
    }

    /// The partition that owns a key now.
    pub(crate) fn route(&self, epk: &Epk) -> Result<Arc<PartitionHandle>, ClusterError> {
        self.layout().route(epk).cloned()
    }

    /// The partition that has an id now.
    pub(crate) fn partition(&self, id: PartitionId) -> Result<Arc<PartitionHandle>, ClusterError> {
        self.layout().partition(id).cloned()
    }
}

/// The configuration of each partition under a definition and a map.
fn partition_configs(
    spec: &ContainerSpec,
    map: &ContainerMap,
    limits: &Arc<Limits>,
) -> Vec<(PartitionId, Arc<PartitionConfig>)> {
    let compile = |policy| Arc::new(IndexPlan::compile(policy, spec.index_seed));
    let plans: BTreeMap<u32, Arc<IndexPlan>> =
        spec.policies.iter().map(|(version, policy)| (*version, compile(policy))).collect();
    let policy_version = plans.keys().next_back().copied().unwrap_or(0);
    let config = |record: &PartitionRecord| PartitionConfig {
        container: spec.number,
        container_rid: spec.rid,
        definition: Arc::clone(&spec.definition),
        policy_version,
        plans: plans.clone(),
        buckets: map.buckets_of(record),
        moves: map.moves_of(record),
        lsn_floor: record.lsn_floor,
        ordinal_blocks: record.ordinal_blocks.clone(),
        growth: spec.growth,
        limits: Arc::clone(limits),
    };
    map.ranges().iter().map(|record| (record.id, Arc::new(config(record)))).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::sync::mpsc::sync_channel;

    use model::charge::Charge;
    use model::etag::Etag;
    use model::json::Object;
    use model::position::{Lsn, Timestamp};
    use runtime::{Tasks as _, ThreadTasks};
    use testkit::wait::block_on;

    use super::*;
    use crate::cluster::Cluster;
    use crate::layout::stored_map::MapVersion;
    use crate::system::{self, SystemWrite};
    use crate::throughput::budget::Caller;

    const LONG: Duration = Duration::from_secs(60);

    /// One layout is enough for a request, from the key to the answer.
    #[test]
    fn who_was_routed_takes_no_further_layout() {
        let store = storage::memory::create();
        let cluster = Cluster::open(store, runtime::Runtime::real(), Arc::default()).unwrap();
        let (container, epk, id) = (cluster.system(), system::epk(), "one");
        let create = SystemWrite::Create { id: id.to_owned(), body: Object::new() };
        let command = system::command(vec![create], &Limits::default()).unwrap();
        let before = container.taken.load(Ordering::Relaxed);
        let layout = container.layout();
        let partition = container.route_by(&layout, &epk).unwrap();
        partition.admit(Caller::default()).unwrap().pay(Some(&epk), Charge::from_units(21));
        block_on(cluster.apply_at(container, Arc::clone(&partition), command)).unwrap();
        let key = (&epk, &system::item_id(id).unwrap());
        block_on(cluster.read_at(container, &partition, key, None)).unwrap().value.unwrap();
        assert_eq!(container.taken.load(Ordering::Relaxed), before + 1);
    }

    /// An executor keeps its sequencer while it waits for the store. Nothing else may wait
    /// for that, least of all while it holds the container's lock.
    #[test]
    fn neither_a_change_nor_a_reader_waits_for_a_sequencer() {
        let (spec, stored) = (system::spec(), system::map());
        let map = stored.map.clone();
        let clock = Arc::new(runtime::SimulatedClock::new());
        let store = storage::memory::create();
        let container = Container::new(store, Arc::default(), clock, spec, stored);
        let container = Arc::new(container);
        let handle = container.route(&system::epk()).unwrap();
        let range = handle.id();
        let (begun, has_begun) = sync_channel(1);
        let (release, released) = sync_channel::<()>(1);
        let kept = Arc::clone(&handle);
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
        let (changed, changing) = (map.with_more_ordinals(range), Arc::clone(&container));
        let blocks = changed.range(range).unwrap().ordinal_blocks.clone();
        let change = move || {
            let (lsn, time) = (Lsn::from_u64(1), Timestamp::from_millis(0));
            let version = MapVersion::new(lsn, Etag::new(lsn, 0, time));
            changing.adopt(StoredMap { map: changed, version });
            let handle = changing.route(&system::epk()).unwrap();
            done.send((changing.map(), handle.durable_lsn().unwrap())).unwrap();
        };
        drop(ThreadTasks.spawn("changing", Box::new(change)).unwrap());
        let (map, _) = is_done.recv_timeout(LONG).expect("nobody waits for the sequencer");
        assert_eq!(map.range(range).unwrap().ordinal_blocks, blocks);
        release.send(()).unwrap();
        busy.join().unwrap();
        let followed = handle.with(|partition| Ok(partition.config().ordinal_blocks.clone()));
        assert_eq!(followed.unwrap(), blocks, "the next command follows the change");
    }
}
