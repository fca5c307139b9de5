//! An engine that runs into a full disk all the same, because another program took the
//! space between the check and the write, is reopened once there is space.
//!
//! A limit on the size of files stands in for the disk: it can be set and lifted at any
//! moment, on every machine. The limit applies to the whole process, so this is a program
//! of its own with one test, which runs itself with the limit's signal ignored.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::process::Command;

use runtime::{Random as _, Runtime, SeededRandom};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use storage::local::{self, LocalConfig};
use storage::{CommitStatus, Store, WriteBatch};

const INSIDE: &str = "ORRERY_ENGINE_FULL_INSIDE";
const NAME: &str = "an_engine_that_met_a_full_disk_is_opened_anew";

fn submit(store: &dyn Store, key: &str) -> CommitStatus {
    // The journal compresses, so the value must not.
    let (mut batch, mut value) = (WriteBatch::new(), vec![0; 10_000]);
    SeededRandom::new(key.len() as u64).fill(&mut value);
    batch.put(key.to_owned(), value);
    store.write_session().submit(batch).wait()
}

fn limit_files(bytes: Option<u64>) {
    let limit = Rlimit { current: bytes, ..getrlimit(Resource::Fsize) };
    setrlimit(Resource::Fsize, limit).unwrap();
}

#[test]
fn an_engine_that_met_a_full_disk_is_opened_anew() {
    if std::env::var_os(INSIDE).is_none() {
        let ignoring = "trap '' XFSZ; exec \"$0\" \"$@\"";
        let mut inside = Command::new("sh");
        inside.args(["-c", ignoring]).arg(std::env::current_exe().unwrap());
        let output = inside.args(["--exact", NAME, "--nocapture"]).env(INSIDE, "1").output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}{errors}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = local::create(folder.path(), LocalConfig::default(), &Runtime::real()).unwrap();
    for at in 0..20 {
        assert_eq!(submit(store.as_ref(), &format!("before/{at}")), CommitStatus::Durable);
    }
    limit_files(Some(64 << 10));
    for at in 0..3 {
        let outcome = submit(store.as_ref(), &format!("during/{at}"));
        assert!(matches!(outcome, CommitStatus::Unknown | CommitStatus::Full), "{outcome:?}");
        let view = store.view().unwrap();
        assert!(view.get(b"before/19").unwrap().is_some(), "reads go on");
    }
    limit_files(None);
    for at in 0..20 {
        assert_eq!(submit(store.as_ref(), &format!("after/{at}")), CommitStatus::Durable);
    }
    store.health().unwrap();
    let is_whole = |store: &dyn Store| {
        let view = store.view().unwrap();
        for at in 0..20 {
            assert!(view.get(format!("before/{at}").as_bytes()).unwrap().is_some());
            assert!(view.get(format!("after/{at}").as_bytes()).unwrap().is_some());
        }
        for at in 0..3 {
            let found = view.get(format!("during/{at}").as_bytes()).unwrap();
            assert!(found.is_none(), "others have worked on without it");
        }
    };
    is_whole(store.as_ref());
    store.close().unwrap();
    let store = local::open(folder.path(), LocalConfig::default(), &Runtime::real()).unwrap();
    is_whole(store.as_ref());
    store.verify().unwrap();
}
