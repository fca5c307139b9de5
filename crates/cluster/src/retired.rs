//! Removing the keys of dropped containers, after the fact and in small steps.
//!
//! A drop is done when the catalogue says so; the keys are garbage from then on
//! and their prefix is never used again. A *retired* item remembers the prefix
//! until the last key is gone, across restarts.

use std::borrow::Cow;

use model::json::Object;
use partition::{ContainerNumber, container_prefix};
use storage::{Batch, Direction, KeyRange, Outcome, ScanLimit};

use crate::cluster::Cluster;
use crate::error::ClusterError;
use crate::system::SystemWrite;

const PREFIX: &str = "retired:";

/// Marks read at once.
const CHUNK_MARKS: usize = 256;

/// The write that retires a container's keys.
pub(crate) fn mark(number: ContainerNumber) -> SystemWrite {
    SystemWrite::Create { id: format!("{PREFIX}{}", number.0), body: Object::new() }
}

impl Cluster {
    /// The numbers of containers whose keys are still to be removed.
    pub fn retired(&self) -> Result<Vec<ContainerNumber>, ClusterError> {
        let number = |id: &str| id.strip_prefix(PREFIX)?.parse().ok().map(ContainerNumber);
        let mut numbers = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let items = self.list_system(PREFIX, after.as_deref(), CHUNK_MARKS)?;
            let ids = items.iter().filter_map(|item| item.json().get("id")?.as_str());
            let ids: Vec<String> = ids.map(Cow::into_owned).collect();
            numbers.extend(ids.iter().filter_map(|id| number(id)));
            match ids.into_iter().next_back() {
                Some(last) => after = Some(last),
                None => return Ok(numbers),
            }
        }
    }

    /// Removes the keys of one retired container. Returns how many there were.
    pub async fn sweep(&self, number: ContainerNumber) -> Result<u64, ClusterError> {
        let prefix = container_prefix(number);
        let mut removed = 0;
        let mut stream = self.store().stream();
        loop {
            let view = self.store().view()?;
            let chunk =
                view.scan(&KeyRange::prefix(&prefix), Direction::Forward, ScanLimit::default())?;
            drop(view);
            if chunk.rows.is_empty() {
                break;
            }
            let mut batch = Batch::new();
            removed += chunk.rows.len() as u64;
            for (key, _) in chunk.rows {
                batch.delete(key);
            }
            if stream.submit(batch).await != Outcome::Durable {
                return Err(ClusterError::Unknown);
            }
        }
        let done = SystemWrite::Delete { id: format!("{PREFIX}{}", number.0), if_match: None };
        self.write_system(vec![done]).await?;
        Ok(removed)
    }
}
