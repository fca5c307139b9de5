//! Work that goes on while nobody asks for it.

pub(crate) mod allocator;
pub(crate) mod expirer;
pub(crate) mod indexer;
pub(crate) mod scaler;
pub(crate) mod sweeper;
