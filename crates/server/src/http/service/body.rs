//! Bodies of requests, received within a memory budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use runtime::{MemoryBudget, MemoryUsage, Reservation};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use wire_cosmos::BODY_BYTES_MAX;

use super::{Answer, Client, problem, unavailable};
use crate::memory::MemoryPlan;

/// An acceptable body gets through any usable connection in this time.
const BODY_MAX: Duration = Duration::from_secs(30);

/// Memory for bodies is counted in shares of this size.
const BODY_SHARE_BYTES: usize = 1 << 10;

/// What the bodies of one connection may take without a reservation, so that small requests
/// are served however many large ones are held up. It requires a signature, so it does not
/// add up over strangers' connections.
const BODY_FREE_SHARES: usize = 16;

/// Memory that is allocated for a body which is larger than its first piece.
const BODY_PREPARED_BYTES_MAX: usize = 16 << 10;

/// A body that is too large is read to its end and discarded up to this size and time,
/// because many clients look at the answer only after they have sent everything; cut off
/// before, they retry for minutes. Unauthorised clients get less of it.
const DISCARD_BYTES_MAX: u64 = 1 << 30;
const DISCARD_MAX: Duration = Duration::from_secs(20);
pub(crate) const STRANGER_DISCARD_BYTES_MAX: u64 = 32 << 20;

/// The whole body; `None` if it exceeds the limit.
pub(super) async fn body_of(
    body: Incoming,
    expects: bool,
    shares: &mut BodyPermit,
) -> Result<Option<Bytes>, Answer> {
    let received = receive(body, expects, shares);
    match timeout(BODY_MAX, received).await {
        Ok(Received::Whole(body)) => Ok(Some(body)),
        Ok(Received::TooLarge) => Ok(None),
        Ok(Received::Broken) => {
            let message = "The request body is malformed.";
            Err(problem(StatusCode::BAD_REQUEST, "BadRequest", message))
        }
        Err(_) if shares.waiting => Err(unavailable("Too many large requests at once.")),
        Err(_) => {
            let message = "The request body did not arrive in time.";
            Err(problem(StatusCode::REQUEST_TIMEOUT, "RequestTimeout", message))
        }
    }
}

#[derive(Debug)]
enum Received {
    Whole(Bytes),
    TooLarge,
    /// The client left, or its chunks are invalid.
    Broken,
}

async fn receive(mut body: Incoming, expects: bool, shares: &mut BodyPermit) -> Received {
    let declared = body.size_hint().lower();
    if declared > BODY_BYTES_MAX as u64 {
        // A client that waits for 100-continue gets the answer first.
        if declared <= DISCARD_BYTES_MAX && !expects {
            discard_all(&mut body).await;
        }
        return Received::TooLarge;
    }
    let mut whole = Whole::default();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Received::Broken };
        let Ok(data) = frame.into_data() else { continue };
        let len = whole.len() + data.len();
        if len > BODY_BYTES_MAX {
            drop(whole);
            discard_all(&mut body).await;
            return Received::TooLarge;
        }
        shares.hold(len).await;
        whole.push(data, declared);
    }
    Received::Whole(whole.into_bytes())
}

/// Reads an unauthorised body without keeping anything.
pub(super) async fn discard(body: &mut Incoming) {
    discard_up_to(STRANGER_DISCARD_BYTES_MAX, body).await;
}

/// The same for an authorised client. A slower one is answered at once.
async fn discard_all(body: &mut Incoming) {
    let _ = timeout(DISCARD_MAX, discard_up_to(DISCARD_BYTES_MAX, body)).await;
}

async fn discard_up_to(bytes_max: u64, body: &mut Incoming) {
    let mut left = bytes_max;
    while let Some(Ok(frame)) = body.frame().await {
        let len = frame.data_ref().map_or(0, Bytes::len) as u64;
        let Some(rest) = left.checked_sub(len) else { return };
        left = rest;
    }
}

/// A body in pieces. One piece, the usual case, is not copied.
#[derive(Debug, Default)]
struct Whole {
    first: Bytes,
    all: BytesMut,
}

impl Whole {
    fn len(&self) -> usize {
        self.first.len() + self.all.len()
    }

    fn push(&mut self, data: Bytes, declared: u64) {
        if self.len() == 0 {
            self.first = data;
            return;
        }
        if !self.first.is_empty() {
            // The declared length is below the limit and usually true; what has not arrived
            // is not reserved yet, so only a part of it is allocated.
            let expected =
                usize::try_from(declared).unwrap_or_default().min(BODY_PREPARED_BYTES_MAX);
            self.all.reserve(expected.max(self.first.len() + data.len()));
            self.all.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.all.extend_from_slice(&data);
    }

    fn into_bytes(self) -> Bytes {
        if self.all.is_empty() { self.first } else { self.all.freeze() }
    }
}

/// What all bodies together may take.
#[derive(Clone, Debug)]
pub(crate) struct BodyMemory {
    /// The budget for what exceeds the allowances of connections, for all bodies that are
    /// being received or processed. A body that finds none left waits.
    budget: Arc<Semaphore>,
    /// Bodies that may be received beyond the budget, a few at a time. Otherwise bodies
    /// that hold a part of the budget each, and wait for the rest of it, would deadlock
    /// until all of them time out.
    overflow: Arc<Semaphore>,
    /// Counts what they take, of either.
    held: Arc<MemoryBudget>,
    waited: Arc<AtomicU64>,
}

impl BodyMemory {
    pub(crate) fn new(plan: &MemoryPlan) -> BodyMemory {
        BodyMemory::with(plan.bodies / BODY_SHARE_BYTES, plan.bodies_overflow)
    }

    pub(super) fn with(shares: usize, overflow: usize) -> BodyMemory {
        BodyMemory {
            budget: Arc::new(Semaphore::new(shares)),
            overflow: Arc::new(Semaphore::new(overflow)),
            held: MemoryBudget::unlimited(),
            waited: Arc::default(),
        }
    }

    /// What is held, and how often a body waited for more.
    pub(crate) fn usage(&self) -> (MemoryUsage, u64) {
        (self.held.usage(), self.waited.load(Ordering::Relaxed))
    }
}

/// What the bodies of one connection may take without a reservation.
pub(super) fn allowance() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(BODY_FREE_SHARES))
}

/// What one body takes, first of its connection's allowance, then of the common budget, and
/// when that is used up one of the overflow permits; given back when dropped.
#[derive(Debug)]
pub(crate) struct BodyPermit {
    allowance: Arc<Semaphore>,
    memory: BodyMemory,
    held: Vec<OwnedSemaphorePermit>,
    /// A body that has this needs no more of the budget.
    overflow: Option<OwnedSemaphorePermit>,
    /// Whether the body waited for memory.
    waiting: bool,
    /// All of it, for the metrics.
    counted: Option<Reservation>,
}

impl BodyPermit {
    pub(crate) fn new(client: &Client, memory: &BodyMemory) -> BodyPermit {
        let (allowance, memory) = (Arc::clone(&client.allowance), memory.clone());
        BodyPermit {
            allowance,
            memory,
            held: Vec::new(),
            overflow: None,
            waiting: false,
            counted: None,
        }
    }

    pub(crate) async fn hold(&mut self, len: usize) {
        self.take(len).await;
        let counted = self.counted.as_ref().map_or(0, Reservation::bytes);
        let more = len.saturating_sub(counted);
        match &mut self.counted {
            Some(reservation) => reservation.grow(more).expect("this budget only counts"),
            None => self.counted = self.memory.held.reserve(more).ok(),
        }
    }

    async fn take(&mut self, len: usize) {
        if self.overflow.is_some() {
            return;
        }
        let held: usize = self.held.iter().map(OwnedSemaphorePermit::num_permits).sum();
        let mut due = len.div_ceil(BODY_SHARE_BYTES).saturating_sub(held);
        let free = due.min(self.allowance.available_permits());
        // Another body of the connection may be quicker; then the budget has to do.
        if let Ok(permit) = Arc::clone(&self.allowance).try_acquire_many_owned(count(free)) {
            due -= free;
            self.keep(permit);
        }
        if due == 0 {
            return;
        }
        let BodyMemory { budget, overflow, .. } = self.memory.clone();
        if budget.available_permits() < due {
            self.memory.waited.fetch_add(1, Ordering::Relaxed);
        }
        self.waiting = true;
        tokio::select! {
            biased;
            permit = budget.acquire_many_owned(count(due)) => {
                self.keep(permit.expect("the budget is never closed"));
            }
            permit = overflow.acquire_owned() => {
                self.overflow = Some(permit.expect("the overflow permits are never closed"));
            }
        }
        self.waiting = false;
    }

    /// Large bodies come in many pieces: their permits are merged.
    fn keep(&mut self, permit: OwnedSemaphorePermit) {
        let same =
            |held: &&mut OwnedSemaphorePermit| Arc::ptr_eq(held.semaphore(), permit.semaphore());
        match self.held.iter_mut().find(same) {
            Some(held) => held.merge(permit),
            None => self.held.push(permit),
        }
    }
}

fn count(shares: usize) -> u32 {
    u32::try_from(shares).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::super::unread::Answers;
    use super::*;
    use crate::memory::MemorySize;

    /// How a body continues that has come to `count` shares.
    fn hold(shares: &mut BodyPermit, count: usize) -> Poll<()> {
        let held = pin!(shares.hold(count * BODY_SHARE_BYTES));
        held.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn bodies_that_have_used_up_the_budget_do_not_wait_for_each_other() {
        let memory = BodyMemory::with(4, 1);
        let answers = Answers::new(&MemoryPlan::of(MemorySize::default()));
        let body = || BodyPermit::new(&Client::new("http", answers.outbox()), &memory);
        let (mut one, mut other) = (body(), body());
        let half = BODY_FREE_SHARES + 2;
        assert_eq!(
            (hold(&mut one, half), hold(&mut other, half)),
            (Poll::Ready(()), Poll::Ready(()))
        );
        let whole = BODY_FREE_SHARES + 100;
        assert_eq!(hold(&mut one, half + 2), Poll::Ready(()), "one goes on beyond the budget");
        assert_eq!(hold(&mut one, whole), Poll::Ready(()), "to its end");
        assert_eq!(hold(&mut other, half + 2), Poll::Pending, "no more than one at a time");
        drop(one);
        assert_eq!(hold(&mut other, half + 2), Poll::Ready(()));
        assert_eq!(hold(&mut other, whole), Poll::Ready(()), "now this one does");
        drop(other);
        assert_eq!(
            (memory.budget.available_permits(), memory.overflow.available_permits()),
            (4, 1)
        );
        assert_eq!(memory.usage().0.held, 0);
    }
}
