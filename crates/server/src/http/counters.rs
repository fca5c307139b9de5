//! Answers and connections, counted since the start.

use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;
use operator::{AnswerFigures, ConnectionFigures};

/// Counted with relaxed order: figures for people.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    answers_ok: AtomicU64,
    answers_client_error: AtomicU64,
    answers_server_error: AtomicU64,
    connections_opened: AtomicU64,
    connections_closed: AtomicU64,
    connections_refused: AtomicU64,
    connections_parked: AtomicU64,
}

/// Counts the end of a connection when dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection<'a> {
    counters: &'a Counters,
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.counters.connections_closed.fetch_add(1, Ordering::Relaxed);
    }
}

/// A connection that holds nothing but the socket, until this is dropped.
#[derive(Debug)]
pub(crate) struct ParkedConnection<'a> {
    counters: &'a Counters,
}

impl Drop for ParkedConnection<'_> {
    fn drop(&mut self) {
        self.counters.connections_parked.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Counters {
    pub(crate) fn answered(&self, status: StatusCode) {
        let counter = match status.as_u16() {
            ..400 => &self.answers_ok,
            400..500 => &self.answers_client_error,
            500.. => &self.answers_server_error,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn connection_opened(&self) -> OpenConnection<'_> {
        self.connections_opened.fetch_add(1, Ordering::Relaxed);
        OpenConnection { counters: self }
    }

    pub(crate) fn connection_parked(&self) -> ParkedConnection<'_> {
        self.connections_parked.fetch_add(1, Ordering::Relaxed);
        ParkedConnection { counters: self }
    }

    pub(crate) fn connection_refused(&self) {
        self.connections_refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn figures(&self) -> (AnswerFigures, ConnectionFigures) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (opened, closed) = (read(&self.connections_opened), read(&self.connections_closed));
        let answers = AnswerFigures {
            ok: read(&self.answers_ok),
            client_error: read(&self.answers_client_error),
            server_error: read(&self.answers_server_error),
        };
        let connections = ConnectionFigures {
            open: opened.saturating_sub(closed),
            opened,
            parked: read(&self.connections_parked),
            refused: read(&self.connections_refused),
        };
        (answers, connections)
    }
}
