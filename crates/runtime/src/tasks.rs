//! Threads with names.
//!
//! Two twins start them: [`ThreadTasks`] leaves their order to the operating system,
//! [`SeededTasks`](crate::SeededTasks) has a seed decide it.

use std::{fmt, io, thread};

use crate::schedule::Scheduled;

/// What a task does.
pub type Body = Box<dyn FnOnce() + Send>;

/// Bytes of stack that a thread has unless more are asked for.
pub const STACK_BYTES: usize = 2 * 1024 * 1024;

pub trait Tasks: Send + Sync + fmt::Debug {
    /// Starts `body` on a thread of its own. The name shows up in debuggers and
    /// panic messages. Dropping the handle lets the task run on unobserved.
    ///
    /// # Errors
    /// When the operating system refuses another thread.
    fn spawn(&self, name: &str, body: Body) -> io::Result<TaskHandle> {
        self.spawn_with_stack(name, STACK_BYTES, body)
    }

    /// As [`Tasks::spawn`], with a stack of `bytes`. Pages that are never touched take
    /// address space but no memory.
    ///
    /// # Errors
    /// When the operating system refuses another thread.
    fn spawn_with_stack(&self, name: &str, bytes: usize, body: Body) -> io::Result<TaskHandle>;
}

/// A started task that can be waited for.
#[derive(Debug)]
pub struct TaskHandle {
    thread: thread::JoinHandle<()>,
    scheduled: Option<Scheduled>,
}

impl TaskHandle {
    pub(crate) fn scheduled(thread: thread::JoinHandle<()>, scheduled: Scheduled) -> TaskHandle {
        TaskHandle { thread, scheduled: Some(scheduled) }
    }

    /// Waits for the end of the task.
    ///
    /// # Errors
    /// When the task panicked.
    pub fn join(self) -> Result<(), TaskPanicked> {
        let name = self.thread.thread().name().unwrap_or("unnamed").to_owned();
        if self.scheduled.is_some_and(|scheduled| !scheduled.await_end()) {
            return Err(TaskPanicked { name });
        }
        self.thread.join().map_err(|_payload| TaskPanicked { name })
    }
}

/// The task ended in a panic, which has been reported on its own thread already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskPanicked {
    pub name: String,
}

impl fmt::Display for TaskPanicked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {:?} panicked", self.name)
    }
}

impl std::error::Error for TaskPanicked {}

/// One operating-system thread per task.
#[derive(Clone, Copy, Debug)]
pub struct ThreadTasks;

impl Tasks for ThreadTasks {
    fn spawn_with_stack(&self, name: &str, bytes: usize, body: Body) -> io::Result<TaskHandle> {
        let thread = thread::Builder::new().name(name.to_owned()).stack_size(bytes).spawn(body)?;
        Ok(TaskHandle { thread, scheduled: None })
    }
}

/// How far behind other threads long work stands, on the scale of `nice`: a tenth of the
/// share of a thread that serves requests, where both want the same core.
#[cfg(target_os = "linux")]
const LONG_WORK_NICE: i32 = 10;

/// Lets the operating system prefer other threads to the calling one, for threads with long
/// work: those that serve requests are woken for some microseconds at a time, and should
/// not wait for a time slice to end. Where they leave a core idle, nothing is slower.
///
/// On Linux a thread has a priority of its own; elsewhere it belongs to the process, and
/// nothing is changed. Neither is a refusal an error: the work is done all the same.
pub fn prefer_other_threads() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, LONG_WORK_NICE);
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn a_task_runs_under_its_name() {
        let (sender, receiver) = sync_channel(1);
        let body = Box::new(move || {
            let name = thread::current().name().map(str::to_owned);
            sender.send(name).expect("the test waits");
        });
        let handle = ThreadTasks.spawn("sweeper", body).unwrap();
        assert_eq!(receiver.recv().unwrap().as_deref(), Some("sweeper"));
        assert_eq!(handle.join(), Ok(()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn long_work_stands_behind_its_own_thread_only() {
        use rustix::process::getpriority_process;
        let (sender, receiver) = sync_channel(1);
        let body = Box::new(move || {
            prefer_other_threads();
            sender.send(getpriority_process(None)).expect("the test waits");
        });
        let before = getpriority_process(None).unwrap();
        ThreadTasks.spawn("long-work", body).unwrap().join().unwrap();
        assert_eq!(receiver.recv().unwrap(), Ok(LONG_WORK_NICE));
        assert_eq!(getpriority_process(None), Ok(before));
    }

    #[test]
    fn joining_tells_of_a_panic() {
        let handle = ThreadTasks.spawn("clumsy", Box::new(|| panic!("on purpose"))).unwrap();
        assert_eq!(handle.join(), Err(TaskPanicked { name: "clumsy".to_owned() }));
    }
}
