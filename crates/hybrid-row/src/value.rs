//! The values of columns: their types, and their bytes.

use crate::Result;
use crate::error::HybridRowError;
use crate::reader::{Reader, write_varuint};

/// A value, pointing into the bytes it was read from.
///
/// Objects, arrays and the other scopes are not among them: no schema that is read
/// here has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RowValue<'a> {
    Null,
    Bool(bool),
    I8(i8),
    I16(i16),
    I32(i32),
    I64(i64),
    U8(u8),
    U16(u16),
    U32(u32),
    U64(u64),
    VarInt(i64),
    VarUint(u64),
    F32(f32),
    F64(f64),
    /// Uninterpreted, as the two that follow.
    Decimal([u8; 16]),
    DateTime([u8; 8]),
    Guid([u8; 16]),
    Text(&'a str),
    Binary(&'a [u8]),
}

/// The type of a column, or of a field that says its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    VarInt,
    VarUint,
    F32,
    F64,
    Decimal,
    DateTime,
    Guid,
    Text,
    Binary,
}

/// The bytes that announce a type in front of a sparse field. A boolean's is its value.
mod code {
    pub(super) const NULL: u8 = 0x01;
    pub(super) const FALSE: u8 = 0x02;
    pub(super) const TRUE: u8 = 0x03;
    pub(super) const I8: u8 = 0x05;
    pub(super) const I16: u8 = 0x06;
    pub(super) const I32: u8 = 0x07;
    pub(super) const I64: u8 = 0x08;
    pub(super) const U8: u8 = 0x09;
    pub(super) const U16: u8 = 0x0A;
    pub(super) const U32: u8 = 0x0B;
    pub(super) const U64: u8 = 0x0C;
    pub(super) const VAR_INT: u8 = 0x0D;
    pub(super) const VAR_UINT: u8 = 0x0E;
    pub(super) const F32: u8 = 0x0F;
    pub(super) const F64: u8 = 0x10;
    pub(super) const DECIMAL: u8 = 0x11;
    pub(super) const DATE_TIME: u8 = 0x12;
    pub(super) const GUID: u8 = 0x13;
    pub(super) const TEXT: u8 = 0x14;
    pub(super) const BINARY: u8 = 0x15;
}

impl Kind {
    /// Bytes of a value at a fixed offset; zero for types that cannot be stored so. A
    /// boolean would be one of the presence bits: no schema here has any.
    pub(crate) const fn fixed_bytes(self) -> usize {
        match self {
            Kind::Null | Kind::Bool => 0,
            Kind::VarInt | Kind::VarUint | Kind::Text | Kind::Binary => 0,
            Kind::I8 | Kind::U8 => 1,
            Kind::I16 | Kind::U16 => 2,
            Kind::I32 | Kind::U32 | Kind::F32 => 4,
            Kind::I64 | Kind::U64 | Kind::F64 | Kind::DateTime => 8,
            Kind::Decimal | Kind::Guid => 16,
        }
    }
}

impl<'a> RowValue<'a> {
    /// A sparse field's value, whose type was announced by `code` at `offset`. The name of
    /// the field comes between the two, hence the parameters.
    pub(crate) fn read_sparse(
        code: u8,
        offset: usize,
        input: &mut Reader<'a>,
    ) -> Result<RowValue<'a>> {
        let kind = match code {
            code::NULL => return Ok(RowValue::Null),
            code::FALSE => return Ok(RowValue::Bool(false)),
            code::TRUE => return Ok(RowValue::Bool(true)),
            code::I8 => Kind::I8,
            code::I16 => Kind::I16,
            code::I32 => Kind::I32,
            code::I64 => Kind::I64,
            code::U8 => Kind::U8,
            code::U16 => Kind::U16,
            code::U32 => Kind::U32,
            code::U64 => Kind::U64,
            code::VAR_INT => Kind::VarInt,
            code::VAR_UINT => Kind::VarUint,
            code::F32 => Kind::F32,
            code::F64 => Kind::F64,
            code::DECIMAL => Kind::Decimal,
            code::DATE_TIME => Kind::DateTime,
            code::GUID => Kind::Guid,
            code::TEXT => Kind::Text,
            code::BINARY => Kind::Binary,
            code => return Err(HybridRowError::Type { code, offset }),
        };
        RowValue::read(kind, input)
    }

    /// A value of a known type.
    pub(crate) fn read(kind: Kind, input: &mut Reader<'a>) -> Result<RowValue<'a>> {
        Ok(match kind {
            Kind::Null => RowValue::Null,
            Kind::Bool => RowValue::Bool(input.byte()? != 0),
            Kind::I8 => RowValue::I8(i8::from_le_bytes(input.array()?)),
            Kind::I16 => RowValue::I16(i16::from_le_bytes(input.array()?)),
            Kind::I32 => RowValue::I32(input.i32()?),
            Kind::I64 => RowValue::I64(i64::from_le_bytes(input.array()?)),
            Kind::U8 => RowValue::U8(input.byte()?),
            Kind::U16 => RowValue::U16(u16::from_le_bytes(input.array()?)),
            Kind::U32 => RowValue::U32(u32::from_le_bytes(input.array()?)),
            Kind::U64 => RowValue::U64(u64::from_le_bytes(input.array()?)),
            Kind::VarInt => RowValue::VarInt(sign_to_top(input.varuint()?)),
            Kind::VarUint => RowValue::VarUint(input.varuint()?),
            Kind::F32 => RowValue::F32(f32::from_le_bytes(input.array()?)),
            Kind::F64 => RowValue::F64(f64::from_le_bytes(input.array()?)),
            Kind::Decimal => RowValue::Decimal(input.array()?),
            Kind::DateTime => RowValue::DateTime(input.array()?),
            Kind::Guid => RowValue::Guid(input.array()?),
            Kind::Text => {
                let offset = input.offset();
                let bytes = input.bytes()?;
                let text = std::str::from_utf8(bytes);
                RowValue::Text(text.map_err(|_| HybridRowError::Encoding { offset })?)
            }
            Kind::Binary => RowValue::Binary(input.bytes()?),
        })
    }

    /// The value without its type.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match *self {
            RowValue::Null => {}
            RowValue::Bool(value) => out.push(u8::from(value)),
            RowValue::I8(value) => out.extend(value.to_le_bytes()),
            RowValue::I16(value) => out.extend(value.to_le_bytes()),
            RowValue::I32(value) => out.extend(value.to_le_bytes()),
            RowValue::I64(value) => out.extend(value.to_le_bytes()),
            RowValue::U8(value) => out.push(value),
            RowValue::U16(value) => out.extend(value.to_le_bytes()),
            RowValue::U32(value) => out.extend(value.to_le_bytes()),
            RowValue::U64(value) => out.extend(value.to_le_bytes()),
            RowValue::VarInt(value) => write_varuint(out, sign_to_bottom(value)),
            RowValue::VarUint(value) => write_varuint(out, value),
            RowValue::F32(value) => out.extend(value.to_le_bytes()),
            RowValue::F64(value) => out.extend(value.to_le_bytes()),
            RowValue::Decimal(bytes) | RowValue::Guid(bytes) => out.extend(bytes),
            RowValue::DateTime(bytes) => out.extend(bytes),
            RowValue::Text(text) => write_bytes(out, text.as_bytes()),
            RowValue::Binary(bytes) => write_bytes(out, bytes),
        }
    }

    /// Whether a sparse field has no bytes after its name.
    pub(crate) fn is_in_its_code(&self) -> bool {
        matches!(self.kind(), Kind::Null | Kind::Bool)
    }

    /// What announces it as a sparse field.
    pub(crate) fn code(&self) -> u8 {
        match self {
            RowValue::Null => code::NULL,
            RowValue::Bool(false) => code::FALSE,
            RowValue::Bool(true) => code::TRUE,
            RowValue::I8(_) => code::I8,
            RowValue::I16(_) => code::I16,
            RowValue::I32(_) => code::I32,
            RowValue::I64(_) => code::I64,
            RowValue::U8(_) => code::U8,
            RowValue::U16(_) => code::U16,
            RowValue::U32(_) => code::U32,
            RowValue::U64(_) => code::U64,
            RowValue::VarInt(_) => code::VAR_INT,
            RowValue::VarUint(_) => code::VAR_UINT,
            RowValue::F32(_) => code::F32,
            RowValue::F64(_) => code::F64,
            RowValue::Decimal(_) => code::DECIMAL,
            RowValue::DateTime(_) => code::DATE_TIME,
            RowValue::Guid(_) => code::GUID,
            RowValue::Text(_) => code::TEXT,
            RowValue::Binary(_) => code::BINARY,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            RowValue::Null => Kind::Null,
            RowValue::Bool(_) => Kind::Bool,
            RowValue::I8(_) => Kind::I8,
            RowValue::I16(_) => Kind::I16,
            RowValue::I32(_) => Kind::I32,
            RowValue::I64(_) => Kind::I64,
            RowValue::U8(_) => Kind::U8,
            RowValue::U16(_) => Kind::U16,
            RowValue::U32(_) => Kind::U32,
            RowValue::U64(_) => Kind::U64,
            RowValue::VarInt(_) => Kind::VarInt,
            RowValue::VarUint(_) => Kind::VarUint,
            RowValue::F32(_) => Kind::F32,
            RowValue::F64(_) => Kind::F64,
            RowValue::Decimal(_) => Kind::Decimal,
            RowValue::DateTime(_) => Kind::DateTime,
            RowValue::Guid(_) => Kind::Guid,
            RowValue::Text(_) => Kind::Text,
            RowValue::Binary(_) => Kind::Binary,
        }
    }
}

fn write_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_varuint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Zigzag encoding: the sign goes to the lowest bit, below the magnitude, so that small
/// numbers are short whatever their sign. The magnitude of the least number has one bit too
/// many, which is dropped.
fn sign_to_bottom(value: i64) -> u64 {
    value.unsigned_abs() << 1 | u64::from(value < 0)
}

fn sign_to_top(bits: u64) -> i64 {
    let magnitude = (bits >> 1).cast_signed();
    if bits & 1 == 0 { magnitude } else { magnitude.wrapping_neg() | i64::MIN }
}
