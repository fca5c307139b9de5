//! Where the whole database is put to the test: a language oracle over all documents and
//! a client that merges by itself, writers that are killed, and the bodies of the fuzzer.
//!
//! Apart from `testkit`, because it stands on `service`: tests of the crates below would
//! otherwise build everything above them.
//!
//! Must not know: production; only tests at the height of `service` and above need it.

pub mod crash;
pub mod fuzz;
pub mod queries;
