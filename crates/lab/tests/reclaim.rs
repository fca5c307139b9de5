//! A dropped container gives its space back, and nothing else is lost.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]
#![allow(clippy::print_stdout, reason = "figures of a test")]

use bytes::Bytes;
use lab::crash;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use runtime::{Random, SeededRandom};
use service::{
    Conditions, ItemAction, ItemOperation, Link, Principal, Request, ResourceAction, Service,
};
use storage::Durability;
use storage::local::LocalConfig;
use testkit::files::bytes_in;
use testkit::wait::block_on;

const SEED: u64 = 20_261_116;

/// Which of [`crash::CONTAINERS`] is dropped, and which stays.
const DROPPED: usize = 1;
const KEPT: usize = 0;

/// Items of the one and of the other, and how large each is.
const DROPPED_ITEMS: u64 = 1_500;
const KEPT_ITEMS: u64 = 50;
const ITEM_BYTES: usize = 16 << 10;
const KEYS: u64 = 40;

/// What lists of tables, filters and the catalogue may differ by.
const SLACK_BYTES: u64 = 256 << 10;

#[test]
fn a_dropped_container_gives_its_space_back() {
    println!("seed {SEED}");
    let quick = LocalConfig { durability: Durability::Os, ..LocalConfig::default() };
    let small = LocalConfig { memtable_bytes: 1 << 20, table_bytes: 1 << 20, ..quick.clone() };
    // Most of it in tables of its own, and most of it in tables with others.
    for config in [small, quick] {
        let without = bytes_after(&config, false);
        let with = bytes_after(&config, true);
        println!("{without} bytes when it never was, {with} when it was dropped");
        assert!(with < without + SLACK_BYTES, "{with} bytes, and {without} without it");
    }
}

/// Bytes of a folder with one filled container, where another was or was not filled
/// and dropped.
fn bytes_after(config: &LocalConfig, fills: bool) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let service = crash::open_or_create(folder.path(), config.clone()).unwrap();
    let random = SeededRandom::new(SEED);
    fill(&service, KEPT, KEPT_ITEMS, &random);
    let kept = read_all(&service);
    if fills {
        fill(&service, DROPPED, DROPPED_ITEMS, &random);
    }
    let filled = service.store().table_bytes().unwrap();
    drop_container(&service);
    let swept = block_on(service.maintenance().sweep()).unwrap();
    let reclaimed = block_on(service.maintenance().reclaim(swept.bytes)).unwrap();
    println!("{filled} bytes in tables, {swept:?}, rewritten: {reclaimed}");
    // What is much of the store goes with its files or by compaction, not key by key.
    assert!(if fills { reclaimed || swept.keys < DROPPED_ITEMS } else { swept.keys > 0 });
    let report = service.operator(Principal::Account).check(|_| {}).unwrap();
    assert!(report.is_clean(), "{report:?}");
    service.store().close().unwrap();
    drop(service);
    let bytes = bytes_in(folder.path());
    let service = crash::open_or_create(folder.path(), config.clone()).unwrap();
    assert!(read_all(&service) == kept, "what was not dropped is as it was");
    assert!(service.operator(Principal::Account).check(|_| {}).unwrap().is_clean());
    bytes
}

/// Text that hardly compresses.
fn fill(service: &Service, container: usize, items: u64, random: &dyn Random) {
    for number in 0..items {
        let words = (0..ITEM_BYTES / 16).map(|_| format!("{:016x}", random.next_u64()));
        let text: String = words.collect();
        let body = format!(r#"{{"id":"{number}","pk":"{}","text":"{text}"}}"#, number % KEYS);
        let create = ItemAction::new(None, ItemOperation::Create { body: body.into() });
        crash::execute(service, container, create).unwrap();
    }
}

fn drop_container(service: &Service) {
    let (name, _) = crash::CONTAINERS[DROPPED];
    let link = Link::parse(&format!("dbs/d/colls/{name}")).unwrap();
    let action = ResourceAction::Delete { link, conditions: Conditions::default() };
    block_on(service.execute(Request::new(Principal::Account, action))).unwrap();
}

fn read_all(service: &Service) -> Vec<Bytes> {
    let read = |number: u64| {
        let key = Some(PartitionKey::new([(number % KEYS).to_string().as_str()]));
        let id = ItemId::parse(&number.to_string()).unwrap();
        let read = ItemAction::new(key, ItemOperation::Read { id, if_none_match: None });
        crash::execute(service, KEPT, read).unwrap().reply.text.unwrap()
    };
    (0..KEPT_ITEMS).map(read).collect()
}
