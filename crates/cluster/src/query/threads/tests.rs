use std::pin::pin;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::task::{Context, Poll, Waker};

use runtime::SimulatedClock;

use super::*;
use crate::query::schedule::{QUEUE_MAX, TURNS};

/// Threads with a clock that a test moves.
fn threads() -> (QueryThreads, Arc<SimulatedClock>) {
    let clock = Arc::new(SimulatedClock::new());
    (QueryThreads::new(&Runtime::simulated_at(Arc::clone(&clock), 1)), clock)
}

fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Work that signals when it runs, then runs for ever, and reports why it ended.
fn endless() -> (impl FnOnce(&Arc<Turn>) + Send + 'static, Receiver<()>, Receiver<ClusterError>) {
    let (begins, begun) = sync_channel(1);
    let (ends, ended): (SyncSender<ClusterError>, _) = sync_channel(1);
    let work = move |turn: &Arc<Turn>| {
        begins.send(()).unwrap();
        while turn.watch().may_go_on() {
            std::thread::yield_now();
        }
        ends.send(turn.check().unwrap_err()).unwrap();
    };
    (work, begun, ended)
}

#[test]
fn a_query_ends_when_its_client_has_gone() {
    let (threads, _) = threads();
    let (work, begun, ended) = endless();
    {
        let mut client = pin!(threads.run(work));
        assert!(poll(client.as_mut()).is_pending());
        begun.recv().unwrap();
    }
    assert!(matches!(ended.recv().unwrap(), ClusterError::Stopping));
}

#[test]
fn a_query_that_has_not_begun_goes_with_its_client() {
    let (threads, _) = threads();
    let running: Vec<_> = (0..TURNS).map(|_| endless()).collect();
    let mut ends = Vec::new();
    let mut clients = Vec::new();
    for (work, begun, ended) in running {
        let mut client = Box::pin(threads.run(work));
        assert!(poll(client.as_mut()).is_pending());
        begun.recv().unwrap();
        clients.push(client);
        ends.push(ended);
    }
    // All turns are taken, and time stands still: no other query begins.
    for _ in 0..3 * QUEUE_MAX {
        let mut client = pin!(threads.run(|_| panic!("never begun")));
        assert!(poll(client.as_mut()).is_pending());
    }
    assert!(threads.shared.state().queued.is_empty());
    drop(clients);
    assert_eq!(ends.len(), TURNS);
    for ended in ends {
        ended.recv().unwrap();
    }
}

#[test]
fn stopping_ends_what_runs_and_refuses_what_waits() {
    let (threads, _) = threads();
    let running: Vec<_> = (0..TURNS).map(|_| endless()).collect();
    let mut clients = Vec::new();
    let mut ends = Vec::new();
    for (work, begun, ended) in running {
        let mut client = Box::pin(threads.run(work));
        assert!(poll(client.as_mut()).is_pending());
        begun.recv().unwrap();
        clients.push(client);
        ends.push(ended);
    }
    let mut waiting = pin!(threads.run(|_| panic!("never begun")));
    assert!(poll(waiting.as_mut()).is_pending());
    threads.stop();
    for ended in ends {
        assert!(matches!(ended.recv().unwrap(), ClusterError::Stopping));
    }
    assert!(matches!(poll(waiting), Poll::Ready(Err(ClusterError::Stopping))));
    let later = pin!(threads.run(|_| panic!("never begun")));
    assert!(matches!(poll(later), Poll::Ready(Err(ClusterError::Stopping))));
}

#[test]
fn a_small_query_is_answered_while_many_long_ones_run() {
    let (threads, clock) = threads();
    // Every look at the clock takes a slice, so every query yields its turn.
    clock.slow_down(SLICE);
    let mut clients = Vec::new();
    let mut ends = Vec::new();
    for _ in 0..40 {
        let (work, begun, ended) = endless();
        let mut client = Box::pin(threads.run(work));
        assert!(poll(client.as_mut()).is_pending());
        begun.recv().unwrap();
        clients.push(client);
        ends.push(ended);
    }
    let (answers, answered) = sync_channel(1);
    let mut small = pin!(threads.run(move |_| answers.send(()).unwrap()));
    let _ = poll(small.as_mut());
    answered.recv().unwrap();
    assert!(ends.iter().all(|ended| ended.try_recv().is_err()), "all others still run");
}

#[test]
fn a_panic_is_an_error_and_leaves_the_thread() {
    let (threads, _) = threads();
    for _ in 0..3 {
        let mut client = pin!(threads.run(|_| panic!("as the test wants it")));
        let answer = loop {
            if let Poll::Ready(answer) = poll(client.as_mut()) {
                break answer;
            }
            std::thread::yield_now();
        };
        assert!(matches!(answer, Err::<(), _>(ClusterError::Internal)));
    }
    assert!(threads.shared.state().threads.len() <= 2);
}

#[test]
fn threads_without_work_end_and_others_take_their_place() {
    let threads = QueryThreads::that_wait(Duration::from_millis(1), &Runtime::simulated(1));
    for round in 0..20 {
        let (work, begun, ended) = endless();
        {
            let mut long = pin!(threads.run(work));
            assert!(poll(long.as_mut()).is_pending());
            begun.recv().unwrap();
            let (reply, answer) = sync_channel(1);
            let mut short = pin!(threads.run(move |_| reply.send(round).unwrap()));
            let _answered_or_not = poll(short.as_mut());
            assert_eq!(answer.recv().unwrap(), round);
        }
        ended.recv().unwrap();
        while !threads.shared.state().threads.is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(threads.shared.state().idle, 0);
    }
}
