//! Accepting connections, up to a limit.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;

use crate::http::connection;
use crate::http::service::HttpService;
use crate::settings::Listen;
use crate::stop::Stop;

/// Connections at a time. An idle one costs some kilobytes.
const CONNECTIONS_MAX: u32 = 16_384;

/// Memory of the process per connection: about what one takes that has begun to send a
/// head. Only the smallest settings have fewer than [`CONNECTIONS_MAX`].
const MEMORY_PER_CONNECTION: u64 = 32 << 10;

/// Files and sockets that are not connections: the store's tables and journals.
const FILES_RESERVED: u32 = 512;

/// Time for running requests after a stop was requested.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// Pause when the operating system cannot give us a connection, usually for want of file
/// handles.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The answer to a client beyond the limit. Written only if it fits into the socket's
/// buffer at once.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
    connection: close\r\ncontent-length: 89\r\n\r\n\
    {\"code\":\"ServiceUnavailable\",\"message\":\"The server has as many connections as it takes.\"}";

/// The fraction of all permits above which they count as scarce.
const CROWDED_PARTS: (usize, usize) = (3, 4);

/// How many connections are served at a time: each holds a permit.
#[derive(Debug)]
pub(crate) struct ConnectionLimit {
    permits: Arc<Semaphore>,
    all: u32,
}

impl ConnectionLimit {
    /// As many as the process has file handles and memory for.
    pub(crate) fn for_this_process(memory: u64) -> ConnectionLimit {
        let by_files = files_max().saturating_sub(FILES_RESERVED);
        let by_memory = u32::try_from(memory / MEMORY_PER_CONNECTION).unwrap_or(u32::MAX);
        ConnectionLimit::new(CONNECTIONS_MAX.min(by_files).min(by_memory).max(1))
    }

    fn new(all: u32) -> ConnectionLimit {
        ConnectionLimit {
            permits: Arc::new(Semaphore::new(usize::try_from(all).unwrap_or(usize::MAX))),
            all,
        }
    }

    pub(crate) fn is_crowded(&self) -> bool {
        let all = usize::try_from(self.all).unwrap_or(usize::MAX);
        let taken = all.saturating_sub(self.permits.available_permits());
        taken * CROWDED_PARTS.1 > all * CROWDED_PARTS.0
    }

    fn try_acquire(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.permits).try_acquire_owned().ok()
    }

    /// Waits until every connection has ended.
    async fn empty(&self) {
        let _all = self.permits.acquire_many(self.all).await;
    }
}

/// The one port, for plain HTTP and TLS, on one address or on two.
#[derive(Debug)]
pub(crate) struct Listener {
    first: TcpListener,
    second: Option<TcpListener>,
}

impl Listener {
    pub(crate) async fn bind(listen: Listen) -> anyhow::Result<Listener> {
        let first = bind(listen.address()).await?;
        let second = match listen {
            Listen::ThisMachine { .. } => bind_v6_too(first.local_addr()?.port(), listen).await?,
            Listen::Address(_) => None,
        };
        Ok(Listener { first, second })
    }

    /// The addresses listened on; the first is the one to print.
    pub(crate) fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        [Some(&self.first), self.second.as_ref()]
            .into_iter()
            .flatten()
            .map(TcpListener::local_addr)
            .collect()
    }

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let Some(second) = &self.second else { return self.first.accept().await };
        tokio::select! {
            accepted = self.first.accept() => accepted,
            accepted = second.accept() => accepted,
        }
    }

    /// Serves until the stop signal, then lets running requests finish.
    pub(crate) async fn run(self, tls: TlsAcceptor, http: Arc<HttpService>, mut stop: Stop) {
        loop {
            let accepted = tokio::select! {
                accepted = self.accept() => accepted,
                () = stop.raised() => break,
            };
            match accepted {
                Ok((tcp, _)) => welcome(tcp, &tls, &http, &stop),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(self);
        if tokio::time::timeout(DRAIN_MAX, http.connections.empty()).await.is_err() {
            tracing::warn!("some requests did not finish in time and were cut off");
        }
    }
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| match address.port() {
        0 => format!("cannot listen on {address}"),
        port => format!(
            "cannot listen on {address}: is another program there, perhaps another emulator? \
             Stop it, or choose another port, say --listen {}",
            SocketAddr::new(address.ip(), port.checked_add(1).unwrap_or(0))
        ),
    })
}

/// Listens on `::1` if there is such an address. Where another program has the port,
/// clients of `localhost` would talk to that: better no server than the wrong one. But a
/// port that the system chose may be taken there.
async fn bind_v6_too(port: u16, listen: Listen) -> anyhow::Result<Option<TcpListener>> {
    let address = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port);
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && listen.address().port() != 0 => {
            bind(address).await.map(Some)
        }
        Err(error) => {
            tracing::debug!(%error, "not listening on ::1");
            Ok(None)
        }
    }
}

fn welcome(tcp: TcpStream, tls: &TlsAcceptor, http: &Arc<HttpService>, stop: &Stop) {
    let Some(permit) = http.connections.try_acquire() else {
        let _best_effort = tcp.try_write(FULL);
        http.process.counters.connection_refused();
        return;
    };
    // Answers are written in one piece: waiting for more to send is of no use.
    let _best_effort = tcp.set_nodelay(true);
    let (tls, http, stop) = (tls.clone(), Arc::clone(http), stop.clone());
    tokio::spawn(async move {
        let _open = http.process.counters.connection_opened();
        connection::serve(tcp, tls, Arc::clone(&http), stop).await;
        drop(permit);
    });
}

/// How many files this process may have open, after raising the limit as far as allowed.
#[cfg(unix)]
fn files_max() -> u32 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    current.map_or(u32::MAX, |files| u32::try_from(files).unwrap_or(u32::MAX))
}

#[cfg(not(unix))]
fn files_max() -> u32 {
    u32::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_run_out_and_come_back() {
        let limit = ConnectionLimit::new(8);
        let mut taken: Vec<_> = (0..6).map(|_| limit.try_acquire().unwrap()).collect();
        assert!(!limit.is_crowded());
        taken.push(limit.try_acquire().unwrap());
        assert!(limit.is_crowded());
        taken.push(limit.try_acquire().unwrap());
        assert!(limit.try_acquire().is_none());
        taken.truncate(6);
        assert!(!limit.is_crowded() && limit.try_acquire().is_some());
    }

    #[test]
    fn the_refusal_is_a_whole_answer() {
        let text = std::str::from_utf8(FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("content-length: {}", body.len())), "{}", body.len());
    }
}
