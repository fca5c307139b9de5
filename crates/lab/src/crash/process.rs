//! Runs the writing process and reads its output.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::{Halt, Ledger, Line};

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself, and cleanly, after `operations` operations.
    Clean { operations: u64 },
    /// Killed without warning once it has printed `lines` lines. By lines, not by the
    /// clock: the same on every machine.
    Killed { lines: u64 },
    /// Killed without warning during a transition, at that step: the process stops there at
    /// the given visit, prints it, and waits for the kill.
    Halted { at: Halt, time: u64 },
}

/// One run of the writing process on a folder.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The program `crash_writer`, which only its own package's tests can name.
    pub program: &'a str,
    pub folder: &'a Path,
    /// Higher than in all earlier runs on the folder.
    pub number: u64,
    pub seed: u64,
    pub memtable_bytes: u64,
    pub ending: Ending,
}

impl Run<'_> {
    /// Runs it to its end and records everything it printed.
    pub fn perform(&self, ledger: &mut Ledger) -> Result<()> {
        let mut writer = self.command().spawn().context("cannot start the writer")?;
        let mut output = BufReader::new(writer.stdout.take().context("its output is piped")?);
        let (mut heard, mut killed, mut line) = (0, false, String::new());
        while output.read_line(&mut line)? > 0 {
            // The last line may be cut off; then the operation is simply in flight.
            let said = line.trim_end_matches('\n');
            if let Some(line) = Line::parse(said) {
                ledger.hear(line);
            }
            heard += 1;
            if !killed && self.is_last_line(heard, said) {
                writer.kill()?;
                killed = true;
            }
            line.clear();
        }
        let status = writer.wait()?;
        match self.ending {
            Ending::Clean { .. } => ensure!(status.success(), "the writer failed: {status}"),
            Ending::Killed { .. } | Ending::Halted { .. } => {
                ensure!(killed, "the writer ended by itself after {heard} lines: {status}");
            }
        }
        ledger.writers_died();
        Ok(())
    }

    /// Whether the process is to be killed after `heard` lines.
    fn is_last_line(&self, heard: u64, said: &str) -> bool {
        match self.ending {
            Ending::Clean { .. } => false,
            Ending::Killed { lines } => heard == lines,
            Ending::Halted { at, .. } => said == at.to_string(),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command
            .arg(self.folder)
            .args(["--run", &self.number.to_string(), "--seed", &self.seed.to_string()])
            .args(["--memtable-bytes", &self.memtable_bytes.to_string()])
            .stdout(Stdio::piped());
        match self.ending {
            Ending::Clean { operations } => {
                command.args(["--stop-after", &operations.to_string()]).stderr(Stdio::null());
            }
            Ending::Killed { .. } => {}
            Ending::Halted { at, time } => {
                command.args(["--halt-at", &at.to_string(), "--halt-time", &time.to_string()]);
            }
        }
        command
    }
}
