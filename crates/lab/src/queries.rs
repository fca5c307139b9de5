//! Query tests: what queries must return, whatever the access path.
//!
//! A [`Lab`] is a service with one container that answers queries through indexes, by
//! scanning, in pages of any size and on any number of partitions. A [`client`] asks each
//! partition itself and merges, as SDKs do. The [`oracle`] knows no index, no partition and
//! no page. [`trial`]s compare them on random data with random queries.

pub mod client;
mod data;
mod dice;
mod grammar;
mod lab;
pub mod oracle;
mod order;
pub mod rows;
pub mod transcript;
pub mod trial;

pub use dice::Dice;
pub use lab::{Answer, Ask, Lab, PAGE_ALL, Page, PartitionsAsked, definition};
