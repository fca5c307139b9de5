//! The values of tokens: their types, and their bytes.

use crate::codec::error::{FrameError, TokenError, TooLong};
use crate::codec::guid::Guid;
use crate::codec::reader::Reader;

/// A value, pointing into the bytes it was read from. The names are the protocol's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TokenValue<'a> {
    Byte(u8),
    UShort(u16),
    ULong(u32),
    Long(i32),
    ULongLong(u64),
    LongLong(i64),
    Guid(Guid),
    /// Up to 255 bytes.
    SmallString(&'a str),
    /// Up to 65,535 bytes.
    String(&'a str),
    /// Never written to clients: Java misreads its length.
    ULongString(&'a str),
    SmallBytes(&'a [u8]),
    Bytes(&'a [u8]),
    ULongBytes(&'a [u8]),
    Float(f32),
    Double(f64),
    /// No value at all.
    Invalid,
}

/// The type of a value, with the byte that announces it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TokenType {
    Byte = 0x00,
    UShort = 0x01,
    ULong = 0x02,
    Long = 0x03,
    ULongLong = 0x04,
    LongLong = 0x05,
    Guid = 0x06,
    SmallString = 0x07,
    String = 0x08,
    ULongString = 0x09,
    SmallBytes = 0x0A,
    Bytes = 0x0B,
    ULongBytes = 0x0C,
    Float = 0x0D,
    Double = 0x0E,
    Invalid = 0xFF,
}

impl TokenType {
    const ALL: [TokenType; 16] = [
        TokenType::Byte,
        TokenType::UShort,
        TokenType::ULong,
        TokenType::Long,
        TokenType::ULongLong,
        TokenType::LongLong,
        TokenType::Guid,
        TokenType::SmallString,
        TokenType::String,
        TokenType::ULongString,
        TokenType::SmallBytes,
        TokenType::Bytes,
        TokenType::ULongBytes,
        TokenType::Float,
        TokenType::Double,
        TokenType::Invalid,
    ];

    pub(crate) fn of(code: u8) -> Option<TokenType> {
        TokenType::ALL.into_iter().find(|token_type| *token_type as u8 == code)
    }

    /// Takes the bytes of a value of this type, without the length in front of them.
    pub(crate) fn take<'a>(self, input: &mut Reader<'a>) -> Result<&'a [u8], FrameError> {
        let bytes = match self {
            TokenType::Invalid => 0,
            TokenType::Byte => 1,
            TokenType::UShort => 2,
            TokenType::ULong | TokenType::Long | TokenType::Float => 4,
            TokenType::ULongLong | TokenType::LongLong | TokenType::Double => 8,
            TokenType::Guid => 16,
            TokenType::SmallString | TokenType::SmallBytes => input.u8()?.into(),
            TokenType::String | TokenType::Bytes => input.u16()?.into(),
            TokenType::ULongString | TokenType::ULongBytes => {
                let (offset, bytes) = (input.offset(), input.u32()?);
                usize::try_from(bytes).map_err(|_| FrameError::Truncated { offset })?
            }
        };
        input.take(bytes)
    }
}

impl<'a> TokenValue<'a> {
    /// The value that some bytes are, which [`TokenType::take`] gave; `id` is for the error.
    pub(crate) fn of(
        token_type: TokenType,
        bytes: &'a [u8],
        id: u16,
    ) -> Result<TokenValue<'a>, TokenError> {
        let text = || std::str::from_utf8(bytes).map_err(|_| TokenError::Encoding { id });
        Ok(match token_type {
            TokenType::Byte => TokenValue::Byte(u8::from_le_bytes(fixed(bytes))),
            TokenType::UShort => TokenValue::UShort(u16::from_le_bytes(fixed(bytes))),
            TokenType::ULong => TokenValue::ULong(u32::from_le_bytes(fixed(bytes))),
            TokenType::Long => TokenValue::Long(i32::from_le_bytes(fixed(bytes))),
            TokenType::ULongLong => TokenValue::ULongLong(u64::from_le_bytes(fixed(bytes))),
            TokenType::LongLong => TokenValue::LongLong(i64::from_le_bytes(fixed(bytes))),
            TokenType::Guid => TokenValue::Guid(Guid(fixed(bytes))),
            TokenType::SmallString => TokenValue::SmallString(text()?),
            TokenType::String => TokenValue::String(text()?),
            TokenType::ULongString => TokenValue::ULongString(text()?),
            TokenType::SmallBytes => TokenValue::SmallBytes(bytes),
            TokenType::Bytes => TokenValue::Bytes(bytes),
            TokenType::ULongBytes => TokenValue::ULongBytes(bytes),
            TokenType::Float => TokenValue::Float(f32::from_le_bytes(fixed(bytes))),
            TokenType::Double => TokenValue::Double(f64::from_le_bytes(fixed(bytes))),
            TokenType::Invalid => TokenValue::Invalid,
        })
    }

    #[must_use]
    pub fn token_type(&self) -> TokenType {
        match self {
            TokenValue::Byte(_) => TokenType::Byte,
            TokenValue::UShort(_) => TokenType::UShort,
            TokenValue::ULong(_) => TokenType::ULong,
            TokenValue::Long(_) => TokenType::Long,
            TokenValue::ULongLong(_) => TokenType::ULongLong,
            TokenValue::LongLong(_) => TokenType::LongLong,
            TokenValue::Guid(_) => TokenType::Guid,
            TokenValue::SmallString(_) => TokenType::SmallString,
            TokenValue::String(_) => TokenType::String,
            TokenValue::ULongString(_) => TokenType::ULongString,
            TokenValue::SmallBytes(_) => TokenType::SmallBytes,
            TokenValue::Bytes(_) => TokenType::Bytes,
            TokenValue::ULongBytes(_) => TokenType::ULongBytes,
            TokenValue::Float(_) => TokenType::Float,
            TokenValue::Double(_) => TokenType::Double,
            TokenValue::Invalid => TokenType::Invalid,
        }
    }

    /// Appends the value without its type. On an error nothing was appended.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<(), TooLong> {
        match *self {
            TokenValue::Byte(value) => out.push(value),
            TokenValue::UShort(value) => out.extend(value.to_le_bytes()),
            TokenValue::ULong(value) => out.extend(value.to_le_bytes()),
            TokenValue::Long(value) => out.extend(value.to_le_bytes()),
            TokenValue::ULongLong(value) => out.extend(value.to_le_bytes()),
            TokenValue::LongLong(value) => out.extend(value.to_le_bytes()),
            TokenValue::Guid(Guid(bytes)) => out.extend(bytes),
            TokenValue::SmallString(text) => write_small(text.as_bytes(), out)?,
            TokenValue::String(text) => write_medium(text.as_bytes(), out)?,
            TokenValue::ULongString(text) => write_long(text.as_bytes(), out)?,
            TokenValue::SmallBytes(bytes) => write_small(bytes, out)?,
            TokenValue::Bytes(bytes) => write_medium(bytes, out)?,
            TokenValue::ULongBytes(bytes) => write_long(bytes, out)?,
            TokenValue::Float(value) => out.extend(value.to_le_bytes()),
            TokenValue::Double(value) => out.extend(value.to_le_bytes()),
            TokenValue::Invalid => {}
        }
        Ok(())
    }
}

/// Bytes whose number their type determines.
fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().expect("`TokenType::take` takes as many as the type has")
}

fn write_small(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), TooLong> {
    out.extend(length::<u8>(bytes)?.to_le_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

fn write_medium(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), TooLong> {
    out.extend(length::<u16>(bytes)?.to_le_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

fn write_long(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), TooLong> {
    out.extend(length::<u32>(bytes)?.to_le_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}

fn length<T: TryFrom<usize>>(bytes: &[u8]) -> Result<T, TooLong> {
    T::try_from(bytes.len()).map_err(|_| TooLong { bytes: bytes.len() })
}

/// A type of tokens, for keys: says at compile time what a token holds.
pub trait ValueType {
    const TYPE: TokenType;
    type Value<'a>;

    fn wrap(value: Self::Value<'_>) -> TokenValue<'_>;

    /// The value, if it is of this type.
    fn unwrap(value: TokenValue<'_>) -> Option<Self::Value<'_>>;
}

/// The types that the tables use, one name for each [`TokenType`] that clients send or accept.
pub mod value_type {
    use super::{TokenType, TokenValue, ValueType};

    macro_rules! typed {
        ($($name:ident = $value:ty),* $(,)?) => {$(
            #[derive(Clone, Copy, Debug)]
            pub struct $name;

            impl ValueType for $name {
                const TYPE: TokenType = TokenType::$name;
                type Value<'a> = $value;

                fn wrap(value: Self::Value<'_>) -> TokenValue<'_> {
                    TokenValue::$name(value)
                }

                fn unwrap(value: TokenValue<'_>) -> Option<Self::Value<'_>> {
                    if let TokenValue::$name(value) = value { Some(value) } else { None }
                }
            }
        )*};
    }

    typed! {
        Byte = u8,
        UShort = u16,
        ULong = u32,
        Long = i32,
        LongLong = i64,
        Guid = super::Guid,
        SmallString = &'a str,
        String = &'a str,
        Bytes = &'a [u8],
        Double = f64,
    }
}
