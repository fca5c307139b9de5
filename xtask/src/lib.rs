//! Every habit of this repository as a command, and every rule of it as a test.
//!
//! The rules ([`tidy`], [`layers`]) are pure functions over the repository's text: they
//! take files and return [`report::Finding`]s, so that each of them has a test which shows
//! it can fail. `cargo xtask tidy` and `cargo test` run the same functions over the real
//! files. How official SDKs work with the server is tested by [`conformance`] and
//! [`suite`]; [`readme`] runs what the README shows. The commands ([`commands`]) are thin:
//! they start cargo, pass its output through and sum up.
//!
//! Must not know: the crates it checks; it reads their text and runs their tests.
#![allow(clippy::print_stdout, reason = "a command-line tool talks on standard output")]

pub mod commands;
pub mod compatibility;
pub mod conformance;
pub mod layers;
pub mod partitioning;
pub mod processes;
pub mod readme;
pub mod repo;
pub mod report;
pub mod results;
pub mod run;
pub mod source;
pub mod suite;
pub mod tidy;
