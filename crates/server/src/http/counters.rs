//! What the server has done since it started.

use std::sync::atomic::{AtomicU64, Ordering};

use http::StatusCode;

use crate::metrics::Figure;

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

/// One counter at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) figure: Figure,
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

/// A connection of which nothing but the socket is held, until this is dropped.
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

    /// For those who collect metrics.
    pub(crate) fn readings(&self) -> Vec<Reading> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (opened, closed) = (read(&self.connections_opened), read(&self.connections_closed));
        let reading = |name, help, figure| Reading { name, help, figure };
        let count = |counter| Figure::Count(read(counter));
        vec![
            reading(
                "orrery_answers_ok",
                "Answers to requests that succeeded.",
                count(&self.answers_ok),
            ),
            reading(
                "orrery_answers_client_error",
                "Answers that say that the client is wrong.",
                count(&self.answers_client_error),
            ),
            reading(
                "orrery_answers_server_error",
                "Answers that say that the server is wrong or overloaded.",
                count(&self.answers_server_error),
            ),
            reading(
                "orrery_connections_opened",
                "Connections that were let in.",
                Figure::Count(opened),
            ),
            reading(
                "orrery_connections_refused",
                "Connections that there was no room for.",
                count(&self.connections_refused),
            ),
            reading(
                "orrery_connections_open",
                "Connections that are open.",
                Figure::Level(opened.saturating_sub(closed)),
            ),
            reading(
                "orrery_connections_parked",
                "Open connections of which nothing but the socket is held.",
                Figure::Level(read(&self.connections_parked)),
            ),
        ]
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (opened, closed) = (read(&self.connections_opened), read(&self.connections_closed));
        serde_json::json!({
            "answers": {
                "ok": read(&self.answers_ok),
                "clientError": read(&self.answers_client_error),
                "serverError": read(&self.answers_server_error),
            },
            "connections": {
                "open": opened.saturating_sub(closed),
                "opened": opened,
                "parked": read(&self.connections_parked),
                "refused": read(&self.connections_refused),
            },
        })
    }
}
