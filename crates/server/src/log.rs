//! Where log lines go: to stderr, so that stdout stays for answers.

use std::fmt;

use runtime::log_context;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};

use crate::settings::LogLevel;

pub(crate) fn start(level: LogLevel) {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_max_level(level.0)
        .fmt_fields(InContext)
        .init();
}

/// Prefixes lines about a request with its context, as the fields of a span would be shown.
/// There are no spans.
#[derive(Debug)]
struct InContext;

impl<'writer> FormatFields<'writer> for InContext {
    fn format_fields<R: RecordFields>(
        &self,
        mut writer: Writer<'writer>,
        fields: R,
    ) -> fmt::Result {
        if let Some(context) = log_context() {
            write!(writer, "{context}: ")?;
        }
        DefaultFields::new().format_fields(writer, fields)
    }
}

/// The log that a test captures.
#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub(crate) struct Captured(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

#[cfg(test)]
impl Captured {
    /// Keeps what this thread logs until the guard is dropped.
    ///
    /// Every test that reaches a line which another test looks for has to do so as well: a
    /// line that is first reached without a subscriber may stay disabled.
    pub(crate) fn begin() -> (Captured, tracing::subscriber::DefaultGuard) {
        let log = Captured::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::DEBUG)
            .fmt_fields(InContext)
            .with_writer(move || writer.clone())
            .finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use runtime::{LogContext, with_log_context};

    use super::*;

    #[test]
    fn a_line_begins_with_the_request_that_it_is_about() {
        let (log, _listening) = Captured::begin();
        let context: LogContext = Arc::new("request{activity_id=\"1\"}");
        with_log_context(&context, || tracing::error!(code = 7, "it failed"));
        tracing::error!("nobody's");
        let log = log.text();
        let lines: Vec<&str> = log.lines().collect();
        assert!(lines[0].contains("ERROR"), "{log}");
        assert!(lines[0].ends_with(": request{activity_id=\"1\"}: it failed code=7"), "{log}");
        assert!(!lines[1].contains("request{"), "{log}");
    }
}
