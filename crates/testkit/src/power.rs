//! Power cuts without a switch: a recorded run, and the folders that a disk could hold.
//!
//! A process writes through the storage door while a library that is loaded into it
//! (`power/recorder.c`) records every change of a file and every sync, in order, together
//! with what the process says. From the records a [`Disk`] is built up to some moment, and
//! then cut: what was synced is there, and of everything else any part may be, page by
//! page and name by name. The folder is opened, and has to hold a state that really was.
//!
//! The promise is kept by the ledger of what was said: [`Promise`]. What the process
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
