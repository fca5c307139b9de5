//! The program as users start it: the built binary, real sockets, real signals.

mod admin;
mod client;
mod hostile;
mod idle;
mod life;
mod program;
mod settings;
mod tls;
