//! Dates and times, which are strings in ISO 8601 and always UTC.

mod format;
mod instant;
mod part;

use super::{Function, at, defined, only};
use crate::eval::{Ambient, Datum};
use crate::number::Numeric;
use instant::{Date, Instant, SECOND};
use part::Part;

/// Ticks in a millisecond.
const MILLISECOND: i64 = SECOND / 1000;

pub(super) const TABLE: &[Function] = &[
    Function::new(&["IS_DATETIME", "ISDATETIME"], (1, 1), is_date).taking_undefined(),
    Function::new(&["DATETIMEADD"], (2, 3), add),
    Function::new(&["DATETIMEDIFF"], (3, 3), difference),
    Function::new(&["DATETIMEPART"], (2, 2), part),
    Function::new(&["DATETIMEBIN"], (2, 4), bin),
    Function::new(&["DATETIMEFROMPARTS"], (3, 7), from_parts),
    Function::new(&["DATETIMEFORMAT"], (2, 2), formatted),
    Function::new(&["DAY"], (1, 1), |a| shown(a, "day")),
    Function::new(&["MONTH"], (1, 1), |a| shown(a, "month")),
    Function::new(&["YEAR"], (1, 1), |a| shown(a, "year")),
    Function::new(&["DATETIMETOTICKS"], (1, 1), |a| count(a, 1)),
    Function::new(&["DATETIMETOTIMESTAMP"], (1, 1), |a| count(a, MILLISECOND)),
    Function::new(&["TICKSTODATETIME"], (1, 2), |a| from_count(a, 1)),
    Function::new(&["TIMESTAMPTODATETIME"], (1, 2), |a| from_count(a, MILLISECOND)),
    Function::aware(&["GETCURRENTDATETIME", "GETCURRENTDATETIMESTATIC"], (0, 0), |ambient, _| {
        Ok(written(now(ambient)))
    })
    .opaque(),
    Function::aware(&["GETCURRENTTICKS", "GETCURRENTTICKSSTATIC"], (0, 0), |ambient, _| {
        Ok(defined(now(ambient).map(|now| Datum::number(now.ticks()))))
    })
    .opaque(),
    Function::aware(&["GETCURRENTTIMESTAMP", "GETCURRENTTIMESTAMPSTATIC"], (0, 0), |ambient, _| {
        Ok(defined(now(ambient).map(|now| Datum::number(now.ticks().div_euclid(MILLISECOND)))))
    })
    .opaque(),
    Function::aware(&["NOW"], (0, 2), |ambient, a| Ok(from_now(ambient, a, 1))).opaque(),
    Function::aware(&["AGO"], (1, 2), |ambient, a| Ok(from_now(ambient, a, -1))).opaque(),
];

fn now(ambient: &Ambient) -> Option<Instant> {
    Instant::from_ticks(ambient.context.now_ticks)
}

fn read(argument: &Datum<'_>) -> Option<Instant> {
    Instant::parse(&argument.as_str()?)
}

fn read_part(argument: &Datum<'_>) -> Option<Part> {
    Part::find(&argument.as_str()?)
}

fn written<'a>(instant: Option<Instant>) -> Datum<'a> {
    defined(instant.map(|instant| Datum::string(instant.to_string())))
}

fn is_date<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    Datum::Bool(read(only(arguments)).is_some())
}

/// A part, its number and the date; or a time span and the date.
fn add<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    written((|| {
        if let [span, date] = arguments {
            let (part, count) = TimeSpan::parse(&span.as_str()?)?.parts()?;
            return part.add(read(date)?, count);
        }
        let (part, count) = (read_part(at(arguments, 0))?, at(arguments, 1).as_i64()?);
        part.add(read(at(arguments, 2))?, count)
    })())
}

/// A time span such as `-5d`: an integer and a part of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeSpan<'t> {
    count: &'t str,
    part: &'t str,
}

impl<'t> TimeSpan<'t> {
    /// `None` if it is not of that form, whatever the part is called.
    pub(crate) fn parse(text: &'t str) -> Option<TimeSpan<'t>> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let length = digits.find(|c: char| !c.is_ascii_digit()).filter(|length| *length > 0)?;
        let (count, part) = text.split_at(text.len() - digits.len() + length);
        Some(TimeSpan { count, part })
    }

    fn parts(self) -> Option<(Part, i64)> {
        Part::find(self.part).zip(self.count.parse().ok())
    }
}

fn difference<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let (from, to) = (read(at(arguments, 1))?, read(at(arguments, 2))?);
        read_part(at(arguments, 0))?.boundaries(from, to).map(Datum::number)
    })())
}

fn part<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let part = read_part(at(arguments, 0))?;
        Some(Datum::number(part.shown(read(at(arguments, 1))?)))
    })())
}

fn shown<'a>(arguments: &[Datum<'a>], name: &str) -> Datum<'a> {
    let shown = |instant| Part::find(name).map(|part| Datum::number(part.shown(instant)));
    defined(read(only(arguments)).and_then(shown))
}

/// Bins begin in 1970 unless an origin is given.
fn bin<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    written((|| {
        let (instant, part) = (read(at(arguments, 0))?, read_part(at(arguments, 1))?);
        let size = arguments.get(2).map_or(Some(Numeric::Integer(1)), Datum::as_numeric)?;
        let given = arguments.get(3).filter(|origin| origin.as_str().as_deref() != Some(""));
        let origin = given.map_or(Some(Instant::EPOCH), read)?;
        part.bin(instant, Some(size).filter(|size| size.as_f64() > 0.0)?, origin)
    })())
}

/// Year, month and day; hour, minute, second and ticks if they are given.
fn from_parts<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    written((|| {
        let whole = |place: usize| arguments.get(place).map_or(Some(0), Datum::as_i64);
        // Of all but the last, 16 bits are used.
        let given = |place: usize, limit: i64| {
            Some(whole(place)? & 0xFFFF).filter(|value| (0..limit).contains(value))
        };
        // Of the last one the first digits count, if there are more than seven.
        let shortened = |digits: i64| std::iter::successors(Some(digits), |more| Some(more / 10));
        let ticks = shortened(whole(6)?).find(|ticks| *ticks < SECOND).filter(|it| *it >= 0)?;
        let (year, month, day) = (given(0, 10_000)?, given(1, 13)?, given(2, 32)?);
        let seconds = given(3, 24)? * 3600 + given(4, 60)? * 60 + given(5, 60)?;
        Instant::new(Date { year, month, day }, seconds * SECOND + ticks)
    })())
}

fn formatted<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let (instant, form) = (read(at(arguments, 0))?, at(arguments, 1).as_str()?);
        (!form.is_empty()).then(|| Datum::string(format::format(instant, &form)))
    })())
}

/// Whole units from 1970 on, or before.
fn count<'a>(arguments: &[Datum<'a>], unit: i64) -> Datum<'a> {
    let counted = |instant: Instant| Datum::number(instant.ticks() / unit);
    defined(read(only(arguments)).map(counted))
}

/// The date after this many units; a second argument is its format.
fn from_count<'a>(arguments: &[Datum<'a>], unit: i64) -> Datum<'a> {
    let ticks = only(arguments).as_i64().and_then(|count| count.checked_mul(unit));
    let instant = ticks.and_then(Instant::from_ticks);
    let Some(form) = arguments.get(1) else { return written(instant) };
    defined((|| Some(Datum::string(format::format(instant?, &form.as_str()?))))())
}

/// The current time, shifted by a number of parts in a direction.
fn from_now<'a>(ambient: &Ambient, arguments: &[Datum<'a>], sign: i64) -> Datum<'a> {
    written((|| {
        let now = now(ambient)?;
        let (part, count) = match arguments {
            [] => return Some(now),
            [span] => TimeSpan::parse(&span.as_str()?)?.parts()?,
            [part, count, ..] => (read_part(part)?, count.as_i64()?),
        };
        part.add(now, count.checked_mul(sign)?)
    })())
}
