//! What can be wrong with a frame, by what is left to do about it.

use crate::codec::frame::{FIXED_BYTES, HEAD_BYTES_MAX};
use crate::codec::token::TOKENS_MAX;

/// The bytes cannot be followed any further: close the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    #[error("the head of a frame has {FIXED_BYTES} to {HEAD_BYTES_MAX} bytes, not {bytes}")]
    HeadLength { bytes: u32 },
    #[error("a token has the type {code:02x}, which is not known here, at byte {offset}")]
    Type { code: u8, offset: usize },
    #[error("the head of a frame ends inside a token, at byte {offset}")]
    Truncated { offset: usize },
}

/// The request is wrong, and the connection is in order: refuse the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("the token {id:04x} occurs twice")]
    Twice { id: u16 },
    #[error("the token {id:04x} has another type than {name} has")]
    Mismatch { id: u16, name: &'static str },
    #[error("the token {id:04x} is not UTF-8")]
    Encoding { id: u16 },
    #[error("more than {TOKENS_MAX} tokens")]
    TooMany,
}

/// No connection comes about: say so and close.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContextError {
    #[error("a connection begins with a context request")]
    NotFirst,
    #[error("the context request has no {name}")]
    Lacking { name: &'static str },
    #[error("version {found} of the protocol is not known here")]
    Version { found: u32 },
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// A value does not fit into the length in front of it: leave it out, or shorten it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes are too long for where they are to be written")]
pub struct TooLong {
    pub bytes: usize,
}
