//! What clients are told about a failed script.
//!
//! The texts are those of the service as far as they are known; docs/design/scripts.md has
//! the sources.

use std::fmt::Write as _;

use script::{Fault, Thrown};

/// What a client is told about a failed script.
pub(crate) fn message(script: &str, fault: &Fault) -> String {
    const RUNNING: &str = "Encountered exception while executing function. Exception = ";
    match fault {
        Fault::Thrown(thrown) | Fault::Aborted(thrown) => {
            format!("{RUNNING}{}", exception(script, thrown))
        }
        Fault::OutOfMemory => format!("{RUNNING}Error: Out of memory"),
        Fault::StackOverflow => format!("{RUNNING}Error: Out of stack space"),
        Fault::Syntax { message, position } => {
            let place = position.map(|at| format!("\r\nStack trace:    at {script}.js:{at}"));
            format!(
                "Encountered exception while compiling Javascript. Exception = SyntaxError: \
                 {message}{}",
                place.unwrap_or_default()
            )
        }
        Fault::OutOfTime | Fault::OutOfSteps => format!(
            "The script with id '{script}' was stopped because it exceeded the time that scripts \
             may run. Return from the script when an operation is not accepted, and call it again."
        ),
        Fault::NotAFunction
        | Fault::SourceTooLarge { .. }
        | Fault::Arguments { .. }
        | Fault::ResultTooLarge { .. }
        | Fault::Unsettled => format!("The script with id '{script}' failed: {fault}."),
    }
}

/// `Error: MESSAGE`, and the stack if there is one.
fn exception(script: &str, thrown: &Thrown) -> String {
    let (text, frames) = (thrown.text(), &thrown.frames);
    if frames.is_empty() {
        return text;
    }
    let mut out = format!("{text}\r\nStack trace: {text}");
    for frame in frames {
        let function = match frame.function.as_str() {
            "" => "Anonymous function",
            named => named,
        };
        let written = write!(out, "\n   at {function} ({script}.js:{})", frame.position);
        written.expect("a string takes all that is written to it");
    }
    out
}
