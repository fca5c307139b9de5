//! One module per command of `cargo xtask`.

pub mod bench;
pub mod check;
pub mod compatibility;
pub mod conformance;
pub mod fuzz;
pub mod golden;
pub mod partitioning;
pub mod planner_diff;
pub mod ru;
pub mod soak;
pub mod suite;
pub mod test;
pub mod tidy;
pub mod transitions;
