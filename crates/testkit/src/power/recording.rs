//! Runs a writing process with the recorder in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use storage::Durability;

/// The preloaded library, in C because it has to be there before anything else, and
/// interposes functions of the C library.
const SOURCE: &str = include_str!("recorder.c");

/// The compiled recorder.
#[derive(Debug)]
pub struct Recorder {
    library: PathBuf,
}

impl Recorder {
    /// Compiles it into `folder`. `None` where there is no C compiler, or no Linux.
    pub fn build(folder: &Path) -> Result<Option<Recorder>> {
        let (source, library) = (folder.join("recorder.c"), folder.join("recorder.so"));
        std::fs::write(&source, SOURCE)?;
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"]);
        compiler.arg(&library).arg(&source).arg("-lpthread");
        if !cfg!(target_os = "linux") {
            return Ok(None);
        }
        let compiled = match compiler.output() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            output => output.context("cannot run cc")?,
        };
        let errors = String::from_utf8_lossy(&compiled.stderr);
        ensure!(compiled.status.success(), "the recorder does not compile: {errors}");
        Ok(Some(Recorder { library }))
    }
}

/// How a recorded process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The store is closed.
    Close,
    /// The process aborts with batches in flight.
    Abort,
}

/// One recorded process.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The program `power_writer`, which only its own package's tests can name.
    pub program: &'a str,
    pub folder: &'a Path,
    /// Where to append what was recorded.
    pub log: &'a Path,
    pub seed: u64,
    pub durability: Durability,
    pub batches: u64,
    /// Larger values, so that journals fill up soon.
    pub large: bool,
    pub ending: Ending,
}

impl Run<'_> {
    /// Runs it to completion.
    pub fn perform(&self, recorder: &Recorder) -> Result<()> {
        let mut command = Command::new(self.program);
        command
            .arg(self.folder)
            .args(["--seed", &self.seed.to_string(), "--batches", &self.batches.to_string()])
            .env("LD_PRELOAD", &recorder.library)
            .env("RECORDER_ROOT", self.folder)
            .env("RECORDER_LOG", self.log)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        for (given, flag) in [
            (self.durability == Durability::Os, "--relaxed"),
            (self.large, "--large"),
            (self.ending == Ending::Abort, "--abort"),
        ] {
            given.then(|| command.arg(flag));
        }
        let output = command.output().context("cannot start the writer")?;
        let expected = output.status.success() == (self.ending == Ending::Close);
        let errors = String::from_utf8_lossy(&output.stderr);
        // An unexpected abort prints why.
        ensure!(expected && errors.is_empty(), "the writer failed: {}: {errors}", output.status);
        Ok(())
    }
}
