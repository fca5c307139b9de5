//! The promise that the status of a submission will be known.
//!
//! A ticket can be awaited, waited for on a thread, or given a callback. It never
//! hangs: a [`Resolver`] that goes away without an answer, whatever the reason,
//! resolves its ticket as [`CommitStatus::Unknown`].

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use runtime::Condvar;

/// What became of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitStatus {
    /// Written, and visible in every view taken from now on.
    Durable,
    /// Surely not written.
    Refused,
    /// The disk is full; surely not written. Writes resume by themselves when there is
    /// space again.
    Full,
    /// Another owner took over the store; surely not written.
    Fenced,
    /// May or may not be written. Only reading after a restart shows which.
    Unknown,
}

/// Resolves to the [`CommitStatus`] of one submission.
#[must_use = "a submission is durable only once its ticket says so"]
pub struct Ticket {
    slot: Arc<Slot>,
}

/// Shows the status of a submission without waiting for it.
#[derive(Clone)]
pub struct TicketStatus {
    slot: Arc<Slot>,
}

/// The other end of a pending [`Ticket`].
pub struct Resolver {
    slot: Arc<Slot>,
}

type Callback = Box<dyn FnOnce(CommitStatus) + Send>;

#[derive(Default)]
struct Slot {
    state: Mutex<State>,
    resolved: Condvar,
}

#[derive(Default)]
struct State {
    outcome: Option<CommitStatus>,
    waker: Option<Waker>,
    callback: Option<Callback>,
}

impl Slot {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds a ticket's state")
    }

    fn resolve(&self, outcome: CommitStatus) {
        let mut state = self.state();
        if state.outcome.is_some() {
            return;
        }
        state.outcome = Some(outcome);
        let (waker, callback) = (state.waker.take(), state.callback.take());
        drop(state);
        self.resolved.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
        if let Some(callback) = callback {
            callback(outcome);
        }
    }
}

impl Ticket {
    /// A ticket whose answer is known already.
    pub fn resolved(outcome: CommitStatus) -> Ticket {
        let slot = Slot::default();
        slot.state().outcome = Some(outcome);
        Ticket { slot: Arc::new(slot) }
    }

    pub fn pending() -> (Resolver, Ticket) {
        let slot = Arc::new(Slot::default());
        (Resolver { slot: Arc::clone(&slot) }, Ticket { slot })
    }

    /// The outcome, if it is known by now.
    #[must_use]
    pub fn outcome(&self) -> Option<CommitStatus> {
        self.slot.state().outcome
    }

    /// Another handle to the status, for keeping track of what is pending.
    #[must_use]
    pub fn status(&self) -> TicketStatus {
        TicketStatus { slot: Arc::clone(&self.slot) }
    }

    /// Blocks until the outcome is known.
    #[must_use]
    pub fn wait(self) -> CommitStatus {
        runtime::may_wait();
        let mut state = self.slot.state();
        loop {
            if let Some(outcome) = state.outcome {
                return outcome;
            }
            state = self.slot.resolved.wait(&self.slot.state, state);
        }
    }

    /// Calls `callback` once the outcome is known: at once when it is known
    /// already, else on the committer's thread, where it must neither block nor
    /// wait for another ticket. Callbacks run in the order of submission.
    pub fn on_done(self, callback: impl FnOnce(CommitStatus) + Send + 'static) {
        let mut state = self.slot.state();
        match state.outcome {
            Some(outcome) => {
                drop(state);
                callback(outcome);
            }
            None => state.callback = Some(Box::new(callback)),
        }
    }
}

impl Future for Ticket {
    type Output = CommitStatus;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CommitStatus> {
        let mut state = self.slot.state();
        match state.outcome {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("outcome", &self.outcome()).finish()
    }
}

impl TicketStatus {
    /// The outcome, if it is known by now.
    #[must_use]
    pub fn outcome(&self) -> Option<CommitStatus> {
        self.slot.state().outcome
    }
}

impl fmt::Debug for TicketStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketStatus").field("outcome", &self.outcome()).finish()
    }
}

impl Resolver {
    pub fn resolve(self, outcome: CommitStatus) {
        self.slot.resolve(outcome);
    }
}

impl Drop for Resolver {
    /// The status can no longer be known. Does nothing to a resolved ticket.
    fn drop(&mut self) {
        self.slot.resolve(CommitStatus::Unknown);
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct CountingWaker(AtomicUsize);

    impl Wake for CountingWaker {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_ticket_can_be_polled_peeked_and_waited_for() {
        let (resolver, mut ticket) = Ticket::pending();
        let wakes = Arc::new(CountingWaker::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let mut context = Context::from_waker(&waker);
        assert_eq!(Pin::new(&mut ticket).poll(&mut context), Poll::Pending);
        assert_eq!(ticket.outcome(), None);
        resolver.resolve(CommitStatus::Durable);
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
        assert_eq!(Pin::new(&mut ticket).poll(&mut context), Poll::Ready(CommitStatus::Durable));
        assert_eq!(ticket.outcome(), Some(CommitStatus::Durable));
        assert_eq!(ticket.wait(), CommitStatus::Durable);
    }

    #[test]
    fn a_dropped_resolver_leaves_the_outcome_unknown() {
        let (resolver, ticket) = Ticket::pending();
        drop(resolver);
        assert_eq!(ticket.wait(), CommitStatus::Unknown);
    }

    #[test]
    fn a_callback_runs_once_whether_early_or_late() {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let record = |calls: &Arc<Mutex<Vec<CommitStatus>>>| {
            let calls = Arc::clone(calls);
            move |outcome| calls.lock().unwrap().push(outcome)
        };
        let (resolver, ticket) = Ticket::pending();
        ticket.on_done(record(&calls));
        assert!(calls.lock().unwrap().is_empty());
        resolver.resolve(CommitStatus::Fenced);
        Ticket::resolved(CommitStatus::Refused).on_done(record(&calls));
        assert_eq!(*calls.lock().unwrap(), [CommitStatus::Fenced, CommitStatus::Refused]);
    }
}
