//! A script that was parsed.

use std::sync::Arc;

use crate::bytecode::{Bytecode, Kept};
use crate::fault::Fault;
use crate::isolate::Engine;
use crate::limits::{SOURCE_BYTES_MAX, ScriptLimits};

/// The service assigns the text of a script to a variable of this name, as its stack traces
/// show. So the text may be any expression that is a function, after comments and with
/// semicolons, and further functions may follow on lines of their own: the first is called.
pub(crate) const ENTRY: &str = "__docDbMain";

/// Lines before the user's text.
pub(crate) const LINES_BEFORE: u32 = 1;

/// A procedure, trigger or function, ready to run in any context.
#[derive(Clone, Debug)]
pub struct Script {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    name: String,
    file: String,
    code: Bytecode,
}

impl Script {
    /// Parses a script's text without running it. The name is for stack traces.
    pub fn compile(name: &str, text: &str) -> Result<Script, Fault> {
        if text.len() > SOURCE_BYTES_MAX {
            let (bytes, bytes_max) = (text.len(), SOURCE_BYTES_MAX);
            return Err(Fault::SourceTooLarge { bytes, bytes_max });
        }
        let file = file_of(name);
        let source = format!("var {ENTRY} =\n{text}");
        let code = Engine::new(&ScriptLimits::default())?.compile(&source, &file, Kept::Source)?;
        Ok(Script { inner: Arc::new(Inner { name: name.to_owned(), file, code }) })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Memory that the script takes while it is kept.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.inner.code.len() + self.inner.name.len() + self.inner.file.len() + size_of::<Inner>()
    }

    pub(crate) fn file(&self) -> &str {
        &self.inner.file
    }

    pub(crate) fn code(&self) -> &Bytecode {
        &self.inner.code
    }
}

/// The name in stack traces. A zero byte would end it for the engine.
fn file_of(name: &str) -> String {
    format!("{}.js", name.replace('\0', ""))
}
