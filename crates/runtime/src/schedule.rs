//! Threads that run one at a time, in an order that follows from a seed.
//!
//! The seeded twin of [`ThreadTasks`](crate::ThreadTasks): each task still is a thread of the
//! operating system, but only the one that has the *turn* runs. It gives the turn away where
//! it waits, where it wakes others and where it calls [`reschedule`]; there the seed decides
//! which task is next. Whatever happens between two such points is one step, so the same seed
//! gives the same steps in the same order, as the hash of the [`Trace`] shows.
//!
//! The scheduler has to know of every wait: a task that waits for a lock of the standard
//! library while it has the turn waits for ever. So a task must not give the turn away while
//! it holds a lock that other tasks take. What waits in this crate's ways (`sync.rs`) is known;
//! docs/design/simulation.md says what is not.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::random::{Random, SeededRandom};
use crate::tasks::{Body, TaskHandle, Tasks};

/// How long a task may have the turn. Only one that waits for something that the scheduler
/// does not know of, or that never ends, has it for so long.
const TURN_MAX: Duration = Duration::from_secs(120);

/// Tasks of simulations that are running. While there are none, no thread is asked further.
static SIMULATIONS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static CURRENT: RefCell<Option<Scheduled>> = const { RefCell::new(None) };
}

/// Starts threads of which only one runs at a time.
#[derive(Clone)]
pub struct SeededTasks {
    schedule: Arc<Schedule>,
}

/// What a simulation did, in two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trace {
    /// How often it was decided who goes on.
    pub steps: u64,
    /// Of all decisions and notes, in their order.
    pub hash: u64,
}

impl SeededTasks {
    /// Runs `body` as the first task of a simulation. Returns when it and all that it has
    /// started have ended.
    ///
    /// # Panics
    /// When all tasks wait for each other, and when `body` panics.
    pub fn run<T>(seed: u64, body: impl FnOnce(&SeededTasks) -> T) -> (T, Trace) {
        let tasks = SeededTasks { schedule: Arc::new(Schedule::new(seed)) };
        let first = Scheduled { schedule: Arc::clone(&tasks.schedule), task: FIRST };
        let _entered = Entered::new(first.clone());
        let answer = body(&tasks);
        first.wait_until(Wait::Everybody, |state| {
            state.tasks.iter().skip(1).all(|task| task.status == Status::Ended)
        });
        let trace = tasks.schedule.state().trace;
        (answer, trace)
    }

    /// Puts something that happened into the trace.
    pub fn note(&self, what: &str) {
        what.bytes().for_each(|byte| self.schedule.state().trace.mix(u64::from(byte)));
    }
}

impl Tasks for SeededTasks {
    fn spawn_with_stack(&self, name: &str, bytes: usize, body: Body) -> io::Result<TaskHandle> {
        let task = self.schedule.state().add(name);
        let scheduled = Scheduled { schedule: Arc::clone(&self.schedule), task };
        let of_thread = scheduled.clone();
        let body = move || {
            let _entered = Entered::new(of_thread.clone());
            of_thread.await_turn();
            let ended = catch_unwind(AssertUnwindSafe(body));
            of_thread.end();
            if let Err(panic) = ended {
                resume_unwind(panic);
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).stack_size(bytes).spawn(body);
        match thread {
            Ok(thread) => Ok(TaskHandle::scheduled(thread, scheduled)),
            Err(error) => {
                self.schedule.state().task(task).status = Status::Ended;
                Err(error)
            }
        }
    }
}

impl fmt::Debug for SeededTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeededTasks").finish_non_exhaustive()
    }
}

/// Lets other tasks go on, if the seed says so. Does nothing outside of a simulation.
pub fn reschedule() {
    if let Some(current) = current() {
        current.reschedule();
    }
}

/// The task that runs on this thread, if it is one of a simulation.
pub(crate) fn current() -> Option<Scheduled> {
    if SIMULATIONS.load(Ordering::Relaxed) == 0 {
        return None;
    }
    CURRENT.with_borrow(Clone::clone)
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// An object at this address, which the waiting task keeps alive.
    Object(usize),
    /// Being unparked.
    Parked,
    /// The end of a task.
    EndOf(usize),
    /// The end of all others.
    Everybody,
}

/// One task of a simulation.
#[derive(Clone)]
pub(crate) struct Scheduled {
    schedule: Arc<Schedule>,
    task: usize,
}

impl Scheduled {
    pub(crate) fn reschedule(&self) {
        self.give_turn(Status::Ready);
    }

    /// Waits until the tasks that wait for this are woken.
    pub(crate) fn wait(&self, wait: Wait) {
        self.give_turn(Status::Waiting(wait));
    }

    /// Makes all tasks ready that wait for this; the seed may choose one of them at once.
    pub(crate) fn wake(&self, wait: Wait) {
        self.schedule.state().wake(wait);
        self.reschedule();
    }

    /// As [`Scheduled::wake`], and keeps the turn.
    pub(crate) fn wake_later(&self, wait: Wait) {
        self.schedule.state().wake(wait);
    }

    /// Waits to be unparked, unless that has happened since the last time.
    pub(crate) fn park(&self) {
        let mut state = self.schedule.state();
        let is_unparked = std::mem::take(&mut state.task(self.task).is_unparked);
        drop(state);
        self.give_turn(if is_unparked { Status::Ready } else { Status::Waiting(Wait::Parked) });
        self.schedule.state().task(self.task).is_unparked = false;
    }

    /// Ends the waiting of a parked task. Any thread may call this.
    pub(crate) fn unpark(&self) {
        let mut state = self.schedule.state();
        let task = state.task(self.task);
        task.is_unparked = true;
        if task.status == Status::Waiting(Wait::Parked) {
            task.status = Status::Ready;
        }
    }

    /// Waits for the end of this task. Whether it has come: it does not once the simulation is
    /// stuck.
    pub(crate) fn await_end(&self) -> bool {
        if let Some(current) = current() {
            let task = self.task;
            let has_ended = |state: &State| state.tasks[task].status == Status::Ended;
            current.wait_until(Wait::EndOf(task), has_ended);
        }
        !self.schedule.state().is_stuck()
    }

    fn wait_until(&self, wait: Wait, condition: impl Fn(&State) -> bool) {
        while !condition(&self.schedule.state()) && !self.schedule.state().is_stuck() {
            self.wait(wait);
        }
    }

    fn end(&self) {
        let mut state = self.schedule.state();
        state.task(self.task).status = Status::Ended;
        state.wake(Wait::EndOf(self.task));
        state.wake(Wait::Everybody);
        state.choose();
    }

    /// Lets the seed decide who goes on, and waits for the next turn.
    fn give_turn(&self, status: Status) {
        let mut state = self.schedule.state();
        if state.is_stuck() {
            // Nothing goes on any more: a task that unwinds must not wait for others.
            return;
        }
        state.task(self.task).status = status;
        state.choose();
        self.await_turn_in(state);
    }

    fn await_turn(&self) {
        self.await_turn_in(self.schedule.state());
    }

    fn await_turn_in(&self, mut state: MutexGuard<'_, State>) {
        while state.turn != self.task {
            let (turn, before) = (Arc::clone(&state.task(self.task).turn), state.trace.steps);
            let waited = turn.wait_timeout(state, TURN_MAX);
            let (next, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = next;
            if timeout.timed_out() && self.task == FIRST && state.trace.steps == before {
                state.give_up_on_holder();
            }
        }
        if let Some(reason) = state.stuck.clone() {
            let report = state.report();
            drop(state);
            assert!(thread::panicking(), "the simulation is stuck: {reason}\n{report}");
        }
    }
}

impl fmt::Debug for Scheduled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduled").field("task", &self.task).finish_non_exhaustive()
    }
}

/// The task that `SeededTasks::run` was called on.
const FIRST: usize = 0;

struct Schedule {
    state: Mutex<State>,
}

struct State {
    tasks: Vec<Task>,
    /// Which of them runs.
    turn: usize,
    random: SeededRandom,
    trace: Trace,
    /// Why nothing can go on.
    stuck: Option<String>,
}

struct Task {
    name: String,
    status: Status,
    is_unparked: bool,
    /// Notified when it is this task's turn.
    turn: Arc<Condvar>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Ready,
    Waiting(Wait),
    Ended,
}

impl Schedule {
    fn new(seed: u64) -> Schedule {
        let mut state = State {
            tasks: Vec::new(),
            turn: FIRST,
            random: SeededRandom::new(seed),
            trace: Trace { steps: 0, hash: Trace::SEED },
            stuck: None,
        };
        state.add("first");
        Schedule { state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, name: &str) -> usize {
        let (name, turn) = (name.to_owned(), Arc::default());
        self.tasks.push(Task { name, status: Status::Ready, is_unparked: false, turn });
        self.tasks.len() - 1
    }

    fn task(&mut self, task: usize) -> &mut Task {
        self.tasks.get_mut(task).expect("tasks are never removed")
    }

    fn is_stuck(&self) -> bool {
        self.stuck.is_some()
    }

    fn wake(&mut self, wait: Wait) {
        for task in &mut self.tasks {
            if task.status == Status::Waiting(wait) {
                task.status = Status::Ready;
            }
        }
    }

    /// Gives the turn to one of the tasks that are ready. If there is none, the first task gets
    /// it, and panics.
    fn choose(&mut self) {
        let ready = |(_, task): &(usize, &Task)| task.status == Status::Ready;
        let ready: Vec<usize> =
            self.tasks.iter().enumerate().filter(ready).map(|(number, _)| number).collect();
        let drawn = self.random.next_u64();
        let chosen = usize::try_from(drawn % (ready.len().max(1) as u64)).unwrap_or(0);
        self.turn = match ready.get(chosen) {
            Some(next) => *next,
            None => {
                self.stuck = Some("all tasks wait for each other".to_owned());
                FIRST
            }
        };
        self.trace.steps += 1;
        self.trace.mix(self.turn as u64);
        self.tasks[self.turn].turn.notify_all();
    }

    /// The task that has the turn does not give it away: it waits for something that the
    /// scheduler does not know of.
    fn give_up_on_holder(&mut self) {
        let holder = self.turn;
        let name = &self.task(holder).name;
        self.stuck = Some(format!("{name} has the turn and waits for something else"));
        self.turn = FIRST;
    }

    fn report(&self) -> String {
        let line = |task: &Task| format!("{}: {:?}", task.name, task.status);
        self.tasks.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl Trace {
    /// The offset basis of FNV-1a.
    const SEED: u64 = 0xCBF2_9CE4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01B3;

    fn mix(&mut self, value: u64) {
        self.hash = (self.hash ^ value).wrapping_mul(Trace::PRIME);
    }
}

/// This thread is a task of a simulation until it is dropped.
struct Entered;

impl Entered {
    fn new(scheduled: Scheduled) -> Entered {
        SIMULATIONS.fetch_add(1, Ordering::Relaxed);
        CURRENT.set(Some(scheduled));
        Entered
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(None);
        SIMULATIONS.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
