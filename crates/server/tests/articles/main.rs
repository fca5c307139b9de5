//! The articles on partitioning, statement by statement, seen from outside.
//!
//! Each test runs the built binary and speaks HTTP with it. The name of a test
//! begins with the ids of the rows it proves (`l3_…`, `p1_p21_…`), from the list in
//! `docs/partitioning/rows.toml`; `cargo xtask partitioning` runs them all and writes
//! the table of rows and results.

mod api;
#[allow(dead_code, reason = "shared with the tests of the program, each uses a part")]
#[path = "../serve/client.rs"]
mod client;
mod keys;
mod kinds;
mod logical;
mod nutrition;
mod physical;
#[allow(dead_code, reason = "shared with the tests of the program, each uses a part")]
#[path = "../serve/program.rs"]
mod program;
mod queries;
mod scripts;
mod statistics;
mod throughput;
mod world;
