//! Fuzz bodies: what must hold for any bytes whatever.
//!
//! A body takes bytes that a stranger might send or a disk might return, and
//! panics when a promise is broken; refusing the bytes is fine. Every body runs in
//! three ways, so that a finding of one is repeatable in the others: in
//! every test run over the corpus in `fuzz/corpus/` and seeded mutations of it,
//! for as long as one likes with `cargo xtask fuzz`, and under coverage guidance
//! with cargo-fuzz (`fuzz/`, needs a nightly compiler).
//!
//! A new body needs a line in [`BODIES`], some inputs in `fuzz/corpus/NAME/` and
//! a target in `fuzz/fuzz_targets/NAME.rs`; a test holds the three together.

mod driver;
mod mutation;

pub use driver::{Crash, read_corpus, run};
pub use mutation::Mutator;

/// What must hold for any bytes; panics when it does not.
pub type Body = fn(&[u8]);

/// All bodies with their names, ordered by name.
pub const BODIES: &[(&str, Body)] = &[("json_value", json_value)];

/// Finds a body by its name.
#[must_use]
pub fn body(name: &str) -> Option<Body> {
    BODIES.iter().find(|(known, _)| *known == name).map(|(_, body)| *body)
}

/// Accepted JSON means the same when written out and read again, and looking
/// into the text gives what the tree gives.
pub fn json_value(input: &[u8]) {
    let Ok(raw) = model::json::parse_raw(input) else { return };
    let value = raw.to_value();
    let written = value.to_string();
    let again = model::json::parse(written.as_bytes()).expect("what we write, we can read");
    assert_eq!(again, value, "read back from {written}");
    assert_eq!(again.to_string(), written, "writing is stable");
    for (name, member) in value.as_object().into_iter().flat_map(model::json::Object::iter) {
        let looked_up = raw.get(name).map(model::json::Raw::to_value);
        assert_eq!(looked_up.as_ref(), Some(member), "property {name:?}");
    }
}
