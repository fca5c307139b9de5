//! Talking to a running server by its own paths, as the commands for operators do: they
//! work from anywhere and cannot disagree with what the server does.

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use wire_cosmos::EMULATOR_KEY;

use crate::settings::Secret;

#[derive(Debug, clap::Args)]
pub(crate) struct Remote {
    /// Address and port of the server; it is spoken to in plain HTTP.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8081")]
    pub(crate) server: String,
    /// Account key [default: ORRERY_KEY, else the emulators' well-known key].
    #[arg(long, value_name = "KEY", env = "ORRERY_KEY", hide_env_values = true)]
    key: Option<Secret>,
}

impl Remote {
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Value> {
        let server = &self.server;
        let stream = TcpStream::connect(server)
            .await
            .with_context(|| format!("no server answers on {server}"))?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let key = self.key.as_ref().map_or(EMULATOR_KEY, Secret::reveal);
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, server)
            .header(AUTHORIZATION, format!("Bearer {key}"))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))?;
        let answer = sender.send_request(request).await?;
        let status = answer.status();
        let bytes = answer.into_body().collect().await?.to_bytes();
        let body: Value = serde_json::from_slice(&bytes)
            .with_context(|| format!("what answers on {server} is not Orrery"))?;
        if !status.is_success() {
            bail!("{}", body["message"].as_str().unwrap_or("the server refused"));
        }
        Ok(body)
    }
}
