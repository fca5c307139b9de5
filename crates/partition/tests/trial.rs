//! Transactions that are tried on a snapshot and then applied as one command.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[allow(dead_code, reason = "shared between tests, each uses a part")]
mod common {
    pub(crate) mod fixture;
}

use std::sync::Arc;

use bytes::Bytes;
use common::fixture::{self, Backend, Container, EPOCH_MILLIS, Home, dump};
use model::epk::Epk;
use model::limits::Limits;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use model::position::Timestamp;
use partition::{
    Command, CommandError, Document, EffectKind, EtagMatch, Operation, Outcome, Partition,
    PartitionConfig, PartitionError, Purpose, Reader, Snapshot, Trial,
};
use proptest::prelude::*;
use storage::CommitStatus;

struct World {
    home: Home,
    config: Arc<PartitionConfig>,
    partition: Partition,
}

impl World {
    fn new() -> World {
        let unique = vec![vec!["/email".to_owned()]];
        let container = Container { unique, ..Container::keyed("/pk") };
        let (home, config) = (Home::new(Backend::Memory), Arc::new(container.config(2)));
        let partition = Partition::open(Arc::clone(&config), Arc::clone(&home.store)).unwrap();
        World { home, config, partition }
    }

    fn position(&self) -> Epk {
        self.config.definition.partition_key().locate(&PartitionKey::new(["x"])).unwrap()
    }

    fn trial(&self) -> Trial {
        let view = self.home.store.view().unwrap();
        let snapshot =
            Snapshot::new(Reader::new(Arc::clone(&self.config)), view, self.partition.lsn());
        Trial::new(Arc::new(snapshot), self.position(), now()).unwrap()
    }

    fn apply(&mut self, operations: Vec<Operation>) -> Result<Outcome, CommandError> {
        let command = Command { position: self.position(), operations };
        let application = self.partition.apply_as(now(), &command, Purpose::Script);
        assert_eq!(application.ticket.wait(), CommitStatus::Durable);
        application.result
    }
}

fn now() -> Timestamp {
    Timestamp::from_millis(EPOCH_MILLIS)
}

fn id(text: &str) -> ItemId {
    ItemId::parse(text).unwrap()
}

fn document(id: &str, n: u32) -> Document {
    let body = format!(r#"{{"id":"{id}","pk":"x","email":"{id}","n":{n}}}"#);
    Document::parse(Bytes::from(body), &Limits::default()).unwrap()
}

fn create(id: &str) -> Operation {
    Operation::Create { document: document(id, 0) }
}

#[test]
fn a_trial_sees_its_own_writes_and_changes_nothing() {
    let world = World::new();
    let before = dump(world.home.store.as_ref());
    let mut trial = world.trial();
    let created = trial.perform(create("a")).unwrap();
    let again = trial.perform(create("a")).unwrap_err();
    assert!(matches!(again, PartitionError::Exists), "{again}");
    let read = Operation::Read { id: id("a"), if_none_match: None };
    assert_eq!(trial.perform(read.clone()).unwrap().stamp, created.stamp);
    let ordinal = created.stamp.as_ref().unwrap().rid.ordinal();
    assert_eq!(trial.id_of(ordinal).unwrap().as_deref(), Some("a"));
    let etag = created.etag().unwrap().to_string();
    let stale = Operation::Delete { id: id("a"), if_match: Some(EtagMatch("other".to_owned())) };
    assert!(matches!(trial.perform(stale), Err(PartitionError::Precondition)));
    let delete = Operation::Delete { id: id("a"), if_match: Some(EtagMatch(etag)) };
    assert_eq!(trial.perform(delete).unwrap().kind, EffectKind::Deleted);
    assert!(matches!(trial.perform(read), Err(PartitionError::NotFound)));
    assert_eq!(trial.id_of(ordinal).unwrap(), None);
    assert_eq!(trial.finish().operations.len(), 2);
    assert_eq!(dump(world.home.store.as_ref()), before);
}

#[test]
fn unique_values_are_checked_on_trial() {
    let world = World::new();
    let mut trial = world.trial();
    let person = |id: &str| {
        let body = format!(r#"{{"id":"{id}","pk":"x","email":"ada@example.org"}}"#);
        let document = Document::parse(Bytes::from(body), &Limits::default()).unwrap();
        Operation::Create { document }
    };
    trial.perform(person("1")).unwrap();
    assert!(matches!(trial.perform(person("2")), Err(PartitionError::UniqueKey)));
    trial.perform(Operation::Delete { id: id("1"), if_match: None }).unwrap();
    trial.perform(person("2")).unwrap();
}

#[test]
fn many_operations_are_one_commit() {
    let mut world = World::new();
    let mut trial = world.trial();
    for n in 0..1_000 {
        trial.perform(create(&n.to_string())).unwrap();
    }
    let tried = trial.finish();
    let outcome = world.apply(tried.operations).unwrap();
    assert_eq!((outcome.lsn.get(), outcome.effects.len()), (1, 1_000));
    let stamps: Vec<_> = outcome.effects.iter().map(|effect| effect.stamp.clone()).collect();
    assert_eq!(stamps, tried.stamps);
    assert!(outcome.effects.iter().all(|effect| effect.text.is_none()));
    fixture::assert_clean(&world.config, world.home.store.as_ref());
}

/// Each kind of write, after someone else wrote the same item.
#[test]
fn a_version_that_changed_meanwhile_refuses_everything() {
    let replace =
        Operation::Replace { id: id("old"), document: document("old", 1), if_match: None };
    let upsert = Operation::Upsert { document: document("old", 1), if_match: None };
    let upsert_new = Operation::Upsert { document: document("new", 1), if_match: None };
    let rename = Operation::Replace { id: id("old"), document: document("new", 1), if_match: None };
    let delete = Operation::Delete { id: id("old"), if_match: None };
    let touch = Operation::Upsert { document: document("old", 9), if_match: None };
    for (scripted, other) in [
        (replace, touch.clone()),
        (upsert, touch.clone()),
        (delete.clone(), touch),
        (create("new"), create("new")),
        (upsert_new, create("new")),
        (rename.clone(), create("new")),
        (rename, delete),
    ] {
        let mut world = World::new();
        world.apply(vec![create("old")]).unwrap();
        let mut trial = world.trial();
        trial.perform(create("first")).unwrap();
        trial.perform(scripted.clone()).unwrap();
        world.apply(vec![other]).unwrap();
        let before = dump(world.home.store.as_ref());
        let error = world.apply(trial.finish().operations).unwrap_err();
        assert_eq!(error.at, 1, "{scripted:?}");
        assert_eq!(dump(world.home.store.as_ref()), before, "{scripted:?}");
    }
}

fn operation() -> impl Strategy<Value = Operation> {
    let name = || prop_oneof![Just("a"), Just("b"), Just("c")];
    let of = |n: u32, (first, second): (&'static str, &'static str)| match n % 4 {
        0 => create(first),
        1 => Operation::Upsert { document: document(first, n), if_match: None },
        2 => Operation::Replace { id: id(first), document: document(second, n), if_match: None },
        _ => Operation::Delete { id: id(first), if_match: None },
    };
    (any::<u32>(), (name(), name())).prop_map(move |(n, names)| of(n, names))
}

proptest! {
    /// What a trial shows is what the command does, and items come out as if each operation
    /// had been applied by itself.
    #[test]
    fn the_command_repeats_the_trial(
        before in prop::collection::vec(operation(), 0..6),
        scripted in prop::collection::vec(operation(), 1..12),
    ) {
        let (mut world, mut reference) = (World::new(), World::new());
        for operation in before {
            let _ = world.apply(vec![operation.clone()]);
            let _ = reference.apply(vec![operation]);
        }
        let mut trial = world.trial();
        for operation in scripted {
            let tried = trial.perform(operation.clone());
            let done = reference.apply(vec![operation]);
            prop_assert_eq!(tried.is_ok(), done.is_ok());
            if let (Ok(tried), Ok(done)) = (tried, done) {
                prop_assert_eq!(tried.kind, done.effects[0].kind);
                prop_assert_eq!(tried.work, done.effects[0].work);
            }
        }
        let tried = trial.finish();
        if !tried.operations.is_empty() {
            let outcome = world.apply(tried.operations).unwrap();
            let stamps: Vec<_> = outcome.effects.into_iter().map(|effect| effect.stamp).collect();
            prop_assert_eq!(stamps, tried.stamps);
        }
        fixture::assert_clean(&world.config, world.home.store.as_ref());
        prop_assert_eq!(texts(&world), texts(&reference));
    }
}

fn texts(world: &World) -> Vec<Bytes> {
    let (reader, view) = (Reader::new(Arc::clone(&world.config)), world.home.store.view().unwrap());
    let everything = model::epk::EpkRange::full();
    let page = reader.list(view.as_ref(), now(), (&everything, None), None, (100, u64::MAX));
    page.unwrap().items.into_iter().map(|item| item.text).collect()
}
