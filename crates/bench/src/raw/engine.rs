//! A whole engine instead of ours, fjall, at its best: the same trees below, with its own
//! journal.
//!
//! Every thread inserts its own batch, then one of them syncs for all that are in by then: a
//! sync for each batch would be far slower. Unlike behind the door, readers see batches
//! before they are durable.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use storage::local::LocalConfig;

use super::Storey;
use super::recorder::Recorded;
use crate::document::Documents;

/// With two, the first one spins for as long as the second compacts.
const FLUSHERS: usize = 1;

pub(super) struct EngineStorey {
    database: Database,
    data: Keyspace,
    inserted: AtomicU64,
    synced: Mutex<u64>,
}

impl EngineStorey {
    pub(super) fn open(folder: &Path) -> Result<EngineStorey> {
        let config = LocalConfig::default();
        let database = Database::builder(folder)
            .cache_size(config.cache_bytes)
            .worker_threads(FLUSHERS)
            .open()?;
        let options = || KeyspaceCreateOptions::default().max_memtable_size(config.memtable_bytes);
        let data = database.keyspace("data", options)?;
        Ok(EngineStorey { database, data, inserted: AtomicU64::new(0), synced: Mutex::new(0) })
    }

    fn sync(&self) -> Result<()> {
        let mine = self.inserted.fetch_add(1, Ordering::SeqCst) + 1;
        let mut synced = self.synced.lock().unwrap_or_else(PoisonError::into_inner);
        if *synced < mine {
            let inserted = self.inserted.load(Ordering::SeqCst);
            self.database.persist(PersistMode::SyncData)?;
            *synced = inserted;
        }
        Ok(())
    }
}

impl Storey for EngineStorey {
    fn create(&self, _: Documents, number: u64, recorded: &Recorded) -> Result<()> {
        let mut batch = self.database.batch();
        for write in recorded.batch(number)?.iter() {
            match write.value() {
                Some(value) => batch.insert(&self.data, write.key().clone(), value.clone()),
                None => batch.remove(&self.data, write.key().clone()),
            }
        }
        batch.commit()?;
        self.sync()
    }

    fn read(&self, _: Documents, number: u64, recorded: &Recorded) -> Result<usize> {
        let found = self.data.get(recorded.key(number)?)?;
        Ok(found.context("the document is there")?.len())
    }
}
