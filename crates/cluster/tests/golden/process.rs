//! One run of the process: a cluster, and at most one transition that can be stopped.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use cluster::{Cluster, ClusterError, Container, Transition, TransitionStep};
use partition::ContainerNumber;
use runtime::{Runtime, TaskHandle, Tasks, ThreadTasks};
use storage::Store;
use testkit::wait::block_on;

use crate::Answer;
use crate::common;
use crate::gate::Gate;

/// The number of the one container of a script.
pub(crate) const CONTAINER: u32 = 1;

/// A write that was begun.
pub(crate) type Started = Pin<Box<dyn Future<Output = String> + Send>>;

pub(crate) struct Process {
    pub(crate) gate: Arc<Gate>,
    pub(crate) cluster: Arc<Cluster>,
    stops: Arc<Stops>,
    transition: Option<TaskHandle>,
    started: BTreeMap<String, Started>,
}

impl Process {
    pub(crate) fn new(store: &Arc<dyn Store>) -> Process {
        let (gate, stops) = (Gate::new(Arc::clone(store)), Arc::<Stops>::default());
        let cluster = Cluster::open(gate.clone(), Runtime::simulated(1), Arc::default()).unwrap();
        let observer = Arc::clone(&stops);
        let cluster = Arc::new(cluster.observed_by(move |step| observer.pass(step)));
        Process { gate, cluster, stops, transition: None, started: BTreeMap::new() }
    }

    pub(crate) fn create_container(&self, partitions: u32) -> Result<(), ClusterError> {
        let spec = common::spec(CONTAINER);
        block_on(self.cluster.create_container(spec, partitions, Vec::new())).map(drop)
    }

    pub(crate) fn attach(&self) -> Result<(), ClusterError> {
        self.cluster.attach(common::spec(CONTAINER)).map(drop)
    }

    pub(crate) fn container(&self) -> Result<Arc<Container>, ClusterError> {
        self.cluster.container(ContainerNumber(CONTAINER))
    }

    /// Begins a transition on a thread of its own, and follows it to a step or to its end.
    pub(crate) fn begin<F>(
        &mut self,
        stop: Option<TransitionStep>,
        transition: impl FnOnce(Arc<Cluster>, Arc<Container>) -> F + Send + 'static,
    ) -> Answer
    where
        F: Future<Output = Result<Vec<Transition>, ClusterError>>,
    {
        if self.transition.is_some() {
            return Err("a transition is under way".into());
        }
        self.stops.begin(stop);
        let (cluster, container) = (Arc::clone(&self.cluster), self.container()?);
        let stops = Arc::clone(&self.stops);
        let body = move || stops.end(&block_on(transition(cluster, container)));
        self.transition = Some(ThreadTasks.spawn("transition", Box::new(body))?);
        Ok(self.follow())
    }

    /// Continues a transition that was stopped.
    pub(crate) fn go_on(&mut self, stop: Option<TransitionStep>) -> Answer {
        self.transition.as_ref().ok_or("no transition is under way")?;
        self.stops.go_on(stop);
        Ok(self.follow())
    }

    fn follow(&mut self) -> String {
        let (output, has_ended) = self.stops.follow();
        if has_ended && let Some(thread) = self.transition.take() {
            thread.join().unwrap();
        }
        output
    }

    /// Begins a write and leaves it to itself.
    pub(crate) fn start(&mut self, name: &str, mut write: Started) -> Answer {
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(answer) = write.as_mut().poll(&mut context) {
            return Err(format!("{name} has its answer already: {answer}").into());
        }
        self.started.insert(name.to_owned(), write);
        Ok(String::new())
    }

    /// Shows that a write has no answer. Only to be asked while it cannot get one.
    pub(crate) fn waits(&mut self, name: &str) -> Answer {
        let write = self.started.get_mut(name).ok_or("nothing of that name was started")?;
        let mut context = Context::from_waker(Waker::noop());
        match write.as_mut().poll(&mut context) {
            Poll::Pending => Ok("waits\n".to_owned()),
            Poll::Ready(answer) => Err(format!("it got an answer: {answer}").into()),
        }
    }

    pub(crate) fn answer(&mut self, name: &str) -> Answer {
        let write = self.started.remove(name).ok_or("nothing of that name was started")?;
        Ok(block_on(write))
    }

    /// Ends the process where it stands; returns what became of writes without an answer.
    pub(crate) fn crash(mut self) -> String {
        self.gate.die();
        self.stops.forget();
        if let Some(thread) = self.transition.take() {
            thread.join().unwrap();
        }
        let mut output = String::new();
        for name in self.started.keys() {
            writeln!(output, "{name} never had an answer").unwrap();
        }
        output
    }
}

/// Where a transition stops, and its progress.
#[derive(Default)]
struct Stops {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stop: Option<TransitionStep>,
    is_stopped: bool,
    has_ended: bool,
    /// The transition is not followed any more.
    is_forgotten: bool,
    /// Output since the last call.
    output: String,
}

impl Stops {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, stop: Option<TransitionStep>) {
        *self.state() = State { stop, ..State::default() };
    }

    /// The transition has reached a step.
    fn pass(&self, step: TransitionStep) {
        let mut state = self.state();
        writeln!(state.output, "{}", name_of(step)).unwrap();
        if state.stop == Some(step) && !state.is_forgotten {
            state.is_stopped = true;
            self.changed.notify_all();
        }
        drop(self.changed.wait_while(state, |state| state.is_stopped));
    }

    fn end(&self, result: &Result<Vec<Transition>, ClusterError>) {
        let mut state = self.state();
        state.has_ended = true;
        match result {
            Ok(done) if done.is_empty() => state.output.push_str("done\n"),
            Ok(done) => done.iter().for_each(|transition| {
                let (from, into) = (&transition.from, &transition.into);
                writeln!(state.output, "done: {} → {}", ids(from), ids(into)).unwrap();
            }),
            Err(error) => writeln!(state.output, "error: {error}").unwrap(),
        }
        self.changed.notify_all();
    }

    fn go_on(&self, stop: Option<TransitionStep>) {
        let mut state = self.state();
        (state.stop, state.is_stopped) = (stop, false);
        self.changed.notify_all();
    }

    fn forget(&self) {
        let mut state = self.state();
        (state.is_forgotten, state.is_stopped) = (true, false);
        self.changed.notify_all();
    }

    /// Waits until the transition stops or ends; returns its output, and whether it has
    /// ended.
    fn follow(&self) -> (String, bool) {
        let moving = |state: &mut State| !state.is_stopped && !state.has_ended;
        let mut state = self.changed.wait_while(self.state(), moving).unwrap();
        (std::mem::take(&mut state.output), state.has_ended)
    }
}

fn ids(ids: &[cluster::PartitionId]) -> String {
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The name of a step in scripts.
pub(crate) fn name_of(step: TransitionStep) -> &'static str {
    match step {
        TransitionStep::MovePlanned => "move_planned",
        TransitionStep::DoubleWriting => "double_writing",
        TransitionStep::Copying => "copying",
        TransitionStep::Verified => "verified",
        TransitionStep::Paused => "paused",
        TransitionStep::Drained => "drained",
        TransitionStep::Committed => "committed",
        TransitionStep::Switched => "switched",
        TransitionStep::Swept => "swept",
    }
}
