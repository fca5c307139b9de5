//! The system functions, as one table per kind.
//!
//! A function is a name, a number of arguments and a pure function over values.
//! What it does not take gives undefined, never an error; an argument that is
//! undefined makes the result undefined, unless the table says otherwise.

mod array;
mod integer;
mod math;
mod string;
mod types;

use crate::error::QueryError;
use crate::eval::{Datum, VALUE_BYTES_MAX};

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
    /// How large the result may become, where that can be more than the
    /// arguments together.
    size: Option<Size>,
    body: Body,
}

type Body = for<'a> fn(&[Datum<'a>]) -> Datum<'a>;

type Size = fn(&[Datum<'_>]) -> usize;

/// How many arguments a function takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arity {
    least: usize,
    most: usize,
}

impl Arity {
    pub(crate) fn allows(self, count: usize) -> bool {
        (self.least..=self.most).contains(&count)
    }

    /// In the words of the service's message.
    pub(crate) fn requirement(self) -> String {
        match self {
            Arity { least, most } if least == most => format!("{least}"),
            Arity { least, most: usize::MAX } => format!("at least {least}"),
            Arity { least, most } => format!("{least} to {most}"),
        }
    }
}

impl Function {
    const fn new(
        names: &'static [&'static str],
        (least, most): (usize, usize),
        body: Body,
    ) -> Function {
        Function { names, arity: Arity { least, most }, takes_undefined: false, size: None, body }
    }

    const fn taking_undefined(self) -> Function {
        Function { takes_undefined: true, ..self }
    }

    const fn sized(self, size: Size) -> Function {
        Function { size: Some(size), ..self }
    }

    /// Fails only where the result would be too large to compute.
    pub(crate) fn apply<'a>(&self, arguments: &[Datum<'a>]) -> Result<Datum<'a>, QueryError> {
        if !self.takes_undefined && !arguments.iter().all(Datum::is_defined) {
            return Ok(Datum::Undefined);
        }
        let given = arguments.iter().fold(0_usize, |sum, a| sum.saturating_add(a.weight()));
        if given > ARGUMENT_BYTES_MAX {
            let what = "bytes in the arguments of one call";
            return Err(QueryError::Limit { what, limit: ARGUMENT_BYTES_MAX });
        }
        if self.size.is_some_and(|size| size(arguments) > VALUE_BYTES_MAX) {
            return Err(QueryError::Limit { what: "bytes in one value", limit: VALUE_BYTES_MAX });
        }
        Ok((self.body)(arguments))
    }
}

/// No upper bound on the number of arguments.
const MANY: usize = usize::MAX;

const TABLES: [&[Function]; 5] =
    [types::TABLE, math::TABLE, integer::TABLE, string::TABLE, array::TABLE];

/// Functions of the language that come with later parts of the engine: dates,
/// regular expressions, shapes, vectors, full text, and what depends on the
/// document's place.
const LATER: &[&str] = &[
    "AGO",
    "DATETIMEADD",
    "DATETIMEBIN",
    "DATETIMEDIFF",
    "DATETIMEFORMAT",
    "DATETIMEFROMPARTS",
    "DATETIMEPART",
    "DATETIMETOTICKS",
    "DATETIMETOTIMESTAMP",
    "DAY",
    "DOCUMENTID",
    "FULLTEXTCONTAINS",
    "FULLTEXTCONTAINSALL",
    "FULLTEXTCONTAINSANY",
    "GETCURRENTDATETIME",
    "GETCURRENTDATETIMESTATIC",
    "GETCURRENTTICKS",
    "GETCURRENTTICKSSTATIC",
    "GETCURRENTTIMESTAMP",
    "GETCURRENTTIMESTAMPSTATIC",
    "HASH",
    "IS_DATETIME",
    "MONTH",
    "NOW",
    "RAND",
    "REGEXEXTRACT",
    "REGEXEXTRACTALL",
    "REGEXMATCH",
    "REGEX_MATCH",
    "ST_AREA",
    "ST_DISTANCE",
    "ST_INTERSECTS",
    "ST_ISVALID",
    "ST_ISVALIDDETAILED",
    "ST_WITHIN",
    "TICKSTODATETIME",
    "TIMESTAMPTODATETIME",
    "VECTORDISTANCE",
    "YEAR",
];

/// What a name in front of brackets means.
#[derive(Debug)]
pub(crate) enum Lookup {
    Found(&'static Function),
    /// The language has it, this engine does not yet.
    Later,
    Unknown,
}

pub(crate) fn find(name: &str) -> Lookup {
    let is = |own: &&str| own.eq_ignore_ascii_case(name);
    let found = TABLES.into_iter().flatten().find(|function| function.names.iter().any(is));
    match found {
        Some(function) => Lookup::Found(function),
        None if LATER.iter().any(is) => Lookup::Later,
        None => Lookup::Unknown,
    }
}

/// The one argument of a function that takes one.
fn only<'d, 'a>(arguments: &'d [Datum<'a>]) -> &'d Datum<'a> {
    arguments.first().unwrap_or(&Datum::Undefined)
}

/// The argument at a place, undefined if it was left out.
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
            .chain(LATER)
            .copied()
            .collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
        assert!(names.iter().all(|name| name.to_ascii_uppercase() == **name));
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
