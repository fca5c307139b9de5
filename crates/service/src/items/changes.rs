//! The change feed: what changed since a client last asked.

use std::time::Duration;

use cluster::ClusterError;
use model::charge::{Charge, Work};
use model::position::Lsn;
use model::rid::ContainerRid;
use partition::{ChangePage, Changes, Item};

use crate::error::ServiceError;
use crate::identity::roles::DataAction;
use crate::items::{check_session, named, scope_prefix};
use crate::pipeline::account;
use crate::pipeline::admission::AdmissionGuard;
use crate::pipeline::limits::PAGE_ITEMS_MAX;
use crate::pipeline::meta::ResponseMeta;
use crate::pipeline::resolve::ResolvedContainer;
use crate::request::{ChangeList, ChangeStart, Scope};
use crate::response::{Change, ChangeFeed};
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

impl Service {
    pub(crate) async fn list_changes(
        &self,
        entry: &ResolvedContainer,
        list: ChangeList,
        meta: &mut ResponseMeta,
    ) -> Result<ChangeFeed, ServiceError> {
        let within = self.scope_range(entry, &list.scope)?;
        let partition = entry.route(&within.min)?;
        let guard = AdmissionGuard::admit(&partition, meta)?;
        let key = within.position().cloned();
        let changes = Changes {
            within,
            prefix: scope_prefix(entry, &list.scope),
            after: match list.start {
                ChangeStart::After(lsn) => Some(lsn),
                ChangeStart::Now => None,
            },
            since: list.since,
            items_max: list.items_max.clamp(1, PAGE_ITEMS_MAX),
            bytes_max: self.limits.response_bytes_max,
        };
        let time_max = Duration::from_millis(self.limits.operation_ms_max);
        let (container, rid) = (&entry.container, entry.rid);
        let shape = move |page| ShownChanges::of(page, rid);
        let served = self.cluster.list_changes_at(container, partition, changes, time_max, shape);
        let served = served.await.map_err(|error| spread(entry, &list.scope, error))?;
        let lsn = served.lsn;
        let page = meta.served(served);
        meta.charged(page.charge);
        guard.pay(key.as_ref(), meta);
        check_session(entry, list.session.as_ref(), meta)?;
        Ok(ChangeFeed {
            owner_rid: entry.rid.to_string(),
            through: page.through(list.start, lsn),
            complete: page.cut.is_none(),
            changes: page.changes,
        })
    }
}

/// A page of changes as clients get it, and what it costs. Made on a query thread.
struct ShownChanges {
    changes: Vec<Change>,
    cut: Option<Lsn>,
    charge: Charge,
}

impl ShownChanges {
    fn of(page: ChangePage, container: ContainerRid) -> ShownChanges {
        let charge = page_work(&page).map(|work| account::charge(&work)).sum();
        let change =
            |item: Item| Change { stamp: item.stamp(container), lsn: item.lsn, text: item.text };
        let changes = page.items.into_iter().map(change).collect();
        ShownChanges { changes, cut: page.cut, charge }
    }

    /// How far the page goes. One that was not cut has seen everything up to the LSN that
    /// the partition reported, and may have seen more.
    fn through(&self, start: ChangeStart, lsn: Lsn) -> Lsn {
        let before = match start {
            ChangeStart::After(after) => after,
            ChangeStart::Now => Lsn::ZERO,
        };
        let last = self.changes.last().map_or(before, |change| change.lsn);
        self.cut.unwrap_or(lsn.max(last).max(before))
    }
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
fn page_work(page: &ChangePage) -> impl Iterator<Item = Work> {
    let looked = page.items.is_empty().then_some(Work::Probe);
    let passed = Work::Passed { changes: page.passed };
    let items = page.items.iter().map(|item| Work::Read { bytes: item.own_bytes() });
    items.chain(looked).chain([passed])
}
