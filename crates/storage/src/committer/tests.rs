//! The committer against an engine that a test steps through.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use runtime::{Runtime, TaskHandle};

use super::*;

/// What the engine is to do with one commit.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Commit,
    Fail,
    Panic,
}

/// An engine that announces every commit and then waits for a verdict.
#[derive(Debug)]
struct GatedEngine {
    begun: SyncSender<Vec<String>>,
    verdicts: Receiver<Verdict>,
    published: Arc<Mutex<MergedBatch>>,
    room: Arc<AtomicUsize>,
}

impl Engine for GatedEngine {
    fn admit(&mut self, bytes: usize, relief: bool) -> Result<(), StorageError> {
        if relief || bytes < self.room.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(StorageError::Full { detail: "not a byte".to_owned() })
    }

    fn commit(&mut self, writes: &MergedBatch) -> Result<(), StorageError> {
        let show = |(key, value): (&Bytes, &Option<Bytes>)| format!("{key:?}={value:?}");
        self.begun.send(writes.iter().map(show).collect()).expect("the test listens");
        match self.verdicts.recv().expect("the test decides") {
            Verdict::Commit => {
                let writes = writes.iter().map(|(key, value)| (key.clone(), value.clone()));
                self.published.lock().unwrap().extend(writes);
                Ok(())
            }
            Verdict::Fail => Err(StorageError::Failed { detail: "disk on fire".to_owned() }),
            Verdict::Panic => panic!("on purpose"),
        }
    }

    fn syncs_per_commit(&self) -> u64 {
        1
    }

    fn close(&mut self) -> Result<(), StorageError> {
        Ok(())
    }
}

struct Gate {
    committer: Arc<Committer<GatedEngine>>,
    begun: Receiver<Vec<String>>,
    verdicts: SyncSender<Verdict>,
    published: Arc<Mutex<MergedBatch>>,
    room: Arc<AtomicUsize>,
    thread: TaskHandle,
}

impl Gate {
    fn open() -> Gate {
        let (begun_sender, begun) = sync_channel(16);
        let (verdicts, verdict_receiver) = sync_channel(16);
        let published = Arc::new(Mutex::new(MergedBatch::new()));
        let room = Arc::new(AtomicUsize::new(usize::MAX));
        let engine = GatedEngine {
            begun: begun_sender,
            verdicts: verdict_receiver,
            published: Arc::clone(&published),
            room: Arc::clone(&room),
        };
        let committer = Committer::new(engine, Leader::Thread);
        let leader = Arc::clone(&committer);
        let thread = Runtime::real().tasks.spawn("committer", Box::new(move || leader.run()));
        Gate { committer, begun, verdicts, published, room, thread: thread.unwrap() }
    }

    fn write_session(&self) -> CommitterSession<GatedEngine> {
        CommitterSession::new(&self.committer)
    }

    fn next_commit(&self) -> Vec<String> {
        self.begun.recv().expect("a commit begins")
    }

    fn decide(&self, verdict: Verdict) {
        self.verdicts.send(verdict).expect("the engine waits");
    }
}

fn put(key: &'static str, value: &'static str) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(key, value);
    batch
}

#[test]
fn tickets_resolve_only_after_the_engine_published() {
    let gate = Gate::open();
    let ticket = gate.write_session().submit(put("a", "1"));
    gate.next_commit();
    assert_eq!(ticket.outcome(), None);
    assert!(gate.published.lock().unwrap().is_empty());
    gate.decide(Verdict::Commit);
    assert_eq!(ticket.wait(), CommitStatus::Durable);
    assert_eq!(gate.published.lock().unwrap().len(), 1);
}

/// A little space is no good news for writes that asked for more.
#[test]
fn health_asks_for_as_much_as_was_refused() {
    let gate = Gate::open();
    gate.room.store(1, Ordering::Release);
    assert_eq!(gate.write_session().submit(put("key", "value")).wait(), CommitStatus::Full);
    let health = gate.committer.health();
    assert!(matches!(health, Err(StorageError::Full { .. })), "{health:?}");
    gate.room.store(9, Ordering::Release);
    gate.committer.health().unwrap();
}

#[test]
fn what_gathers_during_a_commit_is_merged_in_order() {
    let gate = Gate::open();
    let (mut one, mut two) = (gate.write_session(), gate.write_session());
    let first = one.submit(put("a", "1"));
    assert_eq!(gate.next_commit(), [r#"b"a"=Some(b"1")"#]);
    let mut delete = put("b", "1");
    delete.delete("b");
    let waiting = [one.submit(put("a", "2")), two.submit(delete), one.submit(put("a", "3"))];
    gate.decide(Verdict::Commit);
    assert_eq!(gate.next_commit(), [r#"b"a"=Some(b"3")"#, r#"b"b"=None"#]);
    gate.decide(Verdict::Commit);
    assert_eq!(first.wait(), CommitStatus::Durable);
    assert!(waiting.into_iter().all(|ticket| ticket.wait() == CommitStatus::Durable));
    let counters = gate.committer.counters();
    assert_eq!((counters.batches_durable, counters.commits, counters.syncs), (4, 2, 2));
    assert_eq!((counters.keys, counters.bytes), (3, 5));
}

#[test]
fn a_failed_commit_is_unknown_and_all_that_follows_is_refused() {
    let gate = Gate::open();
    let mut session = gate.write_session();
    let lost = session.submit(put("a", "1"));
    gate.next_commit();
    let later = session.submit(put("b", "1"));
    let elsewhere = gate.write_session().submit(put("c", "1"));
    gate.decide(Verdict::Fail);
    assert_eq!(lost.wait(), CommitStatus::Unknown);
    assert_eq!(later.wait(), CommitStatus::Refused);
    assert_eq!(elsewhere.wait(), CommitStatus::Refused);
    assert_eq!(gate.write_session().submit(put("d", "1")).wait(), CommitStatus::Refused);
    let error = gate.committer.health().unwrap_err().to_string();
    assert!(error.contains("disk on fire") && error.contains("restart"), "{error}");
    assert!(matches!(gate.committer.close(), Err(StorageError::Failed { .. })));
    assert_eq!(gate.thread.join(), Ok(()));
    assert!(gate.published.lock().unwrap().is_empty());
}

#[test]
fn a_panicking_engine_fails_the_store_and_leaves_nobody_waiting() {
    let gate = Gate::open();
    let mut session = gate.write_session();
    let lost = session.submit(put("a", "1"));
    gate.next_commit();
    let later = session.submit(put("b", "1"));
    gate.decide(Verdict::Panic);
    assert_eq!(lost.wait(), CommitStatus::Unknown);
    assert_eq!(later.wait(), CommitStatus::Refused);
    assert!(gate.thread.join().is_err());
    assert!(matches!(gate.committer.close(), Err(StorageError::Failed { .. })));
}

#[test]
fn an_invalid_write_breaks_its_session_and_nothing_else() {
    let gate = Gate::open();
    let mut session = gate.write_session();
    let first = session.submit(put("a", "1"));
    gate.next_commit();
    let waiting = session.submit(put("b", "1"));
    assert_eq!(session.submit(put("", "1")).wait(), CommitStatus::Refused);
    assert_eq!(session.submit(put("c", "1")).wait(), CommitStatus::Refused);
    let other = gate.write_session().submit(put("d", "1"));
    gate.decide(Verdict::Commit);
    assert_eq!(gate.next_commit(), [r#"b"b"=Some(b"1")"#, r#"b"d"=Some(b"1")"#]);
    gate.decide(Verdict::Commit);
    for ticket in [first, waiting, other] {
        assert_eq!(ticket.wait(), CommitStatus::Durable);
    }
}

#[test]
fn closing_waits_for_what_was_submitted() {
    let gate = Gate::open();
    let mut session = gate.write_session();
    let ticket = session.submit(put("a", "1"));
    gate.next_commit();
    let later = session.submit(put("b", "1"));
    gate.decide(Verdict::Commit);
    gate.decide(Verdict::Commit);
    gate.committer.close().unwrap();
    assert_eq!(ticket.outcome(), Some(CommitStatus::Durable));
    assert_eq!(later.outcome(), Some(CommitStatus::Durable));
    assert_eq!(session.submit(put("c", "1")).wait(), CommitStatus::Refused);
    gate.committer.close().unwrap();
    assert_eq!(gate.thread.join(), Ok(()));
}

#[test]
fn a_full_queue_makes_submitters_wait_until_there_is_room() {
    let gate = Gate::open();
    let mut session = gate.write_session();
    let big = || {
        let mut batch = WriteBatch::new();
        batch.put("big", vec![0; QUEUE_BYTES_MAX]);
        batch
    };
    let first = session.submit(big());
    gate.next_commit();
    let second = session.submit(big());
    let blocked = {
        let mut session = gate.write_session();
        let submit =
            Box::new(move || assert_eq!(session.submit(big()).wait(), CommitStatus::Durable));
        Runtime::real().tasks.spawn("blocked", submit).unwrap()
    };
    assert_eq!(gate.committer.counters().batches_submitted, 2);
    for _ in 0..3 {
        gate.decide(Verdict::Commit);
    }
    assert_eq!((first.wait(), second.wait()), (CommitStatus::Durable, CommitStatus::Durable));
    blocked.join().unwrap();
    assert_eq!(gate.committer.counters().commits, 3);
}

#[test]
fn an_empty_batch_waits_for_those_before_it_and_costs_no_commit() {
    let gate = Gate::open();
    let mut session = gate.write_session();
    let first = session.submit(put("a", "1"));
    gate.next_commit();
    let barrier = session.submit(WriteBatch::new());
    assert_eq!(barrier.outcome(), None);
    gate.decide(Verdict::Commit);
    assert_eq!(barrier.wait(), CommitStatus::Durable);
    assert_eq!(first.outcome(), Some(CommitStatus::Durable));
    assert_eq!(gate.committer.counters().commits, 1);
}

#[test]
fn without_room_a_session_breaks_and_the_store_goes_on() {
    let gate = Gate::open();
    let (mut first, mut second) = (gate.write_session(), gate.write_session());
    let held = first.submit(put("held", "1"));
    gate.next_commit();
    // All of these wait in one group while the first is being committed.
    let refused = first.submit(put("refused", "1"));
    let later = first.submit(put("later", "1").for_relief(true));
    let other = second.submit(put("other", "1").for_relief(true));
    gate.room.store(0, Ordering::Release);
    gate.verdicts.send(Verdict::Commit).unwrap();
    assert_eq!(gate.next_commit().len(), 1, "only what makes room");
    gate.verdicts.send(Verdict::Commit).unwrap();
    assert_eq!(held.wait(), CommitStatus::Durable);
    assert_eq!(refused.wait(), CommitStatus::Full);
    assert_eq!(later.wait(), CommitStatus::Full, "it rests on what was refused");
    assert_eq!(other.wait(), CommitStatus::Durable);
    assert!(matches!(gate.committer.health(), Err(StorageError::Full { .. })));
    assert_eq!(
        first.submit(put("late", "1")).wait(),
        CommitStatus::Full,
        "the session stays broken"
    );
    gate.room.store(usize::MAX, Ordering::Release);
    gate.committer.health().unwrap();
    let again = gate.write_session().submit(put("again", "1"));
    gate.next_commit();
    gate.verdicts.send(Verdict::Commit).unwrap();
    assert_eq!(again.wait(), CommitStatus::Durable);
    gate.committer.close().unwrap();
    gate.thread.join().unwrap();
}
