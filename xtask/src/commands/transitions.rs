//! `cargo xtask transitions`: splits and merges under the load of official SDKs.
//!
//! The programs (`tests/conformance/*/transitions.*`) know what was acknowledged and fail
//! on any error, on any item that is lost, duplicated or stale, and on a position that goes
//! back. This command changes the layout of their containers meanwhile.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::conformance::{Scratch, target_folder};
use crate::conformance::server::{self, Scheme, Server};
use crate::conformance::{Program, Readiness, Sdk, Trust, prepare};
use crate::run::{self, Stopwatch, step};

/// The SDKs that put the load on, and their programs.
const LOADS: [(Sdk, &str); 2] =
    [(Sdk::Python, "python/transitions.py"), (Sdk::Node, "node/transitions.mjs")];
/// How long a program may take to create its container.
const BEGIN_SECS_MAX: u64 = 60;
/// How long a program may take to compare everything at the end.
const END_SECS_MAX: u64 = 120;

#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Splits to make
    #[arg(long, default_value_t = 100)]
    splits: u32,
    /// Merges to make
    #[arg(long, default_value_t = 50)]
    merges: u32,
    /// How long the load lasts
    #[arg(long, default_value_t = 90)]
    seconds: u64,
}

pub fn run(root: &Path, options: &Options) -> Result<()> {
    let binary = step("build the server", || server::build(root))?;
    let target = target_folder()?;
    let scratch = Scratch::new(&target)?;
    let server = Server::start(&binary, &scratch.0)?;
    let mut loads = Vec::new();
    for (sdk, source) in LOADS {
        let Readiness::Ready(program) = prepare(sdk, root, &target) else {
            bail!("this machine cannot run the {} SDK", sdk.language());
        };
        let source = root.join("tests/conformance").join(source);
        loads.push(Load::start(sdk, &program, &source, &server, options.seconds)?);
    }
    for load in &mut loads {
        load.wait_until_begun()?;
    }
    let longest = step("transitions", || change_layouts(&server, &loads, options))?;
    println!("    longest pause of writes {longest:.1} ms");
    for load in loads {
        println!("    {}", load.finish()?);
    }
    server.stop()
}

/// Makes all changes, spread over the duration of the load, and returns the longest pause
/// of writes, in milliseconds.
fn change_layouts(server: &Server, loads: &[Load], options: &Options) -> Result<f64> {
    let total = options.splits + options.merges;
    // Some time is left to the programs for the last layout.
    let every = Duration::from_secs(options.seconds) * 4 / 5 / total.max(1);
    let (mut splits, mut merges, mut longest) = (0, 0, 0.0_f64);
    let watch = Stopwatch::start();
    for (turn, load) in (0..total).zip(loads.iter().cycle()) {
        let ranges = load.ranges(server)?;
        let split = merges == options.merges
            || ranges.len() < 3
            || (splits < options.splits
                && u64::from(splits) * u64::from(options.merges)
                    <= u64::from(merges) * u64::from(options.splits));
        let at = usize::try_from(turn).unwrap_or(0) * 7 % ranges.len();
        let answer = if split {
            splits += 1;
            load.order(server, &["split"], &ranges[at..=at])?
        } else {
            merges += 1;
            let at = at.min(ranges.len() - 2);
            load.order(server, &["merge"], &ranges[at..at + 2])?
        };
        longest = longest.max(answer["pauseMs"].as_f64().context("an answer has a pause")?);
        wait_until(&watch, every * (turn + 1));
    }
    println!("    {splits} splits and {merges} merges");
    for load in loads {
        println!("    {} ends with {} ranges", load.sdk.language(), load.ranges(server)?.len());
    }
    ensure!(splits == options.splits && merges == options.merges, "not all changes were made");
    Ok(longest)
}

#[allow(clippy::disallowed_methods, reason = "spreads work over real time")]
fn wait_until(watch: &Stopwatch, moment: Duration) {
    std::thread::sleep(moment.saturating_sub(watch.elapsed()));
}

/// A program that puts load on its container.
struct Load {
    sdk: Sdk,
    child: Child,
    log: PathBuf,
}

impl Drop for Load {
    fn drop(&mut self) {
        // Both fail when the process is gone already, which is the goal.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

impl Load {
    fn start(
        sdk: Sdk,
        program: &Program,
        source: &Path,
        server: &Server,
        seconds: u64,
    ) -> Result<Load> {
        let name = source.file_name().context("a program has a name")?.to_string_lossy();
        let trust = Trust::new(sdk, &server.export_certificate()?)?;
        let mut command = program.example(&name, &std::fs::read_to_string(source)?, &trust)?;
        let log = server.folder.join(format!("{}.log", sdk.folder()));
        let output = File::create(&log)?;
        command.arg(server.endpoint(Scheme::Http)).arg(server.key());
        command.arg(sdk.folder()).arg(seconds.to_string());
        command.stdin(Stdio::null()).stderr(output.try_clone()?).stdout(output);
        Ok(Load { sdk, child: command.spawn()?, log })
    }

    fn said(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&std::fs::read(&self.log)?).into_owned())
    }

    fn wait_until_begun(&mut self) -> Result<()> {
        run::poll(Duration::from_secs(BEGIN_SECS_MAX), || {
            let said = self.said()?;
            if let Some(status) = self.child.try_wait()? {
                bail!("the {} program ended with {status}: {said}", self.sdk.language());
            }
            Ok(said.lines().any(|line| line == "begun").then_some(()))
        })
    }

    fn container(&self) -> String {
        format!("dbs/{}/colls/life", self.sdk.folder())
    }

    /// The ranges of its container, in the order of their hashes.
    fn ranges(&self, server: &Server) -> Result<Vec<String>> {
        let answer = self.order(server, &["list"], &[])?;
        let partitions = answer["partitions"].as_array().context("a list has partitions")?;
        let mut ranges: Vec<(String, String)> = partitions.iter().map(bounds_and_id).collect();
        ranges.sort();
        Ok(ranges.into_iter().map(|(_, id)| id).collect())
    }

    /// Runs `orrery partitions` as an operator would.
    fn order(&self, server: &Server, words: &[&str], ranges: &[String]) -> Result<Value> {
        let address = server.endpoint(Scheme::Http).trim_start_matches("http://");
        let mut command = Command::new(&server.binary);
        command.arg("partitions").args(words).arg(self.container()).args(ranges);
        command.args(["--json", "--server", address.trim_end_matches('/')]);
        command.args(["--key", server.key()]);
        let output = command.stdin(Stdio::null()).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{words:?} {ranges:?} of {}: {said}", self.container());
        serde_json::from_slice(&output.stdout).context("an answer is JSON")
    }

    /// Waits for the end; returns what the program counted.
    fn finish(mut self) -> Result<String> {
        let status = run::poll(Duration::from_secs(END_SECS_MAX), || Ok(self.child.try_wait()?))?;
        let (said, language) = (self.said()?, self.sdk.language());
        ensure!(status.success(), "the {language} program ended with {status}:\n{said}");
        Ok(format!("{language}: {}", said.lines().last().unwrap_or_default()))
    }
}

fn bounds_and_id(partition: &Value) -> (String, String) {
    let text = |name: &str| partition[name].as_str().unwrap_or_default().to_owned();
    (text("minInclusive"), text("id"))
}
