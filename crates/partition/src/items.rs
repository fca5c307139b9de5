//! The operations on items, each a few lines over a transaction.

use bytes::Bytes;
use model::charge::{Work, Written};
use model::rid::ContainerRid;
use query::{AddedProperties, DocumentView};

use crate::command::{Effect, EffectKind, EtagMatch, Operation, PartitionError};
use crate::derived::Version;
use crate::document::{Document, DocumentError};
use crate::patch::{Patch, PatchError};
use crate::record::Item;
use crate::transaction::Transaction;

/// Executes one operation of a command.
pub(crate) fn perform(
    tx: &mut Transaction<'_>,
    operation: &Operation,
) -> Result<Effect, PartitionError> {
    match operation {
        Operation::Create { document } => create(tx, document),
        Operation::Upsert { document, if_match } => upsert(tx, document, if_match.as_ref()),
        Operation::Read { id, if_none_match } => {
            let item = tx.find(id.as_str())?.ok_or(PartitionError::NotFound)?;
            Ok(read(&item, tx.config.container_rid, if_none_match.as_ref()))
        }
        Operation::Replace { id, document, if_match } => {
            let old = existing(tx, id.as_str(), if_match.as_ref())?;
            // Another id does not make it another item, but must not be in use.
            if document.id() != id && tx.find(document.id().as_str())?.is_some() {
                return Err(PartitionError::Exists);
            }
            put(tx, document, Some(&Version::new(id.as_str(), &old)))
        }
        Operation::Delete { id, if_match } => {
            let old = existing(tx, id.as_str(), if_match.as_ref())?;
            let work = Work::Write(tx.remove(&Version::new(id.as_str(), &old))?);
            let kind = EffectKind::Deleted;
            Ok(Effect { kind, lsn: tx.lsn, stamp: None, text: None, work })
        }
        Operation::Patch { id, patch: request, if_match } => {
            let old = existing(tx, id.as_str(), if_match.as_ref())?;
            patch(tx, request, &Version::new(id.as_str(), &old))
        }
    }
}

fn create(tx: &mut Transaction<'_>, document: &Document) -> Result<Effect, PartitionError> {
    match tx.find(document.id().as_str())? {
        Some(_) => Err(PartitionError::Exists),
        None => put(tx, document, None),
    }
}

/// An `If-Match` applies only to an item that exists; without one it is ignored.
fn upsert(
    tx: &mut Transaction<'_>,
    document: &Document,
    if_match: Option<&EtagMatch>,
) -> Result<Effect, PartitionError> {
    let id = document.id().as_str();
    let old = tx.find(id)?;
    if let Some(old) = &old {
        check_match(old, if_match)?;
    }
    put(tx, document, old.as_ref().map(|old| Version::new(id, old)).as_ref())
}

/// The effect of reading an existing item.
pub(crate) fn read(
    item: &Item,
    container: ContainerRid,
    if_none_match: Option<&EtagMatch>,
) -> Effect {
    let (lsn, stamp) = (item.lsn, item.stamp(container));
    let unchanged = if_none_match.is_some_and(|condition| condition.matches(&stamp.etag));
    let (kind, text, work) = if unchanged {
        (EffectKind::NotModified, None, Work::Probe)
    } else {
        let work = Work::Read { bytes: item.own_bytes() };
        (EffectKind::Read, Some(item.text.clone()), work)
    };
    Effect { kind, lsn, stamp: Some(stamp), text, work }
}

fn patch(
    tx: &mut Transaction<'_>,
    patch: &Patch,
    old: &Version<'_>,
) -> Result<Effect, PartitionError> {
    let json = old.item.json();
    patch.check_targets(tx.config.definition.partition_key())?;
    if let Some(condition) = &patch.condition {
        let write = || tx.config.indexed_properties(old.item);
        let holds = condition.holds(DocumentView::new(json, &AddedProperties::new(&write)));
        let holds = holds.map_err(|error| PatchError::Condition(error.to_string()))?;
        if !holds {
            return Err(PartitionError::Precondition);
        }
    }
    let mut value = json.to_value();
    patch.perform(&mut value)?;
    let document = Document::parse(Bytes::from(value.to_string()), &tx.config.limits)
        .map_err(patched_problem)?;
    let (item, mut written) = tx.put(&document, Some(old))?;
    written.patched = patch.len();
    Ok(stored(tx, EffectKind::Replaced, item, written))
}

/// A patch can make a document that could not have been sent as a whole.
fn patched_problem(error: DocumentError) -> PartitionError {
    match error {
        DocumentError::TooLarge { bytes, max } => PartitionError::TooLarge { bytes, max },
        DocumentError::Json(_)
        | DocumentError::NotAnObject
        | DocumentError::MissingId
        | DocumentError::IdType
        | DocumentError::Id(_)
        | DocumentError::Ttl(_) => PatchError::Result(error.to_string()).into(),
    }
}

fn put(
    tx: &mut Transaction<'_>,
    document: &Document,
    old: Option<&Version<'_>>,
) -> Result<Effect, PartitionError> {
    let (item, written) = tx.put(document, old)?;
    let kind = if old.is_some() { EffectKind::Replaced } else { EffectKind::Created };
    Ok(stored(tx, kind, item, written))
}

fn stored(tx: &Transaction<'_>, kind: EffectKind, item: Item, written: Written) -> Effect {
    let (stamp, work) = (Some(item.stamp(tx.config.container_rid)), Work::Write(written));
    Effect { kind, lsn: item.lsn, stamp, text: Some(item.text), work }
}

fn existing(
    tx: &mut Transaction<'_>,
    id: &str,
    if_match: Option<&EtagMatch>,
) -> Result<Item, PartitionError> {
    let item = tx.find(id)?.ok_or(PartitionError::NotFound)?;
    check_match(&item, if_match)?;
    Ok(item)
}

fn check_match(item: &Item, if_match: Option<&EtagMatch>) -> Result<(), PartitionError> {
    match if_match {
        Some(condition) if !condition.matches(&item.etag()) => Err(PartitionError::Precondition),
        Some(_) | None => Ok(()),
    }
}
