use std::sync::Arc;

use runtime::SeededRandom;

use super::*;

fn opened(path: &str, inode: u64, created: bool) -> Event {
    let folder = path.is_empty();
    Event::Opened { path: path.to_owned(), inode, created, emptied: false, folder }
}

fn written(inode: u64, position: u64, bytes: &[u8]) -> Event {
    Event::Written { inode, position, bytes: Arc::from(bytes) }
}

/// Enough for everything that can be left to be left at times.
const CUTS: u64 = 100;

/// What a file holds after each of many cuts; `None` where it is not there.
fn cuts(events: &[Event], name: &str) -> BTreeMap<Option<Vec<u8>>, u64> {
    let mut disk = Disk::default();
    events.iter().for_each(|event| disk.apply(event).unwrap());
    let (random, mut found) = (SeededRandom::new(7), BTreeMap::new());
    for _ in 0..CUTS {
        let folder = tempfile::tempdir().unwrap();
        disk.cut(&random, folder.path()).unwrap();
        let content = std::fs::read(folder.path().join(name)).ok();
        *found.entry(content).or_default() += 1;
    }
    found
}

fn synced(inode: u64, number: u64) -> [Event; 2] {
    [Event::SyncBegun { inode, number }, Event::SyncEnded { number }]
}

#[test]
fn what_is_synced_is_there_and_its_name_with_its_folder() {
    let mut events = vec![opened("", 1, false), opened("a", 2, true), written(2, 0, b"old")];
    events.extend(synced(2, 1));
    let found = cuts(&events, "a");
    assert!(found.contains_key(&None), "the folder was not synced: {found:?}");
    assert!(found.contains_key(&Some(b"old".to_vec())), "{found:?}");
    assert_eq!(found.len(), 2, "a file that was synced is whole: {found:?}");
    events.extend(synced(1, 2));
    assert_eq!(cuts(&events, "a"), BTreeMap::from([(Some(b"old".to_vec()), CUTS)]));
}

#[test]
fn a_sync_is_about_what_came_before_it_began() {
    let mut events = vec![opened("", 1, false), opened("a", 2, true)];
    events.extend(synced(1, 1));
    events.push(Event::SyncBegun { inode: 2, number: 2 });
    events.push(written(2, 0, b"late"));
    events.push(Event::SyncEnded { number: 2 });
    let found = cuts(&events, "a");
    assert!(found.contains_key(&Some(b"late".to_vec())), "{found:?}");
    assert!(found.contains_key(&Some(Vec::new())), "{found:?}");
}

#[test]
fn pages_come_in_any_order_and_zeros_for_those_that_did_not() {
    let mut events = vec![opened("", 1, false), opened("a", 2, true)];
    events.extend(synced(1, 1));
    events.push(written(2, 0, &[1; 4_096]));
    events.push(written(2, 4_096, &[2; 4_096]));
    let found = cuts(&events, "a");
    let pages = |first: u8, second: u8| Some([[first; 4_096], [second; 4_096]].concat());
    for expected in [pages(1, 2), pages(1, 0), pages(0, 2), pages(0, 0), Some(Vec::new())] {
        assert!(found.contains_key(&expected), "{:?}", expected.map(|bytes| bytes.len()));
    }
}

#[test]
fn a_rename_shows_as_a_whole_also_one_that_was_not_recorded() {
    let mut events = vec![opened("", 1, false), opened("a", 2, true), written(2, 0, b"old")];
    events.extend(synced(2, 1).into_iter().chain(synced(1, 2)));
    events.extend([opened("b", 3, true), written(3, 0, b"new")]);
    events.extend(synced(3, 3));
    let renamed = Event::Renamed { from: "b".to_owned(), to: "a".to_owned() };
    for rename in [renamed, opened("a", 3, false)] {
        let found = cuts(&[events.clone(), vec![rename]].concat(), "a");
        let both = [Some(b"new".to_vec()), Some(b"old".to_vec())];
        assert!(found.keys().eq(both.iter()), "{found:?}");
    }
}
