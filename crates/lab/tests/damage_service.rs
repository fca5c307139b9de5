//! Every damaged copy of a service's folder shows all that was acknowledged, or is refused
//! with a clear message: no silent loss, no panic.
//!
//! `ORRERY_DAMAGES` sets how many damages are tried, `ORRERY_SEED` which ones.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use lab::crash::{self, Ending, Ledger, Line, Run, Writer};
use model::limits::Limits;
use runtime::{Random, Runtime, SeededRandom};
use service::{Principal, Service};
use storage::local::{self, LocalConfig};
use testkit::damage::{self, Harm};

/// Every kind of harm meets every kind of file; the storage tests try many more.
const DAMAGES_DEFAULT: u64 = 100;
const SEED_DEFAULT: u64 = 20_260_404;

/// Memtables so small that most of the data is in tables.
const SMALL_MEMTABLE: u64 = 48 << 10;

static PANICS: AtomicUsize = AtomicUsize::new(0);

#[test]
fn damage_is_repaired_or_refused() {
    let number = |name, default| {
        std::env::var(name).map_or(default, |text: String| text.parse().expect("a number"))
    };
    let (damages, seed) =
        (number("ORRERY_DAMAGES", DAMAGES_DEFAULT), number("ORRERY_SEED", SEED_DEFAULT));
    println!("{damages} damages; repeat with ORRERY_DAMAGES={damages} ORRERY_SEED={seed}");
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        before(info);
    }));
    let random = SeededRandom::new(seed);
    let originals = Original::all();
    let mut counts: BTreeMap<(&str, String), u64> = BTreeMap::new();
    let mut bad = Vec::new();
    for number in 0..damages {
        let original = &originals[usize::try_from(number).unwrap() % originals.len()];
        let (file, harm) = original.draw(&random);
        let verdict = original.judge_damaged(&file, harm);
        if let Verdict::Bad(what) = &verdict {
            let file = file.display();
            bad.push(format!("damage {number}, {}: {harm:?} of {file}: {what}", original.name));
        }
        *counts.entry((harm.name(), verdict.name().to_owned())).or_default() += 1;
    }
    for ((harm, verdict), count) in &counts {
        println!("{harm}: {count} {verdict}");
    }
    assert!(bad.is_empty(), "seed {seed}:\n{}", bad.join("\n"));
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Repaired,
    RefusedOnOpen,
    RefusedOnRead,
    RefusedByCheck,
    Bad(String),
}

impl Verdict {
    fn name(&self) -> &'static str {
        match self {
            Verdict::Repaired => "repaired",
            Verdict::RefusedOnOpen => "refused on opening",
            Verdict::RefusedOnRead => "refused on reading",
            Verdict::RefusedByCheck => "found by the check",
            Verdict::Bad(_) => "BAD",
        }
    }
}

/// A folder as its writers left it, and what they printed.
struct Original {
    name: &'static str,
    folder: tempfile::TempDir,
    ledger: Ledger,
    files: Vec<PathBuf>,
}

impl Original {
    fn all() -> Vec<Original> {
        let default = LocalConfig::default().memtable_bytes;
        let (clean, killed) = (Ending::Clean { operations: 400 }, Ending::Killed { lines: 800 });
        let originals = vec![
            Original::make("stopped cleanly", default, &[clean]),
            Original::make("killed", default, &[killed]),
            Original::make("tables, stopped", SMALL_MEMTABLE, &[clean, clean, clean]),
            Original::make("tables, killed", SMALL_MEMTABLE, &[clean, killed]),
        ];
        for original in &originals {
            assert_eq!(original.judge_copy(|_| {}), Verdict::Repaired, "{}", original.name);
        }
        originals
    }

    fn make(name: &'static str, memtable_bytes: u64, runs: &[Ending]) -> Original {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::default();
        for (number, &ending) in (1..).zip(runs) {
            let program = env!("CARGO_BIN_EXE_crash_writer");
            let (folder, seed) = (folder.path(), number);
            let run = Run { program, folder, number, seed, memtable_bytes, ending };
            run.perform(&mut ledger).unwrap();
        }
        let files = damage::list_files(folder.path()).unwrap();
        Original { name, folder, ledger, files }
    }

    fn draw(&self, random: &dyn Random) -> (PathBuf, Harm) {
        let at = usize::try_from(random.next_u64() % self.files.len() as u64).unwrap();
        let file = self.files[at].clone();
        let used = damage::used_len(&self.folder.path().join(&file)).unwrap();
        (file, Harm::draw(random, used))
    }

    fn judge_damaged(&self, file: &Path, harm: Harm) -> Verdict {
        let panics = PANICS.load(Ordering::SeqCst);
        let judged = std::panic::catch_unwind(|| {
            self.judge_copy(|folder| harm.inflict(&folder.join(file)).unwrap())
        });
        match judged {
            Ok(verdict) if PANICS.load(Ordering::SeqCst) == panics => verdict,
            Ok(_) | Err(_) => Verdict::Bad("a panic".to_owned()),
        }
    }

    fn judge_copy(&self, change: impl FnOnce(&Path)) -> Verdict {
        let folder = tempfile::tempdir().unwrap();
        damage::copy_folder(self.folder.path(), folder.path()).unwrap();
        change(folder.path());
        judge(folder.path(), self.ledger.clone())
    }
}

fn judge(folder: &Path, mut ledger: Ledger) -> Verdict {
    let service = match open(folder) {
        Ok(service) => service,
        Err(error) => return refused(error, Verdict::RefusedOnOpen),
    };
    // Every answer must be right, with or without a check.
    match crash::verify(&service, &mut ledger) {
        Ok(verdict) if verdict.is_clean() => {}
        Ok(verdict) => return Verdict::Bad(format!("{verdict:?}")),
        Err(error) => return refused(error, Verdict::RefusedOnRead),
    }
    match service.operator(Principal::Account).check(|_| {}) {
        Ok(report) if report.is_clean() => {}
        Ok(_) => return Verdict::RefusedByCheck,
        Err(error) => return refused(error.into(), Verdict::RefusedByCheck),
    }
    go_on(&service, &mut ledger);
    service.store().close().unwrap();
    drop(service);
    match crash::verify(&open(folder).unwrap(), &mut ledger) {
        Ok(verdict) if verdict.is_clean() => Verdict::Repaired,
        other => Verdict::Bad(format!("after going on: {other:?}")),
    }
}

/// A store that was taken for intact must go on working.
fn go_on(service: &Service, ledger: &mut Ledger) {
    let mut writer = Writer::new(1_000, 0, 1);
    for _ in 0..20 {
        let attempt = writer.draw();
        ledger.hear(Line::Try { writer: 0, attempt: attempt.clone() });
        let done = attempt.perform(service).unwrap();
        ledger.hear(if done { Line::Done { writer: 0 } } else { Line::Refused { writer: 0 } });
    }
}

fn open(folder: &Path) -> Result<Service> {
    let runtime = Runtime::real();
    let store = local::open(folder, LocalConfig::default(), &runtime)?;
    Ok(Service::open(store, runtime, Limits::default())?)
}

/// A refusal is clear when it, or its causes, says what is wrong.
fn refused(error: anyhow::Error, verdict: Verdict) -> Verdict {
    const CLEAR: [&str; 4] =
        ["is damaged", "has format", "record does not match", "record is malformed"];
    let text = format!("{error:#}");
    if CLEAR.iter().any(|words| text.contains(words)) {
        return verdict;
    }
    Verdict::Bad(format!("unclear: {text}"))
}
