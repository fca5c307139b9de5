//! The servers that are compared, each a process of its own.

use std::convert::Infallible;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::client::Document;
use crate::cpu;
use crate::program::{self, Program};

/// Set in the process that is the constant server.
pub(crate) const CONSTANT: &str = "ORRERY_BENCH_CONSTANT";

/// Paths of binaries of ours, with a colon between them.
const BINARIES: &str = "ORRERY_BENCH_BINARIES";

/// What we add to a document when it is read: `_rid`, `_etag` and the like.
const SYSTEM_BYTES: usize = 170;

const VERCEL: &str = "@vercel/cosmosdb-server";
const VERCEL_VERSION: &str = "1.0.1";

/// A running server. Ended when dropped.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    process: Process,
    /// Where its data is, removed with it.
    _folder: Option<tempfile::TempDir>,
}

#[derive(Debug)]
enum Process {
    Ours(Program),
    Other(Child),
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Process::Other(child) = self {
            let _ended = child.kill();
            let _ended = child.wait();
        }
    }
}

impl Target {
    /// Processor time that it has taken so far.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        let id = match &self.process {
            Process::Ours(program) => program.id(),
            Process::Other(child) => child.id(),
        };
        cpu::taken(id)
    }

    fn ours(name: &'static str, on_disk: bool) -> Target {
        let (folder, data) = program::folder();
        let data = data.display().to_string();
        let arguments: &[&str] = if on_disk { &["--data", &data] } else { &["--in-memory"] };
        let program = Program::start(folder.path(), arguments);
        Target { _folder: Some(folder), ..Target::program(name, program) }
    }

    /// A binary of ours that was built before, with its data in memory.
    fn built(path: &str) -> Target {
        let mut command = Command::new(path);
        command.args(["--json", "--listen", "127.0.0.1:0", "--in-memory"]).stdin(Stdio::null());
        Target::program(path, Program::start_as(&mut command))
    }

    fn program(name: &str, program: Program) -> Target {
        let (name, address) = (name.to_owned(), program.address());
        Target { name, address, process: Process::Ours(program), _folder: None }
    }

    /// A program that prints the port it listens on.
    fn other(name: &'static str, command: &mut Command) -> std::io::Result<Target> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line)?;
        let process = Process::Other(child);
        let port: u16 = line.trim().parse().map_err(std::io::Error::other)?;
        let (name, address) = (name.to_owned(), ([127, 0, 0, 1], port).into());
        Ok(Target { name, address, process, _folder: None })
    }
}

/// The binaries that are to be compared instead, if any are named.
pub(crate) fn start_named() -> Option<Vec<Target>> {
    let paths = std::env::var(BINARIES).ok()?;
    Some(paths.split(':').map(Target::built).collect())
}

/// All that this machine can run, the constant one first, and what it cannot.
pub(crate) fn start_all() -> (Vec<Target>, Vec<String>) {
    let mut constant = Command::new(std::env::current_exe().unwrap());
    let constant = Target::other("constant hyper", constant.env(CONSTANT, "1")).unwrap();
    let mut targets = vec![
        constant,
        Target::ours("orrery, on disk", true),
        Target::ours("orrery, in memory", false),
    ];
    match start_vercel() {
        Ok(vercel) => targets.push(vercel),
        Err(why) => return (targets, vec![format!("{VERCEL}: {why}")]),
    }
    (targets, Vec::new())
}

/// Answers everything with the same bytes, once it has read what was sent.
pub(crate) async fn serve_constant() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap().port());
    let body = Bytes::from("x".repeat(Document::new(0, 0).body.len() + SYSTEM_BYTES));
    loop {
        let (tcp, _) = listener.accept().await.unwrap();
        tcp.set_nodelay(true).unwrap();
        let body = body.clone();
        let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
            let body = body.clone();
            async move {
                let _read = request.into_body().collect().await;
                Ok::<_, Infallible>(http::Response::new(Full::new(body)))
            }
        });
        tokio::spawn(async move {
            let _ended = http1::Builder::new().serve_connection(TokioIo::new(tcp), service).await;
        });
    }
}

/// Fetches it by its name into the user's cache, once.
fn start_vercel() -> Result<Target, String> {
    let folder = cache_folder().ok_or("there is no home folder")?.join("orrery-bench");
    let package = folder.join("node_modules").join(VERCEL);
    if !package.exists() {
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let wanted = format!("{VERCEL}@{VERCEL_VERSION}");
        let mut npm = Command::new("npm");
        npm.args(["install", "--silent", "--no-audit", "--no-fund", "--omit=dev", &wanted]);
        let output = npm.current_dir(&folder).stdin(Stdio::null()).output();
        match output {
            Ok(output) if output.status.success() => {}
            Ok(output) => return Err(format!("npm ended with {}", output.status)),
            Err(error) => return Err(format!("npm cannot be started: {error}")),
        }
    }
    let script =
        "const server = require('@vercel/cosmosdb-server').createHttpServer({ keepAlive: true });
        server.listen(0, '127.0.0.1', () => console.log(server.address().port));";
    let mut node = Command::new("node");
    node.args(["-e", script]).current_dir(&folder);
    Target::other(VERCEL, &mut node).map_err(|error| format!("node cannot be started: {error}"))
}

fn cache_folder() -> Option<PathBuf> {
    let given = std::env::var_os("XDG_CACHE_HOME").filter(|folder| !folder.is_empty());
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    given.map(PathBuf::from).or_else(home)
}
