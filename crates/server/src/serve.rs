//! `orrery serve`: wires everything together and keeps it running.

mod banner;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::StatusCode;
use operator::{OperatorGateway, RequestDurations};
use runtime::{MemoryBudget, Runtime};
use service::Service;
use service::identity::{AccountKeyKind, AccountKeys};
use storage::Loss;
use storage::local::LocalConfig;
use tokio_rustls::TlsAcceptor;
use wire_cosmos::{Gateway, GatewayConfig, Observer, VerbLabel};
use wire_rntbd::{DirectConfig, DirectGateway};

use crate::background::{self, tasks};
use crate::data_dir::{self, DataDir, say};
use crate::http::host::Hosts;
use crate::http::listener::{ConnectionLimit, Listener};
use crate::http::service::HttpService;
use crate::http::tls::Certificate;
use crate::issuers::WatchedIssuers;
use crate::keys::KeyKeeper;
use crate::memory::MemoryPlan;
use crate::process::ServerProcess;
use crate::settings::{PartialSettings, Settings, StorageLocation};
use crate::{log, stop};

/// How far the clock of a signed request may be off, as in the service.
const SKEW_SECS_MAX: u64 = 15 * 60;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    flags: PartialSettings,
    /// TOML file with the same settings, such as `listen = "127.0.0.1:8082"`.
    ///
    /// Every long flag is a key in it, and ORRERY_ with the flag in capitals is a variable: ORRERY_READ_ONLY_KEY.
    /// A flag wins over a variable, a variable over the file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let outside = Runtime::real();
    let settings = Settings::load(arguments.flags, arguments.config.as_deref(), &*outside.random)?;
    log::start(settings.log);
    let workers = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(settings.workers)
        .enable_all()
        .build()?;
    workers.block_on(serve(settings, outside))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(settings: Settings, mut outside: Runtime) -> anyhow::Result<()> {
    let mut signals = Signals::listen()?;
    if settings.virtual_clock {
        outside = data_dir::with_virtual_clock(&outside);
    }
    let dir = match &settings.location {
        StorageLocation::Memory => None,
        StorageLocation::Folder(folder) => Some(Arc::new(DataDir::claim(folder)?)),
    };
    let certificate = match &dir {
        None => Certificate::ephemeral(&settings.host_names, &*outside.clock)?,
        Some(dir) => Certificate::kept(&dir.tls_folder(), &settings.host_names, &*outside.clock)?,
    };
    let keeper = KeyKeeper::open(&settings, dir.as_deref(), Arc::clone(&outside.random))?;
    let keys = Arc::clone(keeper.live());
    let issuers = Arc::new(WatchedIssuers::open(&settings.issuers)?);
    let listener = Listener::bind(settings.listen).await?;
    let addresses = listener.addresses()?;
    let plan = MemoryPlan::of(settings.memory);
    outside.memory = MemoryBudget::new(plan.queries);
    let process = Arc::new(ServerProcess::new(plan, Arc::clone(&outside.memory), keeper));
    let operator = OperatorGateway::new(
        Arc::clone(&keys),
        Bytes::from(certificate.pem),
        Arc::clone(&process) as Arc<_>,
    );
    let durations = CosmosDurations(Arc::clone(operator.durations()));
    let (stopper, stop) = stop::stop();
    let (limit, hosts) = (ConnectionLimit::for_this_process(plan.total), Hosts::new(&settings));
    let (http, operator) = (Arc::clone(&process), Arc::new(operator));
    let http = Arc::new(HttpService::new(http, operator, limit, hosts, stop.clone()));
    let tls = TlsAcceptor::from(certificate.config);
    let listening = tokio::spawn(listener.run(tls, Arc::clone(&http), stop.clone()));

    let service = open(dir.clone(), &settings, &outside).await?;
    let region = settings.region.as_str().to_owned();
    let slow_after = Some(settings.slow_after);
    let config = GatewayConfig {
        keys: Arc::clone(&keys),
        issuers: Arc::clone(issuers.issuers()),
        tokens_with_keys: settings.listen.address().ip().is_loopback(),
        region,
        direct: settings.direct,
        skew_secs_max: SKEW_SECS_MAX,
        slow_after,
    };
    if config.direct {
        let direct = DirectGateway::new(Arc::clone(&service), outside.clone(), direct(&config));
        http.opened_direct(Arc::new(direct));
    }
    let cosmos = Gateway::new(Arc::clone(&service), outside, config);
    process.opened(Arc::clone(&service));
    http.opened(Arc::new(cosmos.observed_by(Arc::new(durations))));
    let context = tasks::Context::new(Arc::clone(&service), settings.rules.merge_after, issuers);
    let mut tasks = background::start(tasks::TASKS, &context, process.background.of_tasks(), &stop);
    announce(&settings, &keys, &addresses, service.store().loss());

    signals.stop_asked().await;
    stopper.raise();
    // Reads are not waited for. Background tasks have received the signal before, so they
    // do not take their interruption for a failure.
    service.stop_queries();
    tokio::select! {
        ended = async {
            process.backup.end().await;
            while let Some(ended) = tasks.join_next().await {
                ended?;
            }
            listening.await
        } => ended?,
        () = signals.stop_asked() => tracing::warn!("stopping at once, as asked twice"),
    }
    tokio::task::spawn_blocking(move || service.store().close())
        .await?
        .context("the data was not closed cleanly")
}

/// The same settings for direct mode.
fn direct(config: &GatewayConfig) -> DirectConfig {
    DirectConfig {
        keys: Arc::clone(&config.keys),
        issuers: Arc::clone(&config.issuers),
        tokens_with_keys: config.tokens_with_keys,
        skew_secs_max: config.skew_secs_max,
    }
}

/// Passes the durations of the Cosmos protocol on to operators.
#[derive(Debug)]
struct CosmosDurations(Arc<RequestDurations>);

impl Observer for CosmosDurations {
    fn answered(&self, verb: VerbLabel, status: StatusCode, elapsed: Duration) {
        self.0.record(verb.name(), status.as_u16(), elapsed);
    }
}

/// Opens the data off the async workers: replaying a journal can take seconds, and health
/// checks are answered meanwhile.
async fn open(
    dir: Option<Arc<DataDir>>,
    settings: &Settings,
    outside: &Runtime,
) -> anyhow::Result<Arc<Service>> {
    let config = data_dir::config(settings.durability.to_storage());
    let (outside, rules) = (outside.clone(), settings.rules.clone());
    let MemoryPlan { cache, memtable, .. } = MemoryPlan::of(settings.memory);
    let config = LocalConfig {
        accept_lost_writes: settings.accept_lost_writes,
        cache_bytes: cache,
        memtable_bytes: memtable,
        ..config
    };
    let opening = tokio::task::spawn_blocking(move || match dir {
        None => data_dir::open_in_memory(&outside, rules),
        Some(dir) => dir.open(config, &outside, rules),
    });
    Ok(Arc::new(opening.await??))
}

fn announce(settings: &Settings, keys: &AccountKeys, addresses: &[SocketAddr], loss: Option<Loss>) {
    let Some(key) = keys.get(AccountKeyKind::Primary) else { return };
    if settings.json {
        say(&banner::json_line(settings, &key, addresses, loss));
    } else {
        say(&banner::words(settings, &key, addresses, loss));
    }
}

/// The two signals that request a stop.
#[derive(Debug)]
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// From here on a signal no longer ends the process by itself.
    fn listen() -> anyhow::Result<Signals> {
        Ok(Signals {
            #[cfg(unix)]
            terminate: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?,
        })
    }

    #[cfg(unix)]
    async fn stop_asked(&mut self) {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            _ = self.terminate.recv() => {}
        }
    }

    #[cfg(not(unix))]
    async fn stop_asked(&mut self) {
        let _error_means_stop = tokio::signal::ctrl_c().await;
    }
}
