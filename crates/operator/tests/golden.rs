//! Transcripts of the protocol: one request and its answer at a time.
//!
//! `METHOD /path [body] [key=none|wrong|new] [only=TEXT]` asks as the holder of the account key,
//! and shows the lines of the answer that contain the text; `open` opens the data, which is
//! closed at first, with `clock=virtual` under a clock that can be set ahead; `create NAME
//! [ru=N]` makes a container in the
//! database `d`; `took VERB STATUS MILLIS` records a request of another protocol. JSON is
//! shown one member per line; what depends on clocks and on the format of stored data is
//! left out. Update with `UPDATE_GOLDENFILES=1`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use goldenscript::ArgumentConsumer;
use http::Request;
use http::header::{ALLOW, AUTHORIZATION, WWW_AUTHENTICATE};
use model::limits::Limits;
use model::throughput::Throughput;
use operator::{
    AnswerFigures, BackupRefused, BackupStatus, ConnectionFigures, KeyNotKept, MemoryFigures,
    OperatorGateway, Process, ProcessFigures, Rotating, Routed, TaskFigures,
};
use runtime::{MemoryUsage, Runtime, VirtualClock};
use serde_json::Value;
use service::identity::{AccountKey, AccountKeyKind, AccountKeys};
use service::{Kind, Link, Principal, ResourceAction, Service};

const KEY: &str = "b3BlcmF0b3Ita2V5LW9mLXRlc3Rz";
/// What a rotation makes.
const NEW_KEY: &str = "YS1uZXcta2V5LW9mLXRlc3RzLi4u";

/// A process that has done a little of everything.
#[derive(Debug)]
struct TestProcess {
    service: OnceLock<Arc<Service>>,
    backup: Mutex<BackupStatus>,
    keys: Arc<AccountKeys>,
}

impl Process for TestProcess {
    fn service(&self) -> Option<&Arc<Service>> {
        self.service.get()
    }

    fn figures(&self) -> ProcessFigures {
        let usage = MemoryUsage { limit: 1_000, held: 10, high: 500, refused: 2 };
        ProcessFigures {
            answers: AnswerFigures { ok: 7, client_error: 2, server_error: 1 },
            connections: ConnectionFigures { open: 1, opened: 3, parked: 0, refused: 4 },
            memory: MemoryFigures {
                limit_bytes: 10_000,
                cache_limit_bytes: 100,
                memtables_limit_bytes: 400,
                parts: vec![("bodies", usage), ("answers", usage)],
                bodies_waited: 5,
            },
            tasks: vec![TaskFigures { name: "sweep", rounds: 9, failures: 1 }],
        }
    }

    fn backup(&self) -> BackupStatus {
        self.backup.lock().unwrap().clone()
    }

    fn begin_backup(&self, folder: PathBuf) -> Result<BackupStatus, BackupRefused> {
        let mut backup = self.backup.lock().unwrap();
        if let BackupStatus::Running { folder, .. } = &*backup {
            let message = format!("a backup to {} is running", folder.display());
            return Err(BackupRefused::Conflict(message));
        }
        *backup = BackupStatus::Running { folder, rows: 0, bytes: 0 };
        Ok(backup.clone())
    }

    fn rotate_key(&self, kind: AccountKeyKind) -> Rotating<'_> {
        if let AccountKeyKind::SecondaryReadOnly = kind {
            return Box::pin(async { Err(KeyNotKept("the disk is full".to_owned())) });
        }
        let key = AccountKey::parse(NEW_KEY).unwrap();
        self.keys.replace(kind, key.clone());
        Box::pin(async { Ok(key) })
    }
}

struct World {
    process: Arc<TestProcess>,
    gateway: OperatorGateway,
    tokio: tokio::runtime::Runtime,
}

impl World {
    fn new() -> World {
        let backup = Mutex::new(BackupStatus::None);
        let keys = Arc::new(AccountKeys::new(AccountKey::parse(KEY).unwrap()));
        let service = OnceLock::new();
        let process = Arc::new(TestProcess { service, backup, keys: Arc::clone(&keys) });
        let certificate = Bytes::from_static(b"-----BEGIN CERTIFICATE-----\n");
        let shared = Arc::clone(&process) as Arc<dyn Process>;
        World {
            process,
            gateway: OperatorGateway::new(keys, certificate, shared),
            tokio: tokio::runtime::Builder::new_current_thread().build().unwrap(),
        }
    }

    fn open(&self, virtual_clock: bool) {
        let mut runtime = Runtime::simulated(1);
        if virtual_clock {
            runtime.clock = Arc::new(VirtualClock::new(runtime.clock));
        }
        let service = Service::open(storage::memory::create(), runtime, Limits::default());
        self.process.service.set(Arc::new(service.unwrap())).unwrap();
    }

    fn create(&self, name: &str, throughput: Option<u32>) {
        let service = self.process.service.get().unwrap();
        let account = Link::parse("").unwrap();
        let database = Link::parse("dbs/d").unwrap();
        let body = format!(r#"{{"id":"{name}","partitionKey":{{"paths":["/pk"],"version":2}}}}"#);
        for (parent, kind, body, throughput) in [
            (account, Kind::Database, r#"{"id":"d"}"#, None),
            (database, Kind::Container, &body, throughput.map(Throughput::Manual)),
        ] {
            let body = model::json::parse(body.as_bytes()).unwrap();
            let action =
                ResourceAction::Create { parent, kind, body, throughput, offer_type: None };
            let request = service::Request::new(Principal::Account, action);
            self.tokio.block_on(service.execute(request)).unwrap();
        }
    }

    fn ask(&self, method: &str, mut args: ArgumentConsumer<'_>) -> Result<String, Box<dyn Error>> {
        let path = args.next_pos().ok_or("a path")?;
        let body = args.next_pos().unwrap_or_default().to_owned();
        let request = Request::builder().method(method).uri(path);
        let request = match args.take_key("key") {
            None => request.header(AUTHORIZATION, format!("Bearer {KEY}")),
            Some("none") => request,
            Some("new") => request.header(AUTHORIZATION, format!("Bearer {NEW_KEY}")),
            Some(other) => request.header(AUTHORIZATION, format!("Bearer {other}")),
        };
        let only = args.take_key("only").map(str::to_owned);
        args.reject_next()?;
        let reply = match self.gateway.route(&request.body(())?) {
            Routed::NotOurs => return Ok("another protocol's\n".to_owned()),
            Routed::Answered(reply) => reply,
            Routed::Request(request) => {
                self.tokio.block_on(self.gateway.answer(request, Bytes::from(body)))
            }
        };
        let mut shown = format!("{}\n", reply.status());
        for name in [ALLOW, WWW_AUTHENTICATE] {
            if let Some(value) = reply.headers().get(&name) {
                writeln!(shown, "{name}: {}", value.to_str()?)?;
            }
        }
        let body = text(reply.body())?;
        let is_wanted = |line: &&str| only.as_ref().is_none_or(|only| line.contains(only));
        body.lines().filter(is_wanted).for_each(|line| shown.extend([line, "\n"]));
        Ok(shown)
    }
}

/// JSON by lines, anything else as it is.
fn text(body: &[u8]) -> Result<String, Box<dyn Error>> {
    let Ok(mut json) = serde_json::from_slice::<Value>(body) else {
        return Ok(String::from_utf8(body.to_vec())?);
    };
    if let Some(pause) = json.get_mut("pauseMs") {
        *pause = Value::from("(a time)");
    }
    for counter in json.get_mut("store").and_then(Value::as_object_mut).into_iter().flatten() {
        *counter.1 = Value::from("(a count)");
    }
    if json["version"] == env!("CARGO_PKG_VERSION") {
        json["version"] = Value::from("(this one)");
    }
    Ok(format!("{}\n", serde_json::to_string_pretty(&json)?))
}

impl goldenscript::Runner for World {
    type Command = goldenscript::Command;

    fn run(
        &mut self,
        command: &goldenscript::Command,
        _: &goldenscript::Context,
    ) -> Result<String, Box<dyn Error>> {
        let mut args = command.consume_args();
        match command.name.as_str() {
            "open" => {
                let virtual_clock = args.take_key("clock") == Some("virtual");
                args.reject_next()?;
                self.open(virtual_clock);
            }
            "create" => {
                let name = args.next_pos().ok_or("a name")?;
                let throughput = args.take_key("ru").map(str::parse).transpose()?;
                args.reject_next()?;
                self.create(name, throughput);
            }
            "took" => {
                let verb = match args.next_pos().ok_or("a verb")? {
                    "read_item" => "read_item",
                    other => return Err(format!("no verb {other}").into()),
                };
                let status = args.next_pos().ok_or("a status")?.parse()?;
                let millis = args.next_pos().ok_or("milliseconds")?.parse()?;
                self.gateway.durations().record(verb, status, Duration::from_millis(millis));
            }
            method => return self.ask(method, args),
        }
        Ok(String::new())
    }
}

#[test]
fn transcripts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let scripts: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!scripts.is_empty(), "there are no scripts");
    for script in scripts {
        goldenscript::run(&mut World::new(), &script)
            .unwrap_or_else(|error| panic!("{}: {error}", script.display()));
    }
}
