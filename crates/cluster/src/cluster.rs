//! The public interface of this crate: all containers of a process, routing to their
//! partitions, and the system container.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use model::limits::Limits;
use model::position::{Lsn, Timestamp};
use partition::{
    Command, ContainerNumber, Item, Outcome, PartitionConfig, PartitionRemedy, Purpose,
};
use runtime::Runtime;
use storage::Store;

use crate::error::ClusterError;
use crate::execution::executor::Executors;
use crate::execution::scripts::ScriptThreads;
use crate::layout::Layout;
use crate::layout::container::{Container, ContainerSpec};
use crate::layout::map::{ContainerMap, Division, PartitionId};
use crate::layout::partition_handle::PartitionHandle;
use crate::layout::stored_map::{StoredMap, Unstored, map_id};
use crate::maintenance::Maintenance;
use crate::maintenance::retired::RetiredPrefix;
use crate::query::QueryThreads;
use crate::system::{self, SystemItems, SystemWrite};
use crate::transition::due::Due;
use crate::transition::switch::{Observer, TransitionStep};

/// Attempts of a request while the layout changes under it or ordinals run out. Each retry
/// means that another change of the same range got in between, and those are far slower
/// than a request.
pub(crate) const ATTEMPTS_MAX: usize = 16;

/// All partitions of this process.
#[derive(Debug)]
pub struct Cluster {
    store: Arc<dyn Store>,
    runtime: Runtime,
    limits: Arc<Limits>,
    system_limits: Arc<Limits>,
    system: Arc<Container>,
    containers: RwLock<BTreeMap<ContainerNumber, Arc<Container>>>,
    executors: Executors,
    // In this order: scripts wait for queries, and queries for functions.
    script_threads: ScriptThreads,
    query_threads: QueryThreads,
    function_pool: ScriptThreads,
    maintenance: Maintenance,
    observer: Observer,
    pub(crate) due: Due,
    storage_splits: Division,
}

/// An outcome, and the partition it came from.
#[derive(Debug)]
pub struct Served<T> {
    pub range: PartitionId,
    /// The position of the partition that the answer reflects at least.
    pub lsn: Lsn,
    pub value: T,
}

impl Cluster {
    /// Starts on a store. Containers are attached one by one afterwards.
    pub fn open(
        store: Arc<dyn Store>,
        runtime: Runtime,
        limits: Arc<Limits>,
    ) -> Result<Cluster, ClusterError> {
        let executors = Executors::start(&runtime).map_err(|_| ClusterError::Stopping)?;
        let query_threads = QueryThreads::new(&runtime);
        let script_threads = ScriptThreads::new(&runtime, "script");
        let function_pool = ScriptThreads::new(&runtime, "function");
        let maintenance = Maintenance::new(&runtime);
        let system_limits = Arc::new(system::limits());
        let system = Container::new(
            Arc::clone(&store),
            Arc::clone(&system_limits),
            Arc::clone(&runtime.clock),
            system::spec(),
            system::map(),
        );
        Ok(Cluster {
            store,
            runtime,
            limits,
            system_limits,
            system: Arc::new(system),
            containers: RwLock::default(),
            executors,
            script_threads,
            function_pool,
            query_threads,
            maintenance,
            observer: Observer::default(),
            due: Due::default(),
            storage_splits: Division::default(),
        })
    }

    /// Sets how throughput is divided when a range is split for its storage.
    #[must_use]
    pub fn dividing_storage_splits(self, storage_splits: Division) -> Cluster {
        Cluster { storage_splits, ..self }
    }

    pub(crate) fn storage_splits(&self) -> Division {
        self.storage_splits
    }

    /// Installs an observer that is called at every step of every transition.
    #[must_use]
    pub fn observed_by(
        mut self,
        observer: impl Fn(TransitionStep) + Send + Sync + 'static,
    ) -> Cluster {
        self.observer = Observer(Some(Box::new(observer)));
        self
    }

    pub(crate) fn observe(&self, step: TransitionStep) {
        if let Observer(Some(observer)) = &self.observer {
            observer(step);
        }
    }

    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) fn executors(&self) -> &Executors {
        &self.executors
    }

    pub(crate) fn query_threads(&self) -> &QueryThreads {
        &self.query_threads
    }

    pub(crate) fn script_threads(&self) -> &ScriptThreads {
        &self.script_threads
    }

    pub(crate) fn function_pool(&self) -> &ScriptThreads {
        &self.function_pool
    }

    pub(crate) fn maintenance(&self) -> &Maintenance {
        &self.maintenance
    }

    pub(crate) fn system(&self) -> &Arc<Container> {
        &self.system
    }

    pub(crate) fn containers(&self) -> Vec<Arc<Container>> {
        self.containers.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Serves an existing container: reads its map.
    pub fn attach(&self, spec: ContainerSpec) -> Result<Arc<Container>, ClusterError> {
        let stored = self.stored_map(spec.number)?;
        Ok(self.serve(spec, stored))
    }

    /// Creates a container: its map and `catalogue` are written in one transaction.
    pub async fn create_container(
        &self,
        spec: ContainerSpec,
        ranges: u32,
        catalogue: Vec<SystemWrite>,
    ) -> Result<Arc<Container>, ClusterError> {
        let map = ContainerMap::fresh(spec.definition.partition_key(), ranges);
        let stored = self.store_first_map(spec.number, map, catalogue).await?;
        Ok(self.serve(spec, stored))
    }

    /// Changes a container's definition together with its catalogue entry.
    pub async fn replace_container(
        &self,
        spec: ContainerSpec,
        catalogue: Vec<SystemWrite>,
    ) -> Result<Outcome, ClusterError> {
        let container = self.container(spec.number)?;
        let outcome = self.write_system(catalogue).await?;
        container.redefine(spec);
        Ok(outcome)
    }

    /// Puts a map in force that divides the throughput differently than the one of `from`,
    /// together with changes of the catalogue. If the map has changed since, nothing is
    /// done: the ranges that the division names may be gone.
    pub async fn divide(
        &self,
        container: &Container,
        (from, divided): (&Layout, ContainerMap),
        catalogue: Vec<SystemWrite>,
    ) -> Result<(), ClusterError> {
        match Box::pin(self.store_map(from, divided, catalogue, Purpose::Any)).await {
            Ok(stored) => {
                container.adopt(stored);
                Ok(())
            }
            Err(unstored) => {
                if matches!(unstored, Unstored::Conflict | Unstored::Superseded) {
                    self.catch_up(container)?;
                }
                Err(unstored.into())
            }
        }
    }

    /// Drops containers: they leave the map and the catalogue in one
    /// transaction, and their keys are removed later.
    pub async fn drop_containers(
        &self,
        numbers: &[ContainerNumber],
        mut catalogue: Vec<SystemWrite>,
    ) -> Result<(), ClusterError> {
        for &number in numbers {
            catalogue.push(SystemWrite::Delete { id: map_id(number), if_match: None });
            catalogue.push(RetiredPrefix::Container(number).mark());
        }
        self.write_system_for_relief(catalogue).await?;
        for &number in numbers {
            let dropped = self.forget(number);
            if let Some(container) = dropped {
                self.retire(&container).await;
            }
        }
        Ok(())
    }

    /// Refuses further requests to a container that is still referenced, and waits until
    /// the commands it has taken are durable: only then can its keys be removed for good. A
    /// layout that was stored before and is not in force yet never will be.
    async fn retire(&self, container: &Container) {
        for handle in container.close() {
            let last = self.executors.call(handle.lane(), move || handle.retire()).await;
            if let Ok(Some(ticket)) = last {
                // Whatever its status, nothing follows it.
                let _ = ticket.await;
            }
        }
    }

    pub fn container(&self, number: ContainerNumber) -> Result<Arc<Container>, ClusterError> {
        let containers = self.containers.read().unwrap_or_else(PoisonError::into_inner);
        containers.get(&number).cloned().ok_or(ClusterError::NoContainer(number.0))
    }

    /// Applies a command in the partition that owns its key, and returns when it is
    /// durable.
    pub async fn apply(
        &self,
        container: &Container,
        command: Command,
    ) -> Result<Served<Outcome>, ClusterError> {
        let partition = container.route(&command.position)?;
        self.apply_at(container, partition, command).await
    }

    /// Applies a command in the partition that a request was routed to, or in its
    /// successor.
    pub async fn apply_at(
        &self,
        container: &Container,
        partition: Arc<PartitionHandle>,
        command: Command,
    ) -> Result<Served<Outcome>, ClusterError> {
        self.apply_as(container, partition, command, Purpose::Any).await
    }

    /// Applies the writes of a script, which were tried on a snapshot of that partition.
    pub async fn apply_script(
        &self,
        container: &Container,
        partition: Arc<PartitionHandle>,
        command: Command,
    ) -> Result<Served<Outcome>, ClusterError> {
        self.apply_as(container, partition, command, Purpose::Script).await
    }

    async fn apply_as(
        &self,
        container: &Container,
        mut partition: Arc<PartitionHandle>,
        command: Command,
        purpose: Purpose,
    ) -> Result<Served<Outcome>, ClusterError> {
        let command = Arc::new(command);
        let mut attempts = 0;
        loop {
            let (range, config) = (partition.id(), partition.config());
            let work = (Arc::clone(&command), purpose);
            let error = match self.executors.apply(Arc::clone(&partition), work).await {
                Ok(outcome) => {
                    if partition.is_due() {
                        self.due.note(container.number(), range);
                    }
                    return Ok(Served { range, lsn: outcome.lsn, value: outcome });
                }
                Err(error) => error,
            };
            attempts += 1;
            if attempts == ATTEMPTS_MAX {
                // A caller that named a key and no range need not know that its owner is
                // changing.
                return Err(if error.is_about_ownership() { ClusterError::Busy } else { error });
            }
            self.remedy(container, (&partition, &config), error).await?;
            partition = container.route(&command.position)?;
        }
    }

    /// Removes the cause of a refusal so that a retry can succeed, or returns the refusal.
    /// The configuration is the one under which the command was refused.
    async fn remedy(
        &self,
        container: &Container,
        (handle, config): (&PartitionHandle, &PartitionConfig),
        error: ClusterError,
    ) -> Result<(), ClusterError> {
        if let ClusterError::Switching(_) = error {
            return container.settled(handle).await;
        }
        let ClusterError::Command { range, error } = error else { return Err(error) };
        match error.problem.remedy() {
            PartitionRemedy::Reroute => Ok(()),
            PartitionRemedy::AllocateOrdinals => {
                self.allocate_ordinals(container, range, config).await
            }
            PartitionRemedy::Correct | PartitionRemedy::Reread | PartitionRemedy::Operator => {
                Err(ClusterError::Command { range, error })
            }
        }
    }

    /// Writes system items, all or none.
    pub async fn write_system(&self, writes: Vec<SystemWrite>) -> Result<Outcome, ClusterError> {
        self.write_system_as(writes, Purpose::Any).await
    }

    /// Writes system items, all or none, on behalf of a change that frees space: also on a
    /// full disk.
    pub async fn write_system_for_relief(
        &self,
        writes: Vec<SystemWrite>,
    ) -> Result<Outcome, ClusterError> {
        self.write_system_as(writes, Purpose::Relief).await
    }

    pub(crate) async fn write_system_as(
        &self,
        writes: Vec<SystemWrite>,
        purpose: Purpose,
    ) -> Result<Outcome, ClusterError> {
        let command = system::command(writes, &self.system_limits)?;
        let partition = self.system.route(&command.position)?;
        Ok(self.apply_as(&self.system, partition, command, purpose).await?.value)
    }

    /// Reads one system item.
    pub fn read_system(&self, id: &str) -> Result<Option<Item>, ClusterError> {
        let handle = self.system.route(&system::epk())?;
        let view = handle.view()?;
        Ok(handle.reader().find(view.as_ref(), self.now(), &system::epk(), id)?)
    }

    /// Reads the system items whose ids begin with `prefix`, after `after`, in order, and
    /// whether there are more: even large items have to fit into memory. Never refused
    /// under load, as changes of the catalogue depend on it.
    pub async fn list_system(
        &self,
        prefix: &str,
        after: Option<&str>,
        items_max: usize,
    ) -> Result<(Vec<Item>, bool), ClusterError> {
        let (prefix, after) = (prefix.to_owned(), after.map(str::to_owned));
        let items = self.system_items()?;
        self.take_turns_always(move |_| items.list(&prefix, after.as_deref(), items_max)).await?
    }

    /// The system items as they are now, for a thread that may wait.
    pub fn system_items(&self) -> Result<SystemItems, ClusterError> {
        let handle = self.system.route(&system::epk())?;
        let (view, bytes_max) = (handle.view()?, self.limits.response_bytes_max);
        Ok(SystemItems { handle, view, bytes_max })
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.runtime.clock.now().as_unix_ms())
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// For measuring what something takes.
    pub(crate) fn monotonic(&self) -> Duration {
        self.runtime.clock.monotonic()
    }

    /// For what has passed since a moment that throttles and containers keep.
    pub(crate) fn steady(&self) -> Duration {
        self.runtime.clock.steady()
    }

    fn serve(&self, spec: ContainerSpec, stored: StoredMap) -> Arc<Container> {
        let number = spec.number;
        let container = Arc::new(Container::new(
            Arc::clone(&self.store),
            Arc::clone(&self.limits),
            Arc::clone(&self.runtime.clock),
            spec,
            stored,
        ));
        let mut containers = self.containers.write().unwrap_or_else(PoisonError::into_inner);
        containers.insert(number, Arc::clone(&container));
        container
    }

    fn forget(&self, number: ContainerNumber) -> Option<Arc<Container>> {
        self.containers.write().unwrap_or_else(PoisonError::into_inner).remove(&number)
    }

    /// Allocates another block of ordinals to a partition, unless one was allocated since
    /// the configuration that ran out of them.
    async fn allocate_ordinals(
        &self,
        container: &Container,
        range: PartitionId,
        exhausted: &PartitionConfig,
    ) -> Result<(), ClusterError> {
        let change = |map: &ContainerMap| {
            let record =
                map.range(range).filter(|record| record.ordinal_blocks == exhausted.ordinal_blocks);
            Ok(record.map(|_| map.with_more_ordinals(range)))
        };
        // Small, and a drop may be what waits for it.
        let allocating = Box::pin(self.change_map(container, Purpose::Relief, change));
        if let Some(stored) = allocating.await? {
            container.adopt(stored);
        }
        Ok(())
    }
}
