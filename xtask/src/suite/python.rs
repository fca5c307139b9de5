//! Microsoft's tests of the Python SDK, which its source archive carries.
//!
//! The archive is fetched by name and unpacked in the target folder; nothing of it comes
//! into the tree. Each file runs in a pytest of its own, which makes its own database, so
//! that what one file leaves does not fail the next.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{Ended, Expected, Plan, parse_known_failures, parse_results, parse_vacuous};
use crate::conformance::server::{Scheme, Server};
use crate::conformance::{once, quiet, virtual_environment};
use crate::run;

/// One test may take this long. Those that wait for a split sleep 30 s between two looks at the
/// offer, and the machine may be busy besides.
const TEST_SECS_MAX: u64 = 120;
/// A file that takes this long hangs in a way that pytest does not notice.
const FILE_SECS_MAX: u64 = 900;
/// Leaves nothing in the archive's folder, and does not check the suite's code.
const PYTEST: [&str; 8] =
    ["-m", "pytest", "--quiet", "--tb=short", "-p", "no:cacheprovider", "-p", "no:warnings"];

/// The suite, ready to run.
#[derive(Clone, Debug)]
pub struct Suite {
    python: PathBuf,
    /// Our own files about the suite.
    source: PathBuf,
    /// The folder of its tests.
    tests: PathBuf,
    /// The output of pytest for each file in the last run.
    logs: PathBuf,
    pub package: String,
}

/// What the tests run against.
#[derive(Debug)]
pub enum Target {
    Orrery(Server),
    /// The server that implements nothing.
    Stub(Server),
}

impl Target {
    fn server(&self) -> &Server {
        let (Target::Orrery(server) | Target::Stub(server)) = self;
        server
    }
}

impl Suite {
    /// Fetches the archive and the packages that its tests import.
    pub fn prepare(root: &Path, target: &Path) -> Result<Suite> {
        let source = root.join("tests/conformance/python");
        let requirements = source.join("suite-requirements.txt");
        let folder = target.join("suite-python");
        let python = virtual_environment(&folder.join("python"), &requirements)?;
        let text = std::fs::read_to_string(&requirements)?;
        let pinned = text.lines().next().context("suite-requirements.txt is empty")?;
        let (name, version) = pinned.split_once("==").context("the SDK needs an exact version")?;
        let archive = folder.join("archive");
        std::fs::create_dir_all(&archive)?;
        once(&archive, pinned, || {
            let mut pip = Command::new(&python);
            pip.args(["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", name]);
            quiet(pip.arg("--dest").arg(&archive).arg(pinned))?;
            let mut unpack = Command::new(&python);
            unpack.args(["-m", "tarfile", "--extract"]);
            let packed = format!("{}-{version}.tar.gz", name.replace('-', "_"));
            quiet(unpack.arg(archive.join(packed)).arg(&archive))
        })?;
        let tests = archive.join(format!("{}-{version}/tests", name.replace('-', "_")));
        ensure!(tests.is_dir(), "the archive has no tests");
        let logs = folder.join("logs");
        std::fs::create_dir_all(&logs)?;
        Ok(Suite { python, source, tests, logs, package: format!("{name} {version}") })
    }

    /// What is expected, from our files about the suite.
    pub fn expected(&self) -> Result<Expected> {
        let read = |name: &str| std::fs::read_to_string(self.source.join(name));
        Ok(Expected {
            plan: Plan::parse(&read("suite.toml")?)?,
            known: parse_known_failures(&read("known_failures.toml")?)?,
            vacuous: parse_vacuous(&read("vacuous.txt")?),
        })
    }

    /// Starts the server that implements nothing.
    pub fn start_stub(&self, folder: &Path) -> Result<Server> {
        let mut command = Command::new(&self.python);
        command.arg(self.source.join("stub.py"));
        Server::spawn(command, folder)
    }

    /// Runs one file of the suite; a file that dies gives what it had until then.
    pub fn run_file(
        &self,
        target: &Target,
        file: &str,
        excluded: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, Ended>> {
        let server = target.server();
        let results = self.logs.join(format!("{file}.results"));
        File::create(&results)?;
        let mut command = Command::new(&self.python);
        command.args(PYTEST).args(["-p", "suite_results"]);
        // Test ids begin at the root.
        command.arg("--rootdir").arg(&self.tests);
        command.arg(format!("--timeout={TEST_SECS_MAX}")).arg(format!("{file}.py"));
        for test in excluded.iter().filter(|test| test.starts_with(&format!("{file}.py::"))) {
            command.arg(format!("--deselect={test}"));
        }
        command
            .current_dir(&self.tests)
            .stdin(Stdio::null())
            .env("ACCOUNT_HOST", server.endpoint(Scheme::Http))
            .env("ACCOUNT_KEY", server.key())
            .env("PYTHONPATH", self.source.join("stand_in"))
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("SUITE_RESULTS", &results);
        let log = self.logs.join(format!("{file}.log"));
        run::bounded(&mut command, &log, Duration::from_secs(FILE_SECS_MAX))?;
        Ok(parse_results(&std::fs::read_to_string(&results)?))
    }

    /// Records which tests pass against the server that implements nothing.
    pub fn record_vacuous(&self, passed: &BTreeSet<String>) -> Result<()> {
        let mut text = "# Tests that pass against stub.py, a server that knows nothing.\n\
                        # Recorded by `cargo xtask suite python --stub`.\n"
            .to_owned();
        for test in passed {
            text.push_str(test);
            text.push('\n');
        }
        Ok(std::fs::write(self.source.join("vacuous.txt"), text)?)
    }
}
