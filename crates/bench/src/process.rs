//! What a process has used so far, by thread, from `/proc`.
//!
//! A figure of an operation is the difference of two readings divided by the operations in
//! between. Threads are grouped by name without their number: which of two executors did the
//! work says nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Ticks of `/proc/PID/stat` in a second, on every Linux that matters.
const TICKS_PER_SECOND: u64 = 100;

/// One reading, or the difference of two.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    /// Processor time of the whole process, including threads that have ended.
    pub(crate) cpu: Duration,
    /// By number, since a group is less than before when one of its threads has ended.
    threads: BTreeMap<u64, Thread>,
    pub(crate) written_bytes: u64,
    pub(crate) rss_bytes: u64,
    pub(crate) peak_rss_bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Thread {
    group: String,
    cpu: Duration,
    voluntary_switches: u64,
    involuntary_switches: u64,
}

impl Usage {
    pub(crate) fn read(process: u32) -> Result<Usage> {
        let folder = PathBuf::from(format!("/proc/{process}"));
        let read = |name: &str| std::fs::read_to_string(folder.join(name));
        let stat = read("stat").context("the process runs")?;
        let status = read("status")?;
        let threads = std::fs::read_dir(folder.join("task"))?.flatten().filter_map(|thread| {
            let number = thread.file_name().to_str()?.parse().ok()?;
            // A thread may end while it is looked at.
            Some((number, Thread::read(&thread.path())?))
        });
        let mut usage = Usage {
            cpu: ticks(&stat).context("a process has a processor time")?,
            threads: threads.collect(),
            rss_bytes: field(&status, "VmRSS:").unwrap_or_default() << 10,
            peak_rss_bytes: field(&status, "VmHWM:").unwrap_or_default() << 10,
            // Other users' processes do not show this one.
            written_bytes: read("io").ok().and_then(|io| field(&io, "write_bytes:")).unwrap_or(0),
        };
        // Ticks are coarse, and the sum over threads is not.
        usage.cpu = usage.cpu.max(usage.threads.values().map(|thread| thread.cpu).sum());
        Ok(usage)
    }

    /// Processor time by group of threads.
    pub(crate) fn by_group(&self) -> BTreeMap<&str, Duration> {
        let mut groups = BTreeMap::new();
        for thread in self.threads.values() {
            *groups.entry(thread.group.as_str()).or_default() += thread.cpu;
        }
        groups
    }

    /// Voluntary and involuntary context switches.
    pub(crate) fn switches(&self) -> (u64, u64) {
        let of = |count: fn(&Thread) -> u64| self.threads.values().map(count).sum();
        (of(|thread| thread.voluntary_switches), of(|thread| thread.involuntary_switches))
    }

    /// What two phases used together; memory is that of the later one.
    pub(crate) fn plus(mut self, later: &Usage) -> Usage {
        for (number, thread) in &later.threads {
            let sum = self.threads.entry(*number).or_default();
            sum.group.clone_from(&thread.group);
            sum.cpu += thread.cpu;
            sum.voluntary_switches += thread.voluntary_switches;
            sum.involuntary_switches += thread.involuntary_switches;
        }
        Usage {
            cpu: self.cpu + later.cpu,
            threads: self.threads,
            written_bytes: self.written_bytes + later.written_bytes,
            ..*later
        }
    }

    /// What was used since an earlier reading; memory is as it is now. Threads that ended in
    /// between count in the processor time of the process alone.
    pub(crate) fn since(&self, before: &Usage) -> Usage {
        let threads = self.threads.iter().map(|(number, thread)| {
            let earlier = before.threads.get(number);
            (*number, earlier.map_or_else(|| thread.clone(), |earlier| thread.since(earlier)))
        });
        Usage {
            cpu: self.cpu.saturating_sub(before.cpu),
            threads: threads.collect(),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes),
            ..*self
        }
    }
}

impl Thread {
    fn read(folder: &Path) -> Option<Thread> {
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
        let (name, status) = (read("comm")?, read("status")?);
        let nanos = read("schedstat").and_then(|text| text.split(' ').next()?.parse().ok());
        let cpu = match nanos {
            Some(nanos) => Duration::from_nanos(nanos),
            None => ticks(&read("stat")?)?,
        };
        Some(Thread {
            group: group(name.trim()),
            cpu,
            voluntary_switches: field(&status, "voluntary_ctxt_switches:")?,
            involuntary_switches: field(&status, "nonvoluntary_ctxt_switches:")?,
        })
    }

    fn since(&self, before: &Thread) -> Thread {
        Thread {
            group: self.group.clone(),
            cpu: self.cpu.saturating_sub(before.cpu),
            voluntary_switches: self.voluntary_switches.saturating_sub(before.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(before.involuntary_switches),
        }
    }
}

/// Time in user and kernel mode. The name before it may have blanks and parentheses in it.
fn ticks(stat: &str) -> Option<Duration> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let (user, kernel): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(Duration::from_millis((user + kernel) * 1_000 / TICKS_PER_SECOND))
}

/// The number after a name at the beginning of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}

/// `executor-1` and `executor-0` are one group.
fn group(thread: &str) -> String {
    let name = thread.trim_end_matches(|last: char| last.is_ascii_digit());
    let name = name.trim_end_matches(['-', '#', ':']);
    if name.is_empty() { thread.to_owned() } else { name.to_owned() }
}

/// Whether threads of this name flush, compact or sweep: work that a load leaves behind
/// rather than waits for.
pub(crate) fn is_upkeep(group: &str) -> bool {
    ["flusher", "merger", "maintenance", "compact"].iter().any(|name| group.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_grouped_by_name() {
        assert_eq!(["executor-0", "merger", "7"].map(group), ["executor", "merger", "7"]);
    }

    #[test]
    fn a_thread_that_ended_takes_nothing_from_the_others() {
        let thread = |cpu| Thread {
            group: "query".to_owned(),
            cpu: Duration::from_secs(cpu),
            voluntary_switches: 10 * cpu,
            involuntary_switches: 0,
        };
        let usage = |threads: &[(u64, u64)]| Usage {
            threads: threads.iter().map(|(number, cpu)| (*number, thread(*cpu))).collect(),
            ..Usage::default()
        };
        let used = usage(&[(1, 5)]).since(&usage(&[(1, 3), (2, 9)]));
        assert_eq!(used.by_group(), BTreeMap::from([("query", Duration::from_secs(2))]));
        assert_eq!(used.switches(), (20, 0));
    }

    #[test]
    fn a_process_can_read_itself() {
        let before = Usage::read(std::process::id()).unwrap();
        let usage = Usage::read(std::process::id()).unwrap().since(&before);
        assert!(usage.rss_bytes > 0 && usage.peak_rss_bytes >= usage.rss_bytes, "{usage:?}");
        assert!(!usage.by_group().is_empty());
    }
}
