//! What tests of all layers share: storage that fails on purpose, damaged files, simulated
//! power cuts, colliding keys, waiting for a future.
//!
//! Nothing here ships. Crates take it as a dev-dependency only, and the layering test
//! enforces that. What needs more than a store is in `lab`.
//!
//! Must not know: production; no crate may need it outside its tests.

pub mod collide;
pub mod damage;
pub mod faulty;
pub mod files;
pub mod power;
pub mod wait;
