//! The parts of a date, and arithmetic with them.

use super::instant::{DAY, Instant, SECOND};
use crate::number::Numeric;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Year,
    Month,
    /// A part that always has the same length, in ticks.
    Fixed(i64),
    Nanosecond,
}

const DAYS: Part = Part::Fixed(DAY);
const HOURS: Part = Part::Fixed(3600 * SECOND);
const MINUTES: Part = Part::Fixed(60 * SECOND);
const SECONDS: Part = Part::Fixed(SECOND);
const MILLISECONDS: Part = Part::Fixed(SECOND / 1000);
const MICROSECONDS: Part = Part::Fixed(SECOND / 1_000_000);

const NAMES: &[(&str, Part)] = &[
    ("year", Part::Year),
    ("yyyy", Part::Year),
    ("yy", Part::Year),
    ("month", Part::Month),
    ("mm", Part::Month),
    ("m", Part::Month),
    ("day", DAYS),
    ("dd", DAYS),
    ("d", DAYS),
    ("hour", HOURS),
    ("hh", HOURS),
    ("minute", MINUTES),
    ("mi", MINUTES),
    ("n", MINUTES),
    ("second", SECONDS),
    ("ss", SECONDS),
    ("s", SECONDS),
    ("millisecond", MILLISECONDS),
    ("ms", MILLISECONDS),
    ("microsecond", MICROSECONDS),
    ("mcs", MICROSECONDS),
    ("nanosecond", Part::Nanosecond),
    ("ns", Part::Nanosecond),
];

/// Nanoseconds in a tick.
const TICK: i64 = 100;

impl Part {
    pub(super) fn find(name: &str) -> Option<Part> {
        NAMES.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, part)| *part)
    }

    pub(super) fn add(self, instant: Instant, count: i64) -> Option<Instant> {
        let plus = |ticks: Option<i64>| Instant::from_ticks(instant.ticks().checked_add(ticks?)?);
        match self {
            Part::Year => instant.plus_months(count.checked_mul(12)?),
            Part::Month => instant.plus_months(count),
            Part::Fixed(length) => plus(count.checked_mul(length)),
            Part::Nanosecond => plus(Some((count + count.signum() * (TICK / 2)) / TICK)),
        }
    }

    /// The number of boundaries of this part between the two. Of parts that are shorter
    /// than a second, the whole ones count beyond the boundaries of seconds.
    pub(super) fn boundaries(self, from: Instant, to: Instant) -> Option<i64> {
        if let Part::Fixed(length @ ..SECOND) = self {
            let split = |instant: Instant| {
                (instant.ticks().div_euclid(SECOND), instant.ticks().rem_euclid(SECOND))
            };
            let ((from, from_rest), (to, to_rest)) = (split(from), split(to));
            return Some((to - from) * (SECOND / length) + (to_rest - from_rest) / length);
        }
        Some(self.number(to)?.wrapping_sub(self.number(from)?))
    }

    /// The number of this part, counted from some beginning.
    fn number(self, instant: Instant) -> Option<i64> {
        match self {
            Part::Year => Some(instant.date().year),
            Part::Month => Some(instant.date().months()),
            Part::Fixed(length) => Some(instant.ticks().div_euclid(length)),
            Part::Nanosecond => Some(instant.ticks().wrapping_mul(TICK)),
        }
    }

    /// The value of this part on a calendar or a clock.
    pub(super) fn shown(self, instant: Instant) -> i64 {
        let date = instant.date();
        let time = instant.ticks_of_day();
        match self {
            Part::Year => date.year,
            Part::Month => date.month,
            Part::Nanosecond => time % SECOND * TICK,
            DAYS => date.day,
            HOURS => time / (3600 * SECOND),
            MINUTES => time / (60 * SECOND) % 60,
            SECONDS => time / SECOND % 60,
            Part::Fixed(length) => time % SECOND / length,
        }
    }

    /// The start of the bin that holds the moment; bins are `size` parts long and one of
    /// them begins at the origin.
    pub(super) fn bin(self, instant: Instant, size: Numeric, origin: Instant) -> Option<Instant> {
        let since = instant.ticks() - origin.ticks();
        let ticks = match (self, size) {
            // Parts of no fixed length make no bins.
            (Part::Year | Part::Month, _) => return None,
            (Part::Fixed(length), Numeric::Integer(size)) => whole_bins(since, length, size)?,
            (Part::Fixed(length), Numeric::Double(size)) => {
                let length = size * Numeric::Integer(length).as_f64();
                saturated((Numeric::Integer(since).as_f64() / length).floor() * length)
            }
            (Part::Nanosecond, size) => {
                let size = saturated(size.as_f64() / Numeric::Integer(TICK).as_f64());
                whole_bins(since, 1, Some(size).filter(|size| *size > 0)?)?
            }
        };
        Instant::from_ticks(origin.ticks().checked_add(ticks)?)
    }
}

/// Ticks from the origin to where the bin begins. Lengths wrap round at 64 bits, as in the
/// service.
fn whole_bins(since: i64, length: i64, size: i64) -> Option<i64> {
    let length = length.wrapping_mul(size);
    let past = since.checked_rem(length)?;
    let start = since - past;
    if past < 0 { start.checked_sub(length) } else { Some(start) }
}

/// The integer part, or the nearest 64-bit integer.
#[expect(clippy::cast_possible_truncation, reason = "dates are checked after this")]
fn saturated(double: f64) -> i64 {
    double as i64
}
