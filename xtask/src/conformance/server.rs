//! A server process that belongs to one test: started on a free port, stopped
//! as a service manager would stop it.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::repo;
use crate::run::{self, Cargo};

/// Opening an empty folder takes milliseconds; a journal to replay, seconds.
const READY_SECS_MAX: u64 = 30;
/// A clean stop ends connections and flushes.
const STOP_SECS_MAX: u64 = 30;

/// How a client talks to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    Http,
    Https,
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        })
    }
}

/// What the server prints for programs when it serves.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ready {
    endpoint: String,
    tls_endpoint: String,
    key: String,
}

/// A running server; it is killed when this goes out of scope without [`Server::stop`].
#[derive(Debug)]
pub struct Server {
    process: Process,
    ready: Ready,
    /// The program that runs.
    pub binary: PathBuf,
    /// The data folder's parent, where logs lie too.
    pub folder: PathBuf,
}

/// A child that does not outlive its owner.
#[derive(Debug)]
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail when the process is gone already, which is what is wanted.
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

/// The identity provider whose tokens the programs bear.
fn provider(root: &Path) -> String {
    let keys = root.join("tests/conformance/provider/keys.json");
    format!("iss=https://provider.test/,audience=https://orrery.test,keys={}", keys.display())
}

/// Builds the server as tests do, without optimisation, and returns its path.
///
/// Cargo puts it beside this program, whatever the target folder is called.
pub fn build(root: &Path) -> Result<PathBuf> {
    Cargo::new(root, &["build", "--workspace", "--bin", "orrery"]).run()?;
    let binary = std::env::current_exe()?.with_file_name("orrery");
    ensure!(binary.is_file(), "cargo built no {}", binary.display());
    Ok(binary)
}

impl Server {
    /// Starts on a free port with the data in a folder, and waits until it serves.
    pub fn start(binary: &Path, folder: &Path) -> Result<Server> {
        let mut command = Command::new(binary);
        command.args(["serve", "--listen", "127.0.0.1:0", "--json", "--data"]);
        command.arg(folder.join("data")).arg("--issuer").arg(provider(&repo::root()));
        // Settings of the person who runs the tests are not part of them.
        let variables = std::env::vars().map(|(name, _)| name);
        for name in variables.filter(|name| name.starts_with("ORRERY_")) {
            command.env_remove(name);
        }
        Server::spawn(command, folder)
    }

    /// Starts any program that prints such a ready line.
    pub fn spawn(mut command: Command, folder: &Path) -> Result<Server> {
        std::fs::create_dir_all(folder)?;
        let (output, errors) = (folder.join("server.out"), folder.join("server.err"));
        command.stdin(Stdio::null());
        command.stdout(File::create(&output)?).stderr(File::create(&errors)?);
        let child = command.spawn().context("cannot start the server")?;
        let mut process = Process(child);
        let line = process.first_line(&output).with_context(|| {
            let said = std::fs::read_to_string(&errors).unwrap_or_default();
            format!("the server does not serve: {said}")
        })?;
        let ready = parse_ready(&line)?;
        let binary = PathBuf::from(command.get_program());
        Ok(Server { process, ready, binary, folder: folder.to_owned() })
    }

    pub fn endpoint(&self, scheme: Scheme) -> &str {
        match scheme {
            Scheme::Http => &self.ready.endpoint,
            Scheme::Https => &self.ready.tls_endpoint,
        }
    }

    pub fn key(&self) -> &str {
        &self.ready.key
    }

    /// Writes the certificate to a file, as a person would who wants to trust it.
    pub fn export_certificate(&self) -> Result<PathBuf> {
        let file = self.folder.join("certificate.pem");
        let mut command = Command::new(&self.binary);
        command.args(["cert", "--data"]).arg(self.folder.join("data")).arg("--output").arg(&file);
        let status = command.stdin(Stdio::null()).status()?;
        ensure!(status.success(), "`orrery cert` ended with {status}");
        Ok(file)
    }

    /// Asks the process to stop and demands that it does so cleanly.
    pub fn stop(mut self) -> Result<()> {
        terminate(&mut self.process.0)?;
        let status =
            run::poll(Duration::from_secs(STOP_SECS_MAX), || Ok(self.process.0.try_wait()?))
                .context("the server does not stop")?;
        ensure!(status.success(), "the server stopped with {status}");
        Ok(())
    }
}

impl Process {
    fn first_line(&mut self, output: &Path) -> Result<String> {
        run::poll(Duration::from_secs(READY_SECS_MAX), || {
            let text = std::fs::read_to_string(output)?;
            if let Some((line, _)) = text.split_once('\n') {
                return Ok(Some(line.to_owned()));
            }
            match self.0.try_wait()? {
                Some(status) => bail!("it ended with {status}"),
                None => Ok(None),
            }
        })
    }
}

#[cfg(unix)]
fn terminate(child: &mut Child) -> Result<()> {
    use rustix::process::{Pid, Signal, kill_process};
    Ok(kill_process(Pid::from_child(child), Signal::TERM)?)
}

/// There is no graceful stop without a console.
#[cfg(not(unix))]
fn terminate(child: &mut Child) -> Result<()> {
    Ok(child.kill()?)
}

fn parse_ready(line: &str) -> Result<Ready> {
    serde_json::from_str(line).with_context(|| format!("this is no ready line: {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ready_line_is_read() {
        let line = r#"{"event":"ready","pid":7,"endpoint":"http://a/","tlsEndpoint":"https://a/","key":"k"}"#;
        let expected = Ready {
            endpoint: "http://a/".to_owned(),
            tls_endpoint: "https://a/".to_owned(),
            key: "k".to_owned(),
        };
        assert_eq!(parse_ready(line).unwrap(), expected);
        assert!(parse_ready("Orrery is ready.").is_err());
    }
}
