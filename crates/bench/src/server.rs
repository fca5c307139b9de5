//! Servers: those that are started here, and those that run elsewhere.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, Error, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::disk;
use crate::process::Usage;

/// How often a server that is to stop is looked at, and how many times.
const STOPS_WITHIN: (Duration, u32) = (Duration::from_millis(50), 1_200);

/// A binary of ours: `NAME=PATH`, perhaps followed by flags for it.
#[derive(Clone, Debug)]
pub(crate) struct Binary {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) flags: Vec<String>,
}

impl FromStr for Binary {
    type Err = Error;

    fn from_str(text: &str) -> Result<Binary> {
        let (name, command) = text.split_once('=').context("a binary is NAME=PATH")?;
        let mut words = command.split_whitespace();
        let path = words.next().context("a binary is NAME=PATH")?.into();
        Ok(Binary { name: name.to_owned(), path, flags: words.map(str::to_owned).collect() })
    }
}

/// A server that somebody else started: `NAME=URL`, and `@PID` to read its figures.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) name: String,
    pub(crate) url: String,
    pub(crate) address: SocketAddr,
    pub(crate) process: Option<u32>,
}

impl FromStr for Endpoint {
    type Err = Error;

    fn from_str(text: &str) -> Result<Endpoint> {
        let (name, url) = text.split_once('=').context("an endpoint is NAME=URL")?;
        let (url, process) = match url.rsplit_once('@') {
            Some((url, process)) => (url, Some(process.parse().context("a process id")?)),
            None => (url, None),
        };
        let host = url.strip_prefix("http://").context("an endpoint speaks plain HTTP")?;
        let host = host.trim_end_matches('/');
        let host = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
        let address = host.to_socket_addrs()?.next().context("an endpoint has an address")?;
        Ok(Endpoint { name: name.to_owned(), url: url.to_owned(), address, process })
    }
}

/// A server to measure. One that was started here is stopped when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    /// How it was started, or where it is.
    pub(crate) origin: String,
    process: Option<u32>,
    child: Option<Child>,
    data: Option<PathBuf>,
    _folder: Option<TempDir>,
}

impl Server {
    /// Starts a binary of ours on a new folder. `before` is a program that runs it, with its
    /// arguments; none when it is empty.
    pub(crate) fn start(binary: &Binary, parent: &Path, before: &[String]) -> Result<Server> {
        let folder = TempDir::with_prefix_in("orrery-bench-", parent)?;
        let data = folder.path().join("data");
        let path = binary.path.canonicalize();
        let path = path.with_context(|| format!("there is no {}", binary.path.display()))?;
        let mut words = before.iter().map(Into::into).chain([path.into_os_string()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).current_dir(folder.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("ORRERY_") {
                command.env_remove(name);
            }
        }
        command.args(["--json", "--listen", "127.0.0.1:0"]).args(&binary.flags);
        let in_memory = binary.flags.iter().any(|flag| flag.starts_with("--in-memory"));
        if !in_memory {
            command.arg("--data").arg(&data);
        }
        // A file, since a pipe that nothing reads would block a server that logs a lot.
        let log = folder.path().join("log");
        command.stdout(Stdio::piped()).stderr(std::fs::File::create(&log)?);
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let address = ready(&mut child, &log)?;
        Ok(Server {
            name: binary.name.clone(),
            address,
            origin: [&[binary.path.display().to_string()], &*binary.flags].concat().join(" "),
            process: Some(child.id()),
            child: Some(child),
            data: (!in_memory).then_some(data),
            _folder: Some(folder),
        })
    }

    pub(crate) fn elsewhere(endpoint: &Endpoint) -> Server {
        Server {
            name: endpoint.name.clone(),
            address: endpoint.address,
            origin: endpoint.url.clone(),
            process: endpoint.process,
            child: None,
            data: None,
            _folder: None,
        }
    }

    pub(crate) fn is_ours(&self) -> bool {
        self.child.is_some()
    }

    pub(crate) fn process(&self) -> Option<u32> {
        self.process
    }

    pub(crate) fn usage(&self) -> Result<Option<Usage>> {
        self.process.map(Usage::read).transpose()
    }

    pub(crate) fn bytes_on_disk(&self) -> Option<u64> {
        self.data.as_deref().map(disk::bytes_on_disk)
    }

    /// Stops it as an operator would, and waits for it.
    pub(crate) fn stop(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        kill_process(Pid::from_child(&child), Signal::TERM)?;
        let (pause, times) = STOPS_WITHIN;
        for _ in 0..times {
            if child.try_wait()?.is_some() {
                return Ok(());
            }
            disk::pause(pause);
        }
        child.kill()?;
        child.wait()?;
        bail!("{} did not stop by itself", self.name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A run that failed says so already.
        let _stopped = self.stop();
    }
}

/// Waits for the line that says where the server listens.
fn ready(child: &mut Child, log: &Path) -> Result<SocketAddr> {
    let mut line = String::new();
    BufReader::new(child.stdout.take().context("it is piped")?).read_line(&mut line)?;
    let Ok(ready) = serde_json::from_str::<serde_json::Value>(&line) else {
        child.kill()?;
        child.wait()?;
        bail!("the server did not start: {line}{}", std::fs::read_to_string(log)?);
    };
    let port = ready["port"].as_u64().context("the ready line has a port")?;
    Ok(SocketAddr::from(([127, 0, 0, 1], u16::try_from(port)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binaries_and_endpoints_are_named() {
        let binary: Binary = "new=target/orrery --durability os".parse().unwrap();
        assert_eq!((binary.name.as_str(), binary.flags.len()), ("new", 2));
        let endpoint: Endpoint = "other=http://127.0.0.1:3900@17".parse().unwrap();
        assert_eq!((endpoint.address.port(), endpoint.process), (3900, Some(17)));
        assert!("other=https://127.0.0.1".parse::<Endpoint>().is_err());
    }
}
