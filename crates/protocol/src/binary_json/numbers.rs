//! The number forms: integers keep all their digits, the rest are doubles.

use std::fmt::{Display, Write as _};

use model::json::Number;

use super::reader::Reader;
use super::{BinaryJsonError, Result};

/// How a number is laid out. Several markers may mean one kind: the older ones
/// stand for JSON numbers, the newer ones for the typed numbers of the SDKs.
#[derive(Clone, Copy)]
pub(super) enum NumberKind {
    /// No bytes at all: the marker is the number.
    Literal(u8),
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt32,
    UInt64,
    Float16,
    Float32,
    Float64,
}

impl NumberKind {
    pub(super) fn of(marker: u8) -> Option<NumberKind> {
        let kind = match marker {
            0x00..=0x1F => NumberKind::Literal(marker),
            0xC7 => NumberKind::UInt64,
            0xC8 => NumberKind::UInt8,
            0xC9 => NumberKind::Int16,
            0xCA => NumberKind::Int32,
            0xCB => NumberKind::Int64,
            0xCC => NumberKind::Float64,
            _ => return NumberKind::of_uniform(marker),
        };
        Some(kind)
    }

    /// The kinds that a uniform array can have.
    pub(super) fn of_uniform(marker: u8) -> Option<NumberKind> {
        let kind = match marker {
            0xCD => NumberKind::Float32,
            0xCE => NumberKind::Float64,
            0xCF => NumberKind::Float16,
            0xD7 => NumberKind::UInt8,
            0xD8 => NumberKind::Int8,
            0xD9 => NumberKind::Int16,
            0xDA => NumberKind::Int32,
            0xDB => NumberKind::Int64,
            0xDC => NumberKind::UInt32,
            _ => return None,
        };
        Some(kind)
    }

    /// Reads a number of this kind, without a marker, and appends its spelling.
    pub(super) fn write(self, input: &mut Reader<'_>, out: &mut String) -> Result<()> {
        let offset = input.offset();
        match self {
            NumberKind::Literal(value) => integer(out, value),
            NumberKind::Int8 => integer(out, i8::from_le_bytes(input.array()?)),
            NumberKind::Int16 => integer(out, i16::from_le_bytes(input.array()?)),
            NumberKind::Int32 => integer(out, i32::from_le_bytes(input.array()?)),
            NumberKind::Int64 => integer(out, i64::from_le_bytes(input.array()?)),
            NumberKind::UInt8 => integer(out, input.byte()?),
            NumberKind::UInt32 => integer(out, u32::from_le_bytes(input.array()?)),
            NumberKind::UInt64 => integer(out, u64::from_le_bytes(input.array()?)),
            NumberKind::Float16 => double(out, half(u16::from_le_bytes(input.array()?)), offset)?,
            NumberKind::Float32 => {
                double(out, f64::from(f32::from_le_bytes(input.array()?)), offset)?;
            }
            NumberKind::Float64 => double(out, f64::from_le_bytes(input.array()?), offset)?,
        }
        Ok(())
    }
}

fn integer(out: &mut String, value: impl Display) {
    write!(out, "{value}").expect("a string takes all that is written");
}

/// Smaller floats are written as doubles of the same value, so that reading the text gives
/// that value and not a neighbour.
fn double(out: &mut String, value: f64, offset: usize) -> Result<()> {
    let number = Number::from_f64(value).ok_or(BinaryJsonError::NotFinite { offset })?;
    integer(out, number);
    Ok(())
}

/// The value of an IEEE half: sign, 5 bits of exponent, 10 of fraction.
fn half(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 0x1F);
    let fraction = f64::from(bits & 0x03FF);
    match exponent {
        0 => sign * fraction * 2f64.powi(-24),
        0x1F if fraction == 0.0 => sign * f64::INFINITY,
        0x1F => f64::NAN,
        _ => sign * (1024.0 + fraction) * 2f64.powi(exponent - 25),
    }
}
