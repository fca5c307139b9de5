//! Why bytes are not a row, or not a stream of them.

use crate::row::{NAMED_FIELDS_MAX, VERSION};

/// Offsets are those of the row, or of the stream where it is the stream that is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HybridRowError {
    #[error("a HybridRow begins with the byte {VERSION:02x}, not with {found:02x}")]
    Version { found: u8 },
    #[error("a HybridRow of the schema {expected} is expected here, not one of {found}")]
    Schema { expected: i32, found: i32 },
    #[error("HybridRow ends inside a value, at byte {offset}")]
    Truncated { offset: usize },
    #[error("number in HybridRow has more than 64 bits, at byte {offset}")]
    Varint { offset: usize },
    #[error("text in HybridRow is not UTF-8, at byte {offset}")]
    Encoding { offset: usize },
    #[error("field of the type {code:02x} in HybridRow, which is not known here, at byte {offset}")]
    Type { code: u8, offset: usize },
    #[error("field of another type than the schema says in HybridRow, at byte {offset}")]
    Mismatch { offset: usize },
    #[error("field in HybridRow whose column is not sparse, at byte {offset}")]
    NotSparse { offset: usize },
    #[error("field in HybridRow that was there before, at byte {offset}")]
    Twice { offset: usize },
    #[error("more than {NAMED_FIELDS_MAX} fields in HybridRow that the schema does not know")]
    NamedFields,
    #[error("length {length} in the HybridRow stream at byte {offset}")]
    Length { length: i32, offset: usize },
    #[error("HybridRow stream without a header")]
    NoSegment,
    #[error("checksum of the HybridRow record at byte {offset} is wrong")]
    Checksum { offset: usize },
    #[error("a HybridRow of {bytes} bytes is too long for a record")]
    TooLong { bytes: usize },
}
