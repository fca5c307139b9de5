//! The sizes of logical partitions: derived data that follows from many items.

use model::charge::Written;

use super::{Change, Entry, Maintainer, Scope, Version};
use crate::command::PartitionError;
use crate::key::Group;
use crate::record::{KeyStatistics, RecordError};
use crate::write_set::WriteSet;

/// Items and bytes of each logical partition that has any.
pub(super) struct Statistics;

impl Maintainer for Statistics {
    fn group(&self) -> Group {
        Group::Statistics
    }

    /// No single item has an entry; see `summary`.
    fn entries(&self, _: &Scope<'_>, _: &Version<'_>) -> Result<Vec<Entry>, RecordError> {
        Ok(Vec::new())
    }

    fn summary(&self, scope: &Scope<'_>, total: &KeyStatistics) -> Option<Entry> {
        let entry = || Entry::new(scope.keys.statistics(scope.epk), total.encode());
        (total.items > 0).then(entry)
    }

    fn stage(
        &self,
        scope: &Scope<'_>,
        change: Change<'_>,
        writes: &mut WriteSet<'_>,
        _: &mut Written,
    ) -> Result<(), PartitionError> {
        if !change.is_resizing() {
            return Ok(());
        }
        let mut total = read(scope, writes)?;
        change.count(&mut total)?;
        let value = self.summary(scope, &total).map(|entry| entry.value);
        writes.write(scope.keys.statistics(scope.epk), value);
        Ok(())
    }
}

/// The size of a logical partition.
pub(crate) fn read(
    scope: &Scope<'_>,
    writes: &WriteSet<'_>,
) -> Result<KeyStatistics, PartitionError> {
    match writes.get(&scope.keys.statistics(scope.epk))? {
        Some(value) => Ok(KeyStatistics::decode(&value)?),
        None => Ok(KeyStatistics::default()),
    }
}

impl Change<'_> {
    /// Whether it changes the number of items or of bytes.
    pub(crate) fn is_resizing(&self) -> bool {
        self.old_size() != self.new_size()
    }

    /// Updates a total. One that would fall below zero never counted what is being removed.
    pub(crate) fn count(&self, total: &mut KeyStatistics) -> Result<(), RecordError> {
        let adjust = |count: u64, add: u64, subtract: u64| {
            let sum = count.checked_add(add).and_then(|sum| sum.checked_sub(subtract));
            sum.ok_or(RecordError::Malformed { what: "key statistics or head" })
        };
        let (old, new) = (self.old_size(), self.new_size());
        total.items = adjust(total.items, new.items, old.items)?;
        total.bytes = adjust(total.bytes, new.bytes, old.bytes)?;
        Ok(())
    }

    fn old_size(&self) -> KeyStatistics {
        size(self.old)
    }

    fn new_size(&self) -> KeyStatistics {
        size(self.new)
    }
}

fn size(version: Option<&Version<'_>>) -> KeyStatistics {
    let items = u64::from(version.is_some());
    KeyStatistics { items, bytes: version.map_or(0, |version| version.item.bytes()) }
}
