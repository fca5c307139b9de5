//! The program as users start it: the built binary, real sockets, real signals.

mod admin;
mod bearers;
mod check;
mod client;
mod commands;
mod compact;
mod frames;
mod hostile;
mod hosts;
mod http2;
mod http2_hostile;
mod keys;
mod life;
mod partitions;
mod program;
#[cfg(unix)]
mod rights;
mod scripts;
mod settings;
mod statistics;
mod time;
mod tls;
