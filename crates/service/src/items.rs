//! Item verbs: from a body and a key to a command for one partition.

use bytes::Bytes;
use cluster::{ClusterError, RangeId, Served};
use futures_util::future::join_all;
use model::epk::{Epk, EpkRange};
use model::json;
use model::partition_key::{Location, PartitionKey};
use model::position::Lsn;
use model::session::SessionToken;
use partition::{Command, Document, Effect, Operation, Outcome, Patch, Position, Problem, Work};

use crate::admit::PAGE_ITEMS_MAX;
use crate::catalogue::ContainerEntry;
use crate::error::ServiceError;
use crate::request::{BulkOperation, Conditions, ItemOperation, ItemTarget, Scope};
use crate::response::{ItemResult, Reply, Response, Rest};
use crate::service::Service;

impl Service {
    pub(crate) async fn create_item(
        &self,
        entry: &ContainerEntry,
        key: Option<PartitionKey>,
        body: Bytes,
    ) -> Result<Response, ServiceError> {
        let operation = ItemOperation::Create { body };
        self.apply_one(entry, key.as_ref(), operation).await
    }

    pub(crate) async fn upsert_item(
        &self,
        entry: &ContainerEntry,
        key: Option<PartitionKey>,
        body: Bytes,
        conditions: Conditions,
    ) -> Result<Response, ServiceError> {
        let operation = ItemOperation::Upsert { body, if_match: conditions.if_match };
        self.apply_one(entry, key.as_ref(), operation).await
    }

    pub(crate) async fn replace_item(
        &self,
        entry: &ContainerEntry,
        target: ItemTarget,
        body: Bytes,
        conditions: Conditions,
    ) -> Result<Response, ServiceError> {
        let operation =
            ItemOperation::Replace { id: target.id, body, if_match: conditions.if_match };
        self.apply_one(entry, target.key.as_ref(), operation).await
    }

    pub(crate) async fn delete_item(
        &self,
        entry: &ContainerEntry,
        target: ItemTarget,
        conditions: Conditions,
    ) -> Result<Response, ServiceError> {
        let operation = ItemOperation::Delete { id: target.id, if_match: conditions.if_match };
        self.apply_one(entry, target.key.as_ref(), operation).await
    }

    pub(crate) async fn patch_item(
        &self,
        entry: &ContainerEntry,
        target: ItemTarget,
        body: &Bytes,
        conditions: Conditions,
    ) -> Result<Response, ServiceError> {
        let operation = ItemOperation::Patch {
            id: target.id,
            body: body.clone(),
            if_match: conditions.if_match,
        };
        self.apply_one(entry, target.key.as_ref(), operation).await
    }

    pub(crate) fn read_item(
        &self,
        entry: &ContainerEntry,
        target: &ItemTarget,
        conditions: &Conditions,
    ) -> Result<Response, ServiceError> {
        let location = self.locate(entry, target.key.as_ref(), None)?;
        let served = self.cluster.read(
            &entry.container,
            (&location.epk, &target.id),
            conditions.if_none_match.as_ref(),
        )?;
        check_session(conditions.session.as_ref(), served.range, served.lsn)?;
        let work = read_work(&served.value);
        let effect = served.value?;
        Ok(Response::routed(served.range, served.lsn, one(effect), work))
    }

    /// All operations in one logical partition, or none.
    pub(crate) async fn batch(
        &self,
        entry: &ContainerEntry,
        key: &PartitionKey,
        operations: Vec<ItemOperation>,
    ) -> Result<Response, ServiceError> {
        let location = self.locate(entry, Some(key), None)?;
        let checked = operations.into_iter().enumerate().map(|(at, operation)| {
            let checked = self.check_operation(entry, Some(key), operation);
            checked
                .map(|(operation, _)| operation)
                .map_err(|error| ServiceError::Batch { at, error: Box::new(error) })
        });
        let operations = checked.collect::<Result<Vec<Operation>, ServiceError>>()?;
        let served =
            match self.cluster.apply(&entry.container, Command { location, operations }).await {
                Err(ClusterError::Command { error, .. }) => {
                    let at = error.at;
                    return Err(ServiceError::Batch { at, error: Box::new(error.problem.into()) });
                }
                other => other?,
            };
        let (work, results) =
            (served.value.work, served.value.effects.into_iter().map(result).collect());
        Ok(Response::routed(served.range, served.lsn, Reply::Batch { results }, work))
    }

    /// Each operation for itself; those of one partition share its fsyncs.
    pub(crate) async fn bulk(
        &self,
        entry: &ContainerEntry,
        range: Option<RangeId>,
        operations: Vec<BulkOperation>,
    ) -> Result<Response, ServiceError> {
        if let Some(range) = range.filter(|range| entry.container.map().range(*range).is_none()) {
            return Err(ServiceError::RangeGone {
                range: range.0,
                container: entry.name.rid.to_string(),
            });
        }
        let each = operations.into_iter().map(|bulk| async {
            let BulkOperation { key, operation } = bulk;
            let (operation, location) = self.check_operation(entry, Some(&key), operation)?;
            let owner = entry.container.map().range_of(&location.epk).map(|record| record.id);
            if let Some(range) = range.filter(|range| owner != Some(*range)) {
                return Err(ServiceError::RangeGone {
                    range: range.0,
                    container: entry.name.rid.to_string(),
                });
            }
            let served = self
                .cluster
                .apply(&entry.container, Command { location, operations: vec![operation] })
                .await?;
            let effect = served.value.effects.into_iter().next();
            effect
                .map(result)
                .ok_or_else(|| ServiceError::internal("a command of one operation has one effect"))
        });
        let results = join_all(each).await;
        Ok(Response { range, ..Response::unrouted(Reply::Bulk { results }, Work::default()) })
    }

    /// One page of items in the order of their hashed keys, range after range.
    pub(crate) fn list_items(
        &self,
        entry: &ContainerEntry,
        scope: &Scope,
        mut after: Option<Position>,
        items_max: usize,
    ) -> Result<Response, ServiceError> {
        let items_max = items_max.clamp(1, PAGE_ITEMS_MAX);
        let (map, within) = (entry.container.map(), scope_range(entry, scope)?);
        let mut bodies = Vec::new();
        let mut served_by = None;
        for record in map.ranges().iter().filter(|record| record.range.overlaps(&within)) {
            if after.as_ref().is_some_and(|position| record.range.max <= position.epk) {
                continue;
            }
            let room = items_max - bodies.len();
            let served =
                self.cluster.list(&entry.container, record.id, &within, after.as_ref(), room)?;
            served_by = Some((record.id, served.lsn));
            bodies.extend(served.value.items.into_iter().map(|item| item.text));
            // At the end of a range, whatever follows it comes next.
            let behind = || Position { epk: record.range.max.clone(), id: String::new() };
            let last = record.range.max >= within.max;
            after = served.value.rest.or_else(|| (!last).then(behind));
            if bodies.len() == items_max || after.is_none() {
                break;
            }
        }
        let (owner_rid, rest) = (entry.name.rid.to_string(), after.map(Rest::AfterItem));
        let reply = Reply::Feed { owner_rid, bodies, rest };
        Ok(match served_by {
            Some((range, lsn)) => Response::routed(range, lsn, reply, Work::default()),
            None => Response::unrouted(reply, Work::default()),
        })
    }

    async fn apply_one(
        &self,
        entry: &ContainerEntry,
        key: Option<&PartitionKey>,
        operation: ItemOperation,
    ) -> Result<Response, ServiceError> {
        let (operation, location) = self.check_operation(entry, key, operation)?;
        let served = self
            .cluster
            .apply(&entry.container, Command { location, operations: vec![operation] })
            .await?;
        let Served { range, lsn, value: Outcome { effects, work, .. } } = served;
        let effect = effects.into_iter().next();
        let effect = effect
            .ok_or_else(|| ServiceError::internal("a command of one operation has one effect"))?;
        Ok(Response::routed(range, lsn, one(effect), work))
    }

    /// Checks bodies and keys, and finds out where the operation belongs.
    fn check_operation(
        &self,
        entry: &ContainerEntry,
        key: Option<&PartitionKey>,
        operation: ItemOperation,
    ) -> Result<(Operation, Location), ServiceError> {
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
        };
        let location = self.locate(entry, key, document_of(&checked))?;
        Ok((checked, location))
    }

    /// The key is given, or in the document, or both and equal.
    pub(crate) fn locate(
        &self,
        entry: &ContainerEntry,
        key: Option<&PartitionKey>,
        document: Option<&Document>,
    ) -> Result<Location, ServiceError> {
        let spec = entry.container.spec();
        let definition = spec.definition.partition_key();
        let extracted = document.map(|document| definition.extract(document.json())).transpose()?;
        match (key, &extracted) {
            (Some(given), Some(extracted)) if given != extracted => Err(ServiceError::KeyMismatch),
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

fn document_of(operation: &Operation) -> Option<&Document> {
    match operation {
        Operation::Create { document }
        | Operation::Upsert { document, .. }
        | Operation::Replace { document, .. } => Some(document),
        Operation::Read { .. } | Operation::Delete { .. } | Operation::Patch { .. } => None,
    }
}

/// The part of the ring that a list covers.
fn scope_range(entry: &ContainerEntry, scope: &Scope) -> Result<EpkRange, ServiceError> {
    let nothing = || EpkRange::new(Epk::MIN, Epk::MIN);
    let mut within = scope.within.clone();
    if let Some(key) = &scope.key {
        let spec = entry.container.spec();
        let covered = spec.definition.partition_key().prefix_range(key)?;
        within = within.intersect(&covered).unwrap_or_else(nothing);
    }
    if let Some(id) = scope.range {
        let map = entry.container.map();
        let gone =
            || ServiceError::RangeGone { range: id.0, container: entry.name.rid.to_string() };
        let record = map.range(id).ok_or_else(gone)?;
        within = within.intersect(&record.range).unwrap_or_else(nothing);
    }
    Ok(within)
}

/// A client that has seen more of this partition than we have must not be told less.
fn check_session(
    session: Option<&SessionToken>,
    range: RangeId,
    lsn: Lsn,
) -> Result<(), ServiceError> {
    match session.and_then(|token| token.range(range.0)) {
        Some(seen) if seen.lsn > lsn => Err(ServiceError::SessionNotAvailable),
        Some(_) | None => Ok(()),
    }
}

fn read_work(effect: &Result<Effect, Problem>) -> Work {
    let bytes = effect.as_ref().ok().and_then(|effect| effect.text.as_ref()).map_or(0, Bytes::len);
    Work { item_bytes_read: bytes as u64, ..Work::default() }
}

fn one(effect: Effect) -> Reply {
    Reply::One { kind: effect.kind, etag: effect.etag, body: effect.text }
}

fn result(effect: Effect) -> ItemResult {
    ItemResult { kind: effect.kind, etag: effect.etag, body: effect.text }
}
