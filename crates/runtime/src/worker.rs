//! Threads that must not block.
//!
//! A few async workers serve all connections: one that waits for the disk, for a queue or
//! for another thread holds up every connection that it serves. So code that drives
//! requests marks its thread while it polls ([`on_async_worker`]), and every call that may
//! wait declares it ([`may_wait`]): in debug builds the two together are a panic. In
//! release builds neither does anything.
//!
//! There are two exceptions, both for stores on local disks:
//! - a *short read*: at most [`SHORT_READ_KEYS_MAX`] point lookups between two yields, most
//!   of which are answered from memory ([`short_read`] counts them);
//! - a `try_` submission to a queue, which refuses when the queue is full instead of
//!   waiting.
//!
//! Computing holds others up as well as waiting does. So what takes some microseconds for
//! each row of an answer or record of the catalogue is counted, too ([`short_work`]): at
//! most [`SHORT_WORK_ROWS_MAX`] between two yields.

use std::cell::Cell;
use std::future::Future;
use std::task::Poll;

/// Point lookups that an async worker may make while it polls one future. A lookup takes
/// some microseconds, so this is less than a time slice of a query.
pub const SHORT_READ_KEYS_MAX: usize = 128;

/// Rows or records that an async worker may parse, write or sign while it polls one future.
/// Each takes some microseconds.
pub const SHORT_WORK_ROWS_MAX: usize = 64;

thread_local! {
    /// What was done since the poll began, on an async worker.
    static DONE: Cell<Option<Done>> = const { Cell::new(None) };
}

/// What an async worker did since it began to poll.
#[derive(Clone, Copy, Default)]
struct Done {
    keys_read: usize,
    rows_handled: usize,
}

/// Polls a future as an async worker does: what it calls must not wait.
#[cfg(debug_assertions)]
pub async fn on_async_worker<F: Future>(future: F) -> F::Output {
    let mut future = Box::pin(future);
    std::future::poll_fn(move |context| {
        let _mark = Mark::set();
        future.as_mut().poll(context)
    })
    .await
}

/// Polls a future as an async worker does: what it calls must not wait.
#[cfg(not(debug_assertions))]
pub fn on_async_worker<F: Future>(future: F) -> F {
    future
}

/// Declares that this call may wait. To be called whether or not it will.
///
/// # Panics
/// In debug builds, on an async worker.
#[track_caller]
pub fn may_wait() {
    debug_assert!(
        DONE.get().is_none(),
        "a call that may wait for the disk or for a thread runs on an async worker"
    );
}

/// Declares that this call looks up `keys` keys.
///
/// # Panics
/// In debug builds, on an async worker that has looked up too many since it began to poll.
#[track_caller]
pub fn short_read(keys: usize) {
    if cfg!(debug_assertions)
        && let Some(before) = DONE.get()
    {
        let read = before.keys_read + keys;
        assert!(read <= SHORT_READ_KEYS_MAX, "{read} keys read on an async worker without a break");
        DONE.set(Some(Done { keys_read: read, ..before }));
    }
}

/// Declares that this call handles `rows` rows of an answer or records of the catalogue.
///
/// # Panics
/// In debug builds, on an async worker that has handled too many since it began to poll.
#[track_caller]
pub fn short_work(rows: usize) {
    if cfg!(debug_assertions)
        && let Some(before) = DONE.get()
    {
        let rows = before.rows_handled + rows;
        assert!(
            rows <= SHORT_WORK_ROWS_MAX,
            "{rows} rows handled on an async worker without a break"
        );
        DONE.set(Some(Done { rows_handled: rows, ..before }));
    }
}

/// Yields on an async worker; another short read or short work may follow.
pub async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// The mark of an async worker, until dropped.
#[cfg(debug_assertions)]
struct Mark {
    before: Option<Done>,
}

#[cfg(debug_assertions)]
impl Mark {
    fn set() -> Mark {
        let before = DONE.get();
        DONE.set(before.or(Some(Done::default())));
        Mark { before }
    }
}

#[cfg(debug_assertions)]
impl Drop for Mark {
    fn drop(&mut self) {
        // Within another poll on the same thread, what was done counts there as well.
        if self.before.is_none() {
            DONE.set(None);
        }
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn poll<T>(future: impl Future<Output = T>) -> Poll<T> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn on_a_worker(future: impl Future<Output = ()>) {
        assert_eq!(poll(on_async_worker(future)), Poll::Ready(()));
    }

    fn panics(work: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(work)).is_err()
    }

    #[test]
    fn waiting_on_an_async_worker_panics_and_nowhere_else() {
        may_wait();
        assert!(panics(|| on_a_worker(async { may_wait() })));
        may_wait();
        let on_a_thread = || std::thread::scope(|scope| scope.spawn(may_wait).join().is_ok());
        let elsewhere = async { on_a_thread() };
        assert_eq!(poll(on_async_worker(elsewhere)), Poll::Ready(true));
    }

    #[test]
    fn short_reads_are_counted_from_poll_to_poll() {
        short_read(usize::MAX);
        let read = |keys| async move { short_read(keys) };
        on_a_worker(read(SHORT_READ_KEYS_MAX));
        let twice = async {
            on_async_worker(read(SHORT_READ_KEYS_MAX)).await;
            short_read(1);
        };
        assert!(panics(|| on_a_worker(twice)));
        on_a_worker(read(1));
    }

    #[test]
    fn rows_are_counted_beside_keys_and_from_poll_to_poll() {
        short_work(usize::MAX);
        on_a_worker(async {
            short_work(SHORT_WORK_ROWS_MAX);
            short_read(SHORT_READ_KEYS_MAX);
        });
        let one_more = async {
            short_work(SHORT_WORK_ROWS_MAX);
            short_work(1);
        };
        assert!(panics(|| on_a_worker(one_more)));
        on_a_worker(async { short_work(SHORT_WORK_ROWS_MAX) });
    }
}
