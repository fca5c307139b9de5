//! Requests whose answering goes wrong, and those whose client leaves.

use std::convert::Infallible;
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::pin;
use std::task::Poll;

use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use model::limits::Limits;
use operator::{BackupRefused, BackupStatus, Process, ProcessFigures, Rotating};
use runtime::{MemoryBudget, Runtime};
use service::Service;
use service::identity::{AccountKey, AccountKeyKind, AccountKeys};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Notify;

use super::*;
use crate::data_dir::keys::RotatedKeys;
use crate::keys::KeyKeeper;
use crate::log::Captured;
use crate::memory::{MemoryPlan, MemorySize};
use crate::stop::stop;

const KEY: &str = "a2V5LW9mLXRoZS10ZXN0cw==";

fn account_key() -> AccountKey {
    AccountKey::parse(KEY).unwrap()
}

fn keeper() -> KeyKeeper {
    KeyKeeper::of(
        AccountKeys::new(account_key()),
        RotatedKeys::none(),
        None,
        Runtime::real().random,
    )
}

fn client() -> Client {
    let answers = Answers::new(&MemoryPlan::of(MemorySize::default()));
    Client::new("http", answers.outbox())
}

fn named(method: Method) -> Named {
    Named { method, path: "/".to_owned(), activity_id: None }
}

/// A process that panics whatever an operator asks it.
#[derive(Debug)]
struct Panicking(Arc<Service>);

impl Process for Panicking {
    fn service(&self) -> Option<&Arc<Service>> {
        Some(&self.0)
    }

    fn figures(&self) -> ProcessFigures {
        panic!("as the test wants it")
    }

    fn backup(&self) -> BackupStatus {
        BackupStatus::None
    }

    fn begin_backup(&self, _folder: PathBuf) -> Result<BackupStatus, BackupRefused> {
        panic!("as the test wants it")
    }

    fn rotate_key(&self, _kind: AccountKeyKind) -> Rotating<'_> {
        panic!("as the test wants it")
    }
}

fn http_with(process: Arc<dyn Process>) -> HttpService {
    let plan = MemoryPlan::of(MemorySize::default());
    let ours = Arc::new(ServerProcess::new(plan, MemoryBudget::unlimited(), keeper()));
    let keys = Arc::new(AccountKeys::new(account_key()));
    let operator = OperatorGateway::new(keys, Bytes::new(), process);
    let limit = ConnectionLimit::for_this_process(plan.total);
    HttpService::new(ours, Arc::new(operator), limit, Hosts::All, stop().1)
}

/// Sends requests over one connection, one after the other. Returns their statuses.
async fn statuses(http: &HttpService, requests: &[String]) -> Vec<String> {
    let client = client();
    let (mut near, far) = tokio::io::duplex(1 << 16);
    let service = service_fn(|request| async {
        Ok::<_, Infallible>(http.answer(request, &client).await.map(Full::new))
    });
    let serving = http1::Builder::new().serve_connection(TokioIo::new(far), service);
    let asking = async {
        let mut statuses = Vec::new();
        for request in requests {
            near.write_all(request.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            while !answer.ends_with(b"}") {
                assert!(near.read_buf(&mut answer).await.unwrap() > 0, "the connection broke");
            }
            statuses.push(String::from_utf8_lossy(&answer[9..12]).into_owned());
        }
        statuses
    };
    tokio::select! {
        statuses = asking => statuses,
        ended = serving => panic!("the connection ended: {ended:?}"),
    }
}

#[tokio::test]
async fn a_request_that_panics_is_answered_and_logged() {
    let store = storage::memory::create();
    let service = Service::open(store, Runtime::simulated(1), Limits::default()).unwrap();
    let http = http_with(Arc::new(Panicking(Arc::new(service))));
    let head = format!("HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {KEY}\r\n");
    let backup = r#"{"folder":"/backups/monday"}"#;
    let requests = [
        format!("GET /_orrery/counters {head}\r\n"),
        format!("POST /_orrery/backup {head}content-length: {}\r\n\r\n{backup}", backup.len()),
        format!("GET /_orrery/backup {head}\r\n"),
    ];
    let (log, _listening) = Captured::begin();
    assert_eq!(statuses(&http, &requests).await, ["500", "500", "200"]);
    let log = log.text();
    let panics: Vec<&str> =
        log.lines().filter(|line| line.contains("a request panicked")).collect();
    assert_eq!(panics.len(), 2, "{log}");
    assert!(panics[0].contains("ERROR") && panics[0].contains("GET"), "{log}");
    assert!(panics[0].contains("/_orrery/counters") && panics[1].contains("POST"), "{log}");
}

#[tokio::test]
async fn a_change_that_panics_is_answered_and_gives_back_its_shares() {
    let memory = BodyMemory::with(64, 1);
    let mut permit = BodyPermit::new(&client(), &memory);
    permit.hold(32 << 10).await;
    assert!(memory.usage().0.held > 0);
    let change = to_the_end(async { panic!("as the test wants it") }, permit);
    let (log, _listening) = Captured::begin();
    let answer = caught(named(Method::POST), change).await;
    assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert!(log.text().contains("a request panicked"));
    assert_eq!(memory.usage().0.held, 0);
}

#[tokio::test]
async fn a_change_goes_on_without_its_client() {
    let (gate, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (opened, said) = (Arc::clone(&gate), Arc::clone(&done));
    let change = async move {
        opened.notified().await;
        said.notify_one();
        unavailable("this is never read")
    };
    let permit = BodyPermit::new(&client(), &BodyMemory::with(4, 1));
    {
        let mut client = pin!(to_the_end(change, permit));
        let polled = poll_fn(|context| Poll::Ready(client.as_mut().poll(context)));
        assert!(polled.await.is_pending());
    }
    gate.notify_one();
    done.notified().await;
}
