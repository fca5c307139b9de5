use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::{Condvar as SeededCondvar, SharedReceiver, sync_channel};

/// Three tasks that note what they do at five points each.
fn race(seed: u64) -> (Vec<usize>, Trace) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (seen, trace) = SeededTasks::run(seed, |tasks| {
        let started: Vec<TaskHandle> = (0..3)
            .map(|number| {
                let seen = Arc::clone(&seen);
                let body = move || {
                    for _ in 0..5 {
                        seen.lock().unwrap().push(number);
                        reschedule();
                    }
                };
                tasks.spawn(&format!("racer-{number}"), Box::new(body)).unwrap()
            })
            .collect();
        started.into_iter().for_each(|task| task.join().unwrap());
        seen.lock().unwrap().clone()
    });
    (seen, trace)
}

#[test]
fn a_seed_decides_who_goes_on() {
    let mut orders = BTreeSet::new();
    for seed in 0..20 {
        let (order, trace) = race(seed);
        assert_eq!(order.len(), 15);
        assert_eq!(race(seed), (order.clone(), trace), "seed {seed}");
        orders.insert(order);
    }
    assert!(orders.len() > 10, "other seeds are other orders: {}", orders.len());
}

#[test]
fn queues_hand_everything_over_and_end() {
    for seed in 0..20 {
        let (sum, _) = SeededTasks::run(seed, |tasks| {
            let (sender, receiver) = sync_channel(100);
            let (receiver, sum) =
                (Arc::new(SharedReceiver::new(receiver)), Arc::new(Mutex::new(0)));
            let takers: Vec<TaskHandle> = (0..2)
                .map(|_| {
                    let (receiver, sum) = (Arc::clone(&receiver), Arc::clone(&sum));
                    let body = move || {
                        while let Ok(value) = receiver.recv() {
                            *sum.lock().unwrap() += value;
                        }
                    };
                    tasks.spawn("taker", Box::new(body)).unwrap()
                })
                .collect();
            (1..=10).for_each(|value| sender.try_send(value).unwrap());
            drop(sender);
            takers.into_iter().for_each(|task| task.join().unwrap());
            *sum.lock().unwrap()
        });
        assert_eq!(sum, 55, "seed {seed}");
    }
}

#[test]
fn a_condition_is_waited_for_without_its_lock() {
    for seed in 0..20 {
        SeededTasks::run(seed, |tasks| {
            let shared = Arc::new((Mutex::new(false), SeededCondvar::new()));
            let of_task = Arc::clone(&shared);
            let body = move || {
                *of_task.0.lock().unwrap() = true;
                of_task.1.notify_all();
            };
            let task = tasks.spawn("teller", Box::new(body)).unwrap();
            let mut told = shared.0.lock().unwrap();
            while !*told {
                told = shared.1.wait(&shared.0, told);
            }
            drop(told);
            task.join().unwrap();
        });
    }
}

#[test]
fn joining_reports_the_panic_of_a_task() {
    let (joined, _) = SeededTasks::run(1, |tasks| {
        let task = tasks.spawn("clumsy", Box::new(|| panic!("on purpose"))).unwrap();
        task.join()
    });
    assert!(joined.is_err());
}

#[test]
#[should_panic(expected = "all tasks wait for each other")]
fn tasks_that_wait_for_each_other_are_reported() {
    SeededTasks::run(1, |tasks| {
        let (sender, receiver) = sync_channel::<()>(1);
        let (_unused, other) = sync_channel::<()>(1);
        let body = move || {
            let _kept = sender;
            let _ = other.recv();
        };
        let task = tasks.spawn("waiting", Box::new(body)).unwrap();
        let _ = receiver.recv();
        task.join().unwrap();
    });
}

#[test]
fn outside_of_a_simulation_nothing_changes() {
    let (sender, receiver) = sync_channel(1);
    let told = Arc::new(AtomicBool::new(false));
    let of_thread = Arc::clone(&told);
    let body = move || {
        receiver.recv().unwrap();
        of_thread.store(true, Ordering::SeqCst);
    };
    let task = crate::ThreadTasks.spawn("taker", Box::new(body)).unwrap();
    reschedule();
    sender.try_send(()).unwrap();
    task.join().unwrap();
    assert!(told.load(Ordering::SeqCst));
}
