//! The steps that every request takes: authorise, resolve, check limits, admit at its
//! partition, account. They know no single verb, only its facts.

pub(crate) mod account;
pub(crate) mod admission;
pub(crate) mod authorise;
pub(crate) mod grant;
pub(crate) mod limits;
pub(crate) mod meta;
pub(crate) mod resolve;
mod role;
