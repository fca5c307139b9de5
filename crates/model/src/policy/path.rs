//! Paths as policies write them: `/address/"zip code"`, and for the index also
//! `/tags/[]/name/?` and `/raw/*`.

use std::fmt;

use super::PolicyError;

/// A path of property names from the top of an item: `/address/city`.
///
/// Two paths are equal when they lead to the same property, however quoted.
#[derive(Clone, Debug)]
pub struct PropertyPath {
    text: String,
    names: Vec<String>,
}

/// A path of an indexing policy, which may match many values in an item.
///
/// Two paths are equal when they match the same values, however quoted.
#[derive(Clone, Debug)]
pub struct IndexPath {
    text: String,
    steps: Vec<PolicyPathStep>,
    end: PathEnd,
}

/// One step down into an item.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolicyPathStep {
    Property(String),
    /// `[]`: every element of an array.
    Elements,
}

/// What an index path covers at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathEnd {
    /// `/?`: the value there, and nothing below.
    Scalar,
    /// `/*`: the value there and everything below.
    Subtree,
    /// `/{a, b}/?`: the named properties together.
    Tuple(Vec<Vec<String>>),
}

impl PropertyPath {
    /// Reads a path of one or more names.
    ///
    /// `field` is the name of the path in messages.
    pub fn parse(field: &str, text: &str) -> Result<PropertyPath, PolicyError> {
        PropertyPath::read(text).ok_or_else(|| PolicyError::PropertyPath {
            field: field.to_owned(),
            path: text.to_owned(),
        })
    }

    pub(super) fn read(text: &str) -> Option<PropertyPath> {
        let mut reader = Reader { rest: text };
        let mut names = Vec::new();
        while !reader.rest.is_empty() {
            reader.take('/')?;
            names.push(reader.label()?);
        }
        (!names.is_empty()).then(|| PropertyPath { text: text.to_owned(), names })
    }

    /// The property names from the top down; never empty.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The path as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl IndexPath {
    /// Reads a path that ends in `/?` or `/*`. A lone `/` is the old spelling
    /// of `/*`, and becomes it.
    pub fn parse(text: &str) -> Result<IndexPath, PolicyError> {
        let text = if text == "/" { "/*" } else { text };
        let mut reader = Reader { rest: text };
        match reader.index_path() {
            Some((steps, end)) => Ok(IndexPath { text: text.to_owned(), steps, end }),
            None => Err(PolicyError::IndexPath {
                path: text.to_owned(),
                position: text.len() - reader.rest.len(),
            }),
        }
    }

    #[must_use]
    pub fn steps(&self) -> &[PolicyPathStep] {
        &self.steps
    }

    #[must_use]
    pub fn end(&self) -> &PathEnd {
        &self.end
    }

    /// Whether this is `/*`, the path that matches every value of an item.
    #[must_use]
    pub fn is_root(&self) -> bool {
        self.steps.is_empty() && self.end == PathEnd::Subtree
    }

    /// The path as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Reads one path from left to right; on failure it stops at the error.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn take(&mut self, expected: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(expected)?;
        Some(())
    }

    fn index_path(&mut self) -> Option<(Vec<PolicyPathStep>, PathEnd)> {
        let mut steps = Vec::new();
        loop {
            self.take('/')?;
            let end = match self.rest.chars().next()? {
                '?' => self.take('?').map(|()| PathEnd::Scalar),
                '*' => self.take('*').map(|()| PathEnd::Subtree),
                '{' => Some(PathEnd::Tuple(self.tuple()?)),
                '[' => {
                    self.take('[')?;
                    self.take(']')?;
                    steps.push(PolicyPathStep::Elements);
                    None
                }
                _ => {
                    steps.push(PolicyPathStep::Property(self.label()?));
                    None
                }
            };
            if let Some(end) = end {
                return self.rest.is_empty().then_some((steps, end));
            }
        }
    }

    /// `{name, address/city}/?`
    fn tuple(&mut self) -> Option<Vec<Vec<String>>> {
        self.take('{')?;
        let mut members = Vec::new();
        loop {
            self.blanks();
            members.push(self.tuple_member()?);
            self.blanks();
            if self.take(',').is_none() {
                break;
            }
        }
        self.take('}')?;
        self.take('/')?;
        self.take('?')?;
        Some(members)
    }

    fn tuple_member(&mut self) -> Option<Vec<String>> {
        let mut names = vec![self.label()?];
        while self.take('/').is_some() {
            names.push(self.label()?);
        }
        Some(names)
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// A bare name of letters, digits and underscores, or a quoted one.
    fn label(&mut self) -> Option<String> {
        if let Some(quote @ ('"' | '\'')) = self.rest.chars().next() {
            self.take(quote)?;
            return self.quoted(quote);
        }
        let end =
            self.rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(self.rest.len());
        let (label, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!label.is_empty()).then(|| label.to_owned())
    }

    /// The rest of a quoted name; a backslash makes the next character literal.
    fn quoted(&mut self, quote: char) -> Option<String> {
        let mut label = String::new();
        let mut chars = self.rest.chars();
        loop {
            let next = chars.next();
            self.rest = chars.as_str();
            match next? {
                '\\' => label.push(chars.next()?),
                end if end == quote => return (!label.is_empty()).then_some(label),
                other => label.push(other),
            }
        }
    }
}

impl PartialEq for PropertyPath {
    fn eq(&self, other: &PropertyPath) -> bool {
        self.names == other.names
    }
}

impl Eq for PropertyPath {}

impl PartialEq for IndexPath {
    fn eq(&self, other: &IndexPath) -> bool {
        self.steps == other.steps && self.end == other.end
    }
}

impl Eq for IndexPath {}

impl fmt::Display for PropertyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for IndexPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
