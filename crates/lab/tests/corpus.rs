//! Every fuzz body keeps its promises over the checked-in corpus and over seeded mutations
//! of it, and corpus, targets and bodies agree.

use std::collections::BTreeSet;
use std::path::PathBuf;

use lab::fuzz::{self, Mutator};

/// Enough to catch what is near the surface in well under a second per body, unless
/// `ORRERY_MUTATIONS` gives another number; `cargo xtask fuzz` looks deeper.
const MUTATIONS: u64 = 5_000;
/// Used unless `ORRERY_SEED` gives another.
const SEED: u64 = 0x0DDB_1A5E;

fn fuzz_folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz"))
}

fn number(name: &str, otherwise: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a number")),
        Err(_) => otherwise,
    }
}

/// Names in a folder of `fuzz/`, without their extension.
fn names_in(folder: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(fuzz_folder().join(folder)).expect("the folder is checked in");
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    paths.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect()
}

#[test]
fn bodies_keep_their_promises() {
    let (seed, mutations) = (number("ORRERY_SEED", SEED), number("ORRERY_MUTATIONS", MUTATIONS));
    for (name, body) in fuzz::BODIES {
        println!(
            "{name}: seed {seed}; repeat with ORRERY_SEED={seed} cargo test -p lab --test corpus"
        );
        let corpus = fuzz::read_corpus(&fuzz_folder().join("corpus").join(name)).unwrap();
        assert!(!corpus.is_empty(), "{name} has no corpus");
        let mut mutator = Mutator::new(corpus, seed);
        if let Err(crash) = fuzz::run(*body, &mut mutator, |runs| runs < mutations) {
            panic!("{name}, seed {seed}: {crash}");
        }
    }
}

#[test]
fn every_body_has_a_corpus_and_a_target() {
    let bodies: BTreeSet<String> =
        fuzz::BODIES.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(bodies.len(), fuzz::BODIES.len(), "two bodies share a name");
    assert_eq!(names_in("corpus"), bodies);
    assert_eq!(names_in("fuzz_targets"), bodies);
    let manifest = std::fs::read_to_string(fuzz_folder().join("Cargo.toml")).unwrap();
    for name in &bodies {
        let path = format!("path = \"fuzz_targets/{name}.rs\"");
        assert!(manifest.contains(&path), "fuzz/Cargo.toml does not list {name}");
    }
}

/// Old cursors would be refused at once, and the fuzzer would test nothing.
#[test]
fn cursors_in_the_corpus_are_of_today() {
    let folder = fuzz_folder().join("corpus/query_cursor");
    let cursors = fuzz::queries::cursors();
    if std::env::var_os("UPDATE_GOLDENFILES").is_some() {
        for (number, cursor) in cursors.iter().enumerate() {
            std::fs::write(folder.join(format!("page{number:02}")), cursor).unwrap();
        }
    }
    let found = fuzz::read_corpus(&folder).unwrap();
    assert_eq!(found, cursors, "record them with UPDATE_GOLDENFILES=1");
}
