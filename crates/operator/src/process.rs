//! The process around the database, as far as operators ask about it.
//!
//! Connections, memory, background tasks and backups are the server's. It hands over their
//! figures as plain values, so that they can be shown without knowing how they are kept.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use runtime::MemoryUsage;
use serde_json::{Value, json};
use service::Service;
use service::identity::{AccountKey, AccountKeyKind};

use crate::backup::{BackupRefused, BackupStatus};
use crate::keys::KeyNotKept;

pub trait Process: fmt::Debug + Send + Sync {
    /// The database, once it is open.
    fn service(&self) -> Option<&Arc<Service>>;

    fn figures(&self) -> ProcessFigures;

    /// The state of the running backup, or the result of the last one.
    fn backup(&self) -> BackupStatus;

    /// Begins a backup into a folder that does not exist yet.
    fn begin_backup(&self, folder: PathBuf) -> Result<BackupStatus, BackupRefused>;

    /// Replaces a key of the account by a new one, which it keeps before it is valid.
    fn rotate_key(&self, kind: AccountKeyKind) -> Rotating<'_>;
}

/// On the way to a new key.
pub type Rotating<'a> = Pin<Box<dyn Future<Output = Result<AccountKey, KeyNotKept>> + Send + 'a>>;

/// What a process has counted since it started, at one moment.
#[derive(Clone, Debug, Default)]
pub struct ProcessFigures {
    pub answers: AnswerFigures,
    pub connections: ConnectionFigures,
    pub memory: MemoryFigures,
    pub tasks: Vec<TaskFigures>,
}

/// Answers to requests, by whose fault they were.
#[derive(Clone, Copy, Debug, Default)]
pub struct AnswerFigures {
    pub ok: u64,
    pub client_error: u64,
    pub server_error: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectionFigures {
    pub open: u64,
    pub opened: u64,
    /// Open ones that hold nothing but the socket.
    pub parked: u64,
    /// Those beyond the limit.
    pub refused: u64,
}

/// The memory that clients can make the process use.
#[derive(Clone, Debug, Default)]
pub struct MemoryFigures {
    pub limit_bytes: u64,
    pub cache_limit_bytes: u64,
    pub memtables_limit_bytes: u64,
    /// What is held of each counted part, by its purpose.
    pub parts: Vec<(&'static str, MemoryUsage)>,
    /// How often a body waited for memory.
    pub bodies_waited: u64,
}

/// How often a background task ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskFigures {
    pub name: &'static str,
    /// Rounds that were begun.
    pub rounds: u64,
    /// Rounds that ended with an error or a panic.
    pub failures: u64,
}

impl ProcessFigures {
    pub(crate) fn to_json(&self) -> Value {
        let AnswerFigures { ok, client_error, server_error } = self.answers;
        let ConnectionFigures { open, opened, parked, refused } = self.connections;
        let task = |task: &TaskFigures| {
            let figures = json!({ "rounds": task.rounds, "failures": task.failures });
            (task.name.to_owned(), figures)
        };
        json!({
            "answers": { "ok": ok, "clientError": client_error, "serverError": server_error },
            "connections": {
                "open": open, "opened": opened, "parked": parked, "refused": refused,
            },
            "memory": self.memory.to_json(),
            "tasks": self.tasks.iter().map(task).collect::<serde_json::Map<_, _>>(),
        })
    }
}

impl MemoryFigures {
    fn to_json(&self) -> Value {
        let mut report = json!({
            "limitBytes": self.limit_bytes,
            "cache": { "limitBytes": self.cache_limit_bytes },
            "memtables": { "limitBytes": self.memtables_limit_bytes },
        });
        for (name, MemoryUsage { limit, held, high, refused }) in &self.parts {
            report[*name] = json!({
                "limitBytes": limit, "heldBytes": held, "highBytes": high, "refused": refused,
            });
        }
        report["bodies"]["waited"] = json!(self.bodies_waited);
        report
    }
}
