//! The loop, with tasks of its own. Nothing here depends on speed: tests wait for counters
//! to reach a number, which the loop makes them do.

use std::sync::Mutex;

use tokio::sync::Notify;

use super::*;
use crate::log::Captured;
use crate::stop::stop;

/// The results of rounds, in their order; after that they finish.
#[derive(Debug, Default)]
struct Script {
    rounds: Mutex<Vec<Scripted>>,
    /// Wakes the task.
    wake: Notify,
    /// Notified of each round.
    began: Notify,
}

#[derive(Clone, Copy, Debug)]
enum Scripted {
    More,
    Fail,
    Panic,
    Hang,
}

const LONG: Duration = Duration::from_secs(24 * 60 * 60);

const WOKEN: Task<Script> = Task {
    name: "scripted",
    wake: |script| Box::pin(script.wake.notified()),
    period: LONG,
    settle: Duration::ZERO,
    back_off: Duration::from_millis(1),
    round: |script| Box::pin(round(script)),
};

const PERIODIC: Task<Script> = Task { wake: never, period: Duration::from_millis(1), ..WOKEN };

async fn round(script: &Script) -> Result<Round, ServiceError> {
    script.began.notify_one();
    let next = {
        let mut rounds = script.rounds.lock().unwrap();
        if rounds.is_empty() { None } else { Some(rounds.remove(0)) }
    };
    match next {
        None => Ok(Round::Finished),
        Some(Scripted::More) => Ok(Round::Unfinished),
        Some(Scripted::Fail) => Err(ServiceError::NotPermitted),
        Some(Scripted::Panic) => panic!("as the test wants it"),
        Some(Scripted::Hang) => std::future::pending().await,
    }
}

/// A task that runs, and how to end it.
struct Running {
    script: Arc<Script>,
    counters: Arc<TaskCounters>,
    stopper: crate::stop::Stopper,
    running: JoinSet<()>,
}

fn begin(tasks: &'static [Task<Script>], rounds: &[Scripted]) -> Running {
    let script = Arc::new(Script { rounds: Mutex::new(rounds.to_vec()), ..Script::default() });
    let ((stopper, stop), counters) = (stop(), Arc::<TaskCounters>::default());
    let running = start(tasks, &script, &[Arc::clone(&counters)], &stop);
    Running { script, counters, stopper, running }
}

impl Running {
    async fn rounds(&self, count: u64) {
        while self.counters.figures("").rounds < count {
            self.script.began.notified().await;
        }
    }

    async fn end(mut self) -> TaskFigures {
        self.stopper.raise();
        while let Some(ended) = self.running.join_next().await {
            ended.unwrap();
        }
        self.counters.figures("scripted")
    }
}

#[tokio::test]
async fn a_task_runs_once_at_first_and_then_when_it_is_woken() {
    let task = begin(&[WOKEN], &[]);
    task.rounds(1).await;
    for count in 2..5 {
        task.script.wake.notify_one();
        task.rounds(count).await;
    }
    assert_eq!(task.end().await, TaskFigures { name: "scripted", rounds: 4, failures: 0 });
}

#[tokio::test]
async fn a_task_goes_on_until_it_is_finished() {
    let task = begin(&[WOKEN], &[Scripted::More, Scripted::More]);
    task.rounds(3).await;
    assert_eq!(task.end().await.rounds, 3, "nothing woke it after that");
}

#[tokio::test]
async fn a_period_is_enough_to_be_due() {
    let task = begin(&[PERIODIC], &[]);
    task.rounds(5).await;
    assert_eq!(task.end().await.failures, 0);
}

#[tokio::test]
async fn a_task_survives_errors_and_panics_and_tells_of_them() {
    let (log, _listening) = Captured::begin();
    let task = begin(&[WOKEN], &[Scripted::Fail, Scripted::Panic, Scripted::Fail]);
    task.rounds(4).await;
    let figures = task.end().await;
    assert_eq!((figures.rounds, figures.failures), (4, 3));
    let log = log.text();
    assert_eq!(log.matches("WARN").count(), 2, "{log}");
    assert!(log.contains("ERROR") && log.contains("background task panicked"), "{log}");
    assert!(log.contains("task=\"scripted\""), "{log}");
}

#[tokio::test]
async fn a_stop_ends_a_task_wherever_it_is() {
    let waiting = begin(&[WOKEN], &[]);
    waiting.rounds(1).await;
    waiting.end().await;
    let working = begin(&[WOKEN], &[Scripted::Hang]);
    working.rounds(1).await;
    assert_eq!(working.end().await.failures, 0);
}

#[test]
fn the_names_of_tasks_are_labels_of_metrics() {
    let names: std::collections::BTreeSet<_> = tasks::TASKS.iter().map(|task| task.name).collect();
    assert_eq!(names.len(), tasks::TASKS.len());
    let label = |name: &&str| name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    assert!(names.iter().all(label));
}
