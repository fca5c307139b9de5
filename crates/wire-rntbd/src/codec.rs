//! Frames, their tokens, and the exchange that opens a connection.
//!
//! A frame is a head and perhaps a payload; the head is a few fixed bytes and then tokens, each
//! with its id, its type and its value. Reading copies nothing: a [`RequestHead`] points into the
//! bytes that arrived. [`Extent`] finds where a frame ends before all of it is there, and checks
//! the lengths that it claims, so that a reader allocates no more than its limits allow.
//!
//! Errors are distinguished by what is left to do. After a [`FrameError`] it is unknown where the
//! next frame begins, so the connection must be closed. After a [`TokenError`] only this request is
//! refused, since the others on the connection have nothing to do with it. A [`ContextError`] is
//! answered, and then the connection is closed. [`TooLong`] is about what we write: a value that
//! has to be left out or cut.
//!
//! The bytes are described in `docs/formats/rntbd.md`.
//!
//! Must not know: what a request means, the service, HTTP.

mod context;
mod error;
mod frame;
mod guid;
mod kinds;
mod reader;
mod tables;
mod token;
mod value;

pub use context::{ContextAnswer, ContextRequest, PROTOCOL_VERSION, is_context_request};
pub use error::{ContextError, FrameError, TokenError, TooLong};
pub use frame::{
    Extent, FIXED_BYTES, FrameWriter, HEAD_BYTES_MAX, RequestHead, ResponseHead, SNIFFED_BYTES,
};
pub use guid::Guid;
pub use kinds::{OperationType, ResourceType};
pub use tables::{context_request, context_response, request, response};
pub use token::{Key, Known, TOKENS_MAX, Table, TableRow, Token, Tokens};
pub use value::{TokenType, TokenValue, ValueType, value_type};
