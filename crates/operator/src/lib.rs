//! The operator protocol: what those who run a server can ask it under `/_orrery/`, in JSON
//! over HTTP, and the client of the program's own commands.
//!
//! [`OperatorGateway::route`] looks at the head of a request: it answers what is public,
//! refuses what does not carry the account key, and passes on what belongs to another
//! protocol. [`OperatorGateway::answer`] takes the body of an [`OperatorRequest`] and asks
//! the service, or the [`Process`] around it, which keeps the counters and writes the
//! backups.
//!
//! Must not know: connections, command lines, other protocols.

mod backup;
mod client;
mod clock;
mod error;
mod gateway;
mod keys;
mod metrics;
mod partitions;
mod process;
mod reply;
mod request;
mod roles;
mod scripts;
mod throughput;

pub use backup::{BackupRefused, BackupStatus};
pub use client::{OperatorClient, OperatorClientError};
pub use gateway::{OperatorGateway, Routed};
pub use keys::KeyNotKept;
pub use metrics::RequestDurations;
pub use partitions::HalveBy;
pub use process::{
    AnswerFigures, ConnectionFigures, MemoryFigures, Process, ProcessFigures, Rotating, TaskFigures,
};
pub use reply::{OperatorReply, json, problem};
pub use request::{OperatorKey, OperatorRequest};
pub use scripts::{ScriptKind, ScriptUpload};
