//! HybridRow: rows of typed columns, one after another in a stream of records. The .NET SDK
//! sends batches and bulk requests in it and expects its answers in it.
//!
//! Reading copies nothing: a [`HybridRow`] points into the bytes it was read from. Writing
//! puts a row directly into the output and fills in its length and checksum afterwards.
//! Every length is checked against what is left before it is used, and rows are read one at
//! a time, so that a few bytes cannot make us allocate much.
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
