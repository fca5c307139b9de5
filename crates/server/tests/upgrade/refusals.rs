//! What cannot be opened or carried over is left as it is, to the byte.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::client::connect;
use crate::fixture::{Fixture, replay, unpack};
use crate::program::{Program, command, run, text};
use crate::{orrery, said, upgrade};

/// Every file with its bytes, and every folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
            found.insert(path, None);
        } else {
            let bytes = fs::read(&path).unwrap();
            found.insert(path, Some(bytes));
        }
    }
    found
}

/// Runs the program, which must refuse, say this and change nothing.
fn refused(folder: &Path, arguments: &[&str], words: &[&str]) {
    let before = files(folder);
    let output = orrery(folder, arguments);
    let said = text(&output.stderr);
    assert!(!output.status.success(), "{arguments:?}: {said}");
    for word in words {
        assert!(said.contains(word), "{arguments:?}: {word:?} is not in {said:?}");
    }
    assert!(files(folder) == before, "{arguments:?} changed something");
}

const OPENING: [&[&str]; 4] = [
    &["--data", "data", "--listen", "127.0.0.1:0"],
    &["check", "--data", "data"],
    &["compact", "--data", "data"],
    &["backup", "copy", "--data", "data"],
];

#[test]
fn an_older_folder_is_refused_and_the_command_is_named() {
    let versions = [
        (Fixture::V1, "contents version 1, and this build reads 3"),
        (Fixture::V1Killed, "contents version 1, and this build reads 3"),
        (Fixture::V2, "contents version 2, and this build reads 3"),
        (Fixture::V2Killed, "contents version 2, and this build reads 3"),
    ];
    for (fixture, version) in versions {
        let folder = unpack(fixture);
        for arguments in OPENING {
            let words = [version, "`orrery upgrade data`"];
            refused(folder.path(), arguments, &words);
        }
    }
}

/// Writes a `FORMAT` that is intact and has something else in it.
fn change_format(store: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let path = store.join("FORMAT");
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(bytes.len() - 4);
    change(&mut bytes);
    let mut crc = flate2::Crc::new();
    crc.update(&bytes);
    bytes.extend_from_slice(&crc.sum().to_le_bytes());
    fs::write(&path, bytes).unwrap();
}

#[test]
fn unknown_versions_are_refused() {
    // `ORRERYDB`, layout, length of the engine's name, `lsm-tree`, versions of journal, tree and
    // contents.
    type Change = fn(&mut Vec<u8>);
    let changes: [(Change, &str); 6] = [
        (|bytes| bytes[8] = 4, "folder layout 4, and this build reads 3"),
        (|bytes| bytes[8] = 2, "folder layout 2, and this build reads 3"),
        (
            |bytes| bytes[14] = b'L',
            "engine Lsm-tree 3 with journals 1, and this build reads lsm-tree 3",
        ),
        (
            |bytes| bytes[22] = 2,
            "engine lsm-tree 3 with journals 2, and this build reads lsm-tree 3",
        ),
        (
            |bytes| bytes[26] = 4,
            "engine lsm-tree 4 with journals 1, and this build reads lsm-tree 3",
        ),
        (|bytes| bytes[30] = 4, "contents version 4, and this build reads 3"),
    ];
    for (change, words) in changes {
        let folder = unpack(Fixture::V2);
        change_format(&folder.path().join("data/store"), change);
        for arguments in OPENING.into_iter().chain([["upgrade", "data"].as_slice()]) {
            refused(folder.path(), arguments, &[words, "or a newer one"]);
        }
    }
}

#[test]
fn a_folder_that_is_not_one_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    refused(folder.path(), &["upgrade", "data"], &["data is no data folder"]);
    fs::create_dir(folder.path().join("data")).unwrap();
    fs::write(folder.path().join("data/diary"), "mine").unwrap();
    refused(folder.path(), &["upgrade", "data"], &["data is no data folder"]);
}

#[test]
fn a_folder_in_use_is_left_alone() {
    let folder = unpack(Fixture::V2);
    assert!(upgrade(folder.path()).status.success());
    let server = Program::start(folder.path(), &["--data", "data"]);
    let output = upgrade(folder.path());
    assert!(!output.status.success());
    let in_use = format!("is in use by process {}", server.id());
    assert!(said(&output).contains(&in_use), "{}", said(&output));
    replay(&mut connect(server.address()), Fixture::V2);
}

#[test]
fn a_damaged_store_is_left_alone() {
    for (fixture, file) in [(Fixture::V1Killed, "0.jnl"), (Fixture::V1, "keyspaces/0/current")] {
        let folder = unpack(fixture);
        let path = folder.path().join("data/store").join(file);
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.iter().rposition(|byte| *byte != 0).unwrap() / 2;
        bytes[middle] ^= 0x10;
        fs::write(&path, bytes).unwrap();
        refused(folder.path(), &["upgrade", "data"], &["is damaged", "It was left as found"]);
    }
}

#[test]
fn without_space_nothing_begins() {
    let folder = unpack(Fixture::V1);
    let before = files(folder.path());
    let mut command = command(folder.path());
    command.env("ORRERY_TEST_DISK_BYTES_MAX", "20000000").args(["upgrade", "data"]);
    let output = run(&mut command);
    assert!(!output.status.success());
    let said = said(&output);
    assert!(said.contains("not enough space: the new store takes up to 33."), "{said}");
    assert!(files(folder.path()) == before);
}

/// What was made of another state of the old store is not gone on with.
#[test]
fn what_another_upgrade_left_is_not_used() {
    let folder = unpack(Fixture::V1);
    let mut command = command(folder.path());
    command.env("ORRERY_TEST_UPGRADE_STEPS_MAX", "9").env("TMPDIR", folder.path());
    command.args(["upgrade", "data"]);
    assert!(!run(&mut command).status.success());
    let data = folder.path().join("data");
    let is_new = |path: &PathBuf| path.to_string_lossy().contains("store.upgrade-");
    let left: Vec<_> = fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().path()).collect();
    let left = left.into_iter().find(is_new).unwrap();
    fs::rename(left, data.join("store.upgrade-1")).unwrap();
    let done = upgrade(folder.path());
    assert!(done.status.success(), "{}", said(&done));
    assert!(!said(&done).contains("interrupted"), "{}", said(&done));
    assert!(!data.join("store.upgrade-1").exists());
}

/// Between two renames, where the system cannot exchange two folders at once.
#[test]
fn no_server_starts_on_a_folder_without_its_store() {
    let folder = unpack(Fixture::V1);
    let mut stopped = command(folder.path());
    stopped.env("ORRERY_TEST_UPGRADE_STEPS_MAX", "1000").args(["upgrade", "data"]);
    assert!(run(&mut stopped).status.success());
    let data = folder.path().join("data");
    fs::rename(data.join("store"), data.join("store.upgrade-77")).unwrap();
    refused(
        folder.path(),
        OPENING[0],
        &["was interrupted in its last step", "`orrery upgrade data`"],
    );
    let done = upgrade(folder.path());
    assert!(done.status.success(), "{}", said(&done));
    crate::assert_checked(folder.path());
}

#[test]
fn a_backup_of_the_version_before_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("copy")).unwrap();
    let mut head = b"ORRERYBK\x01\0\0\0".to_vec();
    let mut crc = flate2::Crc::new();
    crc.update(&head);
    head.extend_from_slice(&crc.sum().to_le_bytes());
    fs::write(folder.path().join("copy/rows"), head).unwrap();
    let words = ["contents version 1, and this build reads 3", "then upgrade the data folder"];
    refused(folder.path(), &["restore", "copy", "--data", "data"], &words);
}
