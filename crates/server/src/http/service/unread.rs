//! Answers that clients have not read yet (backpressure).
//!
//! An answer counts from the moment it is ready until its last byte has been handed to the
//! socket, or the connection is gone: the count is attached to the bytes themselves. Before
//! a request is processed, its connection must get a permit for its longest possible
//! answer, so a client that does not read gets no further answers; and when answers are
//! about to use up their memory, slow readers are disconnected.

use std::sync::Arc;

use bytes::Bytes;
use runtime::{MemoryBudget, MemoryUsage, OutOfMemory, Reservation};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wire_cosmos::ANSWER_BYTES_MAX;

use super::{Answer, Client};
use crate::memory::MemoryPlan;

/// Memory for answers is counted in shares of this size.
const SHARE_BYTES: usize = 1 << 10;

/// What the answers of one connection may take without a reservation, so that small
/// requests are answered however many large answers are unread.
const FREE_SHARES: usize = 64;

/// Parts of the budget that one connection may have. A few slow readers leave memory for
/// everyone else.
const CONNECTION_PARTS: usize = 8;

/// Answers count as crowded above this, in parts of the budget.
const CROWDED_PARTS: (usize, usize) = (3, 4);

/// Memory for all answers.
#[derive(Debug)]
pub(crate) struct Answers {
    budget: Arc<MemoryBudget>,
    connection_shares: usize,
}

/// The unread answers of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Outbox {
    permits: Arc<Semaphore>,
    free: Arc<Semaphore>,
}

/// Memory reserved for an answer that is not ready yet.
#[derive(Debug)]
pub(super) struct AnswerPermit {
    shares: OwnedSemaphorePermit,
}

/// An answer and all that it takes up.
struct Held {
    bytes: Bytes,
    _memory: AnswerMemory,
    _permit: Option<AnswerPermit>,
}

/// Either of the two kinds of memory. Only held.
enum AnswerMemory {
    Free { _shares: OwnedSemaphorePermit },
    Common { _bytes: Reservation },
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Answers {
    pub(crate) fn new(plan: &MemoryPlan) -> Answers {
        let part = plan.answers / CONNECTION_PARTS / SHARE_BYTES;
        let connection_shares = part.max(shares(ANSWER_BYTES_MAX));
        Answers { budget: MemoryBudget::new(plan.answers), connection_shares }
    }

    pub(crate) fn outbox(&self) -> Outbox {
        Outbox {
            permits: Arc::new(Semaphore::new(self.connection_shares)),
            free: Arc::new(Semaphore::new(FREE_SHARES)),
        }
    }

    pub(crate) fn usage(&self) -> MemoryUsage {
        self.budget.usage()
    }

    /// Whether memory becomes scarce because clients do not read.
    pub(crate) fn is_crowded(&self) -> bool {
        let MemoryUsage { limit, held, .. } = self.usage();
        held / CROWDED_PARTS.0 > limit / CROWDED_PARTS.1
    }

    /// Counts an answer until its last byte is gone.
    pub(super) fn hold(
        &self,
        client: &Client,
        answer: Answer,
        mut permit: Option<AnswerPermit>,
    ) -> Result<Answer, OutOfMemory> {
        let (head, bytes) = answer.into_parts();
        if bytes.is_empty() {
            return Ok(Answer::from_parts(head, bytes));
        }
        if let Some(permit) = &mut permit {
            permit.shrink_to(bytes.len());
        }
        let memory = self.memory(&client.outbox, bytes.len())?;
        let bytes = Bytes::from_owner(Held { bytes, _memory: memory, _permit: permit });
        Ok(Answer::from_parts(head, bytes))
    }

    fn memory(&self, outbox: &Outbox, bytes: usize) -> Result<AnswerMemory, OutOfMemory> {
        match Arc::clone(&outbox.free).try_acquire_many_owned(permits(shares(bytes))) {
            Ok(shares) => Ok(AnswerMemory::Free { _shares: shares }),
            Err(_) => Ok(AnswerMemory::Common { _bytes: self.budget.reserve(bytes)? }),
        }
    }
}

impl Outbox {
    /// Waits until the client has read enough of its earlier answers. It either does, or is
    /// disconnected by the connection's guard.
    pub(super) async fn reserve(&self, bytes: usize) -> AnswerPermit {
        let wanted = shares(bytes.min(ANSWER_BYTES_MAX));
        let shares = Arc::clone(&self.permits).acquire_many_owned(permits(wanted)).await;
        AnswerPermit { shares: shares.expect("the permits are never closed") }
    }
}

impl AnswerPermit {
    fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.shares.num_permits().saturating_sub(shares(bytes));
        drop(self.shares.split(surplus));
    }
}

fn shares(bytes: usize) -> usize {
    bytes.div_ceil(SHARE_BYTES)
}

fn permits(shares: usize) -> u32 {
    u32::try_from(shares).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn answers(bytes: usize) -> Answers {
        Answers { budget: MemoryBudget::new(bytes), connection_shares: shares(ANSWER_BYTES_MAX) }
    }

    fn large(bytes: usize) -> Answer {
        Answer::new(Bytes::from(vec![0; bytes]))
    }

    fn try_reserve(client: &Client, bytes: usize) -> Option<AnswerPermit> {
        let mut cx = Context::from_waker(Waker::noop());
        match pin!(client.outbox.reserve(bytes)).poll(&mut cx) {
            Poll::Ready(permit) => Some(permit),
            Poll::Pending => None,
        }
    }

    #[test]
    fn an_answer_counts_until_its_last_byte_is_gone() {
        let answers = answers(10 << 20);
        let client = Client::new("http", answers.outbox());
        let held = answers.hold(&client, large(1 << 20), None).unwrap();
        let mut body = held.into_body();
        let last = body.split_off((1 << 20) - 1);
        drop(body);
        assert_eq!(answers.usage().held, 1 << 20, "the last byte holds all of them");
        drop(last);
        assert_eq!((answers.usage().held, answers.usage().high), (0, 1 << 20));
    }

    #[test]
    fn who_does_not_read_is_not_answered_on() {
        let answers = answers(100 << 20);
        let client = Client::new("http", answers.outbox());
        let permit = try_reserve(&client, ANSWER_BYTES_MAX);
        assert!(try_reserve(&client, 1).is_none(), "an answer may become this long");
        let unread = answers.hold(&client, large(3 << 20), permit).unwrap();
        assert!(try_reserve(&client, 1 << 20).is_some(), "it did not");
        assert!(try_reserve(&client, ANSWER_BYTES_MAX).is_none());
        assert!(try_reserve(&Client::new("http", answers.outbox()), ANSWER_BYTES_MAX).is_some());
        drop(unread);
        assert!(try_reserve(&client, ANSWER_BYTES_MAX).is_some());
    }

    #[test]
    fn small_answers_get_through_when_the_memory_is_used_up() {
        let answers = answers(1 << 20);
        let client = Client::new("http", answers.outbox());
        let _unread = answers.hold(&client, large(1 << 20), None).unwrap();
        assert!(answers.is_crowded());
        assert_eq!(answers.hold(&client, large(100 << 10), None).unwrap_err(), OutOfMemory);
        let small = answers.hold(&client, large(FREE_SHARES * SHARE_BYTES), None);
        assert!(small.is_ok());
        assert!(answers.hold(&client, large(1), None).is_err(), "it is not read either");
        assert_eq!(answers.usage().held, 1 << 20);
    }
}
