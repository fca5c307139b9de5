//! The table of background tasks, and what one round of each does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use operator::TaskFigures;
use service::{Service, ServiceError};

use super::{Round, Task, TaskCounters, allocator, never};
use crate::issuers::WatchedIssuers;

/// What rounds work with.
#[derive(Debug)]
pub(crate) struct Context {
    service: Arc<Service>,
    /// Cold neighbours are merged when a layout has not changed for this long.
    merge_after: Option<Duration>,
    issuers: Arc<WatchedIssuers>,
    /// Bytes that sweeps deleted and the store still has on its disk.
    garbage: AtomicU64,
}

/// A day: a fallback for work without a wake-up.
const RARELY: Duration = Duration::from_secs(24 * 60 * 60);

/// How often layouts are looked at for partitions to merge, where that is wanted.
const MERGE_PERIOD: Duration = Duration::from_secs(1);

pub(crate) const TASKS: &[Task<Context>] = &[
    Task {
        name: "sweep",
        wake: |context| Box::pin(context.service.maintenance().sweep_wanted()),
        period: Duration::from_secs(60),
        // Drops often come in bursts, as tests clean up.
        settle: Duration::from_secs(1),
        // Short: on a full disk every writer waits for what a sweep gives back.
        back_off: Duration::from_secs(5),
        round: |context| Box::pin(sweep(context)),
    },
    Task {
        name: "expire",
        wake: |context| Box::pin(context.service.maintenance().expiry_wanted()),
        // Clients do not see expired items meanwhile; only their space is still used.
        period: Duration::from_secs(5),
        settle: Duration::ZERO,
        back_off: Duration::from_secs(5),
        round: |context| Box::pin(expire(context)),
    },
    Task {
        name: "trim_history",
        wake: never,
        // Retentions are minutes at least.
        period: Duration::from_secs(20),
        settle: Duration::ZERO,
        back_off: Duration::from_secs(20),
        round: |context| Box::pin(trim_history(context)),
    },
    Task {
        name: "reindex",
        wake: |context| Box::pin(context.service.maintenance().reindexing_wanted()),
        period: RARELY,
        settle: Duration::ZERO,
        back_off: Duration::from_secs(10),
        round: |context| Box::pin(reindex(context)),
    },
    Task {
        name: "scale",
        wake: |context| Box::pin(scaling_wanted(context)),
        period: RARELY,
        settle: Duration::ZERO,
        back_off: Duration::from_secs(10),
        round: |context| Box::pin(scale(context)),
    },
    Task {
        name: "issuer_keys",
        wake: never,
        // Providers publish a new key long before they use it.
        period: Duration::from_secs(60),
        settle: Duration::ZERO,
        back_off: Duration::from_secs(60),
        round: |context| {
            Box::pin(async {
                context.issuers.refresh().await;
                Ok(Round::Finished)
            })
        },
    },
    Task {
        name: "release_memory",
        wake: never,
        period: allocator::PERIOD,
        settle: Duration::ZERO,
        back_off: allocator::PERIOD,
        round: |_| {
            allocator::free_page();
            Box::pin(std::future::ready(Ok(Round::Finished)))
        },
    },
];

/// The counters of all tasks.
#[derive(Clone, Debug)]
pub(crate) struct Counters(Vec<Arc<TaskCounters>>);

impl Default for Counters {
    fn default() -> Counters {
        Counters(TASKS.iter().map(|_| Arc::default()).collect())
    }
}

impl Counters {
    pub(crate) fn of_tasks(&self) -> &[Arc<TaskCounters>] {
        &self.0
    }

    pub(crate) fn figures(&self) -> Vec<TaskFigures> {
        TASKS.iter().zip(&self.0).map(|(task, counters)| counters.figures(task.name)).collect()
    }
}

impl Context {
    pub(crate) fn new(
        service: Arc<Service>,
        merge_after: Option<Duration>,
        issuers: Arc<WatchedIssuers>,
    ) -> Arc<Context> {
        Arc::new(Context { service, merge_after, issuers, garbage: AtomicU64::new(0) })
    }
}

/// Removes what drops left, and compacts once that is worth it.
async fn sweep(context: &Context) -> Result<Round, ServiceError> {
    let swept = context.service.maintenance().sweep().await;
    if let Ok(swept) = &swept
        && swept.resources + swept.containers + swept.buckets > 0
    {
        tracing::info!(swept.resources, swept.containers, swept.buckets, swept.keys, "swept");
        context.garbage.fetch_add(swept.bytes, Ordering::Relaxed);
    }
    reclaim(context).await;
    swept.map(|_| Round::Finished)
}

async fn reclaim(context: &Context) {
    let garbage = context.garbage.load(Ordering::Relaxed);
    match context.service.maintenance().reclaim(garbage).await {
        Ok(false) => return,
        Ok(true) => {
            tracing::info!(deleted_bytes = garbage, "gave back the space of what was dropped")
        }
        Err(error) => {
            tracing::warn!(%error, "the space of what was dropped was not given back");
        }
    }
    // After a failure as well: the disk may be full, so it is not tried again before there
    // is as much garbage again.
    context.garbage.store(0, Ordering::Relaxed);
}

/// Removes items that have expired.
async fn expire(context: &Context) -> Result<Round, ServiceError> {
    let items = context.service.maintenance().expire().await?;
    if items > 0 {
        tracing::info!(items, "removed expired items");
    }
    Ok(Round::Finished)
}

/// Removes what the history of containers no longer has to keep.
async fn trim_history(context: &Context) -> Result<Round, ServiceError> {
    let records = context.service.maintenance().trim_history().await?;
    if records > 0 {
        tracing::info!(records, "trimmed the history");
    }
    Ok(Round::Finished)
}

/// Backfills the index of containers whose indexing policy was changed.
async fn reindex(context: &Context) -> Result<Round, ServiceError> {
    let containers = context.service.maintenance().reindex().await?;
    if containers == 0 {
        return Ok(Round::Finished);
    }
    tracing::info!(containers, "re-indexed");
    Ok(Round::Unfinished)
}

async fn scaling_wanted(context: &Context) {
    tokio::select! {
        () = context.service.maintenance().scaling_wanted() => {}
        () = context.service.maintenance().relief_wanted() => {}
        () = tokio::time::sleep(MERGE_PERIOD), if context.merge_after.is_some() => {}
    }
}

/// Changes layouts: splits for requested throughput and for data that has grown, and merges
/// where enabled. An error in one does not prevent the others.
async fn scale(context: &Context) -> Result<Round, ServiceError> {
    let for_throughput = context.service.maintenance().scale().await;
    let for_storage = context.service.maintenance().relieve().await;
    let merges = match context.merge_after {
        Some(quiet) => context.service.maintenance().merge_cold(quiet).await?,
        None => 0,
    };
    let changes = for_throughput? + for_storage? + merges;
    if changes == 0 {
        return Ok(Round::Finished);
    }
    tracing::info!(changes, "scaled");
    Ok(Round::Unfinished)
}
