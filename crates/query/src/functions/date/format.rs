//! DATETIMEFORMAT: the specifiers of .NET's custom formats, for one culture.

use super::instant::{Instant, SECOND};
use super::part::Part;

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const WEEKDAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// Runs of a letter are specifiers, a backslash escapes the next character, and everything
/// else stands for itself.
pub(super) fn format(instant: Instant, format: &str) -> String {
    let mut out = String::new();
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\\' {
            out.extend(chars.next());
            continue;
        }
        let mut length = 1;
        while chars.next_if_eq(&c).is_some() {
            length += 1;
        }
        if specifier(instant, c, length, &mut out).is_none() {
            out.extend(std::iter::repeat_n(c, length));
        }
    }
    out
}

/// Writes a specifier of `length` letters; `None` if the letter is none.
fn specifier(instant: Instant, letter: char, length: usize, out: &mut String) -> Option<()> {
    let date = instant.date();
    let shown = |name: &str| Part::find(name).map_or(0, |part| part.shown(instant));
    match letter {
        'y' if length <= 2 => number(out, date.year % 100, length),
        'y' => number(out, date.year, length),
        'M' if length <= 2 => number(out, date.month, length),
        'M' => word(out, usize::try_from(date.month - 1).ok().and_then(|m| MONTHS.get(m)), length),
        'd' if length <= 2 => number(out, date.day, length),
        'd' => word(out, WEEKDAYS.get(date.weekday()), length),
        'H' => number(out, shown("hour"), length.min(2)),
        'h' => number(out, (shown("hour") + 11) % 12 + 1, length.min(2)),
        'm' => number(out, shown("minute"), length.min(2)),
        's' => number(out, shown("second"), length.min(2)),
        'f' | 'F' => fraction(out, instant, letter == 'F', length),
        't' => {
            let half = if shown("hour") < 12 { "AM" } else { "PM" };
            out.extend(half.chars().take(length));
            Some(())
        }
        _ => None,
    }
}

fn number(out: &mut String, number: i64, digits: usize) -> Option<()> {
    let shown = number.to_string();
    // Longer than the widths that the formatter accepts.
    out.extend(std::iter::repeat_n('0', digits.saturating_sub(shown.len())));
    out.push_str(&shown);
    Some(())
}

/// Three letters stand for the short name, more for the whole.
fn word(out: &mut String, name: Option<&&str>, length: usize) -> Option<()> {
    let name = name?;
    out.push_str(if length == 3 { name.get(..3)? } else { name });
    Some(())
}

/// The first digits of the fraction; `F` leaves out zeros at its end.
fn fraction(out: &mut String, instant: Instant, trimmed: bool, digits: usize) -> Option<()> {
    let all = format!("{:07}", instant.ticks_of_day() % SECOND);
    let shown = all.get(..digits)?;
    out.push_str(if trimmed { shown.trim_end_matches('0') } else { shown });
    Some(())
}
