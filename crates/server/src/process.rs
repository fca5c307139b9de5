//! What all requests share in this process, and what operators see of it.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use operator::{BackupRefused, BackupStatus, MemoryFigures, Process, ProcessFigures, Rotating};
use runtime::{MemoryBudget, MemoryUsage};
use service::Service;
use service::identity::AccountKeyKind;
use wire_cosmos::BODY_BYTES_MAX;

use crate::background::backup::BackupJob;
use crate::background::tasks;
use crate::http::counters::Counters;
use crate::http::service::{Answers, BodyMemory};
use crate::keys::KeyKeeper;
use crate::memory::MemoryPlan;

#[derive(Debug)]
pub(crate) struct ServerProcess {
    /// Set when the data has been opened.
    service: OnceLock<Arc<Service>>,
    pub(crate) counters: Counters,
    pub(crate) background: tasks::Counters,
    pub(crate) answers: Answers,
    pub(crate) bodies: BodyMemory,
    pub(crate) backup: Arc<BackupJob>,
    plan: MemoryPlan,
    /// What queries take; they reserve from it themselves.
    queries: Arc<MemoryBudget>,
    keys: KeyKeeper,
}

impl ServerProcess {
    pub(crate) fn new(
        plan: MemoryPlan,
        queries: Arc<MemoryBudget>,
        keys: KeyKeeper,
    ) -> ServerProcess {
        ServerProcess {
            service: OnceLock::new(),
            counters: Counters::default(),
            background: tasks::Counters::default(),
            answers: Answers::new(&plan),
            bodies: BodyMemory::new(&plan),
            backup: Arc::default(),
            plan,
            queries,
            keys,
        }
    }

    /// From here on requests are served.
    pub(crate) fn opened(&self, service: Arc<Service>) {
        self.service.set(service).expect("the data is opened once");
    }

    fn memory(&self) -> MemoryFigures {
        let (bodies, bodies_waited) = self.bodies.usage();
        let limit = self.plan.bodies + self.plan.bodies_overflow * BODY_BYTES_MAX;
        MemoryFigures {
            limit_bytes: self.plan.total,
            cache_limit_bytes: self.plan.cache,
            memtables_limit_bytes: self.plan.memtables(),
            parts: vec![
                ("bodies", MemoryUsage { limit, ..bodies }),
                ("answers", self.answers.usage()),
                ("queries", self.queries.usage()),
            ],
            bodies_waited,
        }
    }
}

impl Process for ServerProcess {
    fn service(&self) -> Option<&Arc<Service>> {
        self.service.get()
    }

    fn figures(&self) -> ProcessFigures {
        let (answers, connections) = self.counters.figures();
        let (memory, tasks) = (self.memory(), self.background.figures());
        ProcessFigures { answers, connections, memory, tasks }
    }

    fn backup(&self) -> BackupStatus {
        self.backup.status()
    }

    fn begin_backup(&self, folder: PathBuf) -> Result<BackupStatus, BackupRefused> {
        match self.service() {
            Some(service) => self.backup.begin(service, folder),
            None => Err(BackupRefused::Conflict("the server is starting".to_owned())),
        }
    }

    fn rotate_key(&self, kind: AccountKeyKind) -> Rotating<'_> {
        Box::pin(self.keys.rotate(kind))
    }
}
