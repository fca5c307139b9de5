//! The query language: text → syntax tree → bound tree → rows.
//!
//! A [`Query`] is text that parsed; binding it to parameters resolves names and
//! functions and gives a [`Bound`] query, which can be asked about one document
//! at a time or run over many. Documents stay JSON text: a filter looks up the
//! properties it needs and builds nothing.
//!
//! Must not know: storage, partitions, HTTP.

mod bind;
mod bound;
mod error;
mod eval;
mod execute;
mod functions;
mod lexer;
mod number;
mod parameters;
mod parser;
mod query;
pub mod syntax;

pub use bind::UDF_CALLS_MAX;
pub use error::{Code, Place, QueryError, Span, SyntaxError};
pub use eval::{KEPT_BYTES_MAX, LIKE_STEPS_MAX, ROWS_VISITED_MAX, VALUE_BYTES_MAX};
pub use number::Numeric;
pub use parameters::Parameters;
pub use parser::{AND_MAX, IN_ITEMS_MAX, JOINS_MAX, NESTING_MAX, OR_MAX, QUERY_BYTES_MAX};
pub use query::{Bound, Condition, Query, evaluate};
pub use syntax::EXPRESSION_HEIGHT_MAX;
