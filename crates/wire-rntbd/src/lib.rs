//! RNTBD, the protocol of clients in direct mode: they ask the gateway for the addresses of
//! partitions, open connections to them, and send requests as frames of typed tokens.
//!
//! [`codec`] reads and writes those frames. It is bytes alone: what a request means, and
//! what its answer has to say, is not its business.
//!
//! Must not know: partitions, storage, other protocols.

pub mod codec;
