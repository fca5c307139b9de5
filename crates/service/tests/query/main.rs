//! Queries at the door.
//!
//! Scripts in `tests/query_scripts` run through indexes and as forced scans, on 1, 3 and 7
//! partitions, in memory and on disk, in pages of 1, 2, 7 and all rows, by the service and
//! by a merging client; any difference fails. Random queries are compared likewise by
//! `crates/lab/tests/queries.rs`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod functions;
mod hostile;
mod pages;
mod recorded;
mod scripts;
mod worlds;
