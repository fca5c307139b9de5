//! Regular expressions.
//!
//! The service speaks PCRE, which can take time without end on short texts. The
//! automata used here never do: their time grows with the pattern and the text, and
//! every step of it is paid for (`matcher.rs`). So patterns are translated, and what
//! cannot be said without backtracking is refused in words, while a pattern that is
//! plain wrong gives undefined as in the service.

mod matcher;
mod translate;

use std::sync::Arc;

use super::{Function, at};
use crate::bound::Expr;
use crate::error::QueryError;
use crate::eval::{Ambient, Budget, Datum, Evaluated, VALUE_BYTES_MAX};
use matcher::{Flags, Matcher};

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RegexError {
    /// It says nothing, so the result is undefined.
    Invalid,
    /// It is right, but needs backtracking.
    Unsupported(&'static str),
    /// It would take too long to make.
    Unpaid(QueryError),
}

impl From<QueryError> for RegexError {
    fn from(error: QueryError) -> RegexError {
        RegexError::Unpaid(error)
    }
}

/// A call with a pattern that was compiled beforehand.
#[derive(Clone, Debug)]
pub(crate) struct RegexCall {
    pub(crate) text: Expr,
    kind: RegexUse,
    matcher: Arc<Matcher>,
}

impl RegexCall {
    pub(crate) fn new(
        kind: RegexUse,
        text: &Expr,
        (pattern, modifiers): (&str, &str),
        budget: &Budget,
    ) -> Result<RegexCall, RegexError> {
        let matcher = Arc::new(compile(pattern, modifiers, kind, budget)?);
        Ok(RegexCall { text: text.clone(), kind, matcher })
    }

    pub(crate) fn apply<'a>(&self, text: &Datum<'_>, budget: &Budget) -> Evaluated<'a> {
        match text.as_str() {
            Some(text) => search(&self.matcher, self.kind, &text, budget),
            None => Ok(Datum::Undefined),
        }
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
    match compile(&pattern, &modifiers, kind, &ambient.budget) {
        Ok(matcher) => search(&matcher, kind, &text, &ambient.budget),
        Err(RegexError::Invalid) => Ok(Datum::Undefined),
        Err(RegexError::Unsupported(what)) => {
            Err(QueryError::Unsupported { what: format!("{what} in a regular expression") })
        }
        Err(RegexError::Unpaid(error)) => Err(error),
    }
}

fn search<'a>(matcher: &Matcher, kind: RegexUse, text: &str, budget: &Budget) -> Evaluated<'a> {
    let own = |found: &str| Datum::string(found.to_owned());
    match kind {
        RegexUse::Test => matcher.is_match(text, budget).map(Datum::Bool),
        RegexUse::First => {
            let mut first = Datum::Undefined;
            matcher.each_match(text, budget, |found| {
                first = own(found);
                Ok(false)
            })?;
            Ok(first)
        }
        RegexUse::All => {
            let (mut all, mut weight) = (Vec::new(), 0_usize);
            matcher.each_match(text, budget, |found| {
                let found = own(found);
                weight = weight.saturating_add(found.weight());
                if weight > VALUE_BYTES_MAX {
                    let what = "bytes in one value";
                    return Err(QueryError::Limit { what, limit: VALUE_BYTES_MAX });
                }
                all.push(found);
                Ok(true)
            })?;
            Ok(Datum::array(all))
        }
    }
}

fn compile(
    pattern: &str,
    modifiers: &str,
    kind: RegexUse,
    budget: &Budget,
) -> Result<Matcher, RegexError> {
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
    let flags = Flags {
        multi_line: has('m'),
        dot_matches_new_line: has('s'),
        case_insensitive: has('i'),
        ignore_whitespace: has('x'),
    };
    let matcher = Matcher::new(&pattern, flags, kind != RegexUse::Test, budget)?;
    matcher.ok_or(RegexError::Invalid)
}

#[cfg(test)]
mod tests;
