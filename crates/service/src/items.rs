//! Item verbs: from a body and a key to a command for one partition.

pub(crate) mod changes;
mod list;
pub(crate) mod queries;
pub(crate) mod read_items;

use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use cluster::{ClusterError, PartitionId};
use futures_util::future::join_all;
use model::charge::Work;
use model::epk::{Epk, EpkRange};
use model::json;
use model::limits::Limits;
use model::name::ItemId;
use model::partition_key::{KeyComponent, KeyKind, PartitionKey};
use model::session::{RangeToken, SINGLE_REGION_VERSION, SessionToken};
use partition::{Command, Document, Effect, EffectKind, EtagMatch, Operation, Outcome, Patch};

use crate::error::ServiceError;
use crate::identity::roles::{Actions, DataAction};
use crate::pipeline::account;
use crate::pipeline::admission::AdmissionGuard;
use crate::pipeline::meta::{Holding, ResponseMeta};
use crate::pipeline::resolve::ResolvedContainer;
use crate::request::{Batch, Bulk, BulkOperation, BulkPace, ItemAction, ItemOperation, Scope};
use crate::response::{BulkResult, ItemResult};
use crate::service::Service;
use crate::verb::{ContainerVerb, ItemFacts, NamedItem, Operations, Reach};

/// What the system properties add to an item, at most.
const OWN_BYTES: u64 = 1_024;

impl ItemOperation {
    /// What has to be known of an operation before it is parsed.
    fn facts(&self) -> OperationFacts<'_> {
        use ItemOperation::{Create, Delete, Patch, Read, Replace, Unreadable, Upsert};
        let (writes, id, body) = match self {
            Create { body } | Upsert { body, .. } => (true, None, Some(body)),
            Replace { id, body, .. } | Patch { id, body, .. } => (true, Some(id), Some(body)),
            Delete { id, .. } => (true, Some(id), None),
            Read { id, .. } => (false, Some(id), None),
            Unreadable { .. } => (false, None, None),
        };
        OperationFacts { writes, id, body }
    }

    fn id_mut(&mut self) -> Option<&mut ItemId> {
        use ItemOperation::{Create, Delete, Patch, Read, Replace, Unreadable, Upsert};
        match self {
            Read { id, .. } | Replace { id, .. } | Delete { id, .. } | Patch { id, .. } => Some(id),
            Create { .. } | Upsert { .. } | Unreadable { .. } => None,
        }
    }

    /// What a role has to allow. A patch is a replacement that only says what changes.
    fn action(&self) -> DataAction {
        use ItemOperation::{Create, Delete, Patch, Read, Replace, Unreadable, Upsert};
        match self {
            Create { .. } => DataAction::CreateItem,
            Upsert { .. } => DataAction::UpsertItem,
            Replace { .. } | Patch { .. } => DataAction::ReplaceItem,
            Delete { .. } => DataAction::DeleteItem,
            // What cannot be read is refused to every client.
            Read { .. } | Unreadable { .. } => DataAction::ReadItem,
        }
    }

    /// The replacement of a named item, perhaps under another id.
    fn replacement(&self) -> Option<&Bytes> {
        if let ItemOperation::Replace { body, .. } = self { Some(body) } else { None }
    }
}

struct OperationFacts<'a> {
    writes: bool,
    /// The item that it names.
    id: Option<&'a ItemId>,
    body: Option<&'a Bytes>,
}

/// What a role has to allow for all of them.
fn actions<'a>(operations: impl Iterator<Item = &'a ItemOperation>) -> Option<Actions> {
    let each = operations.map(|operation| Actions::of(&[operation.action()]));
    Some(each.fold(Actions::NONE, Actions::and))
}

fn sum<'a>(operations: impl Iterator<Item = &'a ItemOperation>) -> Operations {
    operations.fold(Operations::default(), |Operations { count, bytes }, operation| {
        let body = operation.facts().body.map_or(0, Bytes::len);
        Operations { count: count + 1, bytes: bytes + body }
    })
}

impl ContainerVerb for ItemAction {
    type Reply = ItemResult;

    fn facts(&self) -> ItemFacts<'_> {
        let OperationFacts { writes, id, .. } = self.operation.facts();
        let (key, replacement) = (self.key.as_ref(), self.operation.replacement());
        let item = id.map(|id| NamedItem { key, id, replacement });
        let facts = ItemFacts { writes, item, ..ItemFacts::reading(Reach::of(key)) };
        facts.allowed_by(self.operation.action())
    }

    fn item_mut(&mut self) -> Option<(Option<&PartitionKey>, &mut ItemId)> {
        Some((self.key.as_ref(), self.operation.id_mut()?))
    }

    async fn perform(
        self,
        service: &Service,
        container: &ResolvedContainer,
        meta: &mut ResponseMeta,
    ) -> Result<ItemResult, ServiceError> {
        let ItemAction { key, operation, session } = self;
        if let ItemOperation::Read { id, if_none_match } = &operation {
            let read = ItemRead { key: key.as_ref(), id, if_none_match: if_none_match.as_ref() };
            let item = service.read_item(container, read, session.as_ref(), meta).await?;
            service.note_size(container, meta);
            return Ok(item);
        }
        service.write_item(container, key.as_ref(), operation, meta).await
    }
}

impl ContainerVerb for Batch {
    type Reply = Vec<ItemResult>;

    fn facts(&self) -> ItemFacts<'_> {
        let operations = Some(sum(self.operations.iter()));
        let actions = actions(self.operations.iter());
        ItemFacts { operations, actions, ..ItemFacts::writing(Reach::Key(&self.key)) }
    }

    async fn perform(
        self,
        service: &Service,
        container: &ResolvedContainer,
        meta: &mut ResponseMeta,
    ) -> Result<Vec<ItemResult>, ServiceError> {
        let asked = (&self.key, self.session.as_ref());
        service.batch(container, asked, self.operations, meta).await
    }
}

impl ContainerVerb for Bulk {
    type Reply = Vec<BulkResult>;

    fn facts(&self) -> ItemFacts<'_> {
        let keys = self.operations.iter().map(|bulk| &bulk.key).collect();
        let operations = Some(sum(self.operations.iter().map(|bulk| &bulk.operation)));
        let names_partitions = self.range.is_some();
        let actions = actions(self.operations.iter().map(|bulk| &bulk.operation));
        let facts = ItemFacts::writing(Reach::Keys(keys));
        ItemFacts { operations, names_partitions, actions, ..facts }
    }

    async fn perform(
        self,
        service: &Service,
        container: &ResolvedContainer,
        meta: &mut ResponseMeta,
    ) -> Result<Vec<BulkResult>, ServiceError> {
        service.bulk(container, self.range, (self.operations, self.pace), meta).await
    }
}

/// An item to read.
pub(crate) struct ItemRead<'a> {
    pub(crate) key: Option<&'a PartitionKey>,
    pub(crate) id: &'a ItemId,
    pub(crate) if_none_match: Option<&'a EtagMatch>,
}

impl Service {
    /// Executes one operation on one item, in its partition.
    pub(crate) async fn write_item(
        &self,
        entry: &ResolvedContainer,
        key: Option<&PartitionKey>,
        operation: ItemOperation,
        meta: &mut ResponseMeta,
    ) -> Result<ItemResult, ServiceError> {
        let replaced = if let ItemOperation::Replace { id, .. } = &operation {
            key.zip(Some(id.clone()))
        } else {
            None
        };
        let checked = self.check_operation(entry, key, operation, meta);
        let (operation, position) = match (checked, replaced) {
            // A missing item has no key that could differ.
            (Err(ServiceError::KeyMismatch), Some((key, id)))
                if !Box::pin(self.exists(entry, key, &id)).await =>
            {
                return Err(ServiceError::NotFound);
            }
            (checked, _) => checked?,
        };
        let effect = self.apply_one(entry, position, operation, meta).await?;
        meta.item_lsn = Some(effect.lsn);
        self.note_size(entry, meta);
        Ok(result(effect))
    }

    /// Records how much the partition that answered holds.
    pub(crate) fn note_size(&self, entry: &ResolvedContainer, meta: &mut ResponseMeta) {
        let size = meta.served_by().and_then(|(range, _)| {
            entry.layout_of(range).partition(range).map(|partition| partition.size()).ok()
        });
        meta.holding = size.map(|size| Holding::Items {
            count: size.items,
            bytes: size.bytes,
            bytes_max: self.limits.physical_partition_bytes_max,
            item_bytes_max: self.limits.item_bytes_max,
        });
    }

    /// Whether an item exists, as far as that can be determined.
    async fn exists(&self, entry: &ResolvedContainer, key: &PartitionKey, id: &ItemId) -> bool {
        let Ok(position) = self.locate(entry, Some(key), None) else { return true };
        let Ok(partition) = entry.route(&position) else { return true };
        let named = (&position, id);
        let found = self.cluster.read_at(&entry.container, &partition, named, None).await;
        found.map_or(true, |served| served.value.is_ok())
    }

    pub(crate) async fn read_item(
        &self,
        entry: &ResolvedContainer,
        ItemRead { key, id, if_none_match }: ItemRead<'_>,
        session: Option<&SessionToken>,
        meta: &mut ResponseMeta,
    ) -> Result<ItemResult, ServiceError> {
        let position = self.locate(entry, key, None);
        let position = meta.paid_if_refused(position, Work::Probe)?;
        let partition = entry.route(&position)?;
        let guard = AdmissionGuard::admit(&partition, meta)?;
        let named = (&position, id);
        let read = self.cluster.read_at(&entry.container, &partition, named, if_none_match);
        let found = meta.served(read.await?);
        meta.worked(&match &found {
            Ok(effect) => effect.work,
            Err(problem) => problem.work(Work::Probe),
        });
        guard.pay(Some(&position), meta);
        check_session(entry, session, meta)?;
        let effect = found?;
        meta.item_lsn = Some(effect.lsn);
        Ok(result(effect))
    }

    /// All operations in one logical partition, or none.
    pub(crate) async fn batch(
        &self,
        entry: &ResolvedContainer,
        (key, session): (&PartitionKey, Option<&SessionToken>),
        operations: Vec<ItemOperation>,
        meta: &mut ResponseMeta,
    ) -> Result<Vec<ItemResult>, ServiceError> {
        let failed = |at, error| ServiceError::Batch { at, error: Box::new(error) };
        let position = self.locate(entry, Some(key), None)?;
        if session.is_some() {
            let partition = entry.route(&position)?;
            let reached = self.cluster.position(&entry.container, &partition, &position).await;
            meta.served(reached?);
            check_session(entry, session, meta)?;
        }
        let checked = operations.into_iter().enumerate().map(|(at, operation)| {
            let checked = self.check_operation(entry, Some(key), operation, meta);
            checked.map(|(operation, _)| operation).map_err(|error| failed(at, error))
        });
        let operations = checked.collect::<Result<Vec<Operation>, ServiceError>>()?;
        match self.apply(entry, Command { position, operations }, meta).await {
            Ok(outcome) => Ok(outcome.effects.into_iter().map(result).collect()),
            Err(ClusterError::Command { error, .. }) => Err(failed(error.at, error.problem.into())),
            Err(other) => Err(other.into()),
        }
    }

    /// Each operation on its own; those of one partition share its fsyncs.
    pub(crate) async fn bulk(
        &self,
        entry: &ResolvedContainer,
        range: Option<PartitionId>,
        (operations, pace): (Vec<BulkOperation>, BulkPace),
        meta: &mut ResponseMeta,
    ) -> Result<Vec<BulkResult>, ServiceError> {
        if let Some(range) = range {
            let accepts = self.cluster.accepts(&entry.container, range).await;
            accepts.map_err(|error| named(entry, error))?;
        }
        let within = match range {
            Some(range) => Some((range, self.range_of(entry, range)?)),
            None => None,
        };
        if pace == BulkPace::UpToFailure {
            return Ok(self.in_turn(entry, within.as_ref(), operations, meta).await);
        }
        let caller = meta.caller;
        let budget = ResponseBudget::new(&self.limits);
        let each = operations.into_iter().map(|operation| async {
            let mut part = ResponseMeta::of(caller);
            let asked = (entry, within.as_ref());
            let result = self.bulk_operation(asked, operation, &budget, &mut part).await;
            (BulkResult { result, charge: part.charge }, part)
        });
        let mut results = Vec::new();
        for (result, part) in join_all(each).await {
            meta.add(&part);
            results.push(result);
        }
        Ok(results)
    }

    /// One operation after the other; those after the first failure are not begun.
    async fn in_turn(
        &self,
        entry: &ResolvedContainer,
        range: Option<&(PartitionId, EpkRange)>,
        operations: Vec<BulkOperation>,
        meta: &mut ResponseMeta,
    ) -> Vec<BulkResult> {
        let budget = ResponseBudget::new(&self.limits);
        let mut results: Vec<BulkResult> = Vec::with_capacity(operations.len());
        for operation in operations {
            let mut part = ResponseMeta::of(meta.caller);
            let result = match results.last() {
                Some(BulkResult { result: Err(_), .. }) => Err(ServiceError::Dependency),
                Some(_) | None => {
                    self.bulk_operation((entry, range), operation, &budget, &mut part).await
                }
            };
            meta.add(&part);
            results.push(BulkResult { result, charge: part.charge });
        }
        results
    }

    async fn bulk_operation(
        &self,
        (entry, range): (&ResolvedContainer, Option<&(PartitionId, EpkRange)>),
        BulkOperation { key, operation }: BulkOperation,
        budget: &ResponseBudget,
        meta: &mut ResponseMeta,
    ) -> Result<ItemResult, ServiceError> {
        budget.check()?;
        let (operation, position) = self.check_operation(entry, Some(&key), operation, meta)?;
        if let Some((range, within)) = range
            && !within.contains(&position)
        {
            return Err(named(entry, ClusterError::NoRange(*range)));
        }
        budget.take(result(self.apply_one(entry, position, operation, meta).await?))
    }

    /// The part of the ring that a list covers.
    pub(crate) fn scope_range(
        &self,
        entry: &ResolvedContainer,
        scope: &Scope,
    ) -> Result<EpkRange, ServiceError> {
        let mut within = common(&EpkRange::full(), &scope.within);
        if let Some(key) = &scope.key {
            let definition = entry.key_definition();
            within = common(&within, &definition.prefix_range(definition.meant(key))?);
        }
        if let Some(id) = scope.range {
            within = common(&within, &self.range_of(entry, id)?);
        }
        Ok(within)
    }

    fn range_of(
        &self,
        entry: &ResolvedContainer,
        id: PartitionId,
    ) -> Result<EpkRange, ServiceError> {
        let found = entry.layout.partition(id).and_then(|_| {
            let record = entry.layout.map().range(id);
            record.map(|record| record.range.clone()).ok_or(ClusterError::NoRange(id))
        });
        found.map_err(|error| named(entry, error))
    }

    async fn apply_one(
        &self,
        entry: &ResolvedContainer,
        position: Epk,
        operation: Operation,
        meta: &mut ResponseMeta,
    ) -> Result<Effect, ServiceError> {
        let command = Command { position, operations: vec![operation] };
        let outcome = self.apply(entry, command, meta).await?;
        let effect = outcome.effects.into_iter().next();
        effect.ok_or_else(|| ServiceError::internal("a command of one operation has one effect"))
    }

    /// Has a partition execute a command, and records which one and the charge.
    async fn apply(
        &self,
        entry: &ResolvedContainer,
        command: Command,
        meta: &mut ResponseMeta,
    ) -> Result<Outcome, ClusterError> {
        let position = command.position.clone();
        let partition = entry.route(&position)?;
        let guard = AdmissionGuard::admit(&partition, meta)?;
        let done = match self.cluster.apply_at(&entry.container, partition, command).await {
            Ok(served) => {
                let outcome = meta.served(served);
                for effect in &outcome.effects {
                    meta.worked(&effect.work);
                }
                Ok(outcome)
            }
            Err(error) => Err(meta.refused(error)),
        };
        guard.pay(Some(&position), meta);
        done
    }

    /// Checks bodies and keys, and determines the position of the operation.
    pub(crate) fn check_operation(
        &self,
        entry: &ResolvedContainer,
        key: Option<&PartitionKey>,
        operation: ItemOperation,
        meta: &mut ResponseMeta,
    ) -> Result<(Operation, Epk), ServiceError> {
        let attempt = if operation.facts().writes { Work::RefusedWrite } else { Work::Probe };
        meta.paid_if_refused(self.parse_operation(entry, key, operation), attempt)
    }

    fn parse_operation(
        &self,
        entry: &ResolvedContainer,
        key: Option<&PartitionKey>,
        operation: ItemOperation,
    ) -> Result<(Operation, Epk), ServiceError> {
        let parse = |body: Bytes| Document::parse(body, &self.limits);
        let checked = match operation {
            ItemOperation::Create { body } => Operation::Create { document: parse(body)? },
            ItemOperation::Upsert { body, if_match } => {
                Operation::Upsert { document: parse(body)?, if_match }
            }
            ItemOperation::Replace { id, body, if_match } => {
                Operation::Replace { id, document: parse(body)?, if_match }
            }
            ItemOperation::Read { id, if_none_match } => Operation::Read { id, if_none_match },
            ItemOperation::Delete { id, if_match } => Operation::Delete { id, if_match },
            ItemOperation::Patch { id, body, if_match } => {
                let patch = Patch::parse(&json::parse(&body)?, &self.limits)?;
                Operation::Patch { id, patch, if_match }
            }
            ItemOperation::Unreadable { why } => return Err(ServiceError::invalid(why)),
        };
        let position = self.locate(entry, key, checked.document())?;
        Ok((checked, position))
    }

    /// The key is given, or in the document, or both and equal.
    pub(crate) fn locate(
        &self,
        entry: &ResolvedContainer,
        key: Option<&PartitionKey>,
        document: Option<&Document>,
    ) -> Result<Epk, ServiceError> {
        let definition = entry.key_definition();
        let extracted = document.map(|document| definition.extract(document.json())).transpose()?;
        match (key.map(|key| definition.meant(key)), &extracted) {
            (Some(given), Some(extracted)) if given != extracted => {
                let is_short = definition.kind() == KeyKind::MultiHash
                    && extracted.components().contains(&KeyComponent::Undefined);
                Err(if is_short { ServiceError::KeyLacking } else { ServiceError::KeyMismatch })
            }
            (Some(key), _) | (None, Some(key)) => Ok(definition.locate(key)?),
            (None, None) if definition.paths().is_empty() => {
                Ok(definition.locate(&PartitionKey::NONE)?)
            }
            (None, None) => Err(ServiceError::invalid(
                "PartitionKey value must be supplied for this operation.",
            )),
        }
    }
}

/// The key prefix of a list's items, if the part of the ring that it covers may have
/// others.
pub(crate) fn scope_prefix(entry: &ResolvedContainer, scope: &Scope) -> Option<PartitionKey> {
    let definition = entry.key_definition();
    scope.key.clone().filter(|key| definition.is_prefix(key))
}

/// The intersection of a list and a part of the ring. An empty one also has a position: in
/// that part, whose owner reports its LSN.
fn common(within: &EpkRange, part: &EpkRange) -> EpkRange {
    let place = if part.is_empty() { &within.min } else { &part.min };
    let nothing = || EpkRange::new(place.clone(), place.clone());
    within.intersect(part).unwrap_or_else(nothing)
}

/// A client that has seen more of this partition than we have must not be given less.
///
/// What it has seen of the ranges that this one came from counts as well: its LSNs continue
/// where theirs ended.
pub(crate) fn check_session(
    entry: &ResolvedContainer,
    session: Option<&SessionToken>,
    meta: &ResponseMeta,
) -> Result<(), ServiceError> {
    let (Some(token), Some((range, lsn))) = (session, meta.served_by()) else { return Ok(()) };
    let ahead = |seen: &&RangeToken| (seen.version, seen.lsn) > (SINGLE_REGION_VERSION, lsn);
    let layout = entry.layout_of(range);
    let ancestors = layout.map().range(range).map_or(&[][..], |record| &record.parents);
    let ours = |seen: &&RangeToken| {
        seen.range == range.0 || ancestors.iter().any(|parent| parent.0 == seen.range)
    };
    match token.ranges().iter().filter(ahead).find(ours) {
        Some(_) => Err(ServiceError::SessionNotAvailable),
        None => Ok(()),
    }
}

/// A refusal about a range, with the container in its text.
pub(crate) fn named(entry: &ResolvedContainer, error: ClusterError) -> ServiceError {
    let mut error = ServiceError::from(error);
    if let ServiceError::RangeGone { container, .. }
    | ServiceError::RangeSwitching { container, .. } = &mut error
    {
        *container = entry.rid.to_string();
    }
    error
}

/// Each operation of a bulk request may return an item: what exceeds the limit is refused,
/// and clients ask for it again. What reads return is always in the answer, what writes
/// return is not; and a completed write has to be reported as completed.
struct ResponseBudget {
    read: AtomicUsize,
    read_max: usize,
    written: AtomicUsize,
    written_max: usize,
}

impl ResponseBudget {
    fn new(limits: &Limits) -> ResponseBudget {
        ResponseBudget {
            read: AtomicUsize::new(0),
            read_max: usize::try_from(limits.response_bytes_max).unwrap_or(usize::MAX),
            written: AtomicUsize::new(0),
            written_max: limits.effects_bytes_max(),
        }
    }

    /// Whether another operation may begin.
    fn check(&self) -> Result<(), ServiceError> {
        let used = |used: &AtomicUsize| used.load(Ordering::Relaxed);
        if used(&self.read) > self.read_max || used(&self.written) > self.written_max {
            return Err(ResponseBudget::full());
        }
        Ok(())
    }

    /// Operations are in flight at once, so what one read may no longer fit.
    fn take(&self, done: ItemResult) -> Result<ItemResult, ServiceError> {
        let bytes = done.text.as_ref().map_or(0, Bytes::len);
        if done.kind != EffectKind::Read {
            self.written.fetch_add(bytes, Ordering::Relaxed);
            return Ok(done);
        }
        let before = self.read.fetch_add(bytes, Ordering::Relaxed);
        // A single item is an answer however large it is.
        if before > 0 && before.saturating_add(bytes) > self.read_max {
            return Err(ResponseBudget::full());
        }
        Ok(done)
    }

    fn full() -> ServiceError {
        let message = "Response size is too large: ask for fewer items at once.".to_owned();
        ServiceError::ResponseTooLarge { message }
    }
}

fn result(effect: Effect) -> ItemResult {
    let charge = account::charge(&effect.work);
    ItemResult { kind: effect.kind, stamp: effect.stamp, text: effect.text, charge }
}
