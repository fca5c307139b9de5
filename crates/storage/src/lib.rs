//! An ordered, snapshotting, atomically committing store of byte keys and values.
//!
//! This crate is one door ([`Store`]) with interchangeable backends: [`memory`] for tests
//! and throw-away servers, [`local`] for a folder on a disk. It offers no transactions,
//! expiry or merge operators: preconditions and layouts live above it.
//!
//! The shape follows from one rule, *acknowledged means durable, and readers see
//! only what is durable*:
//!
//! 1. A sequencer submits a [`WriteBatch`] on its [`WriteSession`] and gets a [`Ticket`].
//! 2. The backend's committer merges everything that waits into one engine batch (group
//!    commit), makes it durable with one sync, and publishes it.
//! 3. Only then do the tickets resolve and do new [`View`]s show the writes.
//!
//! Callers keep what they submitted but cannot read yet in an overlay of their
//! own. A [`CommitStatus`] other than durable ends the session: what was computed on
//! top of a lost write must be lost with it.
//!
//! Byte layouts: `docs/formats/storage.md`. Reasons and measurements:
//! `docs/design/storage-door.md`.
//!
//! Must not know: documents, partitions.

pub mod backup;
mod batch;
mod committer;
mod door;
mod error;
pub mod local;
pub mod memory;
mod scan;
mod ticket;

pub use batch::{KEY_BYTES_MAX, RESERVED_PREFIX, VALUE_BYTES_MAX, Write, WriteBatch};
pub use door::{
    ContentsVersion, Counters, Durability, Loss, Store, VerifyReport, View, WriteSession,
};
pub use error::{StorageError, VersionMismatch};
pub use scan::{Chunk, Direction, KeyRange, ScanLimit};
pub use ticket::{CommitStatus, Resolver, Ticket, TicketStatus};
