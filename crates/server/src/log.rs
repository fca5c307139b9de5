//! Where log lines go: to stderr, so that stdout stays for answers.

use crate::settings::LogLevel;

pub(crate) fn start(level: LogLevel) {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_max_level(level.0)
        .init();
}

/// What a test finds in the log.
#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub(crate) struct Captured(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

#[cfg(test)]
impl Captured {
    /// Has everything logged that this thread does in `work`.
    pub(crate) fn of<T>(work: impl FnOnce() -> T) -> (T, String) {
        let log = Captured::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::DEBUG)
            .with_writer(move || writer.clone())
            .finish();
        let done = tracing::subscriber::with_default(subscriber, work);
        let log = log.0.lock().unwrap();
        (done, String::from_utf8_lossy(&log).into_owned())
    }
}

#[cfg(test)]
impl std::io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
