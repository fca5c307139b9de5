//! Fuzz bodies: what must hold for any bytes.
//!
//! A body takes bytes that an untrusted client might send or a disk might return, and
//! panics when a promise is broken; refusing the bytes is fine. Every body runs in three
//! settings, so that a finding of one is repeatable in the others: in every test run over
//! the corpus in `fuzz/corpus/` and seeded mutations of it, for as long as one likes with
//! `cargo xtask fuzz`, and under coverage guidance with cargo-fuzz (`fuzz/`, needs a
//! nightly compiler).
//!
//! A new body needs a line in [`BODIES`], some inputs in `fuzz/corpus/NAME/` and a target
//! in `fuzz/fuzz_targets/NAME.rs`; a test checks that the three agree.

pub mod bodies;
mod driver;
pub mod frames;
pub mod identity;
mod mutation;
pub mod queries;
pub mod scripts;

pub use driver::{Crash, read_corpus, run};
pub use mutation::Mutator;

/// What must hold for any bytes; panics when it does not.
pub type Body = fn(&[u8]);

/// All bodies with their names, ordered by name.
pub const BODIES: &[(&str, Body)] = &[
    ("bearer_token", identity::bearer_token),
    ("container_definition", bodies::container_definition),
    ("hybrid_row", bodies::hybrid_row),
    ("index_value", bodies::index_value),
    ("indexing_policy", bodies::indexing_policy),
    ("json_value", bodies::json_value),
    ("partition_key", bodies::partition_key),
    ("partition_key_path", bodies::partition_key_path),
    ("query_cursor", queries::query_cursor),
    ("query_ways", queries::query_ways),
    ("resource_id", bodies::resource_id),
    ("rntbd_context", frames::rntbd_context),
    ("rntbd_frame", frames::rntbd_frame),
    ("rntbd_tokens", frames::rntbd_tokens),
    ("role_scope", identity::role_scope),
    ("script_arguments", scripts::script_arguments),
    ("script_result", scripts::script_result),
    ("script_text", scripts::script_text),
    ("session_token", bodies::session_token),
    ("sql_parse", bodies::sql_parse),
    ("sql_run", bodies::sql_run),
    ("typed_value", bodies::typed_value),
];

/// Finds a body by its name.
#[must_use]
pub fn body(name: &str) -> Option<Body> {
    BODIES.iter().find(|(known, _)| *known == name).map(|(_, body)| *body)
}
