//! The laboratory, where the whole database is tested: a language oracle over all documents
//! and a merging client, writers that are killed, histories of transactions with their
//! checker, and the bodies of the fuzzer.
//!
//! Separate from `testkit`, because it depends on `service`: tests of the crates below
//! would otherwise build everything above them.
//!
//! Must not know: production; only tests at the height of `service` and above need it.

pub mod crash;
pub mod fuzz;
pub mod histories;
pub mod queries;
mod system;

pub use system::system_properties;
