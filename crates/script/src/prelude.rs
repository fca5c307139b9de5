//! Our own JavaScript, which runs in every context before the script does.
//!
//! It is compiled once per process. Each file is a function that takes the host's side as
//! arguments, so that scripts cannot reach that side by name.

use std::sync::OnceLock;

use crate::bytecode::{Bytecode, Kept};
use crate::fault::Fault;
use crate::isolate::Engine;
use crate::limits::ScriptLimits;

/// The clock, randomness, and bounds on built-in functions.
pub(crate) static GUARD: Prelude = Prelude::new("orrery:guard", include_str!("prelude/guard.js"));
/// What procedures and triggers know of the database.
pub(crate) static CONTEXT: Prelude =
    Prelude::new("orrery:context", include_str!("prelude/context.js"));

pub(crate) struct Prelude {
    /// What stack traces show; no script has such a name, since theirs end with `.js`.
    file: &'static str,
    text: &'static str,
    code: OnceLock<Bytecode>,
}

impl Prelude {
    const fn new(file: &'static str, text: &'static str) -> Self {
        Prelude { file, text, code: OnceLock::new() }
    }

    /// Fails only where memory is short.
    pub(crate) fn code(&self) -> Result<&Bytecode, Fault> {
        if let Some(code) = self.code.get() {
            return Ok(code);
        }
        let code =
            Engine::new(&ScriptLimits::default())?.compile(self.text, self.file, Kept::Code)?;
        Ok(self.code.get_or_init(|| code))
    }
}
