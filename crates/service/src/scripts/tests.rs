//! Scripts and other writers of the same items.

use std::sync::atomic::{AtomicUsize, Ordering};

use model::limits::Limits;
use model::name::ItemId;
use model::system_properties::SystemProperties;
use partition::Operation;
use runtime::Runtime;
use testkit::wait::block_on;

use super::*;
use crate::catalogue::kind::Link;
use crate::pipeline::authorise::Principal;
use crate::request::{InContainer, ItemAction, ItemOperation, Request, ResourceAction};

fn service() -> Arc<Service> {
    let store = storage::memory::create();
    let service = Service::open(store, Runtime::simulated(1), Limits::default()).unwrap();
    for (parent, kind, body) in [
        ("", Kind::Database, r#"{"id":"d"}"#),
        ("dbs/d", Kind::Container, r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#),
    ] {
        let (parent, body) =
            (Link::parse(parent).unwrap(), model::json::parse(body.as_bytes()).unwrap());
        let create =
            ResourceAction::Create { parent, kind, body, throughput: None, offer_type: None };
        block_on(service.execute(Request::new(Principal::Account, create))).unwrap();
    }
    Arc::new(service)
}

fn upsert(service: &Service, body: &str) {
    let operation = ItemOperation::Upsert { body: body.to_owned().into(), if_match: None };
    let action = InContainer::new(container(), ItemAction::new(None, operation));
    block_on(service.execute(Request::new(Principal::Account, action))).unwrap();
}

fn container() -> Link {
    Link::parse("dbs/d/colls/c").unwrap()
}

fn text(service: &Service, id: &str) -> Option<String> {
    let (key, id) = (PartitionKey::new(["x"]), ItemId::parse(id).unwrap());
    let read = ItemAction::new(Some(key), ItemOperation::Read { id, if_none_match: None });
    let read = InContainer::new(container(), read);
    let read = block_on(service.execute(Request::new(Principal::Account, read))).ok()?;
    Some(String::from_utf8(read.reply.text.unwrap().to_vec()).unwrap())
}

/// Replaces the item `1` and creates the item `2`, while `rival` writes on its run of that
/// number. Returns what became of it, and the number of runs.
fn transact(
    service: &Arc<Service>,
    rival: impl Fn(usize) -> Option<&'static str> + Send + Sync + 'static,
) -> (Result<transaction::Committed<()>, ServiceError>, usize) {
    let entry = ResolvedContainer::from(service.container(&container()).unwrap());
    let key = PartitionKey::new(["x"]);
    let position = service.locate(&entry, Some(&key), None).unwrap();
    let system = Arc::new(SystemProperties::indexed());
    let place = Place { entry: &entry, key, position, session: None, system };
    let (runs, other) = (Arc::new(AtomicUsize::new(0)), Arc::clone(service));
    let counted = Arc::clone(&runs);
    let work = move |mut host: ScriptHost| {
        let (id, run) = (ItemId::parse("1").unwrap(), counted.fetch_add(1, Ordering::Relaxed));
        let document = host.document(r#"{"id":"1","pk":"x","by":"script"}"#).unwrap();
        host.perform(Operation::Replace { id, document, if_match: None }).unwrap();
        let document = host.document(r#"{"id":"2","pk":"x"}"#).unwrap();
        host.perform(Operation::Create { document }).unwrap();
        if let Some(body) = rival(run) {
            upsert(&other, body);
        }
        Ran { host, value: Ok(()), ticks: 0 }
    };
    let mut meta = ResponseMeta::default();
    let done = block_on(service.transact(&place, Arc::new(work), &mut meta));
    (done, runs.load(Ordering::Relaxed))
}

const SAME: &str = r#"{"id":"1","pk":"x","by":"rival"}"#;
const OTHER: &str = r#"{"id":"1","pk":"y"}"#;

#[test]
fn a_conflict_is_tried_again_and_nothing_is_lost() {
    let service = service();
    upsert(&service, SAME);
    let (done, runs) = transact(&service, |run| (run < 2).then_some(SAME));
    assert!(done.is_ok());
    assert_eq!(runs, 3);
    assert_eq!(text(&service, "1").unwrap(), r#"{"id":"1","pk":"x","by":"script"}"#);
}

#[test]
fn a_script_that_always_conflicts_changes_nothing() {
    let service = service();
    upsert(&service, SAME);
    let (done, runs) = transact(&service, |_| Some(SAME));
    assert!(matches!(done, Err(ServiceError::ScriptConflict)));
    assert_eq!(runs, 4);
    assert_eq!(text(&service, "1").unwrap(), SAME);
    assert_eq!(text(&service, "2"), None);
}

/// A write under another key takes the position that the script was to have.
#[test]
fn other_keys_do_not_conflict_but_change_the_etag() {
    let service = service();
    upsert(&service, SAME);
    let (done, runs) = transact(&service, |_| Some(OTHER));
    let done = done.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(runs, 1);
    let etags: Vec<(&str, &str)> =
        done.stamps.iter().map(|(seen, real)| (seen.etag.as_str(), real.etag.as_str())).collect();
    assert_eq!(
        etags,
        [
            (
                "\"00000003-0000-0000-0000-5e0be1000000\"",
                "\"00000004-0000-0000-0000-5e0be1000000\""
            ),
            (
                "\"00000003-0000-0001-0000-5e0be1000000\"",
                "\"00000004-0000-0001-0000-5e0be1000000\""
            ),
        ]
    );
}
