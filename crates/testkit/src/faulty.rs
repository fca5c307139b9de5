//! A store that fails on purpose.
//!
//! Wraps any store and decides, per submission and per read, whether to pass it on or to
//! fail it in one of the modes that the storage door allows. The result still keeps the
//! door's rules: a session with a submission that did not become durable is broken, and a
//! refused submission is surely not written. So a caller that misbehaves on it would
//! misbehave on a real store.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use runtime::{Random, SeededRandom};
use storage::{
    Chunk, CommitStatus, Counters, Direction, KeyRange, Loss, Resolver, ScanLimit, StorageError,
    Store, Ticket, VerifyReport, View, WriteBatch, WriteSession,
};

/// What happens to one submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: it goes to the wrapped store.
    Pass,
    /// Not written, and the ticket says so.
    Refuse,
    /// There is no room for it: not written, and the ticket says so.
    Full,
    /// Another owner took over: not written, and the ticket says so.
    Fence,
    /// Written or not, and the ticket does not say which.
    Unknown { written: bool },
    /// Written or not, and the ticket stays silent until
    /// [`FaultyStore::forget_lost`] or the end of the store.
    Lose { written: bool },
}

/// How often each fault happens, in 1,000 submissions or reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultRates {
    pub refuse: u16,
    pub fence: u16,
    pub unknown_written: u16,
    pub unknown_not_written: u16,
    pub lose: u16,
    pub read: u16,
}

/// The wrapper. Submissions are numbered over all sessions in the order of their arrival; a
/// script decides on the first ones, then the rates do.
pub struct FaultyStore {
    inner: Arc<dyn Store>,
    plan: Arc<Plan>,
}

struct Plan {
    random: SeededRandom,
    rates: FaultRates,
    state: Mutex<PlanState>,
}

#[derive(Default)]
struct PlanState {
    script: VecDeque<Fault>,
    reads_to_fail: usize,
    lost: Vec<Resolver>,
    log: Vec<Fault>,
    keys_read: u64,
}

impl FaultyStore {
    /// Passes everything on unless [`FaultyStore::script`] says otherwise.
    #[must_use]
    pub fn new(inner: Arc<dyn Store>) -> Arc<FaultyStore> {
        FaultyStore::seeded(inner, 0, FaultRates::default())
    }

    /// Fails at random, reproducibly for the same seed and order of calls.
    #[must_use]
    pub fn seeded(inner: Arc<dyn Store>, seed: u64, rates: FaultRates) -> Arc<FaultyStore> {
        let state = Mutex::new(PlanState::default());
        let plan = Arc::new(Plan { random: SeededRandom::new(seed), rates, state });
        Arc::new(FaultyStore { inner, plan })
    }

    /// Decides the next submissions, one fault each.
    pub fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        self.plan.state().script.extend(faults);
    }

    /// Fails the next `count` reads on any view.
    pub fn fail_reads(&self, count: usize) {
        self.plan.state().reads_to_fail = count;
    }

    /// Number of keys that were looked up or scanned so far, on any view.
    #[must_use]
    pub fn keys_read(&self) -> u64 {
        self.plan.state().keys_read
    }

    /// Gives up on lost submissions: their tickets resolve as unknown.
    pub fn forget_lost(&self) {
        let lost = std::mem::take(&mut self.plan.state().lost);
        drop(lost);
    }

    /// What was decided so far, in order.
    #[must_use]
    pub fn log(&self) -> Vec<Fault> {
        self.plan.state().log.clone()
    }
}

impl Plan {
    fn state(&self) -> MutexGuard<'_, PlanState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_fault(&self) -> Fault {
        let mut state = self.state();
        let fault = state.script.pop_front().unwrap_or_else(|| self.draw());
        state.log.push(fault);
        fault
    }

    fn draw(&self) -> Fault {
        let rates = &self.rates;
        let draw = self.random.next_u64();
        let faults = [
            (rates.refuse, Fault::Refuse),
            (rates.fence, Fault::Fence),
            (rates.unknown_written, Fault::Unknown { written: true }),
            (rates.unknown_not_written, Fault::Unknown { written: false }),
            (rates.lose, Fault::Lose { written: draw.is_multiple_of(2) }),
        ];
        let mut left = (draw >> 1) % 1_000;
        for (rate, fault) in faults {
            match left.checked_sub(u64::from(rate)) {
                Some(rest) => left = rest,
                None => return fault,
            }
        }
        Fault::Pass
    }

    fn count(&self, keys: usize) {
        self.state().keys_read += keys as u64;
    }

    fn check_read(&self) -> Result<(), StorageError> {
        let mut state = self.state();
        let scripted = state.reads_to_fail > 0;
        state.reads_to_fail = state.reads_to_fail.saturating_sub(1);
        let drawn =
            self.rates.read > 0 && self.random.next_u64() % 1_000 < u64::from(self.rates.read);
        if scripted || drawn {
            let source = io::Error::other("failed on purpose");
            return Err(StorageError::Io { action: "read".to_owned(), source });
        }
        Ok(())
    }
}

impl Store for FaultyStore {
    fn write_session(&self) -> Box<dyn WriteSession> {
        let (inner, plan) = (self.inner.write_session(), Arc::clone(&self.plan));
        Box::new(FaultySession { inner, plan, broken: false })
    }

    fn view(&self) -> Result<Box<dyn View>, StorageError> {
        let (inner, plan) = (self.inner.view()?, Arc::clone(&self.plan));
        Ok(Box::new(FaultyView { inner, plan }))
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

    fn loss(&self) -> Option<Loss> {
        self.inner.loss()
    }

    fn compact(&self) -> Result<(), StorageError> {
        self.inner.compact()
    }

    fn close(&self) -> Result<(), StorageError> {
        self.forget_lost();
        self.inner.close()
    }
}

impl fmt::Debug for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyStore").field("inner", &self.inner).finish_non_exhaustive()
    }
}

struct FaultySession {
    inner: Box<dyn WriteSession>,
    plan: Arc<Plan>,
    broken: bool,
}

impl FaultySession {
    /// Passes the batch on, or not; in both cases the ticket stays pending.
    fn pass_in_silence(&mut self, batch: WriteBatch, written: bool) -> Option<Ticket> {
        written.then(|| self.inner.submit(batch))
    }
}

impl WriteSession for FaultySession {
    fn submit(&mut self, batch: WriteBatch) -> Ticket {
        if self.broken {
            return Ticket::resolved(CommitStatus::Refused);
        }
        let fault = self.plan.next_fault();
        self.broken = fault != Fault::Pass;
        match fault {
            Fault::Pass => self.inner.submit(batch),
            Fault::Refuse => Ticket::resolved(CommitStatus::Refused),
            Fault::Full => Ticket::resolved(CommitStatus::Full),
            Fault::Fence => Ticket::resolved(CommitStatus::Fenced),
            Fault::Unknown { written } => match self.pass_in_silence(batch, written) {
                // Answers once it is written, so that a test can look it up.
                Some(inner) => {
                    let (resolver, ticket) = Ticket::pending();
                    inner.on_done(move |_| resolver.resolve(CommitStatus::Unknown));
                    ticket
                }
                None => Ticket::resolved(CommitStatus::Unknown),
            },
            Fault::Lose { written } => {
                drop(self.pass_in_silence(batch, written));
                let (resolver, ticket) = Ticket::pending();
                self.plan.state().lost.push(resolver);
                ticket
            }
        }
    }
}

impl fmt::Debug for FaultySession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultySession").field("broken", &self.broken).finish_non_exhaustive()
    }
}

struct FaultyView {
    inner: Box<dyn View>,
    plan: Arc<Plan>,
}

impl View for FaultyView {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, StorageError> {
        self.plan.check_read()?;
        self.plan.count(1);
        self.inner.get(key)
    }

    fn multi_get(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>, StorageError> {
        self.plan.check_read()?;
        self.plan.count(keys.len());
        self.inner.multi_get(keys)
    }

    fn scan(
        &self,
        range: &KeyRange,
        direction: Direction,
        limit: ScanLimit,
    ) -> Result<Chunk, StorageError> {
        self.plan.check_read()?;
        let chunk = self.inner.scan(range, direction, limit)?;
        self.plan.count(chunk.rows.len());
        Ok(chunk)
    }
}

impl fmt::Debug for FaultyView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyView").field("inner", &self.inner).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use storage::memory;

    use super::*;

    fn submit(session: &mut dyn WriteSession, key: &'static str) -> Ticket {
        let mut batch = WriteBatch::new();
        batch.put(key, "1");
        session.submit(batch)
    }

    fn is_written(store: &dyn Store, key: &str) -> bool {
        store.view().unwrap().get(key.as_bytes()).unwrap().is_some()
    }

    /// One fault: the outcome if there is one, and whether the write is there.
    fn meet(fault: Fault) -> (Option<CommitStatus>, bool) {
        let store = FaultyStore::new(memory::create());
        store.script([Fault::Pass, fault]);
        let mut session = store.write_session();
        assert_eq!(submit(session.as_mut(), "before").wait(), CommitStatus::Durable);
        let ticket = submit(session.as_mut(), "hit");
        assert_eq!(submit(session.as_mut(), "later").wait(), CommitStatus::Refused);
        assert!(!is_written(store.as_ref(), "later"), "a broken session writes nothing");
        assert_eq!(
            submit(store.write_session().as_mut(), "elsewhere").wait(),
            CommitStatus::Durable
        );
        let outcome = ticket.outcome();
        store.forget_lost();
        assert!(ticket.outcome().is_some());
        (outcome, is_written(store.as_ref(), "hit"))
    }

    #[test]
    fn faults_do_what_they_say() {
        assert_eq!(meet(Fault::Refuse), (Some(CommitStatus::Refused), false));
        assert_eq!(meet(Fault::Full), (Some(CommitStatus::Full), false));
        assert_eq!(meet(Fault::Fence), (Some(CommitStatus::Fenced), false));
        for written in [false, true] {
            assert_eq!(meet(Fault::Unknown { written }), (Some(CommitStatus::Unknown), written));
            assert_eq!(meet(Fault::Lose { written }), (None, written));
        }
    }

    #[test]
    fn a_lost_ticket_ends_as_unknown_with_its_store() {
        let store = FaultyStore::new(memory::create());
        store.script([Fault::Lose { written: true }]);
        let ticket = submit(store.write_session().as_mut(), "a");
        assert_eq!(ticket.outcome(), None);
        drop(store);
        assert_eq!(ticket.wait(), CommitStatus::Unknown);
    }

    #[test]
    fn reads_fail_as_often_as_told() {
        let store = FaultyStore::new(memory::create());
        let view = store.view().unwrap();
        store.fail_reads(2);
        assert!(view.get(b"a").is_err());
        let scanned = view.scan(&KeyRange::all(), Direction::Forward, ScanLimit::default());
        assert!(scanned.is_err());
        assert_eq!(view.get(b"a").unwrap(), None);
    }

    #[test]
    fn the_same_seed_fails_the_same_way() {
        let rates = FaultRates {
            refuse: 100,
            fence: 50,
            unknown_written: 100,
            unknown_not_written: 100,
            lose: 50,
            read: 0,
        };
        let run = |seed| {
            let store = FaultyStore::seeded(memory::create(), seed, rates);
            for _ in 0..500 {
                drop(submit(store.write_session().as_mut(), "a"));
            }
            store.log()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        let passed = run(1).iter().filter(|fault| **fault == Fault::Pass).count();
        assert!((200..400).contains(&passed), "600 in 1,000 were to pass: {passed} in 500");
    }
}
