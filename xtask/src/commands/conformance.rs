//! `cargo xtask conformance`: the official SDKs against a server of our own build.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use crate::conformance::server::{self, Server};
use crate::conformance::{self, Outcome, Program, Readiness, Sdk};
use crate::readme;
use crate::report::Tally;
use crate::results;
use crate::run::{is_ci, step};

/// The SDKs of every test run. The Rust SDK takes minutes to build, so its program runs
/// only on request.
pub const EVERY_TIME: [Sdk; 5] = [Sdk::Python, Sdk::Node, Sdk::Go, Sdk::Java, Sdk::Dotnet];

/// The results of the programs, and what this machine could not run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    pub tally: Tally,
    pub left_out: Vec<String>,
}

/// Runs the programs of the chosen SDK, or of all.
pub fn run(root: &Path, wanted: Option<Sdk>) -> Result<()> {
    let sdks = wanted.map_or_else(|| Sdk::ALL.to_vec(), |sdk| vec![sdk]);
    let report = run_sdks(root, &sdks)?;
    for what in &report.left_out {
        println!("left out: {what}");
    }
    println!("{}", report.tally);
    ensure!(report.tally.failed == 0, "an SDK is not served as it expects");
    ensure!(!is_ci() || report.left_out.is_empty(), "CI=true and something is left out");
    Ok(())
}

/// The same for `cargo xtask test`, which sums up itself.
pub fn run_sdks(root: &Path, sdks: &[Sdk]) -> Result<Report> {
    let binary = step("build the server", || server::build(root))?;
    let target = target_folder()?;
    let mut report = step("README", || run_readme(root, &binary, &target))?;
    for sdk in sdks {
        step(&format!("{} SDK", sdk.language()), || {
            match conformance::prepare(*sdk, root, &target) {
                Readiness::LeftOut(why) => report.left_out.push(why),
                Readiness::Ready(program) => {
                    let scratch = Scratch::new(&target)?;
                    let say = |line| println!("{line}");
                    let outcomes = conformance::run_all(&binary, &program, *sdk, &scratch.0, say);
                    report.tally += outcomes.iter().map(Outcome::tally).sum();
                    results::write(&target, sdk.folder(), &outcomes)?;
                    report.tally += run_example(root, &binary, &program, *sdk, &scratch.0);
                }
            }
            Ok(())
        })?;
    }
    Ok(report)
}

/// Runs the README's program in the SDK's language.
fn run_example(root: &Path, binary: &Path, program: &Program, sdk: Sdk, folder: &Path) -> Tally {
    let name = format!("README, {}", sdk.language());
    one_test(&name, || {
        let page = std::fs::read_to_string(root.join(readme::PATH))?;
        let server = Server::start(binary, &folder.join("readme"))?;
        readme::run_example(&page, sdk, program, &server)?;
        server.stop()
    })
}

/// What the README says besides its programs: the commands about the certificate and the
/// table of settings.
fn run_readme(root: &Path, binary: &Path, target: &Path) -> Result<Report> {
    let scratch = Scratch::new(target)?;
    let page = std::fs::read_to_string(root.join(readme::PATH))?;
    let mut tally = one_test("README, table of flags", || readme::check_flags(&page, binary));
    let mut left_out = Vec::new();
    tally += one_test("README, commands about the certificate", || {
        let server = Server::start(binary, &scratch.0)?;
        left_out = readme::run_certificate_commands(&page, &server)?;
        server.stop()
    });
    Ok(Report { tally, left_out })
}

fn one_test(name: &str, test: impl FnOnce() -> Result<()>) -> Tally {
    let failure = test().err();
    let verdict = failure.as_ref().map_or("ok".to_owned(), |error| format!("FAILED: {error:#}"));
    println!("    {name}: {verdict}");
    Tally { passed: u64::from(failure.is_none()), failed: u64::from(failure.is_some()) }
}

/// Where packages, logs and results go: beside the build.
pub fn target_folder() -> Result<PathBuf> {
    let exe = std::env::current_exe()?;
    let target = exe.ancestors().nth(2).unwrap_or(Path::new("."));
    Ok(target.join("conformance"))
}

/// A folder for one run, which is removed afterwards. Runs do not share one.
#[derive(Debug)]
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(target: &Path) -> Result<Scratch> {
        let folder = target.join(format!("run-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Scratch(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is in the target folder, where it does no harm.
        let _left_behind = std::fs::remove_dir_all(&self.0);
    }
}
