//! The parts of a date, and arithmetic with them.

use super::instant::{DAY, Instant, SECOND};

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

    /// How many boundaries of this part lie between the two.
    pub(super) fn boundaries(self, from: Instant, to: Instant) -> Option<i64> {
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

    /// What a calendar or a clock shows for this part.
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

    /// The start of the bin that holds the moment; bins are so many parts long
    /// and one of them begins at the origin.
    pub(super) fn bin(self, instant: Instant, size: i64, origin: Instant) -> Option<Instant> {
        match self {
            // Parts of no fixed length make no bins.
            Part::Year | Part::Month => None,
            Part::Fixed(length) => {
                let length = length.checked_mul(size)?;
                let since = instant.ticks() - origin.ticks();
                Instant::from_ticks(origin.ticks() + since.div_euclid(length).checked_mul(length)?)
            }
            Part::Nanosecond => {
                Part::Fixed(1).bin(instant, Some(size / TICK).filter(|size| *size > 0)?, origin)
            }
        }
    }
}
