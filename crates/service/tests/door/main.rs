//! What the door promises beyond transcripts: published numbers, limits, durability.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]
#![allow(clippy::print_stdout, reason = "tests tell figures, and what they left out")]

mod collisions;
mod composite;
mod dropping;
mod durability;
mod fixture;
mod growing;
mod layout;
mod limits;
mod operator;
mod published;
mod queries;
mod read_items;
mod reindex;
mod scripts;
mod throughput;
