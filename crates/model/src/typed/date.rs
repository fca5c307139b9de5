//! Moments with the range of MongoDB's dates and the precision of Table's.

use crate::json::Value;

/// Units of 100 ns in a millisecond.
const TICKS_PER_MILLI: u64 = 10_000;
/// Ticks from the beginning of the year 1 to 1970.
const EPOCH_TICKS: i64 = 621_355_968_000_000_000;
/// The last tick of the year 9999.
const TICKS_MAX: u64 = 3_155_378_975_999_999_999;
/// Digits of ticks in texts, so that these compare as the moments do.
const TICK_DIGITS: usize = 20;

/// A moment: milliseconds since 1970, and in the years 1 to 9999 also what is finer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    millis: i64,
    /// Below [`TICKS_PER_MILLI`].
    ticks: u16,
}

impl Date {
    #[must_use]
    pub fn from_millis(millis: i64) -> Date {
        Date { millis, ticks: 0 }
    }

    /// From 100-ns units since the beginning of the year 1; `None` after the year 9999.
    #[must_use]
    pub fn from_ticks(ticks: u64) -> Option<Date> {
        let since = i64::try_from(ticks).ok().filter(|_| ticks <= TICKS_MAX)? - EPOCH_TICKS;
        let unit = TICKS_PER_MILLI.cast_signed();
        let rest = u16::try_from(since.rem_euclid(unit)).ok()?;
        Some(Date { millis: since.div_euclid(unit), ticks: rest })
    }

    /// Milliseconds since 1970, rounded down, and the ticks after them.
    #[must_use]
    pub fn parts(self) -> (i64, u16) {
        (self.millis, self.ticks)
    }

    /// Ticks since the beginning of the year 1, in the years that have them.
    #[must_use]
    pub fn ticks(self) -> Option<u64> {
        let since = self.millis.checked_mul(TICKS_PER_MILLI.cast_signed())?;
        let ticks = since.checked_add(i64::from(self.ticks))?.checked_add(EPOCH_TICKS)?;
        u64::try_from(ticks).ok().filter(|ticks| *ticks <= TICKS_MAX)
    }

    /// Ticks as a text of twenty digits, or milliseconds as a number in years without.
    pub(super) fn read(value: &Value) -> Option<Date> {
        let Some(text) = value.as_str() else {
            let date = Date::from_millis(value.as_number()?.as_i64()?);
            return Some(date).filter(|date| date.ticks().is_none());
        };
        let is_padded = text.len() == TICK_DIGITS && text.bytes().all(|b| b.is_ascii_digit());
        Date::from_ticks(text.parse().ok().filter(|_| is_padded)?)
    }

    pub(super) fn to_value(self) -> Value {
        match self.ticks() {
            Some(ticks) => format!("{ticks:0TICK_DIGITS$}").into(),
            None => self.millis.into(),
        }
    }
}
