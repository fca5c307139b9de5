//! One row: its columns, and fields that its schema does not know.

use crate::Result;
use crate::error::HybridRowError;
use crate::layout::{COLUMNS_MAX, Column, RowLayout, Storage};
use crate::reader::{Reader, write_varuint};
use crate::value::RowValue;

/// The first byte of every row. No JSON text begins with it, nor does binary JSON.
pub const VERSION: u8 = 0x81;

/// Fields outside the schema that a row may have. Clients send none; readers should skip
/// what newer writers add.
pub const NAMED_FIELDS_MAX: usize = 32;

/// The values of a row, pointing into the bytes that it was read from or into
/// whatever it is to be written from.
#[derive(Clone, Debug)]
pub struct HybridRow<'a> {
    layout: &'static RowLayout,
    /// By the column's position. A null is not the same bytes as no value, though it
    /// means the same.
    values: [Option<RowValue<'a>>; COLUMNS_MAX],
    named: Vec<(&'a str, RowValue<'a>)>,
}

impl<'a> HybridRow<'a> {
    #[must_use]
    pub fn new(layout: &'static RowLayout) -> HybridRow<'a> {
        HybridRow { layout, values: [None; COLUMNS_MAX], named: Vec::new() }
    }

    /// The value of a column, if it has one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<RowValue<'a>> {
        let value = *self.values.get(self.layout.position(name)?)?;
        value.filter(|value| *value != RowValue::Null)
    }

    /// Gives a column its value, or a field that the schema does not know.
    ///
    /// # Errors
    /// A value of another type than the column's, and more fields than a row may have.
    pub fn set(&mut self, name: &'a str, value: RowValue<'a>) -> Result<()> {
        let Some((column, place)) = self.column(name) else {
            return self.add_named(name, value);
        };
        if value.kind() != column.kind {
            return Err(HybridRowError::Mismatch { offset: 0 });
        }
        *place = Some(value);
        Ok(())
    }

    /// Fields that the schema does not know, in their order.
    #[must_use]
    pub fn named(&self) -> &[(&'a str, RowValue<'a>)] {
        &self.named
    }

    fn column(&mut self, name: &str) -> Option<(&'static Column, &mut Option<RowValue<'a>>)> {
        let at = self.layout.position(name)?;
        self.layout.columns.get(at).zip(self.values.get_mut(at))
    }

    fn add_named(&mut self, name: &'a str, value: RowValue<'a>) -> Result<()> {
        if self.named.len() == NAMED_FIELDS_MAX {
            return Err(HybridRowError::NamedFields);
        }
        self.named.push((name, value));
        Ok(())
    }

    /// Reads a row that takes up all of the bytes.
    ///
    /// # Errors
    /// Whatever of it is not as the schema says.
    pub fn read(layout: &'static RowLayout, bytes: &'a [u8]) -> Result<HybridRow<'a>> {
        let mut input = Reader::new(bytes);
        let found = input.byte()?;
        if found != VERSION {
            return Err(HybridRowError::Version { found });
        }
        let found = input.i32()?;
        if found != layout.schema {
            return Err(HybridRowError::Schema { expected: layout.schema, found });
        }
        let mut row = HybridRow::new(layout);
        row.read_columns(&mut input)?;
        while !input.is_empty() {
            row.read_field(&mut input)?;
        }
        Ok(row)
    }

    /// The columns at fixed offsets.
    fn read_columns(&mut self, input: &mut Reader<'a>) -> Result<()> {
        let presence = input.take(self.layout.presence_bytes())?;
        let mut bits = presence.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 == 1));
        for (column, place) in self.layout.columns.iter().zip(&mut self.values) {
            let there = !column.storage.has_bit() || bits.next().unwrap_or_default();
            let value = match column.storage {
                Storage::Required | Storage::Fixed => RowValue::read(column.kind, input)?,
                Storage::Variable if there => RowValue::read(column.kind, input)?,
                Storage::Variable | Storage::Sparse => continue,
            };
            *place = there.then_some(value);
        }
        Ok(())
    }

    /// A sparse field, which carries its own type and name.
    fn read_field(&mut self, input: &mut Reader<'a>) -> Result<()> {
        let offset = input.offset();
        let code = input.byte()?;
        let name = self.read_name(input)?;
        let value = RowValue::read_sparse(code, offset, input)?;
        let Some((column, place)) = self.column(name) else {
            if self.named.iter().any(|(known, _)| *known == name) {
                return Err(HybridRowError::Twice { offset });
            }
            return self.add_named(name, value);
        };
        if column.storage != Storage::Sparse {
            return Err(HybridRowError::NotSparse { offset });
        }
        if value != RowValue::Null && value.kind() != column.kind {
            return Err(HybridRowError::Mismatch { offset });
        }
        match place.replace(value) {
            Some(_) => Err(HybridRowError::Twice { offset }),
            None => Ok(()),
        }
    }

    /// A column's number, or the length of a name that follows.
    fn read_name(&self, input: &mut Reader<'a>) -> Result<&'a str> {
        let offset = input.offset();
        let number = input.varuint()?;
        let Some(length) = number.checked_sub(self.layout.numbers_end()) else {
            // Zero is the empty name.
            let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
            let column = at.and_then(|at| self.layout.columns.get(at));
            return Ok(column.map_or("", |column| column.name));
        };
        let length = usize::try_from(length).map_err(|_| HybridRowError::Truncated { offset })?;
        input.text(length)
    }

    /// Appends the row.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        out.extend(self.layout.schema.to_le_bytes());
        self.write_presence(out);
        for (column, value) in self.layout.columns.iter().zip(&self.values) {
            match (column.storage, value) {
                (Storage::Required | Storage::Fixed | Storage::Variable, Some(value)) => {
                    value.write(out);
                }
                (Storage::Required | Storage::Fixed, None) => write_zero(column, out),
                (Storage::Variable, None) | (Storage::Sparse, _) => {}
            }
        }
        for ((column, value), number) in self.layout.columns.iter().zip(&self.values).zip(1..) {
            if let (Storage::Sparse, Some(value)) = (column.storage, value) {
                write_field(out, number, "", value);
            }
        }
        for (name, value) in &self.named {
            let number = match name.len() {
                0 => 0,
                length => self.layout.numbers_end() + length as u64,
            };
            write_field(out, number, name, value);
        }
    }

    fn write_presence(&self, out: &mut Vec<u8>) {
        let columns = self.layout.columns.iter().zip(&self.values);
        let with_bits = columns.filter(|(column, _)| column.storage.has_bit());
        let bits = with_bits
            .zip(0..)
            .fold(0_u32, |bits, ((_, value), bit)| bits | u32::from(value.is_some()) << bit);
        out.extend(bits.to_le_bytes().iter().take(self.layout.presence_bytes()));
    }
}

fn write_field(out: &mut Vec<u8>, number: u64, name: &str, value: &RowValue<'_>) {
    out.push(value.code());
    write_varuint(out, number);
    out.extend_from_slice(name.as_bytes());
    if !value.is_in_its_code() {
        value.write(out);
    }
}

/// What is written at the offset of a value that is absent.
fn write_zero(column: &Column, out: &mut Vec<u8>) {
    out.extend(std::iter::repeat_n(0, column.kind.fixed_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Kind;

    /// A row that Microsoft's library publishes to check other implementations by.
    #[test]
    fn the_published_row_is_read_and_written() {
        static PUBLISHED: RowLayout = RowLayout::new(
            2,
            &[
                Column::new("a", Kind::VarInt, Storage::Variable),
                Column::new("b", Kind::VarUint, Storage::Variable),
                Column::new("c", Kind::Text, Storage::Variable),
                Column::new("d", Kind::Binary, Storage::Variable),
            ],
        );
        let bytes = [
            &[0x81, 2, 0, 0, 0, 0x0F][..],
            &[0xAD, 0xD5, 0xAA, 0xD5, 0xAA, 0xD5, 0xAA, 0xD5, 0xAA, 1],
            &[0xAA, 0xD5, 0xAA, 0xD5, 0xAA, 0xD5, 0xAA, 0xD5, 0xAA, 1],
            &[3, b'a', b'b', b'c', 3, 0, 1, 2],
        ]
        .concat();
        let row = HybridRow::read(&PUBLISHED, &bytes).expect("it is a row");
        assert_eq!(row.get("a"), Some(RowValue::VarInt(-6_148_914_691_236_517_206)));
        assert_eq!(row.get("b"), Some(RowValue::VarUint(12_297_829_382_473_034_410)));
        assert_eq!(row.get("c"), Some(RowValue::Text("abc")));
        assert_eq!(row.get("d"), Some(RowValue::Binary(&[0, 1, 2])));
        let mut written = Vec::new();
        row.write(&mut written);
        assert_eq!(written, bytes);
    }

    #[test]
    fn a_column_takes_its_own_type_only() {
        static LAYOUT: RowLayout =
            RowLayout::new(1, &[Column::new("n", Kind::I32, Storage::Sparse)]);
        let mut row = HybridRow::new(&LAYOUT);
        assert!(row.set("n", RowValue::U32(1)).is_err());
        assert!(row.set("n", RowValue::I32(1)).is_ok());
        assert_eq!(row.get("n"), Some(RowValue::I32(1)));
    }
}
