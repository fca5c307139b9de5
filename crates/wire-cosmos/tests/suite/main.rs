//! The protocol as a client sees it, without a network in between.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod authorisation;
mod batches;
mod headers;
mod hostile;
mod hybrid;
mod pages;
mod procedures;
mod provider;
mod queries;
mod rights;
mod tokens;
mod transcripts;
mod world;
