//! Where log lines go: to stderr, so that stdout stays for answers.

use crate::settings::LogLevel;

pub(crate) fn start(level: LogLevel) {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_max_level(level.0)
        .init();
}
