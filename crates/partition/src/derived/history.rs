//! The history, which follows from changes instead of items: nothing of it can be derived
//! again, so `entries` are none, and `check` compares its two groups with each other.

use bytes::Bytes;
use model::charge::Written;

use super::{Change, Entry, Maintainer, Scope, Version};
use crate::command::PartitionError;
use crate::key::Group;
use crate::record::RecordError;
use crate::write_set::WriteSet;

/// A record of each operation, in the order of commits.
pub(super) struct Histories;

impl Maintainer for Histories {
    fn group(&self) -> Group {
        Group::History
    }

    fn follows_from_items(&self) -> bool {
        false
    }

    fn entries(&self, _: &Scope<'_>, _: &Version<'_>) -> Result<Vec<Entry>, RecordError> {
        Ok(Vec::new())
    }

    fn stage(
        &self,
        scope: &Scope<'_>,
        change: Change<'_>,
        writes: &mut WriteSet<'_>,
        _: &mut Written,
    ) -> Result<(), PartitionError> {
        if let Some(event) = change.event {
            writes.write(scope.keys.history(event.at), Some(event.value.clone()));
        }
        Ok(())
    }
}

/// Which of them are of which partition key.
pub(super) struct KeyHistories;

impl Maintainer for KeyHistories {
    fn group(&self) -> Group {
        Group::KeyHistory
    }

    fn follows_from_items(&self) -> bool {
        false
    }

    fn entries(&self, _: &Scope<'_>, _: &Version<'_>) -> Result<Vec<Entry>, RecordError> {
        Ok(Vec::new())
    }

    fn stage(
        &self,
        scope: &Scope<'_>,
        change: Change<'_>,
        writes: &mut WriteSet<'_>,
        _: &mut Written,
    ) -> Result<(), PartitionError> {
        if let Some(event) = change.event {
            writes.write(scope.keys.key_history(scope.epk, event.at), Some(Bytes::new()));
        }
        Ok(())
    }
}
