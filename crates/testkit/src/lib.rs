//! What tests at every height share: storage that fails on purpose, files that are
//! damaged, disks whose power is cut, keys that collide, waiting for a future.
//!
//! Nothing here ships. A crate takes it as a dev-dependency only, and the
//! layering test sees to that. What needs more than a store is in `lab`.
//!
//! Must not know: production; no crate may need it outside its tests.

pub mod collide;
pub mod damage;
pub mod faulty;
pub mod files;
pub mod power;
pub mod wait;
