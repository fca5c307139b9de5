//! Connections and requests: one port for plain HTTP and TLS, HTTP/1 and HTTP/2.
//!
//! [`listener`] accepts, [`connection`] detects the protocol and enforces each client's
//! limits, [`service`] takes single requests and hands them to the protocols.

pub(crate) mod connection;
pub(crate) mod counters;
pub(crate) mod host;
pub(crate) mod listener;
pub(crate) mod service;
pub(crate) mod tls;
pub(crate) mod transport;
