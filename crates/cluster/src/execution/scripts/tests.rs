//! Queue, refusals, late scripts and the end of the pool.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use runtime::SimulatedClock;

use super::*;

const TIME_MAX: Duration = Duration::from_secs(5);

struct Pool {
    clock: Arc<SimulatedClock>,
    threads: Arc<ScriptThreads>,
}

impl Pool {
    fn new() -> Pool {
        let clock = Arc::new(SimulatedClock::new());
        let runtime = Runtime::simulated_at(Arc::clone(&clock), 1);
        Pool { clock, threads: Arc::new(ScriptThreads::new(&runtime, "script")) }
    }

    /// A script that has begun and does not end before it is released.
    async fn held(&self) -> Held {
        let (release, released) = sync_channel(1);
        let (begun, has_begun) = oneshot::channel();
        let threads = Arc::clone(&self.threads);
        let answer = tokio::spawn(async move {
            let hold = move |_: &Arc<ScriptTurn>| hold(begun, &released);
            threads.run(TIME_MAX, hold).await
        });
        has_begun.await.unwrap();
        Held { release, answer }
    }
}

struct Held {
    release: SyncSender<()>,
    answer: tokio::task::JoinHandle<Result<(), ClusterError>>,
}

fn hold(begun: oneshot::Sender<()>, released: &Receiver<()>) {
    let _ = begun.send(());
    let _ = released.recv();
}

#[tokio::test]
async fn scripts_have_threads_of_their_own_and_survive_a_panic() {
    let pool = Pool::new();
    let panicked = pool.threads.run(TIME_MAX, |_| panic!("as the test wants it")).await;
    assert!(matches!(panicked, Err::<(), _>(ClusterError::Internal)));
    let thread = pool.threads.run(TIME_MAX, |_| std::thread::current()).await.unwrap();
    assert!(thread.name().unwrap().starts_with("script-"));
}

#[tokio::test]
async fn a_late_script_is_answered_and_replaced_so_many_times() {
    let pool = Pool::new();
    let mut late = Vec::new();
    for _ in 0..(RUNNING_MAX + LATE_MAX) / RUNNING_MAX {
        for _ in 0..RUNNING_MAX {
            late.push(pool.held().await);
        }
        pool.clock.advance(TIME_MAX * LATE_FACTOR);
    }
    let (release, answers): (Vec<_>, Vec<_>) =
        late.into_iter().map(|held| (held.release, held.answer)).unzip();
    for answer in answers {
        assert!(matches!(answer.await.unwrap(), Err(ClusterError::ScriptLate)));
    }
    assert_eq!(pool.threads.shared.state().late(), RUNNING_MAX + LATE_MAX);
    // All places are taken, until one of them ends after all.
    let threads = Arc::clone(&pool.threads);
    let waiting = tokio::spawn(async move { threads.run(TIME_MAX, |_| 7).await });
    tokio::task::yield_now().await;
    assert_eq!(pool.threads.shared.state().queued.len(), 1);
    drop(release.into_iter().next());
    assert_eq!(waiting.await.unwrap().unwrap(), 7);
}

#[tokio::test]
async fn a_full_queue_refuses_and_a_long_wait_is_given_up() {
    let pool = Pool::new();
    let mut held = Vec::new();
    for _ in 0..RUNNING_MAX {
        held.push(pool.held().await);
    }
    let mut waiting = Vec::new();
    for _ in 0..QUEUE_MAX {
        let threads = Arc::clone(&pool.threads);
        waiting.push(tokio::spawn(async move { threads.run(TIME_MAX, |_| ()).await }));
    }
    while pool.threads.shared.state().queued.len() < QUEUE_MAX {
        tokio::task::yield_now().await;
    }
    let refused = pool.threads.run(TIME_MAX, |_| ()).await;
    assert!(matches!(refused, Err(ClusterError::ScriptsBusy)));
    pool.clock.advance(TIME_MAX + Duration::from_millis(1));
    drop(held);
    for waiting in waiting {
        assert!(matches!(waiting.await.unwrap(), Err(ClusterError::ScriptsBusy)));
    }
    assert_eq!(pool.threads.run(TIME_MAX, |_| 7).await.unwrap(), 7);
}

#[tokio::test]
async fn a_script_is_cancelled_with_its_client_and_with_the_pool() {
    let pool = Pool::new();
    let (begun, has_begun) = oneshot::channel();
    let (ended, has_ended) = sync_channel(1);
    let threads = Arc::clone(&pool.threads);
    let client = tokio::spawn(async move {
        let spin = move |turn: &Arc<ScriptTurn>| {
            let _ = begun.send(());
            while !turn.is_cancelled() {
                std::thread::yield_now();
            }
            let _ = ended.send(());
        };
        threads.run(TIME_MAX, spin).await
    });
    has_begun.await.unwrap();
    client.abort();
    assert!(client.await.is_err());
    has_ended.recv().unwrap();
    let Pool { threads, .. } = pool;
    threads.stop();
    assert!(matches!(threads.run(TIME_MAX, |_| ()).await, Err(ClusterError::Stopping)));
    drop(threads);
}
