//! Which request a line of the log belongs to.
//!
//! Requests are many and lines about them are few. A span of `tracing` formats its fields
//! for every request, which took 9 % of the processor time of a point read. Here a request
//! only leaves a note of what it is on the thread that polls it; the note is formatted when
//! a line is written.

use std::cell::RefCell;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;

/// What lines about a request begin with.
pub type LogContext = Arc<dyn fmt::Display + Send + Sync>;

thread_local! {
    static CURRENT: RefCell<Option<LogContext>> = const { RefCell::new(None) };
}

/// Polls a future so that the lines that it logs belong to `context`.
pub async fn in_log_context<F: Future>(context: LogContext, future: F) -> F::Output {
    let mut future = pin!(future);
    std::future::poll_fn(|task| with_log_context(&context, || future.as_mut().poll(task))).await
}

/// Calls a function so that the lines that it logs belong to `context`.
pub fn with_log_context<T>(context: &LogContext, call: impl FnOnce() -> T) -> T {
    let before = CURRENT.replace(Some(Arc::clone(context)));
    let _entered = Entered { before };
    call()
}

/// The context of the lines that are logged now, on this thread.
#[must_use]
pub fn log_context() -> Option<LogContext> {
    CURRENT.with_borrow(Clone::clone)
}

/// Restores the previous context when dropped, in a panic as well.
struct Entered {
    before: Option<LogContext>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.before.take());
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn named(name: &'static str) -> LogContext {
        Arc::new(name)
    }

    fn current() -> Option<String> {
        log_context().map(|context| context.to_string())
    }

    #[test]
    fn a_context_is_there_while_its_future_is_polled() {
        let mut polled = 0;
        let future = std::future::poll_fn(|_| {
            assert_eq!(current().as_deref(), Some("outer"));
            with_log_context(&named("inner"), || assert_eq!(current().as_deref(), Some("inner")));
            assert_eq!(current().as_deref(), Some("outer"));
            polled += 1;
            if polled == 2 { Poll::Ready(()) } else { Poll::Pending }
        });
        let mut future = pin!(in_log_context(named("outer"), future));
        let mut task = Context::from_waker(Waker::noop());
        assert!(future.as_mut().poll(&mut task).is_pending());
        assert_eq!(current(), None, "others have their turn");
        assert!(future.as_mut().poll(&mut task).is_ready());
        assert_eq!(current(), None);
    }

    #[test]
    fn a_panic_does_not_leave_its_context_behind() {
        let panicking = || with_log_context(&named("request"), || panic!("as the test wants it"));
        assert!(catch_unwind(AssertUnwindSafe(panicking)).is_err());
        assert_eq!(current(), None);
    }
}
