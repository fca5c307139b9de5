//! System calls of a process while it is measured, counted by `perf`.
//!
//! The kernel counts them at a tracepoint, at a cost of a tenth of a microsecond each; a
//! debugger such as `strace` would slow down what is measured many times. Where `perf` may
//! not do that, the figure is left out.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::disk;

const EVENT: &str = "raw_syscalls:sys_enter";

/// Time that `perf` takes to attach to all threads.
const ATTACHED_AFTER: Duration = Duration::from_millis(300);

#[derive(Debug)]
pub(crate) struct Counting(Child);

/// Whether this machine lets us count.
pub(crate) fn is_possible() -> bool {
    let mut perf = Command::new("perf");
    perf.args(["stat", "-e", EVENT, "--", "true"]).stdin(Stdio::null());
    perf.output().is_ok_and(|output| {
        output.status.success() && count(&String::from_utf8_lossy(&output.stderr), ' ').is_some()
    })
}

impl Counting {
    pub(crate) fn start(process: u32) -> Result<Counting> {
        let mut perf = Command::new("perf");
        perf.args(["stat", "-x", ";", "-e", EVENT, "-p", &process.to_string()]);
        perf.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = perf.spawn().context("cannot start perf")?;
        disk::pause(ATTACHED_AFTER);
        Ok(Counting(child))
    }

    /// What was counted, if `perf` could.
    pub(crate) fn end(self) -> Result<Option<u64>> {
        kill_process(Pid::from_child(&self.0), Signal::INT)?;
        let output = self.0.wait_with_output()?;
        Ok(count(&String::from_utf8_lossy(&output.stderr), ';'))
    }
}

/// The number on the line of the event.
fn count(printed: &str, separator: char) -> Option<u64> {
    let line = printed.lines().find(|line| line.contains(EVENT))?;
    line.trim().split(separator).next()?.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_read_in_both_forms() {
        assert_eq!(count("\n  1,109      raw_syscalls:sys_enter   \n", ' '), Some(1_109));
        assert_eq!(count("1109;;raw_syscalls:sys_enter;1;100.00;;\n", ';'), Some(1_109));
        assert_eq!(count("<not supported>;;raw_syscalls:sys_enter;0", ';'), None);
    }
}
