//! The query language: text → syntax tree → bound tree → rows.
//!
//! A [`Query`] is text that parsed; binding it to parameters resolves names and
//! functions and gives a [`Bound`] query, which can be asked about one document
//! at a time or run over many. Documents stay JSON text: a filter looks up the
//! properties it needs and builds nothing.
//!
//! Must not know: storage, partitions, HTTP.

mod error;
mod lexer;
mod number;
mod parser;
mod query;
pub mod syntax;

pub use error::{Code, Place, QueryError, Span, SyntaxError};
pub use number::Numeric;
pub use parser::{
    AND_MAX, IN_ITEMS_MAX, JOINS_MAX, NESTING_MAX, OR_MAX, QUERY_BYTES_MAX, UDF_CALLS_MAX,
};
pub use query::Query;
