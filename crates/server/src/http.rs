//! Connections and what comes over them: one port for plain HTTP and TLS, HTTP/1 and HTTP/2.
//!
//! [`listener`] accepts, [`connection`] finds out what is spoken and keeps each client within
//! its limits, [`service`] takes single requests and hands them to the protocols.

pub(crate) mod connection;
pub(crate) mod counters;
pub(crate) mod host;
pub(crate) mod listener;
pub(crate) mod service;
pub(crate) mod tls;
pub(crate) mod transport;
