//! Running other programs: every step is named, timed, and a failure stops the run.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::processes;
use crate::report::Tally;

/// Measures how long a step takes.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    #[allow(clippy::disallowed_methods, reason = "tells a person how long a step took, no more")]
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// Runs one step and prints its name before and its result and time after.
pub fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("==> {name}");
    let watch = Stopwatch::start();
    let outcome = work();
    let verdict = if outcome.is_ok() { "done" } else { "FAILED" };
    println!("<== {name}: {verdict} in {:.1} s", watch.elapsed().as_secs_f64());
    outcome.with_context(|| format!("step `{name}` failed"))
}

/// Whether this is a continuous-integration machine, where nothing may be skipped.
pub fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// How often a process is asked whether it is done.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// Polls until there is an answer, for at most `limit`.
#[allow(
    clippy::disallowed_methods,
    reason = "waits for another process, which has no clock of ours"
)]
pub fn poll<T>(limit: Duration, mut ask: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let watch = Stopwatch::start();
    loop {
        if let Some(answer) = ask()? {
            return Ok(answer);
        }
        if watch.elapsed() >= limit {
            bail!("no answer within {} s", limit.as_secs());
        }
        std::thread::sleep(POLL_EVERY);
    }
}

/// Runs a program to completion, whatever its exit status, and returns its output. Standard
/// error goes to `log` too, so that a crash leaves its reason.
pub fn bounded(command: &mut Command, log: &Path, limit: Duration) -> Result<String> {
    let output = File::create(log)?;
    command.stdin(Stdio::null()).stderr(output.try_clone()?).stdout(output);
    let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let ended = poll(limit, || Ok(child.try_wait()?));
    if ended.is_err() {
        child.kill()?;
        child.wait()?;
    }
    let printed = String::from_utf8_lossy(&std::fs::read(log)?).into_owned();
    ended.with_context(|| format!("the program hangs after: {printed}"))?;
    Ok(printed)
}

/// A cargo command at the repository's root; it never reads standard input.
#[derive(Debug)]
pub struct Cargo {
    command: Command,
    shown: String,
}

impl Cargo {
    pub fn new(root: &Path, args: &[&str]) -> Cargo {
        let program =
            std::env::var_os("CARGO").map_or_else(|| PathBuf::from("cargo"), PathBuf::from);
        let mut command = Command::new(program);
        command.args(args).current_dir(root).stdin(Stdio::null());
        Cargo { command, shown: format!("cargo {}", args.join(" ")) }
    }

    #[must_use]
    pub fn arg(mut self, arg: &Path) -> Cargo {
        self.command.arg(arg);
        self.shown = format!("{} {}", self.shown, arg.display());
        self
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Cargo {
        self.command.env(name, value);
        self.shown = format!("{name}={value} {}", self.shown);
        self
    }

    /// Runs to completion; a failing exit status is an error that names the command.
    pub fn run(mut self) -> Result<()> {
        println!("    {}", self.shown);
        let status =
            self.command.status().with_context(|| format!("cannot start `{}`", self.shown))?;
        if !status.success() {
            bail!("`{}` ended with {status}", self.shown);
        }
        Ok(())
    }

    /// Runs to completion, whatever the exit status, and returns the output.
    pub fn output(mut self) -> Result<String> {
        println!("    {}", self.shown);
        let output =
            self.command.stderr(Stdio::inherit()).output().with_context(|| self.shown.clone())?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs test programs that are built already: passes their output through and counts
    /// the results.
    ///
    /// A run that fails without a failed test (it did not build, or a test program died)
    /// counts as one failure, so that the sum never looks clean. So does one that is silent
    /// for `silence_max`: it is ended and its last line reported.
    pub fn run_tests(mut self, silence_max: Duration) -> Result<Tally> {
        println!("    {}", self.shown);
        let mut child = self
            .command
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start `{}`", self.shown))?;
        let output = BufReader::new(child.stdout.take().context("the pipe was asked for")?);
        let (mut tally, hangs) = pass_through(output, &mut std::io::stdout().lock(), silence_max)?;
        if let Some(line) = hangs {
            println!("nothing for {} s after `{}`: ended", silence_max.as_secs(), line.trim_end());
            tally.failed += 1;
            processes::end_with_children(&mut child)?;
        }
        let status = child.wait()?;
        if !status.success() && tally.failed == 0 {
            println!("`{}` ended with {status} and no failed test", self.shown);
            tally.failed = 1;
        }
        Ok(tally)
    }
}

/// Lines that wait to be shown.
const LINES_MAX: usize = 1_024;

/// Counts results while passing lines through. Also returns the last line when none has
/// followed it for `silence_max`.
fn pass_through(
    mut from: impl BufRead + Send + 'static,
    to: &mut impl Write,
    silence_max: Duration,
) -> Result<(Tally, Option<String>)> {
    let (said, heard) = mpsc::sync_channel(LINES_MAX);
    let read = move || {
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            if said.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("lines".to_owned()).spawn(read)?;
    let (mut tally, mut last) = (Tally::default(), String::new());
    loop {
        match heard.recv_timeout(silence_max) {
            Ok(line) => {
                to.write_all(&line)?;
                to.flush()?;
                last = String::from_utf8_lossy(&line).into_owned();
                tally.add_line(&last);
            }
            Err(RecvTimeoutError::Timeout) => return Ok((tally, Some(last))),
            Err(RecvTimeoutError::Disconnected) => return Ok((tally, None)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_passes_through_unchanged_while_results_are_counted() {
        let output: &[u8] =
            b"running 2 tests\n\xff odd bytes\ntest result: ok. 2 passed; 0 failed; 0 ignored\nend";
        let mut seen = Vec::new();
        let tally = pass_through(output, &mut seen, Duration::MAX).unwrap();
        assert_eq!(seen, output);
        assert_eq!(tally, (Tally { passed: 2, failed: 0 }, None));
    }

    #[cfg(unix)]
    #[test]
    fn tests_that_hang_are_ended_and_counted_as_a_failure() {
        let script = "echo 'test result: ok. 0 passed; 0 failed'; echo last; sleep 600; true";
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let hangs = Cargo { command, shown: "made up".to_owned() };
        let tally = hangs.run_tests(Duration::from_millis(300)).unwrap();
        assert_eq!(tally, Tally { passed: 0, failed: 1 });
    }

    #[test]
    fn a_failed_step_keeps_its_cause() {
        let outcome: Result<()> = step("made up", || bail!("the cause"));
        assert_eq!(format!("{:#}", outcome.unwrap_err()), "step `made up` failed: the cause");
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let folder = std::env::temp_dir();
        let log = folder.join(format!("orrery-xtask-{}.log", std::process::id()));
        let mut hangs = Command::new("sh");
        hangs.args(["-c", "echo begun; exec sleep 600"]);
        let error = bounded(&mut hangs, &log, Duration::from_millis(300)).unwrap_err();
        assert!(error.to_string().ends_with("after: begun\n"), "{error}");
        let mut ends = Command::new("sh");
        ends.args(["-c", "echo out; echo err >&2; exit 3"]);
        assert_eq!(bounded(&mut ends, &log, Duration::from_secs(60)).unwrap(), "out\nerr\n");
        std::fs::remove_file(log).unwrap();
    }

    #[test]
    fn a_command_that_cannot_build_counts_as_a_failure() {
        let mut cargo = Cargo::new(Path::new("."), &["no-such-subcommand"]);
        cargo.command.stderr(Stdio::null());
        let tally = cargo.run_tests(Duration::MAX).unwrap();
        assert_eq!(tally, Tally { passed: 0, failed: 1 });
    }
}
