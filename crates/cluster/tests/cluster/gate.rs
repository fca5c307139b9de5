//! A store whose submissions wait, for their tickets or for space in the queue, until
//! released.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use bytes::Bytes;
use storage::{
    CommitStatus, Counters, KeyRange, Resolver, StorageError, Store, Ticket, VerifyReport, View,
    WriteBatch, WriteSession,
};

pub(crate) struct Gate {
    inner: Arc<dyn Store>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The beginning of the keys that are held.
    holding: Option<Bytes>,
    held: Vec<Held>,
    blocking: bool,
    blocked: usize,
    dead: bool,
}

/// A submission that waits for its ticket.
struct Held {
    session: Arc<Mutex<Box<dyn WriteSession>>>,
    batch: WriteBatch,
    resolver: Resolver,
}

impl Gate {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Arc<Gate> {
        Arc::new(Gate { inner, shared: Arc::default() })
    }

    /// Submitting works from now on, but nothing becomes durable.
    pub(crate) fn hold_tickets(&self) {
        self.hold_tickets_of(Bytes::new());
    }

    /// The same, for sessions that write keys with that beginning.
    pub(crate) fn hold_tickets_of(&self, prefix: impl Into<Bytes>) {
        self.shared.state().holding = Some(prefix.into());
    }

    pub(crate) fn held(&self) -> usize {
        self.shared.state().held.len()
    }

    pub(crate) fn is_holding(&self) -> bool {
        self.shared.state().holding.is_some()
    }

    /// Submitting itself blocks from now on, as with a full queue.
    pub(crate) fn block_submissions(&self) {
        self.shared.state().blocking = true;
    }

    pub(crate) fn await_held(&self, count: usize) {
        drop(self.shared.wait_while(|state| state.held.len() < count));
    }

    pub(crate) fn await_blocked(&self) {
        drop(self.shared.wait_while(|state| state.blocked == 0));
    }

    /// The process ends here: what is held is lost, and nothing is written any more.
    pub(crate) fn die(&self) {
        let mut state = self.shared.state();
        state.dead = true;
        let lost = std::mem::take(&mut state.held);
        drop(state);
        drop(lost);
    }

    /// Lets everything pass, in its order, now and later.
    pub(crate) fn release(&self) {
        let mut state = self.shared.state();
        state.holding = None;
        state.blocking = false;
        for Held { session, batch, resolver } in std::mem::take(&mut state.held) {
            let ticket = session.lock().unwrap().submit(batch);
            ticket.on_done(move |outcome| resolver.resolve(outcome));
        }
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn wait_while(&self, mut condition: impl FnMut(&State) -> bool) -> MutexGuard<'_, State> {
        self.changed.wait_while(self.state(), |state| condition(state)).unwrap()
    }
}

impl Store for Gate {
    fn write_session(&self) -> Box<dyn WriteSession> {
        let inner = Arc::new(Mutex::new(self.inner.write_session()));
        Box::new(GateSession { inner, shared: Arc::clone(&self.shared) })
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
        self.inner.close()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

struct GateSession {
    inner: Arc<Mutex<Box<dyn WriteSession>>>,
    shared: Arc<Shared>,
}

impl WriteSession for GateSession {
    fn submit(&mut self, batch: WriteBatch) -> Ticket {
        let mut state = self.shared.state();
        state.blocked += 1;
        self.shared.changed.notify_all();
        state = self.shared.changed.wait_while(state, |state| state.blocking).unwrap();
        state.blocked -= 1;
        if state.dead {
            return Ticket::resolved(CommitStatus::Refused);
        }
        let is_held = state.holding.as_ref().is_some_and(|prefix| {
            // Later submissions of its session stay after it.
            let follows = state.held.iter().any(|held| Arc::ptr_eq(&held.session, &self.inner));
            follows || prefix.is_empty() || batch.iter().any(|it| it.key().starts_with(prefix))
        });
        if !is_held {
            drop(state);
            return self.inner.lock().unwrap().submit(batch);
        }
        let (resolver, ticket) = Ticket::pending();
        state.held.push(Held { session: Arc::clone(&self.inner), batch, resolver });
        self.shared.changed.notify_all();
        ticket
    }
}

impl fmt::Debug for GateSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GateSession").finish_non_exhaustive()
    }
}
