//! Shared by benches that put load on a server: where they run, requests at a steady pace,
//! and their latencies.

use std::time::Duration;

use tokio::time::{Instant, Interval};

/// Runs a bench on two threads: it shares the machine with the server.
pub(crate) fn run(bench: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(bench);
}

/// A request at every tick until it is over.
#[derive(Debug)]
pub(crate) struct Pace {
    pub(crate) ticks: Interval,
    pub(crate) end: Instant,
}

impl Pace {
    /// When the next request begins, which is now.
    pub(crate) async fn next(&mut self) -> Option<Instant> {
        self.ticks.tick().await;
        let now = Instant::now();
        (now < self.end).then_some(now)
    }
}

/// How long requests took, the shortest first.
#[derive(Debug)]
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    pub(crate) fn new(mut taken: Vec<Duration>) -> Latencies {
        taken.sort_unstable();
        Latencies(taken)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn per_mille(&self, rank: usize) -> Duration {
        self.0[self.0.len() * rank / 1_000]
    }

    pub(crate) fn max(&self) -> Duration {
        self.0[self.0.len() - 1]
    }
}
