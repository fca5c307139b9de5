//! The protocol as a client sees it, without a network in between.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod opening;
mod transcripts;
mod world;
