//! The answer waits for the disk, and many answers share one sync (group commit).

use std::path::Path;

use lab::crash::{self, Writer};
use service::{ListItems, Principal, Scope, Service};
use storage::Durability;
use storage::local::LocalConfig;

/// The container with five partitions.
const FIVE: usize = 1;

fn open(folder: &Path) -> Service {
    crash::open_or_create(folder, LocalConfig::default()).unwrap()
}

#[test]
fn a_lone_writer_waits_for_a_sync_of_its_own_every_time() {
    let folder = tempfile::tempdir().unwrap();
    let service = open(folder.path());
    let mut writer = Writer::new(1, 0, 1);
    let (mut acknowledged, before) = (0, service.store().counters());
    for _ in 0..60 {
        let syncs = service.store().counters().syncs;
        if writer.draw().perform(&service).unwrap() {
            acknowledged += 1;
            assert!(service.store().counters().syncs > syncs, "answered without a sync");
        }
    }
    let after = service.store().counters();
    assert!(after.syncs - before.syncs >= acknowledged);
    println!("{acknowledged} acknowledged, {} syncs", after.syncs - before.syncs);
}

#[test]
fn many_writers_share_syncs() {
    const WRITERS: usize = 32;
    const EACH: usize = 20;
    let folder = tempfile::tempdir().unwrap();
    let service = open(folder.path());
    let before = service.store().counters();
    std::thread::scope(|scope| {
        for number in 0..WRITERS {
            let service = &service;
            scope.spawn(move || {
                let mut writer = Writer::new(1, number, 1);
                for _ in 0..EACH {
                    let _done_or_refused = writer.draw().perform(service).unwrap();
                }
            });
        }
    });
    let after = service.store().counters();
    let (batches, syncs) =
        (after.batches_durable - before.batches_durable, after.syncs - before.syncs);
    println!("{WRITERS} writers: {batches} batches, {syncs} syncs");
    assert!(syncs <= batches, "no sync is superfluous");
    assert!(service.operator(Principal::Account).check(|_| {}).unwrap().is_clean());
}

#[test]
fn a_hot_item_counts_every_increment_of_64_writers() {
    const WRITERS: u64 = 64;
    const EACH: u64 = 25;
    let folder = tempfile::tempdir().unwrap();
    let service = open(folder.path());
    let before = service.store().counters();
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                for _ in 0..EACH {
                    crash::execute(&service, FIVE, crash::hot_increment()).unwrap();
                }
            });
        }
    });
    let syncs = service.store().counters().syncs - before.syncs;
    let total = WRITERS * EACH;
    println!("{total} increments in {syncs} syncs: {} per sync", total / syncs.max(1));
    service.store().close().unwrap();
    drop(service);
    assert_eq!(hot_value(&open(folder.path())), total);
}

#[test]
fn the_relaxed_mode_does_not_wait() {
    let folder = tempfile::tempdir().unwrap();
    let config = LocalConfig { durability: Durability::Os, ..LocalConfig::default() };
    let service = crash::open_or_create(folder.path(), config).unwrap();
    for _ in 0..10 {
        crash::execute(&service, FIVE, crash::hot_increment()).unwrap();
    }
    assert_eq!(service.store().counters().syncs, 0);
    assert_eq!(hot_value(&service), 10);
}

fn hot_value(service: &Service) -> u64 {
    let scope = Scope::default();
    let list = ListItems { scope, session: None, after: None, items_max: 10, system: None };
    let bodies = crash::execute(service, FIVE, list).unwrap().reply.bodies;
    let [hot] = bodies.as_slice() else { panic!("one item") };
    let hot = model::json::parse(hot).unwrap();
    hot.get("version").unwrap().as_number().unwrap().to_string().parse().unwrap()
}
