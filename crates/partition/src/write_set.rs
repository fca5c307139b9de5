//! The write set of a command: its writes before they are submitted.

use std::collections::BTreeMap;

use bytes::Bytes;
use storage::{View, WriteBatch};

use crate::command::PartitionError;
use crate::overlay::Overlay;

/// Staged writes over writes that are not durable yet over a view: what the
/// partition will hold when everything before this command has been written.
#[derive(Debug)]
pub(crate) struct WriteSet<'a> {
    overlay: &'a Overlay,
    view: Box<dyn View>,
    staged: BTreeMap<Bytes, Option<Bytes>>,
}

impl<'a> WriteSet<'a> {
    pub(crate) fn new(overlay: &'a Overlay, view: Box<dyn View>) -> WriteSet<'a> {
        WriteSet { overlay, view, staged: BTreeMap::new() }
    }

    /// On top of writes that were staged before.
    pub(crate) fn resume(
        overlay: &'a Overlay,
        view: Box<dyn View>,
        staged: BTreeMap<Bytes, Option<Bytes>>,
    ) -> WriteSet<'a> {
        WriteSet { overlay, view, staged }
    }

    /// What was staged, to go on with it later.
    pub(crate) fn into_staged(self) -> BTreeMap<Bytes, Option<Bytes>> {
        self.staged
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.staged.is_empty()
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Bytes>, PartitionError> {
        if let Some(staged) = self.staged.get(key) {
            return Ok(staged.clone());
        }
        match self.overlay.get(key) {
            Some(pending) => Ok(pending),
            None => Ok(self.view.get(key)?),
        }
    }

    /// Sets a key, or removes it.
    pub(crate) fn write(&mut self, key: Bytes, value: Option<Bytes>) {
        self.staged.insert(key, value);
    }

    pub(crate) fn into_batch(self) -> WriteBatch {
        let mut batch = WriteBatch::new();
        for (key, value) in self.staged {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        batch
    }
}
