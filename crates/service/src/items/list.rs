//! Lists: all items of a scope, page by page, in the order of creation.
//!
//! A list is the query for everything, with a charge of its own. So its pages end, resume and
//! survive splits as those of queries do.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use cluster::{ClusterError, Cursor, PageBounds, PageQuery, QueryPage};
use model::charge::{Charge, Work};
use model::epk::EpkRange;
use model::system_properties::SystemProperties;
use partition::Approach;
use query::{Bound, Parameters, Query};

use super::queries::failed;
use super::{OWN_BYTES, check_session, scope_prefix};
use crate::error::ServiceError;
use crate::identity::roles::DataAction;
use crate::pipeline::account;
use crate::pipeline::admission::AdmissionGuard;
use crate::pipeline::limits::PAGE_ITEMS_MAX;
use crate::pipeline::meta::ResponseMeta;
use crate::pipeline::resolve::ResolvedContainer;
use crate::request::ListItems;
use crate::response::Feed;
use crate::service::Service;
use crate::verb::{ContainerVerb, ItemFacts, Reach};

/// Items that one page reads, whether or not they are in it: a run of expired items, or of
/// other keys' items, must not make a page endless.
const SCANNED_MAX: u64 = 10_000;

const EVERYTHING: &str = "SELECT * FROM c";

static ALL_ITEMS: LazyLock<Arc<Bound>> = LazyLock::new(|| {
    let query = Query::parse(EVERYTHING).and_then(|query| query.bind(&Parameters::none()));
    Arc::new(query.expect("the query for everything can be bound"))
});

impl ContainerVerb for ListItems {
    type Reply = Feed<Cursor>;

    fn facts(&self) -> ItemFacts<'_> {
        let reach = Reach::of(self.scope.key.as_ref());
        let names_partitions = self.scope.range.is_some();
        let facts = ItemFacts { names_partitions, ..ItemFacts::reading(reach) };
        facts.allowed_by(DataAction::ExecuteQuery)
    }

    async fn perform(
        self,
        service: &Service,
        container: &ResolvedContainer,
        meta: &mut ResponseMeta,
    ) -> Result<Feed<Cursor>, ServiceError> {
        service.list_items(container, self, meta).await
    }
}

impl Service {
    /// One page of items, partition after partition.
    async fn list_items(
        &self,
        entry: &ResolvedContainer,
        list: ListItems,
        meta: &mut ResponseMeta,
    ) -> Result<Feed<Cursor>, ServiceError> {
        let ListItems { scope, session, mut after, items_max, system } = list;
        let items_max = items_max.clamp(1, PAGE_ITEMS_MAX);
        let within = self.scope_range(entry, &scope)?;
        let prefix = scope_prefix(entry, &scope).map(Arc::new);
        let mut bodies: Vec<Bytes> = Vec::new();
        let mut bytes_left = self.limits.response_bytes_max;
        while !within.is_empty() {
            let start = after.as_ref().and_then(Cursor::position);
            let start = start.filter(|start| EpkRange::full().contains(start));
            let partition = entry.route(start.unwrap_or(&within.min))?;
            let guard = match AdmissionGuard::admit(&partition, meta) {
                // What was read so far is a page as well.
                Err(ClusterError::Throttled { .. }) if !bodies.is_empty() => break,
                guard => guard?,
            };
            let query = PageQuery {
                bound: Arc::clone(&ALL_ITEMS),
                fingerprint: crc32fast::hash(entry.rid.to_string().as_bytes()),
                scope: within.clone(),
                within: vec![within.clone()],
                prefix: prefix.clone(),
                after: after.take(),
                resume: None,
                bounds: self.list_bounds(items_max - bodies.len(), bytes_left),
                approach: Approach::Index,
                is_timed: false,
                system: system.clone(),
                names_indexes: false,
            };
            let (page, charge) = self.list_page(entry, query).await?;
            for part in &page.served {
                meta.saw(part.range, part.lsn);
            }
            meta.charged(charge);
            guard.pay(None, meta);
            check_session(entry, session.as_ref(), meta)?;
            bytes_left = bytes_left.saturating_sub(page.report.row_bytes);
            bodies.extend(page.rows);
            after = page.rest;
            // A partition that stops at an item has scanned enough of them, though all may
            // have expired: another request continues.
            let stopped = after.as_ref().is_none_or(Cursor::is_inside_a_partition);
            // A partition returns at least one item, so there must be memory for it.
            let full =
                bodies.len() >= items_max || bytes_left < self.limits.item_bytes_max + OWN_BYTES;
            if (full && !bodies.is_empty()) || stopped {
                break;
            }
        }
        Ok(Feed { owner_rid: entry.rid.to_string(), bodies, rest: after })
    }

    fn list_bounds(&self, rows: usize, bytes: u64) -> PageBounds {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        PageBounds { rows, bytes, scanned: SCANNED_MAX, ..self.page_bounds(rows) }
    }

    /// A page, and what it costs.
    async fn list_page(
        &self,
        entry: &ResolvedContainer,
        query: PageQuery,
    ) -> Result<(QueryPage, Charge), ServiceError> {
        let (container, now) = (Arc::clone(&entry.container), self.now());
        let page = self.cluster.take_turns(move |turn| {
            let system = query.system.clone();
            let page = turn.answer(&container, now, query)?;
            let mut charge = Charge::ZERO;
            for work in page_work(&page.rows, system.as_deref()) {
                turn.give_way()?;
                charge += account::charge(&work);
            }
            Ok((page, charge))
        });
        page.await?.map_err(|failure| failed(entry, failure, EVERYTHING))
    }
}

/// A page costs as much as reading its items one by one; an empty one is one probe.
fn page_work<'r>(
    rows: &'r [Bytes],
    system: Option<&'r SystemProperties>,
) -> impl Iterator<Item = Work> {
    let looked = rows.is_empty().then_some(Work::Probe);
    let own = move |text: &Bytes| system.map_or(text.len(), |system| system.own_bytes(text));
    let read = move |text: &Bytes| Work::Read { bytes: own(text) as u64 };
    rows.iter().map(read).chain(looked)
}
