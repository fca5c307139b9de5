//! Regular expressions.
//!
//! The service speaks PCRE, which can take time without end on short texts. The
//! library used here never does: its time grows with the length of the text. So
//! patterns are translated, and what cannot be said without backtracking is
//! refused in words, while a pattern that is plain wrong gives undefined as in
//! the service.

mod translate;

use regex::{Regex, RegexBuilder};

use super::{Function, at};
use crate::bound::Expr;
use crate::error::QueryError;
use crate::eval::{Ambient, Datum, Evaluated};

/// Bytes that a compiled pattern may take: counted repetitions multiply.
const COMPILED_BYTES_MAX: usize = 1024 * 1024;

/// Steps that compiling a pattern takes, besides those for each of its bytes.
const COMPILE_STEPS: usize = 2_000;

/// Steps per byte of a pattern.
const COMPILE_BYTE_STEPS: usize = 100;

pub(super) const TABLE: &[Function] = &[
    Function::aware(&["REGEXMATCH", "REGEX_MATCH", "_REGEX_MATCH"], (2, 3), |ambient, a| {
        compiled_anew(ambient, a, RegexUse::Test)
    }),
    Function::aware(&["REGEXEXTRACT", "REGEX_EXTRACT"], (2, 3), |ambient, a| {
        compiled_anew(ambient, a, RegexUse::First)
    }),
    Function::aware(&["REGEXEXTRACTALL", "REGEX_EXTRACT_ALL"], (2, 3), |ambient, a| {
        compiled_anew(ambient, a, RegexUse::All)
    }),
];

/// What is asked of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegexUse {
    /// Whether it is found.
    Test,
    /// The first text that fits, undefined if there is none.
    First,
    /// All texts that fit.
    All,
}

impl RegexUse {
    /// What the function of that name does with patterns, if it does.
    pub(crate) fn of(function: &Function) -> Option<RegexUse> {
        match function.name() {
            "REGEXMATCH" => Some(RegexUse::Test),
            "REGEXEXTRACT" => Some(RegexUse::First),
            "REGEXEXTRACTALL" => Some(RegexUse::All),
            _ => None,
        }
    }
}

/// Why a pattern cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegexError {
    /// It says nothing, so the result is undefined.
    Invalid,
    /// It is right, but needs backtracking.
    Unsupported(&'static str),
}

/// A call with a pattern that was compiled beforehand.
#[derive(Clone, Debug)]
pub(crate) struct RegexCall {
    pub(crate) text: Expr,
    kind: RegexUse,
    regex: Regex,
}

impl RegexCall {
    pub(crate) fn new(
        kind: RegexUse,
        text: Expr,
        pattern: &str,
        modifiers: &str,
    ) -> Result<RegexCall, RegexError> {
        compile(pattern, modifiers, kind).map(|regex| RegexCall { text, kind, regex })
    }

    /// Steps that making a call takes.
    pub(crate) fn steps(pattern: &str) -> usize {
        pattern.len().saturating_mul(COMPILE_BYTE_STEPS).saturating_add(COMPILE_STEPS)
    }

    pub(crate) fn apply<'a>(&self, text: &Datum<'a>) -> Datum<'a> {
        text.as_str().map_or(Datum::Undefined, |text| search(&self.regex, self.kind, &text))
    }
}

/// Compiles the pattern for this one call.
fn compiled_anew<'a>(ambient: &Ambient, arguments: &[Datum<'a>], kind: RegexUse) -> Evaluated<'a> {
    let (text, pattern) = (at(arguments, 0).as_str(), at(arguments, 1).as_str());
    let modifiers = match arguments.get(2) {
        Some(modifiers) => modifiers.as_str(),
        None => Some("".into()),
    };
    let (Some(text), Some(pattern), Some(modifiers)) = (text, pattern, modifiers) else {
        return Ok(Datum::Undefined);
    };
    ambient.budget.spend_steps(RegexCall::steps(&pattern))?;
    match compile(&pattern, &modifiers, kind) {
        Ok(regex) => Ok(search(&regex, kind, &text)),
        Err(RegexError::Invalid) => Ok(Datum::Undefined),
        Err(RegexError::Unsupported(what)) => {
            Err(QueryError::Unsupported { what: format!("{what} in a regular expression") })
        }
    }
}

fn search<'a>(regex: &Regex, kind: RegexUse, text: &str) -> Datum<'a> {
    let own = |found: regex::Match<'_>| Datum::string(found.as_str().to_owned());
    match kind {
        RegexUse::Test => Datum::Bool(regex.is_match(text)),
        RegexUse::First => regex.find(text).map_or(Datum::Undefined, own),
        RegexUse::All => Datum::array(regex.find_iter(text).map(own)),
    }
}

fn compile(pattern: &str, modifiers: &str, kind: RegexUse) -> Result<Regex, RegexError> {
    if !modifiers.chars().all(|modifier| "msix".contains(modifier)) {
        return Err(RegexError::Invalid);
    }
    let has = |modifier: char| modifiers.contains(modifier);
    let dollar = if kind == RegexUse::Test && !has('m') {
        translate::Dollar::BeforeLastBreak
    } else {
        translate::Dollar::AtTheEnd
    };
    let pattern = translate::translate(pattern, has('x'), dollar)?;
    RegexBuilder::new(&pattern)
        .multi_line(has('m'))
        .dot_matches_new_line(has('s'))
        .case_insensitive(has('i'))
        .ignore_whitespace(has('x'))
        .size_limit(COMPILED_BYTES_MAX)
        .build()
        .map_err(|_| RegexError::Invalid)
}
