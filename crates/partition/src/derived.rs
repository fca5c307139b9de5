//! What derived data follows from: versions of items, and changes from one to the next.

use crate::record::Item;

/// One version of an item under its id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version<'i> {
    pub(crate) id: &'i str,
    pub(crate) item: &'i Item,
}

impl<'i> Version<'i> {
    pub(crate) fn new(id: &'i str, item: &'i Item) -> Version<'i> {
        Version { id, item }
    }
}

/// An item becomes another version, comes into being or goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'c> {
    pub(crate) old: Option<&'c Version<'c>>,
    pub(crate) new: Option<&'c Version<'c>>,
}
