//! Re-bucketing: moving a bucket into two, so that a range has a bucket boundary where it
//! is to be cut.
//!
//! planned → dual writes → copying → verified → switched → retired. The stored map names
//! the moves that are under way, and the partition of a moving bucket writes to the move
//! targets as well. So a restart needs no other state: the backfill starts over, skips what
//! was copied already, and the remaining steps follow.

use std::sync::Arc;

use model::epk::Epk;
use partition::{
    BucketNumber, HistoryRow, Partition, PartitionError, Position, Purpose, RecordError,
};
use storage::CommitStatus;

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::layout::container::Container;
use crate::layout::map::{ContainerMap, LayoutError};
use crate::layout::partition_handle::{NotServing, PartitionHandle};
use crate::maintenance::retired::RetiredPrefix;
use crate::transition::switch::{Part, TransitionStep};

/// Items that are copied at once. The sequencer takes no command meanwhile, so this bounds
/// the additional latency of a command.
const COPY_ITEMS: usize = 32;

/// Records of the history that are copied at once; they are not looked at.
const COPY_RECORDS: usize = 256;

/// Passes over a bucket. One is enough, as commands write to the move targets as well;
/// another one follows where the disk refused something.
const ROUNDS_MAX: usize = 4;

impl Cluster {
    /// Moves a bucket into two that meet at `at`. The caller makes sure that the container
    /// has no other transition under way.
    pub(crate) async fn rebucket(
        &self,
        container: &Arc<Container>,
        bucket: BucketNumber,
        at: &Epk,
    ) -> Result<(), ClusterError> {
        self.plan_move(container, bucket, at).await?;
        self.carry_out_move(container, bucket).await
    }

    /// Resumes the moves that were under way when the process ended.
    pub async fn resume_moves(&self, container: &Arc<Container>) -> Result<(), ClusterError> {
        let _one_at_a_time = container.one_transition().await;
        let moving: Vec<_> = container.map().moves().iter().map(|one| one.from).collect();
        for bucket in moving {
            Box::pin(self.carry_out_move(container, bucket)).await?;
        }
        Ok(())
    }

    async fn plan_move(
        &self,
        container: &Container,
        bucket: BucketNumber,
        at: &Epk,
    ) -> Result<(), ClusterError> {
        let change = |map: &ContainerMap| {
            if map.moves().iter().any(|one| one.from == bucket) {
                // From before a restart. It has to end first, whatever its bounds are.
                return Ok(None);
            }
            Ok(Some(map.begin_move(bucket, std::slice::from_ref(at))?))
        };
        let planned = self.change_map(container, Purpose::Any, change).await?;
        let Some(planned) = planned else { return Ok(()) };
        self.observe(TransitionStep::MovePlanned);
        container.adopt(planned);
        self.observe(TransitionStep::DoubleWriting);
        Ok(())
    }

    async fn carry_out_move(
        &self,
        container: &Arc<Container>,
        bucket: BucketNumber,
    ) -> Result<(), ClusterError> {
        let mut rounds = 0;
        while !self.is_complete(container, bucket).await? {
            if rounds == ROUNDS_MAX {
                return Err(ClusterError::Busy);
            }
            rounds += 1;
            self.copy_bucket(container, bucket).await?;
        }
        self.copy_history(container, bucket).await?;
        self.observe(TransitionStep::Verified);
        self.finish_move(container, bucket).await
    }

    /// Backfill: copies everything that was in the bucket before dual writes began.
    async fn copy_bucket(
        &self,
        container: &Container,
        bucket: BucketNumber,
    ) -> Result<(), ClusterError> {
        let mut after: Option<Position> = None;
        loop {
            let handle = owner(container, bucket)?;
            let (reader, view) = (handle.reader(), handle.view()?);
            let start = after.take();
            let names = self
                .aside(move || reader.names(view.as_ref(), bucket, start.as_ref(), COPY_ITEMS))
                .await??;
            let Some(last) = names.last() else { return Ok(()) };
            after = Some(last.clone());
            let copied =
                self.with_owner(container, bucket, move |partition| partition.copy(&names));
            if copied.await?.ticket.await != CommitStatus::Durable {
                return Err(ClusterError::Busy);
            }
            self.observe(TransitionStep::Copying);
        }
    }

    /// Copies the history from before dual writes began. Nothing counts its records, so all
    /// of it is copied whatever was copied before a restart.
    async fn copy_history(
        &self,
        container: &Container,
        bucket: BucketNumber,
    ) -> Result<(), ClusterError> {
        let mut after: Option<HistoryRow> = None;
        loop {
            let handle = owner(container, bucket)?;
            let (reader, view) = (handle.reader(), handle.view()?);
            let start = after.take();
            let rows = self
                .aside(move || {
                    reader.history_rows(view.as_ref(), bucket, start.as_ref(), COPY_RECORDS)
                })
                .await??;
            let Some(last) = rows.last() else { return Ok(()) };
            after = Some(last.clone());
            let copied =
                self.with_owner(container, bucket, move |partition| partition.copy_history(&rows));
            if copied.await?.await != CommitStatus::Durable {
                return Err(ClusterError::Busy);
            }
            self.observe(TransitionStep::Copying);
        }
    }

    async fn is_complete(
        &self,
        container: &Container,
        bucket: BucketNumber,
    ) -> Result<bool, ClusterError> {
        let complete =
            self.with_owner(container, bucket, move |partition| partition.complete_move(bucket));
        match complete.await? {
            Some(ticket) => Ok(ticket.await == CommitStatus::Durable),
            None => Ok(false),
        }
    }

    /// Replaces the old bucket by the new ones; its keys are garbage from then on.
    async fn finish_move(
        &self,
        container: &Container,
        bucket: BucketNumber,
    ) -> Result<(), ClusterError> {
        let range = owner(container, bucket)?.id();
        let last = Box::new(move |partition: &mut Partition| {
            // Once more: only now no command follows it.
            match partition.complete_move(bucket)? {
                Some(ticket) => {
                    drop(ticket);
                    Ok(())
                }
                None => {
                    Err(PartitionError::Record(RecordError::Malformed { what: "a moved bucket" }))
                }
            }
        });
        let change = |map: &ContainerMap, _: &[_]| map.finish_move(bucket);
        let garbage = RetiredPrefix::Bucket(container.number(), bucket).mark();
        self.switch(container, vec![Part { range, last }], change, vec![garbage]).await?;
        Ok(())
    }

    /// Runs a closure on the sequencer of a bucket between commands.
    pub(crate) async fn with_owner<T: Send + 'static>(
        &self,
        container: &Container,
        bucket: BucketNumber,
        work: impl FnOnce(&mut Partition) -> Result<T, PartitionError> + Send + 'static,
    ) -> Result<T, ClusterError> {
        let handle = owner(container, bucket)?;
        let range = handle.id();
        let done = self.executors().call(handle.lane(), move || handle.with(work)).await?;
        done.map_err(|refusal: NotServing| refusal.of(range))
    }
}

/// The partition that owns a bucket.
pub(crate) fn owner(
    container: &Container,
    bucket: BucketNumber,
) -> Result<Arc<PartitionHandle>, ClusterError> {
    let layout = container.layout();
    let bucket = layout.map().bucket(bucket).ok_or(LayoutError::NoBucket(bucket))?;
    layout.route(&bucket.range.min).cloned()
}
