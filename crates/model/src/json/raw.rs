//! Looking into JSON text without building a tree.

use std::borrow::Cow;

use super::scanner::Scanner;
use super::{Number, Object, Value};

/// One JSON value inside a text that was checked before.
///
/// Getting at a property skips over the text before it; nothing is allocated
/// but for strings that contain escapes.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    text: &'a str,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl<'a> Raw<'a> {
    /// Takes the text of one value, without blanks around it, that the scanner accepted.
    pub(super) fn new(text: &'a str) -> Raw<'a> {
        Raw { text }
    }

    /// Trusts that `text` is one JSON value as [`super::parse_raw`] accepts it, because
    /// this database wrote it. If it is not, values are wrong or missing, but there is no
    /// panic.
    #[must_use]
    pub fn trusted(text: &'a str) -> Raw<'a> {
        Raw { text: text.trim_matches([' ', '\t', '\n', '\r']) }
    }

    /// The text as it was written.
    #[must_use]
    pub fn text(self) -> &'a str {
        self.text
    }

    #[must_use]
    pub fn kind(self) -> JsonKind {
        match self.text.as_bytes().first() {
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::Array,
            Some(b'"') => JsonKind::String,
            Some(b't' | b'f') => JsonKind::Bool,
            Some(b'n') | None => JsonKind::Null,
            Some(_) => JsonKind::Number,
        }
    }

    /// The property `name` of an object; `None` for other types.
    #[must_use]
    pub fn get(self, name: &str) -> Option<Raw<'a>> {
        self.members().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The value at a path of property names.
    pub fn path<S: AsRef<str>>(self, names: impl IntoIterator<Item = S>) -> Option<Raw<'a>> {
        names.into_iter().try_fold(self, |value, name| value.get(name.as_ref()))
    }

    /// The properties of an object in written order; empty for other types.
    pub fn members(self) -> impl Iterator<Item = (Cow<'a, str>, Raw<'a>)> {
        let mut scanner = Scanner::inside(self.text, b'{');
        std::iter::from_fn(move || scanner.as_mut()?.next_member())
    }

    /// The elements of an array; empty for other types.
    pub fn elements(self) -> impl Iterator<Item = Raw<'a>> {
        let mut scanner = Scanner::inside(self.text, b'[');
        std::iter::from_fn(move || scanner.as_mut()?.next_element())
    }

    /// The string value; `None` for other types.
    #[must_use]
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        let inner = self.text.strip_prefix('"')?.strip_suffix('"')?;
        Some(unescape(inner))
    }

    /// The number; `None` for other types.
    #[must_use]
    pub fn as_number(self) -> Option<Number> {
        if self.kind() == JsonKind::Number { Number::from_spelling(self.text) } else { None }
    }

    /// The number as a double; `None` for other types.
    #[must_use]
    pub fn as_f64(self) -> Option<f64> {
        if self.kind() == JsonKind::Number { self.text.parse().ok() } else { None }
    }

    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        match self.text {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// Builds the tree.
    #[must_use]
    pub fn to_value(self) -> Value {
        match self.kind() {
            JsonKind::Null => Value::Null,
            JsonKind::Bool => Value::Bool(self.text == "true"),
            JsonKind::Number => self.as_number().map_or(Value::Null, Value::Number),
            JsonKind::String => Value::String(self.as_str().unwrap_or_default().into_owned()),
            JsonKind::Array => Value::Array(self.elements().map(Raw::to_value).collect()),
            JsonKind::Object => {
                let mut object = Object::new();
                for (name, value) in self.members() {
                    object.push_unchecked(name.into_owned(), value.to_value());
                }
                Value::Object(object)
            }
        }
    }
}

/// Resolves the escapes of a checked string body.
pub(super) fn unescape(body: &str) -> Cow<'_, str> {
    let Some(first) = body.find('\\') else { return Cow::Borrowed(body) };
    let mut out = String::with_capacity(body.len());
    let (clean, mut rest) = body.split_at(first);
    out.push_str(clean);
    while let Some(after) = rest.strip_prefix('\\') {
        let (decoded, tail) = unescape_one(after);
        out.push(decoded);
        let next = tail.find('\\').unwrap_or(tail.len());
        let (clean, remaining) = tail.split_at(next);
        out.push_str(clean);
        rest = remaining;
    }
    Cow::Owned(out)
}

/// Decodes what follows one backslash.
fn unescape_one(after: &str) -> (char, &str) {
    let mut chars = after.chars();
    let decoded = match chars.next() {
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('u') => return unescape_unicode(chars.as_str()),
        Some(other) => other,
        None => char::REPLACEMENT_CHARACTER,
    };
    (decoded, chars.as_str())
}

fn unescape_unicode(after: &str) -> (char, &str) {
    let Some((high, rest)) = hex4(after) else { return (char::REPLACEMENT_CHARACTER, after) };
    if let Some(c) = char::from_u32(high) {
        return (c, rest);
    }
    let low = rest.strip_prefix("\\u").and_then(hex4);
    match low {
        Some((low @ 0xDC00..=0xDFFF, rest)) if (0xD800..=0xDBFF).contains(&high) => {
            let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
            (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), rest)
        }
        _ => (char::REPLACEMENT_CHARACTER, rest),
    }
}

/// Four hexadecimal digits and what follows them.
pub(super) fn hex4(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    // `from_str_radix` takes a sign, JSON does not.
    let valid = digits.bytes().all(|b| b.is_ascii_hexdigit());
    valid.then(|| u32::from_str_radix(digits, 16).ok().map(|code| (code, rest)))?
}
