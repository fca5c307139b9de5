//! Ending a program together with what it started.
//!
//! A test program outlives the cargo that runs it, and its servers outlive the test
//! program. A process group of their own would end them all, but would also keep them from
//! hearing a person's Ctrl-C.

use std::process::Child;

use anyhow::Result;

/// Ends a program and all its descendants, where the system lists them.
pub fn end_with_children(child: &mut Child) -> Result<()> {
    let descendants = descendants(child.id());
    child.kill()?;
    descendants.into_iter().for_each(end);
    Ok(())
}

#[cfg(unix)]
fn end(process: u32) {
    use rustix::process::{Pid, Signal, kill_process};
    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    // One that has ended by itself needs nothing.
    let _ended = process.map(|process| kill_process(process, Signal::KILL));
}

#[cfg(not(unix))]
fn end(_process: u32) {}

/// All descendants of a process, from `/proc`. None where there is no such folder.
fn descendants(process: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let parents: Vec<(u32, u32)> = ids.filter_map(|id| Some((id, parent(id)?))).collect();
    let mut found = vec![process];
    let mut at = 0;
    while let Some(of) = found.get(at).copied() {
        found.extend(parents.iter().filter(|(_, parent)| *parent == of).map(|(id, _)| *id));
        at += 1;
    }
    found.split_off(1)
}

fn parent(process: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before it is in parentheses and may have blanks and parentheses in it.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
