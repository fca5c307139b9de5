//! Decoding of string and number literals.

use std::str::Chars;

use crate::number::Numeric;

/// The length of the literal at the start of `text`, quotes included, and whether it
/// is one: a literal that is not closed reaches to the end of the text, and one with
/// an incomplete `\\u` to the character that is no digit.
pub(super) fn string_length(text: &str, quote: char) -> (usize, bool) {
    let mut chars = text.chars();
    chars.next();
    let length = |chars: &Chars<'_>| text.len() - chars.as_str().len();
    while let Some(c) = chars.next() {
        if c == quote {
            return (length(&chars), true);
        }
        if c == '\\' && chars.next() == Some('u') && four_digits(&mut chars).is_none() {
            break;
        }
    }
    (length(&chars), false)
}

/// The text of a checked literal. Unpaired surrogates become U+FFFD, as in the service.
pub(crate) fn decode_string(literal: &str) -> String {
    let mut chars = literal.chars();
    chars.next();
    chars.next_back();
    let mut out = String::with_capacity(literal.len());
    while let Some(c) = chars.next() {
        let decoded = if c == '\\' { escaped(&mut chars) } else { Some(c) };
        out.extend(decoded);
    }
    out
}

/// Decodes an escape after its backslash; characters without a special meaning stand for
/// themselves.
fn escaped(chars: &mut Chars<'_>) -> Option<char> {
    Some(match chars.next()? {
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'u' => return unicode(chars),
        c => c,
    })
}

/// Decodes four hexadecimal digits, and four more where they are the other half of a
/// surrogate pair.
fn unicode(chars: &mut Chars<'_>) -> Option<char> {
    let first = four_digits(chars)?;
    if (0xD800..=0xDBFF).contains(&first) {
        let mut ahead = chars.clone();
        let escape = (ahead.next(), ahead.next()) == (Some('\\'), Some('u'));
        let second = escape.then(|| four_digits(&mut ahead)).flatten();
        let low = second.and_then(|second| second.checked_sub(0xDC00)).filter(|low| *low < 0x400);
        if let Some(low) = low {
            *chars = ahead;
            return char::from_u32(0x10000 + ((first - 0xD800) << 10) + low);
        }
    }
    Some(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
}

fn four_digits(chars: &mut Chars<'_>) -> Option<u32> {
    (0..4).try_fold(0, |code, _| Some(code * 16 + chars.next()?.to_digit(16)?))
}

/// The value of a checked number; `None` if it is too large for a double.
pub(crate) fn decode_number(literal: &str) -> Option<Numeric> {
    let hexadecimal = literal.strip_prefix("0x").or_else(|| literal.strip_prefix("0X"));
    let number = match hexadecimal {
        Some(digits) => Numeric::from_hexadecimal(digits),
        None => Numeric::from_spelling(literal),
    };
    number.filter(|number| number.as_f64().is_finite())
}
