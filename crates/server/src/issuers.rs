//! The keys of identity providers: from files and from servers on this machine, again and
//! again, since providers replace them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use http::header::HOST;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_util::rt::TokioIo;
use service::identity::Issuer;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::settings::issuers::{IssuerSetting, KeySource};

/// The longest key set: [`service::identity::Issuer`] takes some dozens of keys, with certificates a few KB
/// each.
const KEY_SET_BYTES_MAX: usize = 1 << 20;

/// Longer than a server on this machine needs.
const FETCH_MAX: Duration = Duration::from_secs(5);

/// The providers, each with the place of its keys.
#[derive(Debug)]
pub(crate) struct WatchedIssuers {
    issuers: Arc<[Issuer]>,
    sources: Vec<KeySource>,
}

impl WatchedIssuers {
    /// Reads the keys that are in files: a server without them would let no bearer in. Servers may
    /// start later than this one.
    pub(crate) fn open(settings: &[IssuerSetting]) -> anyhow::Result<WatchedIssuers> {
        let open = |setting: &IssuerSetting| match &setting.keys {
            KeySource::File(path) => {
                let named = || format!("the keys of issuer '{}'", setting.rules.issuer);
                let text = read(path).with_context(named)?;
                Issuer::new(setting.rules.clone(), &text).with_context(named)
            }
            KeySource::Http { .. } => Ok(Issuer::without_keys(setting.rules.clone())),
        };
        let issuers = settings.iter().map(open).collect::<anyhow::Result<Arc<[_]>>>()?;
        let sources = settings.iter().map(|setting| setting.keys.clone()).collect();
        Ok(WatchedIssuers { issuers, sources })
    }

    pub(crate) fn issuers(&self) -> &Arc<[Issuer]> {
        &self.issuers
    }

    /// Reads all keys again. Those of a source that fails stay as they are.
    pub(crate) async fn refresh(&self) {
        for (issuer, source) in self.issuers.iter().zip(&self.sources) {
            let fetched = fetch(source.clone()).await;
            let taken = fetched.and_then(|text| Ok(issuer.replace_keys(&text)?));
            if let Err(error) = taken {
                let issuer = &issuer.rules().issuer;
                tracing::warn!(issuer, error = format!("{error:#}"), "no keys of an issuer");
            }
        }
    }
}

async fn fetch(source: KeySource) -> anyhow::Result<Bytes> {
    match source {
        KeySource::File(path) => tokio::task::spawn_blocking(move || read(&path)).await?,
        KeySource::Http { address, path } => {
            timeout(FETCH_MAX, get(address, &path)).await.context("no answer in time")?
        }
    }
}

fn read(path: &Path) -> anyhow::Result<Bytes> {
    let failed = || format!("{} cannot be read", path.display());
    let length = std::fs::metadata(path).with_context(failed)?.len();
    ensure!(length <= KEY_SET_BYTES_MAX as u64, "{} is too long", path.display());
    Ok(std::fs::read(path).with_context(failed)?.into())
}

async fn get(address: SocketAddr, path: &str) -> anyhow::Result<Bytes> {
    let stream = TokioIo::new(TcpStream::connect(address).await?);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
    let connection = tokio::spawn(connection);
    let request =
        http::Request::get(path).header(HOST, address.to_string()).body(Empty::<Bytes>::new())?;
    let answer = sender.send_request(request).await?;
    ensure!(answer.status().is_success(), "the answer was {}", answer.status());
    let body = Limited::new(answer.into_body(), KEY_SET_BYTES_MAX).collect().await;
    connection.abort();
    Ok(body.map_err(anyhow::Error::from_boxed)?.to_bytes())
}
