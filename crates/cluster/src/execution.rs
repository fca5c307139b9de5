//! Execution of commands and reads in the partition that owns their key.
//!
//! Commands are applied in order by the partition's executor and acknowledged when they are
//! durable. Reads and the change feed use snapshot views and never wait for a command.

pub(crate) mod changes;
pub(crate) mod executor;
pub(crate) mod functions;
pub(crate) mod read;
pub(crate) mod scripts;
