//! Virtual time: setting the clock of the whole server ahead.
//!
//! A test sees in a second what takes a month: items expire, what is retained goes away,
//! tokens end, budgets refill. What is written meanwhile has times of a future that a server on the machine's
//! clock must not find, so the store remembers how far ahead its clock is before the clock
//! moves. From then on only a server whose clock can be set ahead serves it, and begins
//! where the last one ended; [`Operator::reset_time`] makes the store an ordinary one again.

use std::time::Duration;

use cluster::SystemWrite;
use model::json::{Object, Raw, Value};
use runtime::Millis;

use crate::error::ServiceError;
use crate::operator::Operator;
use crate::service::Service;

/// The id of the system item that says how far ahead the clock is.
const CLOCK: &str = "clock";

/// How far ahead a clock can be. An etag has 32 bits for a time in seconds, so time has to
/// stay before 2106.
const AHEAD_MAX: Duration = Duration::from_secs(50 * 365 * 24 * 3_600);

/// What time it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerTime {
    pub now: Millis,
    /// By how much that is ahead of the machine's clock; `None` if it cannot be.
    pub ahead: Option<Duration>,
}

impl Operator<'_> {
    pub fn time(&self) -> Result<ServerTime, ServiceError> {
        self.run_blocking(|service| Ok(service.time()))
    }

    /// Sets the clock ahead for good, and returns the time that it is then.
    pub async fn advance_time(&self, by: Duration) -> Result<ServerTime, ServiceError> {
        self.run(self.service.advance_time(by)).await
    }

    /// Resets times that are ahead of the clock, those of partitions and of what was written
    /// to them, and forgets that there was virtual time. Returns how many items that changed.
    pub async fn reset_time(&self) -> Result<u64, ServiceError> {
        let reset = async {
            let items = self.service.cluster.reset_time().await?;
            if self.service.virtual_time()?.is_some() {
                let forget = SystemWrite::Delete { id: CLOCK.to_owned(), if_match: None };
                self.service.cluster.write_system(vec![forget]).await?;
            }
            Ok(items)
        };
        self.run(reset).await
    }
}

impl Service {
    /// How far ahead of the machine's the clock was that the store was last written under,
    /// if that was a virtual one. Not for an async worker.
    pub fn virtual_time(&self) -> Result<Option<Duration>, ServiceError> {
        let item = self.cluster.read_system(CLOCK)?;
        item.map(|item| parse(item.json())).transpose()
    }

    /// Whether the clock can be set ahead.
    #[must_use]
    pub fn has_virtual_clock(&self) -> bool {
        self.runtime.clock.as_virtual().is_some()
    }

    /// Continues the time of the store, where the clock can be moved.
    pub(crate) fn continue_time(&self) -> Result<(), ServiceError> {
        if let Some(clock) = self.runtime.clock.as_virtual()
            && let Some(ahead) = self.virtual_time()?
        {
            clock.set_ahead(ahead);
        }
        Ok(())
    }

    fn time(&self) -> ServerTime {
        let clock = &self.runtime.clock;
        ServerTime { now: clock.now(), ahead: clock.as_virtual().map(|clock| clock.ahead()) }
    }

    async fn advance_time(&self, by: Duration) -> Result<ServerTime, ServiceError> {
        let clock = self.runtime.clock.as_virtual().ok_or_else(|| {
            ServiceError::invalid(
                "The clock of this server is the machine's. One that can be set ahead takes a start with --virtual-clock.",
            )
        })?;
        // One after the other, so that the store says at least what the clock does.
        let _one_at_a_time = self.changes.lock().await;
        let ahead = clock.ahead().saturating_add(by);
        if by.is_zero() || ahead > AHEAD_MAX {
            let (days, ahead) = (AHEAD_MAX.as_secs() / 86_400, clock.ahead().as_secs());
            return Err(ServiceError::invalid(format!(
                "The clock can be set ahead by at least a second, and by {days} days in all; it is {ahead} seconds ahead."
            )));
        }
        self.cluster.write_system(vec![mark(ahead)]).await?;
        clock.set_ahead(ahead);
        self.clock_moved.notify_one();
        Ok(self.time())
    }
}

fn mark(ahead: Duration) -> SystemWrite {
    let ms = i64::try_from(ahead.as_millis()).unwrap_or(i64::MAX);
    let body = Object::from_iter([("version", Value::from(1_u32)), ("aheadMs", Value::from(ms))]);
    SystemWrite::Put { id: CLOCK.to_owned(), body }
}

fn parse(raw: Raw<'_>) -> Result<Duration, ServiceError> {
    let number = |name: &str| raw.get(name).and_then(|value| value.text().parse().ok());
    match (number("version"), number("aheadMs")) {
        (Some(1), Some(ms)) => Ok(Duration::from_millis(ms)),
        _ => Err(ServiceError::internal("the record of virtual time is malformed")),
    }
}
