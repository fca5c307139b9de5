//! Reading the inside of string and number literals.

use std::str::Chars;

use crate::number::Numeric;

/// The length of the literal at the start of `text`, quotes included; `None`
/// if it does not end, or holds a control character or an unknown escape.
pub(super) fn string_length(text: &str, quote: u8) -> Option<usize> {
    let mut chars = text.chars();
    chars.next()?;
    loop {
        match chars.next()? {
            c if c == char::from(quote) => return Some(text.len() - chars.as_str().len()),
            '\\' => {
                escaped(&mut chars)?;
            }
            c if c < ' ' => return None,
            _ => {}
        }
    }
}

/// The text that a checked literal stands for.
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

/// Decodes what follows a backslash.
fn escaped(chars: &mut Chars<'_>) -> Option<char> {
    match chars.next()? {
        c @ ('\'' | '"' | '\\' | '/') => Some(c),
        'b' => Some('\u{8}'),
        'f' => Some('\u{c}'),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        'u' => unicode(chars),
        _ => None,
    }
}

/// Decodes four hexadecimal digits, and four more where they are half of a
/// surrogate pair.
fn unicode(chars: &mut Chars<'_>) -> Option<char> {
    let high = four_digits(chars)?;
    if !(0xD800..=0xDBFF).contains(&high) {
        return char::from_u32(high);
    }
    if (chars.next()?, chars.next()?) != ('\\', 'u') {
        return None;
    }
    let low = four_digits(chars)?.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
    char::from_u32(0x10000 + ((high - 0xD800) << 10) + low)
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
