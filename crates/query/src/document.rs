//! A document as a query sees it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;

use model::json::{Raw, Value};

/// The text of a document, and properties that are shown with it. These are written only if
/// the query looks at them: most do not, or only at documents that pass their filter.
#[derive(Clone, Copy, Debug)]
pub struct DocumentView<'a> {
    own: Raw<'a>,
    added: Option<&'a AddedProperties<'a>>,
}

/// Properties that are shown with a document, as a JSON object. Their names begin with an
/// underscore, and the document has none of them.
pub struct AddedProperties<'a> {
    text: OnceCell<String>,
    write: &'a dyn Fn() -> String,
}

impl<'a> AddedProperties<'a> {
    #[must_use]
    pub fn new(write: &'a dyn Fn() -> String) -> AddedProperties<'a> {
        AddedProperties { text: OnceCell::new(), write }
    }

    fn object(&self) -> Raw<'_> {
        Raw::trusted(self.text.get_or_init(self.write))
    }
}

impl fmt::Debug for AddedProperties<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AddedProperties").field("text", &self.text).finish_non_exhaustive()
    }
}

impl<'a> From<Raw<'a>> for DocumentView<'a> {
    fn from(own: Raw<'a>) -> DocumentView<'a> {
        DocumentView { own, added: None }
    }
}

impl<'a> DocumentView<'a> {
    #[must_use]
    pub fn new(own: Raw<'a>, added: &'a AddedProperties<'a>) -> DocumentView<'a> {
        DocumentView { own, added: Some(added) }
    }

    /// Its text, if nothing is added to it.
    pub(crate) fn plain(self) -> Option<Raw<'a>> {
        self.added.is_none().then_some(self.own)
    }

    /// The texts of its parts, each an object.
    pub(crate) fn parts(self) -> impl Iterator<Item = Raw<'a>> {
        std::iter::once(self.own).chain(self.added.map(AddedProperties::object))
    }

    pub(crate) fn get(self, name: &str) -> Option<Raw<'a>> {
        let added = self.added.filter(|_| name.starts_with('_'));
        added.and_then(|added| added.object().get(name)).or_else(|| self.own.get(name))
    }

    pub(crate) fn members(self) -> impl Iterator<Item = (Cow<'a, str>, Raw<'a>)> {
        self.parts().flat_map(Raw::members)
    }

    /// Approximate bytes of its text, without writing what is added.
    pub(crate) fn len(self) -> usize {
        self.own.text().len()
            + self.added.map_or(0, |added| added.text.get().map_or(0, String::len))
    }

    pub(crate) fn to_value(self) -> Value {
        Value::Object(
            self.members().map(|(name, value)| (name.into_owned(), value.to_value())).collect(),
        )
    }

    pub(crate) fn write(self, out: &mut String) {
        out.push_str(self.own.text());
        let Some(added) = self.added else { return };
        let is_empty = self.own.members().next().is_none();
        let end = out.trim_end().len().saturating_sub(1);
        out.truncate(end);
        out.push_str(if is_empty { "" } else { "," });
        out.push_str(added.object().text().trim_start_matches('{'));
    }
}
