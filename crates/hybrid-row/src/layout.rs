//! The columns of a schema, and how each is stored.

use crate::value::Kind;

/// Columns that a schema may have at most. Those of batches have twelve.
pub(crate) const COLUMNS_MAX: usize = 16;

/// A schema: the columns of its rows, in the order in which they are numbered.
#[derive(Debug)]
pub struct RowLayout {
    pub(crate) schema: i32,
    pub(crate) columns: &'static [Column],
}

#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) storage: Storage,
}

/// Where a column's value is in a row. Columns come in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// Always present, at a fixed offset.
    Required,
    /// At a fixed offset as well; a presence bit says whether the value counts.
    Fixed,
    /// After those, with its length, if a presence bit is set.
    Variable,
    /// At the end, preceded by its type and number, if it is present.
    Sparse,
}

impl Storage {
    pub(crate) fn has_bit(self) -> bool {
        matches!(self, Storage::Fixed | Storage::Variable)
    }
}

impl Column {
    pub(crate) const fn new(name: &'static str, kind: Kind, storage: Storage) -> Column {
        Column { name, kind, storage }
    }
}

impl RowLayout {
    pub(crate) const fn new(schema: i32, columns: &'static [Column]) -> RowLayout {
        assert!(columns.len() <= COLUMNS_MAX, "a schema has at most this many columns");
        let mut at = 0;
        while at < columns.len() {
            let Column { kind, storage, .. } = &columns[at];
            let has_place = matches!(storage, Storage::Required | Storage::Fixed);
            assert!(!has_place || kind.fixed_bytes() > 0, "what has a place of its own has a size");
            at += 1;
        }
        RowLayout { schema, columns }
    }

    /// Bytes of the presence bits.
    pub(crate) fn presence_bytes(&self) -> usize {
        self.columns.iter().filter(|column| column.storage.has_bit()).count().div_ceil(8)
    }

    /// Numbers up to this one, exclusive, are columns; the rest are lengths of names.
    pub(crate) fn numbers_end(&self) -> u64 {
        self.columns.len() as u64 + 1
    }

    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}
