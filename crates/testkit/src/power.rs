//! Power cuts without a switch: a recorded run, and the folders that a disk could be left
//! with.
//!
//! A process writes through the storage door while a preloaded library (`power/recorder.c`)
//! records every change of a file and every sync, in order, together with what the process
//! prints. From the records a [`Disk`] is built up to some moment, and then cut: what was
//! synced is there, and of everything else any part may be, page by page and name by name.
//! The folder is opened, and has to hold a state that existed at some moment.
//!
//! What must survive follows from what the process printed: [`Promise`]. What the process
//! writes is a function of a seed and the number of the batch ([`history`]), so the state
//! after any number of batches is known.

mod disk;
pub mod history;
mod promise;
mod recording;
mod trace;

pub use disk::Disk;
pub use promise::Promise;
pub use recording::{Ending, Recorder, Run};
pub use trace::{Event, Trace};
