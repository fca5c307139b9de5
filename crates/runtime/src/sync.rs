//! Ways to wait for other threads, known to the scheduler of a simulation.
//!
//! They are those of the standard library. Only where the calling thread is a task of a
//! simulation ([`SeededTasks`](crate::SeededTasks)) they wait by giving the turn away. All other
//! threads pay one relaxed load for that.

use std::fmt;
use std::sync::mpsc::{self, RecvError, TryRecvError, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Wake;
use std::thread::{self, Thread};

use crate::schedule::{self, Scheduled, Wait};

/// A condition variable. It ignores that a lock is poisoned, as its users never leave half
/// changed what the lock guards.
#[derive(Debug, Default)]
pub struct Condvar {
    inner: std::sync::Condvar,
}

impl Condvar {
    #[must_use]
    pub const fn new() -> Condvar {
        Condvar { inner: std::sync::Condvar::new() }
    }

    /// Gives the lock away, waits to be notified and takes the lock again.
    pub fn wait<'a, T>(&self, mutex: &'a Mutex<T>, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let Some(task) = schedule::current() else {
            return self.inner.wait(guard).unwrap_or_else(PoisonError::into_inner);
        };
        drop(guard);
        task.wait(self.key());
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn notify_one(&self) {
        self.inner.notify_one();
        self.wake();
    }

    pub fn notify_all(&self) {
        self.inner.notify_all();
        self.wake();
    }

    /// In a simulation either call wakes all: waiting tasks check their condition again anyway.
    fn wake(&self) {
        if let Some(task) = schedule::current() {
            task.wake(self.key());
        }
    }

    fn key(&self) -> Wait {
        Wait::Object(std::ptr::from_ref(self).addr())
    }
}

/// A queue with room for `bound` elements.
#[must_use]
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::sync_channel(bound);
    let identity = Arc::new(0);
    let to = SyncSender { inner: sender, identity: Arc::clone(&identity) };
    (to, Receiver { inner: receiver, identity })
}

/// The sending end of a queue. There is one.
pub struct SyncSender<T> {
    inner: mpsc::SyncSender<T>,
    identity: Arc<u8>,
}

impl<T> SyncSender<T> {
    /// Puts something into the queue, if there is room and the receiver still exists.
    pub fn try_send(&self, value: T) -> Result<(), TrySendError<T>> {
        let sent = self.inner.try_send(value);
        if let Some(task) = schedule::current() {
            task.wake(key(&self.identity));
        }
        sent
    }
}

impl<T> Drop for SyncSender<T> {
    /// The queue is closed when this has been called, and before anybody else has the turn.
    fn drop(&mut self) {
        if let Some(task) = schedule::current() {
            task.wake_later(key(&self.identity));
        }
    }
}

impl<T> fmt::Debug for SyncSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncSender").finish_non_exhaustive()
    }
}

/// The receiving end of a queue.
pub struct Receiver<T> {
    inner: mpsc::Receiver<T>,
    identity: Arc<u8>,
}

impl<T> Receiver<T> {
    /// Waits for something to be in the queue. An error when it is empty for good.
    pub fn recv(&self) -> Result<T, RecvError> {
        match schedule::current() {
            None => self.inner.recv(),
            Some(task) => receive(&task, &self.identity, || self.inner.try_recv()),
        }
    }

    /// Takes what is in the queue.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.inner.try_recv()
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}

/// A [`Receiver`] that several threads share.
pub struct SharedReceiver<T> {
    receiver: Mutex<Receiver<T>>,
    identity: Arc<u8>,
}

impl<T> SharedReceiver<T> {
    #[must_use]
    pub fn new(receiver: Receiver<T>) -> SharedReceiver<T> {
        let identity = Arc::clone(&receiver.identity);
        SharedReceiver { receiver: Mutex::new(receiver), identity }
    }

    /// Waits for something to be in the queue. An error when it is empty for good.
    pub fn recv(&self) -> Result<T, RecvError> {
        match schedule::current() {
            // The lock is held while waiting, which is all that the others would do.
            None => self.receiver().recv(),
            Some(task) => receive(&task, &self.identity, || self.receiver().try_recv()),
        }
    }

    fn receiver(&self) -> MutexGuard<'_, Receiver<T>> {
        self.receiver.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> fmt::Debug for SharedReceiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedReceiver").finish_non_exhaustive()
    }
}

fn receive<T>(
    task: &Scheduled,
    identity: &Arc<u8>,
    try_recv: impl Fn() -> Result<T, TryRecvError>,
) -> Result<T, RecvError> {
    task.reschedule();
    loop {
        match try_recv() {
            Ok(value) => return Ok(value),
            Err(TryRecvError::Disconnected) => return Err(RecvError),
            Err(TryRecvError::Empty) => task.wait(key(identity)),
        }
    }
}

fn key(identity: &Arc<u8>) -> Wait {
    Wait::Object(Arc::as_ptr(identity).addr())
}

/// Lets a thread wait for a future: its waker, and where it waits.
pub struct Parker(Parked);

enum Parked {
    Thread(Thread),
    Task(Scheduled),
}

impl Parker {
    /// For the thread that calls this, and for no other to wait on.
    #[must_use]
    pub fn here() -> Arc<Parker> {
        let parked =
            schedule::current().map_or_else(|| Parked::Thread(thread::current()), Parked::Task);
        Arc::new(Parker(parked))
    }

    /// Waits until it is woken. It may return earlier.
    pub fn park(&self) {
        match &self.0 {
            Parked::Thread(_) => thread::park(),
            Parked::Task(task) => task.park(),
        }
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Parker>) {
        match &self.0 {
            Parked::Thread(thread) => thread.unpark(),
            Parked::Task(task) => task.unpark(),
        }
    }
}

impl fmt::Debug for Parker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parker").finish_non_exhaustive()
    }
}
