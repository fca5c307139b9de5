//! How a run can fail, named by what happened.
//!
//! Which status a client gets for each, and in which words, is the business of a protocol.
//! Here are the facts that those words need: the message, a number where the script gave
//! one, and the place in the script.

use std::fmt;

/// Why a script gave no result. Nothing of what it did may be kept.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Fault {
    /// The text is not JavaScript.
    #[error("syntax error{}: {message}", At(*.position))]
    Syntax { message: String, position: Option<LineColumn> },
    /// The text is JavaScript, but not a function.
    #[error("the script is not a function")]
    NotAFunction,
    #[error("the script has {bytes} bytes, more than {bytes_max}")]
    SourceTooLarge { bytes: usize, bytes_max: usize },
    /// Arguments are a JSON array of bounded size.
    #[error("the arguments are not acceptable: {problem}")]
    Arguments { problem: &'static str },
    /// The script, or a function that it called, threw.
    #[error("{0}")]
    Thrown(Box<Thrown>),
    /// The script ended itself with `getContext().abort`.
    #[error("aborted: {0}")]
    Aborted(Box<Thrown>),
    /// The host's deadline passed.
    #[error("the script ran for too long")]
    OutOfTime,
    /// It took more steps than a script may, whatever the time.
    #[error("the script took too many steps")]
    OutOfSteps,
    /// Also said of a script that throws null: the engine does the same when there is no
    /// memory left for an error.
    #[error("the script used too much memory")]
    OutOfMemory,
    #[error("the script's calls are nested too deeply")]
    StackOverflow,
    #[error("the result has {bytes} bytes, more than {bytes_max}")]
    ResultTooLarge { bytes: usize, bytes_max: usize },
    /// An async script waits for a promise that nothing can fulfil any more.
    #[error("the script waits for a promise that is never settled")]
    Unsettled,
}

impl Fault {
    /// Where in the script it happened, if that is known.
    #[must_use]
    pub fn position(&self) -> Option<LineColumn> {
        match self {
            Fault::Syntax { position, .. } => *position,
            Fault::Thrown(thrown) | Fault::Aborted(thrown) => thrown.position(),
            Fault::NotAFunction
            | Fault::SourceTooLarge { .. }
            | Fault::Arguments { .. }
            | Fault::OutOfTime
            | Fault::OutOfSteps
            | Fault::OutOfMemory
            | Fault::StackOverflow
            | Fault::ResultTooLarge { .. }
            | Fault::Unsettled => None,
        }
    }
}

/// A value that a script threw and did not catch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thrown {
    /// The class of the error, `Error` or `TypeError` for example; empty if something else
    /// than an error was thrown.
    pub name: String,
    pub message: String,
    /// The number that the script gave the error, as in `new Error(404, "…")`; that of a
    /// refusal, if one was passed on.
    pub number: Option<i32>,
    /// Where in the script, the innermost call first. Calls inside the engine are left out.
    pub frames: Vec<Frame>,
}

/// A call that was under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Empty for a function without a name.
    pub function: String,
    pub position: LineColumn,
}

/// A place in the script's text; both count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineColumn {
    pub line: u32,
    pub column: u32,
}

impl Thrown {
    /// Where it was thrown, if that was in the script.
    #[must_use]
    pub fn position(&self) -> Option<LineColumn> {
        self.frames.first().map(|frame| frame.position)
    }

    /// Name and message.
    #[must_use]
    pub fn text(&self) -> String {
        match (self.name.as_str(), self.message.as_str()) {
            ("", message) => message.to_owned(),
            (name, "") => name.to_owned(),
            (name, message) => format!("{name}: {message}"),
        }
    }
}

impl fmt::Display for Thrown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.text(), At(self.position()))
    }
}

impl fmt::Display for LineColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A position that may be unknown, as an addition to a sentence.
struct At(Option<LineColumn>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |position| write!(f, " at {position}"))
    }
}
