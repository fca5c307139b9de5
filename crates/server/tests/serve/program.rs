//! Starting and stopping the built binary.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use serde_json::Value;

/// A running server. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    /// What it printed when it was ready.
    pub(crate) ready: Value,
}

/// The binary, with an environment and a folder that hold no settings.
pub(crate) fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_orrery"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ORRERY_") {
            command.env_remove(name);
        }
    }
    command.current_dir(folder).stdin(Stdio::null());
    command
}

/// Runs the binary to its end.
pub(crate) fn run(command: &mut Command) -> Output {
    command.output().expect("the binary starts")
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the program writes text")
}

impl Program {
    /// Starts on a free port and waits until it is ready.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Program {
        let mut command = command(folder);
        command.args(["--json", "--listen", "127.0.0.1:0"]).args(arguments);
        Program::start_as(&mut command)
    }

    pub(crate) fn in_memory() -> Program {
        Program::start(&std::env::temp_dir(), &["--in-memory"])
    }

    pub(crate) fn start_as(command: &mut Command) -> Program {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("the program writes text");
        if line.is_empty() {
            let mut errors = String::new();
            let mut stderr = child.stderr.take().expect("it is piped");
            stderr.read_to_string(&mut errors).expect("the program writes text");
            panic!("the program did not become ready: {errors}");
        }
        let ready = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        Program { child, ready }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        let port = self.ready["port"].as_u64().expect("the ready line has a port");
        SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).expect("a port has 16 bits")))
    }

    #[allow(dead_code, reason = "for those who look at its memory, which `serve` does not")]
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal)
            .expect("the process is there");
    }

    pub(crate) fn wait(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().expect("the process is ours");
        let mut errors = String::new();
        let mut stderr = self.child.stderr.take().expect("it is piped");
        stderr.read_to_string(&mut errors).expect("the program writes text");
        (status, errors)
    }

    /// As a power cut would, as far as the process is concerned.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("the process is ours");
        self.child.wait().expect("the process is ours");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// A folder for one test, and the data folder in it.
pub(crate) fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("there is room for a folder");
    let data = folder.path().join("data");
    (folder, data)
}
