//! The change feed, in both its modes: what changed since a client last asked, and every
//! operation since then.

use std::time::Duration;

use cluster::ClusterError;
use model::charge::{Charge, Work};
use model::json::Raw;
use model::partition_key::PartitionKeyDefinition;
use model::position::Lsn;
use model::rid::ContainerRid;
use partition::{ChangePage, Changes, History, HistoryPage, HistoryRecord, Item};

use crate::error::ServiceError;
use crate::identity::roles::DataAction;
use crate::items::{check_session, named, scope_prefix};
use crate::pipeline::account;
use crate::pipeline::admission::AdmissionGuard;
use crate::pipeline::limits::PAGE_ITEMS_MAX;
use crate::pipeline::meta::ResponseMeta;
use crate::pipeline::resolve::ResolvedContainer;
use crate::request::{ChangeList, ChangeStart, Scope, VersionList};
use crate::response::{Change, ChangeFeed, ItemVersion, RemovedItem, VersionFeed};
use crate::service::Service;
use crate::verb::{ContainerVerb, ItemFacts, Reach};

impl ContainerVerb for ChangeList {
    type Reply = ChangeFeed;

    fn facts(&self) -> ItemFacts<'_> {
        let reach = Reach::of(self.scope.key.as_ref());
        let names_partitions = self.scope.range.is_some();
        let facts = ItemFacts { names_partitions, ..ItemFacts::reading(reach) };
        facts.allowed_by(DataAction::ReadChangeFeed)
    }

    async fn perform(
        self,
        service: &Service,
        container: &ResolvedContainer,
        meta: &mut ResponseMeta,
    ) -> Result<ChangeFeed, ServiceError> {
        service.list_changes(container, self, meta).await
    }
}

impl ContainerVerb for VersionList {
    type Reply = VersionFeed;

    fn facts(&self) -> ItemFacts<'_> {
        let reach = Reach::of(self.scope.key.as_ref());
        ItemFacts { names_partitions: self.scope.range.is_some(), ..ItemFacts::reading(reach) }
    }

    async fn perform(
        self,
        service: &Service,
        container: &ResolvedContainer,
        meta: &mut ResponseMeta,
    ) -> Result<VersionFeed, ServiceError> {
        service.list_versions(container, self, meta).await
    }
}

impl Service {
    pub(crate) async fn list_changes(
        &self,
        entry: &ResolvedContainer,
        list: ChangeList,
        meta: &mut ResponseMeta,
    ) -> Result<ChangeFeed, ServiceError> {
        let asked = self.asked(entry, &list.scope, list.start, list.items_max)?;
        let changes = Changes { since: list.since, ..asked };
        let partition = entry.route(&changes.within.min)?;
        let guard = AdmissionGuard::admit(&partition, meta)?;
        let key = changes.within.position().cloned();
        let rid = entry.rid;
        let shape = move |page| ShownChanges::of(page, rid);
        let time_max = self.feed_time_max();
        let container = &entry.container;
        let served = self.cluster.list_changes_at(container, partition, changes, time_max, shape);
        let served = served.await.map_err(|error| spread(entry, &list.scope, error))?;
        let lsn = served.lsn;
        let page = meta.served(served);
        meta.charged(page.charge);
        guard.pay(key.as_ref(), meta);
        check_session(entry, list.session.as_ref(), meta)?;
        let last = page.changes.last().map(|change| change.lsn);
        Ok(ChangeFeed {
            owner_rid: entry.rid.to_string(),
            through: through(list.start, lsn, last, page.cut),
            complete: page.cut.is_none(),
            changes: page.changes,
        })
    }

    async fn list_versions(
        &self,
        entry: &ResolvedContainer,
        list: VersionList,
        meta: &mut ResponseMeta,
    ) -> Result<VersionFeed, ServiceError> {
        let history = History(self.asked(entry, &list.scope, list.start, list.items_max)?);
        let within = &history.0.within;
        let partition = entry.route(&within.min)?;
        let guard = AdmissionGuard::admit(&partition, meta)?;
        let key = within.position().cloned();
        let (rid, definition) = (entry.rid, entry.container.spec().definition.clone());
        let shape = move |page| ShownVersions::of(page, rid, definition.partition_key());
        let time_max = self.feed_time_max();
        let container = &entry.container;
        let served = self.cluster.list_history_at(container, partition, history, time_max, shape);
        let served = served.await.map_err(|error| spread(entry, &list.scope, error))?;
        let lsn = served.lsn;
        let page = meta.served(served);
        meta.charged(page.charge);
        guard.pay(key.as_ref(), meta);
        check_session(entry, list.session.as_ref(), meta)?;
        let last = page.versions.last().map(|version| version.lsn);
        Ok(VersionFeed {
            owner_rid: entry.rid.to_string(),
            through: through(list.start, lsn, last, page.cut),
            complete: page.cut.is_none(),
            versions: page.versions,
        })
    }

    /// What a client asks of a feed, as partitions understand it.
    fn asked(
        &self,
        entry: &ResolvedContainer,
        scope: &Scope,
        start: ChangeStart,
        items_max: usize,
    ) -> Result<Changes, ServiceError> {
        Ok(Changes {
            within: self.scope_range(entry, scope)?,
            prefix: scope_prefix(entry, scope),
            after: match start {
                ChangeStart::After(lsn) => Some(lsn),
                ChangeStart::Now => None,
            },
            since: None,
            items_max: items_max.clamp(1, PAGE_ITEMS_MAX),
            bytes_max: self.limits.response_bytes_max,
        })
    }

    fn feed_time_max(&self) -> Duration {
        Duration::from_millis(self.limits.operation_ms_max)
    }
}

/// How far a page goes. One that was not cut has seen everything up to the LSN that the
/// partition reported, and may have seen more.
fn through(start: ChangeStart, lsn: Lsn, last: Option<Lsn>, cut: Option<Lsn>) -> Lsn {
    let before = match start {
        ChangeStart::After(after) => after,
        ChangeStart::Now => Lsn::ZERO,
    };
    cut.unwrap_or(lsn.max(last.unwrap_or(before)).max(before))
}

/// A page of changes as clients get it, and what it costs. Made on a query thread.
struct ShownChanges {
    changes: Vec<Change>,
    cut: Option<Lsn>,
    charge: Charge,
}

impl ShownChanges {
    fn of(page: ChangePage, container: ContainerRid) -> ShownChanges {
        let bytes = page.items.iter().map(Item::own_bytes);
        let charge = feed_work(bytes, page.passed).map(|work| account::charge(&work)).sum();
        let change =
            |item: Item| Change { stamp: item.stamp(container), lsn: item.lsn, text: item.text };
        let changes = page.items.into_iter().map(change).collect();
        ShownChanges { changes, cut: page.cut, charge }
    }
}

/// The same with all versions and deletes.
struct ShownVersions {
    versions: Vec<ItemVersion>,
    cut: Option<Lsn>,
    charge: Charge,
}

impl ShownVersions {
    fn of(
        page: HistoryPage,
        container: ContainerRid,
        key: &PartitionKeyDefinition,
    ) -> ShownVersions {
        let bytes = page.records.iter().map(HistoryRecord::bytes);
        let charge = feed_work(bytes, page.passed).map(|work| account::charge(&work)).sum();
        let versions = page.records.iter().map(|record| version(record, container, key)).collect();
        ShownVersions { versions, cut: page.cut, charge }
    }
}

fn version(
    record: &HistoryRecord,
    container: ContainerRid,
    key: &PartitionKeyDefinition,
) -> ItemVersion {
    ItemVersion {
        kind: record.kind,
        lsn: record.mark.lsn,
        ts: record.mark.ts,
        previous: record.before.map(|before| before.lsn),
        image: record.image().cloned(),
        stamp: record.stamp(container),
        removed: record.kind.is_removal().then(|| removed(record.json(), key)),
    }
}

fn removed(item: Raw<'_>, key: &PartitionKeyDefinition) -> RemovedItem {
    let text = |value: Raw<'_>| value.text().to_owned();
    let values = key.paths().iter().filter_map(|path| {
        let value = item.path(path.names())?;
        Some((path.names().join("/"), text(value)))
    });
    RemovedItem { id: item.get("id").map(text).unwrap_or_default(), key: values.collect() }
}

/// Only a client that named a range can have been wrong about the layout.
fn spread(entry: &ResolvedContainer, scope: &Scope, error: ClusterError) -> ServiceError {
    if matches!(error, ClusterError::NoRange(_)) && scope.range.is_none() {
        return ServiceError::invalid(
            "The changes of several physical partitions have no common order. Name one of them \
             by its partition key range id, or name a partition key.",
        );
    }
    named(entry, error)
}

/// A page costs as much as reading its items one by one, and the changes passed over; an
/// empty one is one probe.
fn feed_work(items: impl ExactSizeIterator<Item = u64>, passed: u64) -> impl Iterator<Item = Work> {
    let looked = (items.len() == 0).then_some(Work::Probe);
    let passed = Work::Passed { changes: passed };
    items.map(|bytes| Work::Read { bytes }).chain(looked).chain([passed])
}
