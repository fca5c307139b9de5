//! How commands and reads come to the partition that owns their key.
//!
//! Commands are applied in order by the partition's executor and answered when the disk
//! has them. Reads and the change feed go by views, beside all that, and never wait for a
//! command.

pub(crate) mod changes;
pub(crate) mod executor;
pub(crate) mod read;
