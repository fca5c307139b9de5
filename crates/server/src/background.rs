//! Background work: a table of tasks and one loop that runs each.
//!
//! A row of the [table](tasks::TASKS) says when a task is due, what one round of it does
//! and how long it backs off after a failure; [`run`] does the rest, for all of them alike:
//! it waits, counts rounds and failures, logs errors, survives a panic and ends when the
//! server stops. A round is a verb of the service, which is also where the wake-ups come
//! from: a request of any protocol that leaves work to do signals it there.

pub(crate) mod allocator;
pub(crate) mod backup;
pub(crate) mod tasks;

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use operator::TaskFigures;
use runtime::on_async_worker;
use service::ServiceError;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::panics::catch_panic;
use crate::stop::Stop;

pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One row of the table. `C` is what its rounds work with.
#[derive(Debug)]
pub(crate) struct Task<C> {
    pub(crate) name: &'static str,
    /// Resolves when a round is due.
    pub(crate) wake: for<'a> fn(&'a C) -> Boxed<'a, ()>,
    /// A round is also due after this time, to find work that no wake-up announced.
    pub(crate) period: Duration,
    /// Time between being due and beginning, so that one round serves a burst of wake-ups.
    pub(crate) settle: Duration,
    /// Time before the next round after one that failed, whatever wakes it.
    pub(crate) back_off: Duration,
    pub(crate) round: for<'a> fn(&'a C) -> Boxed<'a, Result<Round, ServiceError>>,
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// Nothing is left to do.
    Finished,
    /// There may be more to do: another round follows at once.
    Unfinished,
}

/// How often a task ran. Counted with relaxed order: figures for people.
#[derive(Debug, Default)]
pub(crate) struct TaskCounters {
    rounds: AtomicU64,
    failures: AtomicU64,
}

/// A waker for tasks that only have a period.
pub(crate) fn never<C>(_context: &C) -> Boxed<'_, ()> {
    Box::pin(std::future::pending())
}

/// Starts every task of a table, each with its counters.
pub(crate) fn start<C: Send + Sync + 'static>(
    tasks: &'static [Task<C>],
    context: &Arc<C>,
    counters: &[Arc<TaskCounters>],
    stop: &Stop,
) -> JoinSet<()> {
    let mut running = JoinSet::new();
    for (task, counters) in tasks.iter().zip(counters) {
        let (context, counters) = (Arc::clone(context), Arc::clone(counters));
        let (stop, mut stopped) = (stop.clone(), stop.clone());
        // Dropping a round is as safe as a crash in the middle of it.
        running.spawn(on_async_worker(async move {
            tokio::select! {
                biased;
                () = stopped.raised() => {}
                () = run(task, &context, &counters, &stop) => {}
            }
        }));
    }
    running
}

/// Runs a task for as long as it is polled: once at first, then whenever it is due.
async fn run<C>(task: &Task<C>, context: &C, counters: &TaskCounters, stop: &Stop) {
    loop {
        counters.rounds.fetch_add(1, Ordering::Relaxed);
        match catch_panic((task.round)(context)).await {
            Some(Ok(Round::Unfinished)) => continue,
            Some(Ok(Round::Finished)) => {
                let _due_or_woken = timeout(task.period, (task.wake)(context)).await;
                sleep(task.settle).await;
                continue;
            }
            // A round that a stop interrupts did not fail.
            Some(Err(_)) if stop.is_raised() => return,
            Some(Err(error)) => tracing::warn!(task = task.name, %error, "background task failed"),
            None => tracing::error!(task = task.name, "background task panicked"),
        }
        counters.failures.fetch_add(1, Ordering::Relaxed);
        sleep(task.back_off).await;
    }
}

impl TaskCounters {
    pub(crate) fn figures(&self, name: &'static str) -> TaskFigures {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TaskFigures { name, rounds: read(&self.rounds), failures: read(&self.failures) }
    }
}

#[cfg(test)]
mod tests;
