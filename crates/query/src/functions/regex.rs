//! Regular expressions.
//!
//! The service uses PCRE, whose backtracking can take exponential time on short texts. The
//! automata used here never do: their time grows with the pattern and the text, and every
//! step of it is charged (`matcher.rs`). So patterns are translated, and what cannot be
//! expressed without backtracking is refused with a message, while an invalid pattern gives
//! undefined as in the service.

mod matcher;
mod translate;

use std::sync::Arc;

use super::{Function, at};
use crate::bound::Expr;
use crate::error::QueryError;
use crate::eval::{Ambient, Budget, Datum, Evaluated, VALUE_BYTES_MAX};
use matcher::{Flags, Groups, Matcher};

pub(super) const TABLE: &[Function] = &[
    Function::aware(&["REGEXMATCH"], (2, 3), |ambient, a| {
        compiled_anew(ambient, a, RegexUse::Test)
    })
    .opaque(),
    Function::aware(&["REGEXEXTRACT"], (2, 4), |ambient, a| extracted(ambient, a, RegexUse::First))
        .opaque(),
    Function::aware(&["REGEXEXTRACTALL"], (2, 4), |ambient, a| {
        extracted(ambient, a, RegexUse::All)
    })
    .opaque(),
    Function::aware(&["REGEXREPLACE"], (3, 4), |ambient, a| replaced(ambient, a, false)).opaque(),
    Function::aware(&["REGEXREPLACEALL"], (3, 4), |ambient, a| replaced(ambient, a, true)).opaque(),
];

/// A fourth argument selects a group of the pattern, counted by opening brackets; group 0
/// is the whole match. Clients of the service may also pass a list, which is not
/// documented.
fn extracted<'a>(ambient: &Ambient, arguments: &[Datum<'a>], kind: RegexUse) -> Evaluated<'a> {
    let Some(group) = arguments.get(3) else { return compiled_anew(ambient, arguments, kind) };
    if group.elements().is_some() {
        let what = "a list of groups of a regular expression".to_owned();
        return Err(QueryError::Unsupported { what });
    }
    match group.as_i64().and_then(|group| usize::try_from(group).ok()) {
        None => Ok(Datum::Undefined),
        Some(0) => compiled_anew(ambient, arguments, kind),
        Some(group) => grouped(ambient, arguments, kind, group),
    }
}

/// The text of a group in the first match, or in each. Where it took no part, there is
/// none.
fn grouped<'a>(
    ambient: &Ambient,
    arguments: &[Datum<'a>],
    kind: RegexUse,
    group: usize,
) -> Evaluated<'a> {
    let string = |place: usize| at(arguments, place).as_str();
    let (Some(text), Some(pattern), Some(modifiers)) = (string(0), string(1), string(2)) else {
        return Ok(Datum::Undefined);
    };
    let made = prepared(&pattern, &modifiers, kind).and_then(|(pattern, flags)| {
        let matcher = Matcher::new(&pattern, flags, true, &ambient.budget)?;
        let groups = Groups::new(&pattern, flags, &ambient.budget)?;
        matcher.zip(groups).ok_or(RegexError::Invalid)
    });
    let (matcher, groups) = match made {
        Ok(made) => made,
        Err(error) => return uncompiled(error),
    };
    if !groups.has(group) {
        return Ok(Datum::Undefined);
    }
    let mut found = Found::default();
    matcher.each_place(&text, &ambient.budget, |place| {
        let own = groups.taken(&text, place, group, &ambient.budget)?;
        if let Some(own) = own.and_then(|own| text.get(own)) {
            found.add(own)?;
        }
        Ok(kind == RegexUse::All)
    })?;
    Ok(match kind {
        RegexUse::All => Datum::array(found.all),
        RegexUse::First | RegexUse::Test => found.all.pop().unwrap_or(Datum::Undefined),
    })
}

/// The text with the first match, or each, replaced by another text, literally.
fn replaced<'a>(ambient: &Ambient, arguments: &[Datum<'a>], all: bool) -> Evaluated<'a> {
    let string = |place: usize| at(arguments, place).as_str();
    let modifiers = if arguments.len() > 3 { string(3) } else { Some("".into()) };
    let (Some(text), Some(pattern)) = (string(0), string(1)) else { return Ok(Datum::Undefined) };
    let (Some(other), Some(modifiers)) = (string(2), modifiers) else {
        return Ok(Datum::Undefined);
    };
    let matcher = match compile(&pattern, &modifiers, RegexUse::All, &ambient.budget) {
        Ok(matcher) => matcher,
        Err(error) => return uncompiled(error),
    };
    let (mut out, mut copied) = (String::new(), 0);
    matcher.each_place(&text, &ambient.budget, |found| {
        out.push_str(text.get(copied..found.start).unwrap_or_default());
        out.push_str(&other);
        copied = found.end;
        if out.len() > VALUE_BYTES_MAX {
            let what = "bytes in one value";
            return Err(QueryError::Limit { what, limit: VALUE_BYTES_MAX });
        }
        Ok(all)
    })?;
    out.push_str(text.get(copied..).unwrap_or_default());
    Ok(Datum::string(out))
}

fn uncompiled<'a>(error: RegexError) -> Evaluated<'a> {
    match error {
        RegexError::Invalid => Ok(Datum::Undefined),
        RegexError::Unsupported(what) => {
            Err(QueryError::Unsupported { what: format!("{what} in a regular expression") })
        }
        RegexError::Unpaid(error) => Err(error),
    }
}

/// How a pattern is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegexUse {
    /// Whether it matches.
    Test,
    /// The first match, undefined if there is none.
    First,
    /// All matches.
    All,
}

impl RegexUse {
    /// How the function of that name uses patterns, if it does.
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
    /// It is malformed, so the result is undefined.
    Invalid,
    /// It is valid, but needs backtracking.
    Unsupported(&'static str),
    /// It would take too long to compile.
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
        Err(error) => uncompiled(error),
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
            let mut found = Found::default();
            matcher.each_match(text, budget, |one| found.add(one).map(|()| true))?;
            Ok(Datum::array(found.all))
        }
    }
}

/// Matches, as many as one value may hold.
#[derive(Default)]
struct Found<'a> {
    all: Vec<Datum<'a>>,
    weight: usize,
}

impl Found<'_> {
    fn add(&mut self, text: &str) -> Result<(), QueryError> {
        let found = Datum::string(text.to_owned());
        self.weight = self.weight.saturating_add(found.weight());
        if self.weight > VALUE_BYTES_MAX {
            let what = "bytes in one value";
            return Err(QueryError::Limit { what, limit: VALUE_BYTES_MAX });
        }
        self.all.push(found);
        Ok(())
    }
}

fn compile(
    pattern: &str,
    modifiers: &str,
    kind: RegexUse,
    budget: &Budget,
) -> Result<Matcher, RegexError> {
    let (pattern, flags) = prepared(pattern, modifiers, kind)?;
    let matcher = Matcher::new(&pattern, flags, kind != RegexUse::Test, budget)?;
    matcher.ok_or(RegexError::Invalid)
}

/// A pattern in the library's syntax, and its flags.
fn prepared(pattern: &str, modifiers: &str, kind: RegexUse) -> Result<(String, Flags), RegexError> {
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
    Ok((pattern, flags))
}

#[cfg(test)]
mod tests;
