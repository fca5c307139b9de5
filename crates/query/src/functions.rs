//! The system functions, as one table per kind.
//!
//! A function is a name, a number of arguments and a pure function over values. Wrong
//! argument types give undefined, never an error; an argument that is undefined makes the
//! result undefined, unless the table says otherwise.

mod array;
mod date;
mod integer;
mod item;
mod math;
mod regex;
mod spatial;
mod string;
mod types;

pub(crate) use date::TimeSpan;
pub(crate) use regex::{RegexCall, RegexError, RegexUse};
pub(crate) use string::{lower, upper};

use crate::error::QueryError;
use crate::eval::{Ambient, Datum, Evaluated, VALUE_BYTES_MAX};

/// Bytes that the arguments of one call may have together: several values of
/// the largest size, but not thousands of them.
const ARGUMENT_BYTES_MAX: usize = 8 * VALUE_BYTES_MAX;

/// A function of the language.
#[derive(Debug)]
pub(crate) struct Function {
    /// All its spellings in upper case; lookup ignores case.
    names: &'static [&'static str],
    pub(crate) arity: Arity,
    /// Whether undefined arguments reach the function.
    takes_undefined: bool,
    /// Whether equal arguments may give another value next time.
    volatile: bool,
    /// Whether plans must not contain its value: it depends on when the query is run, or
    /// takes long to compute.
    opaque: bool,
    /// An upper bound of the result's size, where it can exceed the arguments together.
    size: Option<Size>,
    body: Body,
}

#[derive(Clone, Copy, Debug)]
enum Body {
    Pure(Pure),
    /// Reads the clock, or may take long and is charged for its steps.
    Ambient(Aware),
}

type Pure = for<'a> fn(&[Datum<'a>]) -> Datum<'a>;

type Aware = for<'a> fn(&Ambient, &[Datum<'a>]) -> Evaluated<'a>;

type Size = fn(&[Datum<'_>]) -> usize;

/// The number of arguments of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arity {
    least: usize,
    most: usize,
}

impl Arity {
    pub(crate) fn allows(self, count: usize) -> bool {
        (self.least..=self.most).contains(&count)
    }

    /// In the wording of the service's message.
    pub(crate) fn requirement(self) -> String {
        match self {
            Arity { least, most } if least == most => format!("{least}"),
            Arity { least, most: usize::MAX } => format!("at least {least}"),
            Arity { least, most } => format!("{least} to {most}"),
        }
    }
}

impl Function {
    const fn new(names: &'static [&'static str], arity: (usize, usize), body: Pure) -> Function {
        Function::with(names, arity, Body::Pure(body))
    }

    const fn aware(names: &'static [&'static str], arity: (usize, usize), body: Aware) -> Function {
        Function::with(names, arity, Body::Ambient(body))
    }

    const fn with(
        names: &'static [&'static str],
        (least, most): (usize, usize),
        body: Body,
    ) -> Function {
        let arity = Arity { least, most };
        Function {
            names,
            arity,
            takes_undefined: false,
            volatile: false,
            opaque: false,
            size: None,
            body,
        }
    }

    const fn taking_undefined(self) -> Function {
        Function { takes_undefined: true, ..self }
    }

    const fn volatile(self) -> Function {
        Function { volatile: true, ..self }
    }

    const fn opaque(self) -> Function {
        Function { opaque: true, ..self }
    }

    const fn sized(self, size: Size) -> Function {
        Function { size: Some(size), ..self }
    }

    /// The name under which the documentation knows it.
    pub(crate) fn name(&self) -> &'static str {
        self.names.first().copied().unwrap_or_default()
    }

    /// Whether the function can be applied before there is a document.
    pub(crate) fn is_constant(&self) -> bool {
        !self.volatile
    }

    /// Whether a plan must not contain its value.
    pub(crate) fn is_opaque(&self) -> bool {
        self.opaque
    }

    /// Fails where the result would be too large or take too long to compute.
    pub(crate) fn apply<'a>(&self, ambient: &Ambient, arguments: &[Datum<'a>]) -> Evaluated<'a> {
        if !self.takes_undefined && !arguments.iter().all(Datum::is_defined) {
            return Ok(Datum::Undefined);
        }
        let given = arguments.iter().fold(0_usize, |sum, a| sum.saturating_add(a.weight()));
        if given > ARGUMENT_BYTES_MAX {
            let what = "bytes in the arguments of one call";
            return Err(QueryError::Limit { what, limit: ARGUMENT_BYTES_MAX });
        }
        let effort = arguments.iter().fold(0_usize, |sum, a| sum.saturating_add(a.effort()));
        ambient.budget.spend_reading(effort)?;
        if self.size.is_some_and(|size| size(arguments) > VALUE_BYTES_MAX) {
            return Err(QueryError::Limit { what: "bytes in one value", limit: VALUE_BYTES_MAX });
        }
        match self.body {
            Body::Pure(body) => Ok(body(arguments)),
            Body::Ambient(body) => body(ambient, arguments),
        }
    }
}

/// No upper bound on the number of arguments.
const MANY: usize = usize::MAX;

const TABLES: [&[Function]; 9] = [
    types::TABLE,
    math::TABLE,
    integer::TABLE,
    string::TABLE,
    regex::TABLE,
    array::TABLE,
    date::TABLE,
    spatial::TABLE,
    item::TABLE,
];

/// Functions of the language that belong to search, which this engine does not have yet,
/// and their number of arguments.
const LATER: &[(&str, Arity)] = &[
    ("FULLTEXTCONTAINS", Arity { least: 2, most: 2 }),
    ("FULLTEXTCONTAINSALL", Arity { least: 2, most: MANY }),
    ("FULLTEXTCONTAINSANY", Arity { least: 2, most: MANY }),
    ("FULLTEXT_CONTAINS", Arity { least: 2, most: 2 }),
    ("FULLTEXT_CONTAINS_ALL", Arity { least: 2, most: MANY }),
    ("FULLTEXT_CONTAINS_ANY", Arity { least: 2, most: MANY }),
    ("GENERATEEMBEDDINGS", Arity { least: 1, most: 1 }),
    ("VECTORDISTANCE", Arity { least: 2, most: 4 }),
    ("_FULLTEXTWORDCOUNT", Arity { least: 1, most: 1 }),
    ("_VECTORSCORE", Arity { least: 2, most: 4 }),
];

/// The meaning of a function name.
#[derive(Debug)]
pub(crate) enum Lookup {
    Found(&'static Function),
    /// The language has it, this engine does not yet.
    Later(Arity),
    Unknown,
}

pub(crate) fn find(name: &str) -> Lookup {
    let is = |own: &&str| own.eq_ignore_ascii_case(name);
    let found = TABLES.into_iter().flatten().find(|function| function.names.iter().any(is));
    let later = || LATER.iter().find(|(own, _)| is(own)).map(|(_, arity)| Lookup::Later(*arity));
    found.map(Lookup::Found).or_else(later).unwrap_or(Lookup::Unknown)
}

/// The one argument of a function that takes one.
fn only<'d, 'a>(arguments: &'d [Datum<'a>]) -> &'d Datum<'a> {
    arguments.first().unwrap_or(&Datum::Undefined)
}

/// The argument at an index, undefined if it was left out.
fn at<'d, 'a>(arguments: &'d [Datum<'a>], place: usize) -> &'d Datum<'a> {
    arguments.get(place).unwrap_or(&Datum::Undefined)
}

/// Turns "does not apply" into undefined.
fn defined<'a>(result: Option<Datum<'a>>) -> Datum<'a> {
    result.unwrap_or(Datum::Undefined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_given_twice() {
        let mut names: Vec<&str> = TABLES
            .into_iter()
            .flatten()
            .flat_map(|function| function.names)
            .chain(LATER.iter().map(|(name, _)| name))
            .copied()
            .collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(names.iter().all(|name| name.to_ascii_uppercase() == *name));
    }

    #[test]
    fn arity_is_said_as_the_service_says_it() {
        let said = |least, most| Arity { least, most }.requirement();
        assert_eq!(
            (said(2, 3), said(2, MANY), said(1, 1)),
            ("2 to 3".into(), "at least 2".into(), "1".into())
        );
    }
}
