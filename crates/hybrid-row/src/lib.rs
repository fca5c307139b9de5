//! HybridRow: rows of typed columns, one after another in a stream of records. The
//! .NET SDK sends batches and bulk requests in it and wants its answers so.
//!
//! Nothing is copied on the way in: a [`HybridRow`] points into the bytes it was read from.
//! On the way out a row is written where it stays, and its length and checksum are put
//! in front of it afterwards. Every length is held against what is left before it is
//! believed, and rows are read one at a time, so that a few bytes cannot ask for much.
//!
//! [`batch`] has the two schemas that batches use; the bytes are described in
//! `docs/formats/hybrid-row.md`.
//!
//! Must not know: what a batch does, JSON, HTTP.

pub mod batch;
mod error;
mod layout;
mod reader;
mod record;
mod row;
mod value;

pub use error::HybridRowError;
pub use layout::RowLayout;
pub use record::{RecordWriter, Records};
pub use row::{HybridRow, NAMED_FIELDS_MAX, VERSION};
pub use value::RowValue;

type Result<T> = std::result::Result<T, HybridRowError>;
