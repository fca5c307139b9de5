//! One byte that is not as it was written, in every kind of file and of row.

use std::path::{Path, PathBuf};

use crate::reader::bytes::Damage;
use crate::reader::store::{self, Rows, Store};
use crate::reader::{backup, interpret, tables};
use crate::world::World;

/// Bytes of a file that are changed, spread over it.
const CHANGES: usize = 40;

/// A folder with tables in two levels and a journal.
fn folder() -> World {
    let mut world = World::start();
    world.write_everything(0);
    world.stop();
    world.compact();
    world.resume();
    world.write_everything(1);
    world.stop();
    world.resume();
    world.write_accounts(2);
    world.kill();
    world
}

fn read(world: &World) -> Result<Store, Damage> {
    store::read(&world.store())
}

/// Positions in a file of `len` bytes: the first, the last, and some between.
fn places(len: usize) -> impl Iterator<Item = usize> {
    let count = CHANGES.min(len);
    (0..count).map(move |number| number * (len - 1) / (count.max(2) - 1))
}

fn with_change(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut changed = bytes.to_vec();
    changed[at] ^= 1 << (at % 8);
    changed
}

/// Changes bytes of a file one at a time; each must be noticed.
fn change_each(world: &World, path: &Path, len: usize) -> usize {
    let whole = std::fs::read(path).unwrap();
    let mut changes = 0;
    for at in places(len) {
        std::fs::write(path, with_change(&whole, at)).unwrap();
        assert!(read(world).is_err(), "byte {at} of {}", path.display());
        changes += 1;
    }
    std::fs::write(path, &whole).unwrap();
    changes
}

fn len(path: &Path) -> usize {
    std::fs::metadata(path).unwrap().len().try_into().unwrap()
}

#[test]
fn no_byte_of_a_file_changes_unnoticed() {
    let world = folder();
    let found = read(&world).unwrap();
    let tree = world.store().join("tree");
    let current = std::fs::read(tree.join("current")).unwrap();
    let list = u64::from_le_bytes(*current.first_chunk().unwrap());
    let mut files: Vec<(PathBuf, usize)> =
        [world.store().join("FORMAT"), tree.join("current"), tree.join(format!("v{list}"))]
            .into_iter()
            .map(|path| (path.clone(), len(&path)))
            .collect();
    let tables = found.runs.iter().flatten();
    files.extend(tables.map(|table| {
        let path = tree.join("tables").join(table.id.to_string());
        (path.clone(), len(&path))
    }));
    // What follows the last record of a segment means nothing.
    let segments = found.segment_ends.iter();
    files.extend(
        segments
            .map(|(number, end)| (world.store().join("journal").join(number.to_string()), *end)),
    );
    assert!(files.len() >= 6, "{files:?}");
    let changes: usize = files.iter().map(|(path, len)| change_each(&world, path, *len)).sum();
    println!("{changes} changes in {} files, all noticed", files.len());
    assert_eq!(read(&world).unwrap().rows, found.rows, "the folder is as it was");
}

/// Checksums inside a table find what the one of the whole file would.
#[test]
fn no_byte_of_a_table_changes_unnoticed_without_its_checksum() {
    let world = folder();
    let found = read(&world).unwrap();
    let mut changes = 0;
    for table in found.runs.iter().flatten() {
        let path = world.store().join("tree/tables").join(table.id.to_string());
        let whole = std::fs::read(path).unwrap();
        assert!(tables::read_table(table.id, table.level, &whole).is_ok());
        // The end has the most different things: properties, table of contents, trailer.
        let ends = (whole.len() - 1_500..whole.len()).step_by(7);
        for at in places(whole.len()).chain(ends) {
            let changed = with_change(&whole, at);
            let read = tables::read_table(table.id, table.level, &changed);
            assert!(read.is_err(), "byte {at} of table {}", table.id);
            changes += 1;
        }
    }
    println!("{changes} changes in {} runs, all noticed", found.runs.len());
}

#[test]
fn no_byte_of_a_backup_changes_unnoticed() {
    let mut world = World::start();
    world.write_accounts(0);
    world.stop();
    let folder = world.back_up();
    let path = folder.join("rows");
    let whole = std::fs::read(&path).unwrap();
    assert!(backup::read(&folder).is_ok());
    // All of the header and of the end, and some between.
    let ends = (0..20).chain(whole.len() - 45..whole.len());
    for at in places(whole.len()).chain(ends) {
        std::fs::write(&path, with_change(&whole, at)).unwrap();
        assert!(backup::read(&folder).is_err(), "byte {at}");
    }
    std::fs::write(&path, whole.get(..whole.len() - 1).unwrap()).unwrap();
    assert!(backup::read(&folder).is_err(), "the last byte is missing");
}

/// One slot that cannot be read is what it is made for; two are not.
#[test]
fn a_watermark_needs_one_slot() {
    let world = folder();
    let path = world.store().join("WITNESS");
    let whole = std::fs::read(&path).unwrap();
    let found = read(&world).unwrap();
    assert_eq!(found.watermark.valid_slots, 2);
    for at in 0..20 {
        let one = with_change(&whole, at);
        std::fs::write(&path, &one).unwrap();
        let again = read(&world).unwrap();
        assert_eq!((again.watermark.valid_slots, &again.rows), (1, &found.rows), "byte {at}");
        std::fs::write(&path, with_change(&one, 4_096 + at)).unwrap();
        assert!(read(&world).is_err(), "byte {at} of both slots");
    }
}

/// Without the last acknowledged commit, or one in the middle, the folder is refused.
#[test]
fn a_commit_that_is_missing_is_missed() {
    let world = folder();
    let found = read(&world).unwrap();
    let (number, end) = found.segment_ends.last_key_value().unwrap();
    let path = world.store().join("journal").join(number.to_string());
    let whole = std::fs::read(&path).unwrap();
    for cut in [0, *end / 2, *end - 1] {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let missing = read(&world).unwrap_err();
        assert!(missing.0.contains("was acknowledged"), "{missing}");
    }
}

/// The groups of a bucket, by their tags, and whether their rows have values.
const GROUPS: [(u8, bool); 12] = [
    (0x01, true),
    (0x02, true),
    (0x10, true),
    (0x20, true),
    (0x21, true),
    (0x30, false),
    (0x40, true),
    (0x50, false),
    (0x60, true),
    (0x61, true),
    (0x62, false),
    (0x63, true),
];

#[test]
fn no_row_is_lost_or_changed_unnoticed() {
    let world = folder();
    let rows = read(&world).unwrap().rows;
    interpret(&rows).unwrap();
    for (tag, has_value) in GROUPS {
        // The last one of a container: the system's has not all groups.
        let is_of_group = |key: &&Vec<u8>| key.get(8) == Some(&tag) && key.get(3) != Some(&0);
        let key = rows.keys().rfind(is_of_group).unwrap_or_else(|| panic!("group {tag:02x}"));
        let without: Rows = rows.iter().filter(|(own, _)| *own != key).map(clone).collect();
        assert!(interpret(&without).is_err(), "a row of group {tag:02x} is missing");
        let value = &rows[key];
        assert_eq!(!value.is_empty(), has_value, "group {tag:02x}");
        for at in places(value.len()) {
            let mut changed = rows.clone();
            changed.insert(key.clone(), with_change(value, at));
            assert!(interpret(&changed).is_err(), "byte {at} of a row of group {tag:02x}");
        }
        let mut moved = without;
        moved.insert(with_change(key, key.len() - 1), value.clone());
        assert!(interpret(&moved).is_err(), "the key of a row of group {tag:02x}");
    }
}

fn clone((key, value): (&Vec<u8>, &Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
    (key.clone(), value.clone())
}
