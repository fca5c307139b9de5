//! Waiting for a future without an async runtime.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use runtime::Parker;

/// Polls a future on this thread, as an async worker would: nothing in it may block. The
/// service needs no more than that: what it waits for is done by threads of its own.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let parker = Parker::here();
    let waker = Waker::from(Arc::clone(&parker));
    let mut future = pin!(runtime::on_async_worker(future));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => parker.park(),
        }
    }
}
