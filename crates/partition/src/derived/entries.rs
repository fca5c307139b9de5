//! Derived data of which each entry follows from one item alone.

use bytes::Bytes;

use super::{Entry, Maintainer, Scope, Version};
use crate::key::{self, Group};
use crate::record::RecordError;

/// The position and id of the item of an ordinal.
pub(super) struct Ordinals;

impl Maintainer for Ordinals {
    fn group(&self) -> Group {
        Group::Ordinal
    }

    fn entries(&self, scope: &Scope<'_>, version: &Version<'_>) -> Result<Vec<Entry>, RecordError> {
        let name = key::item_name(scope.epk, version.id);
        Ok(vec![Entry::new(scope.keys.ordinal(version.item.ordinal), name)])
    }
}

/// The items of each logical partition in the order of creation, with their ids.
pub(super) struct Members;

impl Maintainer for Members {
    fn group(&self) -> Group {
        Group::Member
    }

    fn entries(&self, scope: &Scope<'_>, version: &Version<'_>) -> Result<Vec<Entry>, RecordError> {
        let key = scope.keys.member(scope.epk, version.item.ordinal);
        Ok(vec![Entry::new(key, Bytes::copy_from_slice(version.id.as_bytes()))])
    }
}

/// The present version of each item, in the order of commits.
pub(super) struct Log;

impl Maintainer for Log {
    fn group(&self) -> Group {
        Group::Log
    }

    fn entries(&self, scope: &Scope<'_>, version: &Version<'_>) -> Result<Vec<Entry>, RecordError> {
        let key = scope.keys.log(version.item.lsn, version.item.ordinal);
        Ok(vec![Entry::new(key, key::terminated(scope.epk))])
    }
}

/// Items with a ttl of their own above zero, in the order of ttl and time. The others
/// expire, if at all, in the order of the log.
pub(super) struct Expiry;

impl Maintainer for Expiry {
    fn group(&self) -> Group {
        Group::Expiry
    }

    fn entries(&self, scope: &Scope<'_>, version: &Version<'_>) -> Result<Vec<Entry>, RecordError> {
        let item = version.item;
        let ttl = item.own_ttl.and_then(|ttl| u32::try_from(ttl.as_seconds()).ok());
        let key = ttl.map(|ttl| scope.keys.expiry(ttl, item.ts.secs(), item.ordinal));
        Ok(key.map(|key| Entry::new(key, Bytes::new())).into_iter().collect())
    }
}

/// The entries that the indexing policy of the item's version requires.
pub(super) struct IndexEntries;

impl Maintainer for IndexEntries {
    fn group(&self) -> Group {
        Group::Index
    }

    fn entries(&self, scope: &Scope<'_>, version: &Version<'_>) -> Result<Vec<Entry>, RecordError> {
        let (item, mut entries) = (version.item, Vec::new());
        scope.config.index_terms(item, |entry, is_term| {
            let key = scope.keys.index(entry, item.ordinal);
            entries.push(Entry { key, value: Bytes::new(), is_term });
        })?;
        Ok(entries)
    }
}
