//! A moment in ticks of 100 nanoseconds, and its calendar: the proleptic
//! Gregorian one, in UTC, years 1601 to 9999.
//!
//! Computed by hand: the core may not know a library that also has a clock, and
//! the calendar is two formulas.

/// Ticks in a second.
pub(super) const SECOND: i64 = 10_000_000;
pub(super) const DAY: i64 = 86_400 * SECOND;

/// A moment, counted from the start of 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Instant {
    ticks: i64,
}

/// A day of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    pub(super) year: i64,
    /// From 1.
    pub(super) month: i64,
    /// From 1.
    pub(super) day: i64,
}

impl Instant {
    pub(super) const EPOCH: Instant = Instant { ticks: 0 };

    /// Years 1601 and 9999, as far as the service goes.
    const TICKS: std::ops::RangeInclusive<i64> =
        -11_644_473_600 * SECOND..=253_402_300_799 * SECOND + 9_999_999;

    pub(super) fn from_ticks(ticks: i64) -> Option<Instant> {
        Instant::TICKS.contains(&ticks).then_some(Instant { ticks })
    }

    pub(super) fn new(date: Date, ticks_of_day: i64) -> Option<Instant> {
        date.is_real().then(|| Instant::from_ticks(date.days() * DAY + ticks_of_day))?
    }

    pub(super) fn ticks(self) -> i64 {
        self.ticks
    }

    pub(super) fn date(self) -> Date {
        Date::from_days(self.ticks.div_euclid(DAY))
    }

    pub(super) fn ticks_of_day(self) -> i64 {
        self.ticks.rem_euclid(DAY)
    }

    /// Adds whole months; a day that the month does not have becomes its last.
    pub(super) fn plus_months(self, months: i64) -> Option<Instant> {
        let date = self.date();
        let total = date.months().checked_add(months)?;
        let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
        let day = date.day.min(days_of(year, month));
        Instant::new(Date { year, month, day }, self.ticks_of_day())
    }

    /// Reads `YYYY-MM-DD` and `YYYY-MM-DD(T| )hh:mm:ss`, with up to seven digits of a
    /// fraction, and with or without a `Z` or an offset from UTC at the end.
    pub(super) fn parse(text: &str) -> Option<Instant> {
        let (text, ahead) = match text.strip_suffix('Z') {
            Some(text) => (text, 0),
            None => apart(text)?,
        };
        let (day, time) = match text.split_once(['T', ' ']) {
            Some((day, time)) => (day, time_of_day(time)?),
            None => (text, 0),
        };
        let mut fields = day.split('-');
        let year = digits(fields.next()?, 4)?;
        let (month, day) = (digits(fields.next()?, 2)?, digits(fields.next()?, 2)?);
        fields.next().is_none().then(|| Instant::new(Date { year, month, day }, time - ahead))?
    }
}

impl std::fmt::Display for Instant {
    /// The one form that the language writes.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Date { year, month, day } = self.date();
        let (seconds, fraction) = (self.ticks_of_day() / SECOND, self.ticks_of_day() % SECOND);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:07}Z")
    }
}

impl Date {
    /// Months since the start of the year 0.
    pub(super) fn months(self) -> i64 {
        self.year * 12 + self.month - 1
    }

    fn is_real(self) -> bool {
        (1..=9999).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days_of(self.year, self.month)).contains(&self.day)
    }

    /// Days since the start of 1970. Years are counted from March, so that the
    /// leap day is the last one and months have a regular pattern.
    fn days(self) -> i64 {
        let year = if self.month <= 2 { self.year - 1 } else { self.year };
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let month = (self.month + 9) % 12;
        let day_of_year = (153 * month + 2) / 5 + self.day - 1;
        let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
        era * 146_097 + day_of_era - 719_468
    }

    fn from_days(days: i64) -> Date {
        let days = days + 719_468;
        let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year + era * 400 + i64::from(month <= 2);
        Date { year, month, day }
    }

    /// From Sunday, which is 0.
    pub(super) fn weekday(self) -> usize {
        usize::try_from((self.days() + 4).rem_euclid(7)).unwrap_or(0)
    }
}

fn days_of(year: i64, month: i64) -> i64 {
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A text and the offset of its time from UTC in ticks: `±hh`, `±hhmm` or `±hh:mm`.
fn apart(text: &str) -> Option<(&str, i64)> {
    // The signs of a date are no such offset.
    let day = text.get(..DAY_LENGTH).map_or(text.len(), str::len);
    let Some(at) = text.get(day..)?.find(['+', '-']).map(|at| at + day) else {
        return Some((text, 0));
    };
    let (clock, distance) = (text.get(..at)?, text.get(at + 1..)?);
    let (hours, minutes) = distance.split_at_checked(2)?;
    let minutes = minutes.strip_prefix(':').unwrap_or(minutes);
    let minutes = if minutes.is_empty() { 0 } else { digits(minutes, 2).filter(|m| *m < 60)? };
    let minutes = digits(hours, 2)? * 60 + minutes;
    let sign = if text.get(at..=at)? == "-" { -1 } else { 1 };
    let near = (minutes <= FURTHEST_MINUTES).then_some(sign * minutes * 60 * SECOND)?;
    Some((clock.strip_suffix(' ').unwrap_or(clock), near))
}

/// Characters of a day, and minutes that a clock may be ahead of UTC.
const DAY_LENGTH: usize = 10;
const FURTHEST_MINUTES: i64 = 14 * 60;

fn time_of_day(text: &str) -> Option<i64> {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, ticks_of_fraction(fraction)?),
        None => (text, 0),
    };
    let mut fields = clock.split(':');
    let mut field = |limit: i64| digits(fields.next()?, 2).filter(|value| *value < limit);
    let (hour, minute, second) = (field(24)?, field(60)?, field(60)?);
    fields.next().is_none().then_some((hour * 3600 + minute * 60 + second) * SECOND + fraction)
}

fn ticks_of_fraction(text: &str) -> Option<i64> {
    let value = digits(text, text.len()).filter(|_| (1..=7).contains(&text.len()))?;
    Some((text.len()..7).fold(value, |value, _| value * 10))
}

/// A number of exactly `count` digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let digits = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_is_the_day_after_the_day_before() {
        let mut last = Date { year: 1599, month: 12, day: 31 };
        let end = Date { year: 2401, month: 1, day: 1 }.days();
        for days in last.days() + 1..=end {
            let date = Date::from_days(days);
            assert!(date.is_real() && date.days() == days, "{date:?}");
            let next_day =
                (date.year, date.month, date.day) == (last.year, last.month, last.day + 1);
            let starts_month = date.day == 1 && date.months() == last.months() + 1;
            assert!(next_day || starts_month, "{last:?} {date:?}");
            last = date;
        }
        assert_eq!(Date { year: 1970, month: 1, day: 1 }.days(), 0);
        assert_eq!(Date { year: 2000, month: 2, day: 29 }.days(), 11_016);
    }

    #[test]
    fn what_is_written_is_read() {
        for text in ["1601-01-01T00:00:00.0000000Z", "9999-12-31T23:59:59.9999999Z"] {
            assert_eq!(Instant::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Instant::from_ticks(i64::MIN), None);
        for wrong in [
            "",
            "2020",
            "2020-13-01",
            "2021-02-29",
            "2020-01-01T24:00:00",
            "2020-01-01T1:00:00",
            "2020-01-01T00:00:00.",
            "2020-01-01T00:00:00.12345678",
            "2020-01-01ZZ",
            "+020-01-01",
            "1600-12-31",
            "1601-01-01T00:00:00+01:00",
            "2020-01-01T00:00:00+14:01",
            "2020-01-01T00:00+01:00",
        ] {
            assert_eq!(Instant::parse(wrong), None, "{wrong}");
        }
    }
}
