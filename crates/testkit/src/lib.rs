//! What tests share: fuzz bodies and the seeded driver that feeds them, storage
//! that fails on purpose, writers that are killed, and disks whose power is cut.
//!
//! Nothing here ships. A crate takes it as a dev-dependency only, and the
//! layering test sees to that.
//!
//! Must not know: production; no crate may need it outside its tests.

pub mod collide;
pub mod crash;
pub mod damage;
pub mod faulty;
pub mod files;
pub mod fuzz;
pub mod power;
pub mod queries;
pub mod wait;
