//! RNTBD, the protocol of clients in direct mode: they ask the gateway for the addresses of
//! partitions, open connections to them, and send requests as frames of typed tokens.
//!
//! [`codec`] reads and writes those frames. It is bytes alone: what a request means, and
//! what its answer has to say, is not its business. [`DirectGateway`] is on top of the service as
//! the gateway of the REST protocol is: [`DirectGateway::let_in`] looks at the head of a frame and
//! refuses it before its payload is read, [`DirectGateway::answer`] takes the payload, asks the
//! service and returns the frame of the answer. Connections are the server's.
//!
//! Must not know: partitions, storage, other protocols.

mod batches;
pub mod codec;
mod consistency;
mod feeds;
mod gateway;
mod items;
mod master;
mod parameters;
mod reply;
mod subject;

pub use gateway::{DirectAnswer, DirectConfig, DirectGateway, DirectLetIn, Greeting, Unanswered};
