//! The program as users start it: the built binary, real sockets, real signals.

mod admin;
mod client;
mod compact;
mod frames;
mod hostile;
mod hosts;
mod http2;
mod http2_hostile;
mod idle;
mod life;
mod partitions;
mod program;
mod settings;
mod statistics;
mod tls;
