//! A store that records submissions, and holds them back on request.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

use storage::{
    Counters, KeyRange, Resolver, StorageError, Store, Ticket, VerifyReport, View, WriteBatch,
    WriteSession,
};

/// Passes submissions on to `inner`, at once or when released, in their order.
pub(crate) struct Gate {
    inner: Arc<dyn Store>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    holding: bool,
    seen: Vec<WriteBatch>,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    session: Arc<Mutex<Box<dyn WriteSession>>>,
    batch: WriteBatch,
    resolver: Resolver,
}

impl Waiting {
    fn pass(self) {
        let ticket = self.session.lock().unwrap().submit(self.batch);
        let resolver = self.resolver;
        ticket.on_done(move |outcome| resolver.resolve(outcome));
    }
}

impl Gate {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Arc<Gate> {
        Arc::new(Gate { inner, state: Arc::default() })
    }

    /// From now on submissions wait to be released.
    pub(crate) fn hold(&self) {
        self.state().holding = true;
    }

    /// Lets up to `count` waiting submissions pass; returns their number.
    pub(crate) fn release(&self, count: usize) -> usize {
        for passed in 0..count {
            let Some(waiting) = self.state().waiting.pop_front() else { return passed };
            waiting.pass();
        }
        count
    }

    pub(crate) fn waiting(&self) -> usize {
        self.state().waiting.len()
    }

    /// The batches submitted since the last call.
    pub(crate) fn take_seen(&self) -> Vec<WriteBatch> {
        std::mem::take(&mut self.state().seen)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl Store for Gate {
    fn write_session(&self) -> Box<dyn WriteSession> {
        let inner = Arc::new(Mutex::new(self.inner.write_session()));
        Box::new(GateSession { inner, state: Arc::clone(&self.state) })
    }

    fn view(&self) -> Result<Box<dyn View>, StorageError> {
        self.inner.view()
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }

    fn health(&self) -> Result<(), StorageError> {
        self.inner.health()
    }

    fn verify(&self) -> Result<VerifyReport, StorageError> {
        self.inner.verify()
    }

    fn table_bytes(&self) -> Result<u64, StorageError> {
        self.inner.table_bytes()
    }

    fn discard(&self, range: &KeyRange) -> Result<(), StorageError> {
        self.inner.discard(range)
    }

    fn compact(&self) -> Result<(), StorageError> {
        self.inner.compact()
    }

    fn close(&self) -> Result<(), StorageError> {
        self.release(usize::MAX);
        self.inner.close()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").field("inner", &self.inner).finish_non_exhaustive()
    }
}

struct GateSession {
    inner: Arc<Mutex<Box<dyn WriteSession>>>,
    state: Arc<Mutex<State>>,
}

impl WriteSession for GateSession {
    fn submit(&mut self, batch: WriteBatch) -> Ticket {
        let mut state = self.state.lock().unwrap();
        state.seen.push(batch.clone());
        if !state.holding {
            drop(state);
            return self.inner.lock().unwrap().submit(batch);
        }
        let (resolver, ticket) = Ticket::pending();
        state.waiting.push_back(Waiting { session: Arc::clone(&self.inner), batch, resolver });
        ticket
    }
}

impl fmt::Debug for GateSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateSession").finish_non_exhaustive()
    }
}
