//! The REST protocol of Azure Cosmos DB for NoSQL, as the official SDKs speak it.
//!
//! [`Gateway::let_in`] looks at the head of one HTTP request — signature, headers, route —
//! and refuses it before its body is read; [`Gateway::answer`] takes the body, asks the
//! service, and renders the answer. This is the only crate that knows this protocol's
//! paths, headers, bodies and status codes.
//!
//! Must not know: partitions, storage, other protocols.

mod account;
mod addresses;
mod batch;
mod changes;
mod conflicts;
mod error;
mod gateway;
mod headers;
mod issuer;
mod items;
mod observe;
mod page;
mod query;
mod ranges;
mod reply;
mod resources;
mod route;
mod scripts;
mod system_properties;
mod usage;

pub use gateway::{
    ANSWER_BYTES_MAX, BODY_BYTES_MAX, Gateway, GatewayConfig, HttpHead, HttpResponse, LetIn,
};
pub use observe::{Observer, VerbLabel};
pub use protocol::auth::EMULATOR_KEY;
