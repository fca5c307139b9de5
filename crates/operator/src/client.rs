//! Client of the operator protocol, used by the program's own commands: they work from
//! anywhere and cannot disagree with what the server does.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use service::identity::AccountKeyKind;
use tokio::net::TcpStream;

use crate::backup::BackupStatus;
use crate::partitions::HalveBy;
use crate::request::OperatorKey;
use crate::scripts::{ScriptKind, ScriptUpload};

/// All but what may stand in the query of a URL.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.');

/// A server that is spoken to in plain HTTP.
#[derive(Debug)]
pub struct OperatorClient {
    server: String,
    key: OperatorKey,
}

#[derive(Debug, thiserror::Error)]
pub enum OperatorClientError {
    /// Start it, or name its address.
    #[error("no server answers on {server}")]
    Unreachable {
        server: String,
        #[source]
        source: std::io::Error,
    },
    /// The answer did not arrive whole; whether the request was carried out is unknown.
    #[error("the connection to {server} broke")]
    Broken {
        server: String,
        #[source]
        source: hyper::Error,
    },
    /// The request cannot be encoded, for instance because a key contains a line break.
    #[error("the request cannot be sent")]
    Unsendable(#[from] http::Error),
    /// Another program answers.
    #[error("what answers on {server} is not Orrery")]
    Foreign { server: String },
    /// The server says why.
    #[error("{0}")]
    Refused(String),
    /// A script is no JavaScript. Lines and columns count from 1.
    #[error("{line}:{column}: {message}")]
    Script { line: u64, column: u64, message: String },
}

impl OperatorClient {
    /// `server` is an address and a port.
    #[must_use]
    pub fn new(server: &str, key: OperatorKey) -> OperatorClient {
        OperatorClient { server: server.to_owned(), key }
    }

    /// The physical partitions of a container.
    pub async fn partitions(&self, container: &str) -> Result<Value, OperatorClientError> {
        let container = utf8_percent_encode(container, RESERVED);
        let path = format!("/_orrery/partitions?container={container}");
        self.ask(Method::GET, &path, None).await
    }

    pub async fn split(
        &self,
        container: &str,
        range: &str,
        halve: HalveBy,
    ) -> Result<Value, OperatorClientError> {
        let body = json!({ "container": container, "range": range, "halve": halve });
        self.ask(Method::POST, "/_orrery/split", Some(body)).await
    }

    pub async fn merge(
        &self,
        container: &str,
        ranges: &[String],
    ) -> Result<Value, OperatorClientError> {
        let body = json!({ "container": container, "ranges": ranges });
        self.ask(Method::POST, "/_orrery/merge", Some(body)).await
    }

    /// Has the server begin a backup into a folder of its machine.
    pub async fn begin_backup(&self, folder: &str) -> Result<BackupStatus, OperatorClientError> {
        let body = json!({ "folder": folder });
        self.status(self.ask(Method::POST, "/_orrery/backup", Some(body)).await?)
    }

    pub async fn backup(&self) -> Result<BackupStatus, OperatorClientError> {
        self.status(self.ask(Method::GET, "/_orrery/backup", None).await?)
    }

    /// The scripts of a container, without their texts.
    pub async fn scripts(&self, container: &str) -> Result<Value, OperatorClientError> {
        let container = utf8_percent_encode(container, RESERVED);
        self.ask(Method::GET, &format!("/_orrery/scripts?container={container}"), None).await
    }

    /// One of them with its text.
    pub async fn script(
        &self,
        container: &str,
        kind: ScriptKind,
        name: &str,
    ) -> Result<Value, OperatorClientError> {
        let encoded = |text| utf8_percent_encode(text, RESERVED).to_string();
        let kind = json!(kind);
        let path = format!(
            "/_orrery/script?container={}&kind={}&name={}",
            encoded(container),
            kind.as_str().unwrap_or_default(),
            encoded(name)
        );
        self.ask(Method::GET, &path, None).await
    }

    /// Has a script checked and stored.
    pub async fn store_script(
        &self,
        container: &str,
        script: &ScriptUpload,
    ) -> Result<Value, OperatorClientError> {
        let body = json!({ "container": container, "script": script });
        self.ask(Method::POST, "/_orrery/scripts", Some(body)).await
    }

    pub async fn delete_script(
        &self,
        container: &str,
        kind: ScriptKind,
        name: &str,
    ) -> Result<Value, OperatorClientError> {
        let body = json!({ "container": container, "kind": kind, "name": name });
        self.ask(Method::POST, "/_orrery/scripts/delete", Some(body)).await
    }

    /// Runs a stored procedure. `key` is a list of values.
    pub async fn run_procedure(
        &self,
        container: &str,
        name: &str,
        key: Option<&Value>,
        arguments: &[Value],
    ) -> Result<Value, OperatorClientError> {
        let body =
            json!({ "container": container, "name": name, "key": key, "arguments": arguments });
        self.ask(Method::POST, "/_orrery/scripts/run", Some(body)).await
    }

    /// Which keys of the account there are.
    pub async fn keys(&self) -> Result<Value, OperatorClientError> {
        self.ask(Method::GET, "/_orrery/keys", None).await
    }

    /// Has the server replace a key, and returns the new one.
    pub async fn rotate_key(&self, kind: AccountKeyKind) -> Result<String, OperatorClientError> {
        let body = json!({ "rotate": kind.name() });
        let answer = self.ask(Method::POST, "/_orrery/keys", Some(body)).await?;
        answer["key"].as_str().map(str::to_owned).ok_or_else(|| self.foreign())
    }

    fn status(&self, answer: Value) -> Result<BackupStatus, OperatorClientError> {
        serde_json::from_value(answer).map_err(|_| self.foreign())
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<Value, OperatorClientError> {
        let server = || self.server.clone();
        let stream = TcpStream::connect(&self.server)
            .await
            .map_err(|source| OperatorClientError::Unreachable { server: server(), source })?;
        let broken = |source| OperatorClientError::Broken { server: server(), source };
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        tokio::spawn(connection);
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.server)
            .header(AUTHORIZATION, self.key.header())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))?;
        let answer = sender.send_request(request).await.map_err(broken)?;
        let status = answer.status();
        let bytes = answer.into_body().collect().await.map_err(broken)?.to_bytes();
        let body: Value = serde_json::from_slice(&bytes).map_err(|_| self.foreign())?;
        if status.is_success() {
            return Ok(body);
        }
        let message = body["message"].as_str().unwrap_or("the server refused").to_owned();
        Err(match (body["line"].as_u64(), body["column"].as_u64()) {
            (Some(line), Some(column)) => OperatorClientError::Script { line, column, message },
            _ => OperatorClientError::Refused(message),
        })
    }

    fn foreign(&self) -> OperatorClientError {
        OperatorClientError::Foreign { server: self.server.clone() }
    }
}
