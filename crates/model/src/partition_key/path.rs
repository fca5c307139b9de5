//! Paths of partition keys, such as `/tenant/id` or `/"department name"`.

use std::fmt;

/// The path to the property that holds a partition key value.
///
/// The syntax is that of indexing paths without wildcards. A segment in single or
/// double quotes may contain anything; `\` takes the next character literally.
/// Two paths are equal when they name the same properties, however spelled.
#[derive(Clone, Debug)]
pub struct KeyPath {
    text: String,
    names: Vec<String>,
}

/// The text is the service's, which users search for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The partition key component definition path '{path}' could not be accepted, failed near \
     position '{position}'. Partition key paths must contain only valid characters and not \
     contain a trailing slash or wildcard character."
)]
pub struct KeyPathError {
    pub path: String,
    /// Byte offset of the first segment or character that cannot be accepted.
    pub position: usize,
}

impl KeyPath {
    pub fn parse(text: &str) -> Result<KeyPath, KeyPathError> {
        let mut names = Vec::new();
        let mut rest = text;
        loop {
            match parse_segment(rest) {
                Some((name, after)) => {
                    names.push(name);
                    rest = after;
                }
                None => {
                    let position = text.len() - rest.len();
                    return Err(KeyPathError { path: text.to_owned(), position });
                }
            }
            if rest.is_empty() {
                return Ok(KeyPath { text: text.to_owned(), names });
            }
        }
    }

    /// The property names from the outside in.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The path as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Takes `/name` from the front.
fn parse_segment(text: &str) -> Option<(String, &str)> {
    let body = text.strip_prefix('/')?;
    match body.chars().next()? {
        quote @ ('"' | '\'') => quoted(body.get(1..)?, quote),
        _ => plain(body),
    }
}

fn plain(body: &str) -> Option<(String, &str)> {
    let (name, rest) = body.split_at(body.find('/').unwrap_or(body.len()));
    let accepted = |c: char| !matches!(c, '"' | '?' | '*') && !c.is_control() && !c.is_whitespace();
    // `[]` is the indexing policy's wildcard for array elements.
    let valid = !name.is_empty() && name != "[]" && name.chars().all(accepted);
    valid.then(|| (name.to_owned(), rest))
}

/// Takes a name up to its closing quote, which must end the segment.
fn quoted(body: &str, quote: char) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = body.chars();
    loop {
        match chars.next()? {
            '\\' => name.push(chars.next()?),
            c if c == quote => break,
            c => name.push(c),
        }
    }
    let rest = chars.as_str();
    let ends = rest.is_empty() || rest.starts_with('/');
    (ends && !name.is_empty()).then_some((name, rest))
}

impl PartialEq for KeyPath {
    fn eq(&self, other: &KeyPath) -> bool {
        self.names == other.names
    }
}

impl Eq for KeyPath {}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
