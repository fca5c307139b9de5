//! Removing what a drop left.
//!
//! A drop takes effect with one transaction whatever it drops: children become unreachable
//! with their parent, as resource ids are never reused. What remains is removed here, in
//! small steps, after a restart as well.

use cluster::{RetiredPrefix, SystemWrite};
use model::json::Object;
use partition::{ContainerNumber, Item};

use crate::catalogue::kind::Kind;
use crate::catalogue::{Stored, item_prefix};
use crate::error::ServiceError;
use crate::maintenance::Maintenance;
use crate::service::{Service, container_number, id_of};

const PREFIX: &str = "orphans:";

/// Tombstone records and records handled in one step.
const STEP: usize = 100;

/// What a sweep removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    pub resources: u64,
    pub containers: u64,
    /// Buckets that were moved into others.
    pub buckets: u64,
    /// Keys of both that were deleted one by one; most go with their files.
    pub keys: u64,
    /// Bytes of those keys and their values, which the store still has on its disk.
    pub bytes: u64,
}

/// The tombstone record for the children of a dropped resource.
pub(super) fn mark(rid: &str) -> SystemWrite {
    SystemWrite::Put { id: format!("{PREFIX}{rid}"), body: Object::new() }
}

impl Maintenance<'_> {
    /// Removes everything that drops have left so far.
    pub async fn sweep(self) -> Result<Swept, ServiceError> {
        let mut swept = Swept::default();
        loop {
            let (marks, _) = self.service.cluster.list_system(PREFIX, None, STEP).await?;
            if marks.is_empty() {
                break;
            }
            for mark in marks.iter().map(id_of) {
                let rid = mark.strip_prefix(PREFIX).unwrap_or_default();
                self.service.finish_drop(rid).await?;
                swept.resources += self.service.sweep_children(rid).await?;
                self.service
                    .cluster
                    .write_system_for_relief(vec![SystemWrite::Delete {
                        id: mark.clone(),
                        if_match: None,
                    }])
                    .await?;
            }
        }
        for retired in self.service.settled_retired().await? {
            let removed = self.service.cluster.sweep(retired).await?;
            swept.keys += removed.keys;
            swept.bytes += removed.bytes;
            match retired {
                RetiredPrefix::Container(_) => swept.containers += 1,
                RetiredPrefix::Bucket(..) => swept.buckets += 1,
            }
        }
        Ok(swept)
    }

    /// Compacts the store, if `garbage` bytes make it worth it. Returns whether it was.
    /// Takes as long as copying the store.
    pub async fn reclaim(self, garbage: u64) -> Result<bool, ServiceError> {
        Ok(self.service.cluster.reclaim(garbage).await?)
    }
}

impl Service {
    /// Drops the containers of a dropped database that its drop did not get to.
    async fn finish_drop(&self, rid: &str) -> Result<(), ServiceError> {
        let _one_at_a_time = self.changes.lock().await;
        self.delete_containers_of(rid).await
    }

    /// Containers whose database was dropped, and which are yet to follow it.
    pub(crate) fn containers_to_sweep(&self) -> Result<Vec<ContainerNumber>, ServiceError> {
        let (mut numbers, mut after) = (Vec::new(), None);
        let items = self.cluster.system_items()?;
        loop {
            let (marks, more) = items.list(PREFIX, after.as_deref(), STEP)?;
            for mark in marks.iter().map(id_of) {
                let rid = mark.strip_prefix(PREFIX).unwrap_or_default();
                for stored in self.records(Kind::Container, rid)? {
                    numbers.push(container_number(&stored?.record)?);
                }
                after = Some(mark);
            }
            if !more {
                return Ok(numbers);
            }
        }
    }

    /// What was retired before now. For containers whose drop is over: while one is in
    /// progress, writes that began before it may still arrive.
    async fn settled_retired(&self) -> Result<Vec<RetiredPrefix>, ServiceError> {
        let _settled = self.changes.lock().await;
        Ok(self.cluster.retired().await?)
    }

    async fn sweep_children(&self, rid: &str) -> Result<u64, ServiceError> {
        let kinds = [
            Kind::User,
            Kind::Permission,
            Kind::ClientEncryptionKey,
            Kind::StoredProcedure,
            Kind::Trigger,
            Kind::UserDefinedFunction,
        ];
        let mut removed = 0;
        for kind in kinds {
            loop {
                let children = self.some_children(kind, rid).await?;
                if children.is_empty() {
                    break;
                }
                removed += children.len() as u64;
                let mut writes = Vec::new();
                for (id, user) in children {
                    writes.extend(user.as_deref().map(mark));
                    writes.push(SystemWrite::Delete { id, if_match: None });
                }
                self.cluster.write_system_for_relief(writes).await?;
            }
        }
        Ok(removed)
    }

    /// The first records of a kind, by the ids of their items; of users, which have children
    /// themselves, with the resource ids.
    async fn some_children(
        &self,
        kind: Kind,
        parent_rid: &str,
    ) -> Result<Vec<(String, Option<String>)>, ServiceError> {
        let (items, prefix) = (self.cluster.system_items()?, item_prefix(kind, parent_rid));
        let parent_rid = parent_rid.to_owned();
        let child = move |item: &Item| {
            let user = (kind == Kind::User).then(|| Stored::read(kind, &parent_rid, item));
            Ok((id_of(item), user.transpose()?.map(|stored| stored.record.rid)))
        };
        self.read_records(move |_| items.list(&prefix, None, STEP)?.0.iter().map(child).collect())
            .await
    }
}
