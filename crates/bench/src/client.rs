//! A client that costs a few microseconds per request.
//!
//! One thread drives all connections: it waits for any answer (`epoll`), reads it, writes
//! the connection's next request and goes on. Each connection has one request in flight, as
//! a client that waits for its answers has. A latency is the time from writing the first
//! request of an operation to having read its last answer.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use runtime::{Clock as _, RealClock};
use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use rustix::fd::OwnedFd;

use crate::answer::Answer;
use crate::latency::Latencies;

/// Bytes that a connection can take in before its buffer grows.
const BUFFER_BYTES: usize = 64 << 10;

/// Longest time without any answer before a server counts as hung.
const SILENCE_MAX: rustix::event::Timespec = rustix::event::Timespec { tv_sec: 300, tv_nsec: 0 };

/// What connections ask for.
pub(crate) trait Work {
    /// Writes the first request of a connection's next operation. False: there is none.
    fn begin(&mut self, connection: usize, out: &mut Vec<u8>) -> Result<bool>;

    /// Takes an answer, and writes the operation's next request if there is one.
    fn answered(
        &mut self,
        connection: usize,
        answer: &Answer<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Progress>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Complete,
    Continues,
}

/// When to stop, and whom to tell on the way.
pub(crate) struct Limits<'a> {
    pub(crate) connections: usize,
    pub(crate) seconds: Option<u64>,
    /// Gets the number of complete operations now and then.
    pub(crate) progress: Option<&'a mut dyn FnMut(u64, Duration)>,
}

/// What a run took, as the client sees it.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) elapsed: Duration,
    pub(crate) latencies: Latencies,
    pub(crate) bytes_received: u64,
}

/// Runs the work to its end.
pub(crate) fn run(address: SocketAddr, work: &mut dyn Work, mut limits: Limits<'_>) -> Result<Run> {
    let mut client = Client::connect(address, limits.connections)?;
    let end = limits.seconds.map_or(Duration::MAX, Duration::from_secs);
    client.clock = RealClock::new();
    for connection in 0..limits.connections {
        client.begin(connection, work)?;
    }
    let mut events = Vec::with_capacity(limits.connections);
    while client.busy > 0 {
        epoll::wait(&client.epoll, spare_capacity(&mut events), Some(&SILENCE_MAX))?;
        ensure!(!events.is_empty(), "no answer for {} s", SILENCE_MAX.tv_sec);
        for event in events.drain(..) {
            let connection = usize::try_from(event.data.u64())?;
            if client.receive(connection, work)? && client.clock.monotonic() < end {
                client.begin(connection, work)?;
            }
        }
        if let Some(progress) = &mut limits.progress {
            progress(client.run.latencies.count(), client.clock.monotonic());
        }
    }
    client.run.elapsed = client.clock.monotonic();
    Ok(client.run)
}

struct Client {
    epoll: OwnedFd,
    connections: Vec<Connection>,
    clock: RealClock,
    /// Connections with an operation in flight.
    busy: usize,
    out: Vec<u8>,
    run: Run,
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
    began: Duration,
}

impl Client {
    fn connect(address: SocketAddr, connections: usize) -> Result<Client> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut all = Vec::with_capacity(connections);
        for number in 0..connections {
            let stream = TcpStream::connect(address).context("the server takes connections")?;
            stream.set_nodelay(true)?;
            let data = epoll::EventData::new_u64(number as u64);
            epoll::add(&epoll, &stream, data, epoll::EventFlags::IN)?;
            let buffer = vec![0; BUFFER_BYTES];
            all.push(Connection { stream, buffer, filled: 0, began: Duration::ZERO });
        }
        let (clock, run) = (RealClock::new(), Run::default());
        Ok(Client { epoll, connections: all, clock, busy: 0, out: Vec::new(), run })
    }

    fn begin(&mut self, number: usize, work: &mut dyn Work) -> Result<()> {
        self.out.clear();
        if work.begin(number, &mut self.out)? {
            let connection = self.connections.get_mut(number).context("a known connection")?;
            connection.began = self.clock.monotonic();
            connection.stream.write_all(&self.out).context("the connection broke")?;
            self.busy += 1;
        }
        Ok(())
    }

    /// Takes what has arrived. True when that completed an operation.
    fn receive(&mut self, number: usize, work: &mut dyn Work) -> Result<bool> {
        let connection = self.connections.get_mut(number).context("a known connection")?;
        connection.fill()?;
        let filled = connection.buffer.get(..connection.filled).unwrap_or_default();
        let Some((answer, length)) = Answer::parse(filled)? else { return Ok(false) };
        ensure!(length == connection.filled, "an answer that was not asked for");
        self.out.clear();
        let progress = work.answered(number, &answer, &mut self.out)?;
        connection.filled = 0;
        self.run.bytes_received += length as u64;
        match progress {
            Progress::Continues => {
                connection.stream.write_all(&self.out).context("the connection broke")?;
                Ok(false)
            }
            Progress::Complete => {
                self.run.latencies.add(self.clock.monotonic() - connection.began);
                self.busy -= 1;
                Ok(true)
            }
        }
    }
}

impl Connection {
    /// Reads once: there is something to read, so it does not wait.
    fn fill(&mut self) -> Result<()> {
        if self.filled == self.buffer.len() {
            self.buffer.resize(2 * self.filled, 0);
        }
        let free = self.buffer.get_mut(self.filled..).unwrap_or_default();
        let read = self.stream.read(free).context("the connection broke")?;
        ensure!(read > 0, "the server closed a connection");
        self.filled += read;
        Ok(())
    }
}

/// One request on a connection of its own, and the status and body of its answer.
pub(crate) fn ask(address: SocketAddr, request: &[u8]) -> Result<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect(address).context("the server takes connections")?;
    stream.write_all(request)?;
    let (buffer, filled, began) = (vec![0; BUFFER_BYTES], 0, Duration::ZERO);
    let mut connection = Connection { stream, buffer, filled, began };
    loop {
        connection.fill()?;
        let filled = connection.buffer.get(..connection.filled).unwrap_or_default();
        if let Some((answer, _)) = Answer::parse(filled)? {
            return Ok((answer.status, answer.body.to_vec()));
        }
    }
}
