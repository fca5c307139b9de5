//! A server with a container in it, and what has been written there.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use runtime::{Clock as _, RealClock};
use wire_cosmos::EMULATOR_KEY;

use crate::client;
use crate::document::Documents;
use crate::driver::Stock;
use crate::measure::{self, Phase, Taken};
use crate::process::Usage;
use crate::request::Requests;
use crate::server::{Binary, Endpoint, Server};

/// A process that uses less than this part of a core has settled.
const SETTLED_BELOW: f64 = 0.04;
const SETTLE_WINDOW: Duration = Duration::from_millis(100);
/// Windows to wait for at most.
const SETTLE_WINDOWS_MAX: u32 = 6_000;

/// What a server gets to settle between two phases, unless less is asked for.
pub(crate) const BRIEFLY: Duration = Duration::from_millis(300);

/// Which servers are measured.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ServerOptions {
    /// Our binaries, each started on a folder of its own: old=PATH,new=PATH. Flags for a binary
    /// may follow its path: 'os=PATH --durability os' [default: the one that was built]
    #[arg(long, value_delimiter = ',')]
    binaries: Vec<Binary>,
    /// Flags for every binary that is started, in one argument
    #[arg(long, default_value = "", allow_hyphen_values = true)]
    flags: String,
    /// Keeps the data of started binaries in memory
    #[arg(long)]
    in_memory: bool,
    /// Throughput to ask for, which decides on the number of partitions. Binaries are started
    /// with `--throttle never`, unless --flags say otherwise [default: none, one partition]
    #[arg(long)]
    throughput: Option<u32>,
    /// The account's key [default: the emulators' well-known one]
    #[arg(long, default_value = EMULATOR_KEY, hide_default_value = true)]
    key: String,
    /// Where temporary data goes, to measure another disk [default: the system's folder]
    #[arg(long)]
    folder: Option<PathBuf>,
}

impl ServerOptions {
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.clone().unwrap_or_else(std::env::temp_dir)
    }

    pub(crate) fn binaries(&self) -> Result<Vec<Binary>> {
        let mut binaries = self.binaries.clone();
        if binaries.is_empty() {
            let path = std::env::current_exe()?.with_file_name("orrery");
            binaries.push(Binary { name: "orrery".to_owned(), path, flags: Vec::new() });
        }
        for binary in &mut binaries {
            binary.flags.extend(self.flags.split_whitespace().map(str::to_owned));
            if self.in_memory {
                binary.flags.push("--in-memory".to_owned());
            }
            if !binary.flags.iter().any(|flag| flag.starts_with("--throttle")) {
                binary.flags.extend(["--throttle", "never"].map(str::to_owned));
            }
        }
        Ok(binaries)
    }

    /// Starts a binary, perhaps run by another program, and creates the container.
    pub(crate) fn start(
        &self,
        binary: &Binary,
        documents: Documents,
        before: &[String],
    ) -> Result<Target> {
        let server = Server::start(binary, &self.folder(), before)?;
        Target::prepare(server, self, documents)
    }

    pub(crate) fn use_endpoint(&self, endpoint: &Endpoint, documents: Documents) -> Result<Target> {
        Target::prepare(Server::elsewhere(endpoint), self, documents)
    }

    /// The circumstances, for the top of a report.
    pub(crate) fn circumstances(&self, documents: Documents) -> Vec<String> {
        let bytes = documents.text(0, 0).len();
        let durable = if self.in_memory { "data in memory" } else { "an fsync before each answer" };
        let throughput = self.throughput.map(|units| format!("{units} RU/s"));
        let throughput = throughput.as_deref().unwrap_or("none");
        vec![
            format!("{}, load average {}", machine(), load_average()),
            format!("{} documents of {bytes} bytes", documents.loaded()),
            format!(
                "on: signatures, default index, {durable}, HTTP/1.1 kept alive; off: throttling, TLS; requested throughput: {throughput}"
            ),
        ]
    }
}

#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) server: Server,
    /// Physical partitions of the container.
    pub(crate) partitions: usize,
    requests: Requests,
    stock: Stock,
}

impl Target {
    /// Creates the database and the container.
    fn prepare(server: Server, options: &ServerOptions, documents: Documents) -> Result<Target> {
        let mut requests = Requests::new(&options.key, documents)?;
        let mut ask = |write: &mut dyn FnMut(&mut Requests, &mut Vec<u8>)| {
            let mut request = Vec::new();
            write(&mut requests, &mut request);
            client::ask(server.address, &request)
        };
        ask(&mut |requests, out| requests.drop_database(out))?;
        let database = ask(&mut |requests, out| requests.create_database(out))?;
        let units = options.throughput;
        let container = ask(&mut |requests, out| requests.create_container(units, out))?;
        for (status, body) in [&database, &container] {
            ensure!(*status == 201, "status {status}: {}", String::from_utf8_lossy(body));
        }
        let (status, listed) = ask(&mut |requests, out| requests.list_ranges(out))?;
        let partitions = if status == 200 { requests.use_ranges(&listed)? } else { 1 };
        Ok(Target { server, partitions, requests, stock: Stock::new() })
    }

    pub(crate) fn measure(&mut self, phase: Phase<'_>) -> Result<Taken> {
        measure::measure(&self.server, &mut self.requests, &mut self.stock, phase)
    }

    /// Waits until the server has nothing to do. Returns what that took.
    pub(crate) fn settle(&self, quiet: Duration) -> Result<Taken> {
        let mut taken = match self.server.process() {
            Some(process) => settle(process, quiet)?,
            None => Taken::default(),
        };
        taken.disk_bytes = self.server.bytes_on_disk();
        Ok(taken)
    }

    /// What its process has taken so far, if that can be read.
    pub(crate) fn usage(&self) -> Result<Option<Usage>> {
        self.server.process().map(Usage::read).transpose()
    }

    pub(crate) fn end(&mut self) -> Result<()> {
        if self.server.is_ours() {
            return self.server.stop();
        }
        let mut request = Vec::new();
        self.requests.drop_database(&mut request);
        client::ask(self.server.address, &request).map(|_dropped| ())
    }
}

/// Waits until a process has done nothing for a while. Returns what that took, without the
/// quiet time.
pub(crate) fn settle(process: u32, quiet: Duration) -> Result<Taken> {
    let clock = RealClock::new();
    let before = Usage::read(process)?;
    let (mut last, mut busy_until) = (before.cpu, Duration::ZERO);
    for _ in 0..SETTLE_WINDOWS_MAX {
        if clock.monotonic() >= busy_until + quiet {
            break;
        }
        clock.sleep(SETTLE_WINDOW);
        let cpu = Usage::read(process)?.cpu;
        let share = cpu.saturating_sub(last).as_secs_f64() / SETTLE_WINDOW.as_secs_f64();
        last = cpu;
        if share >= SETTLED_BELOW {
            busy_until = clock.monotonic();
        }
    }
    let usage = Some(Usage::read(process)?.since(&before));
    Ok(Taken { elapsed: busy_until, usage, ..Taken::default() })
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name"));
    format!("{cores} cores{}", model.unwrap_or_default().replace("\t: ", " of "))
}

fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}
