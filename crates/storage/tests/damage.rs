//! Every damaged copy of a store is either repaired with nothing acknowledged lost
//! or refused with a clear message: no silent loss, no panic.
//!
//! `ORRERY_DAMAGES` sets how many damages are tried, `ORRERY_SEED` which ones. Which
//! tables the engine has written when it is killed depends on timing, so the same
//! seed gives the same kinds of damage but not always the same bytes.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]
#![allow(clippy::print_stdout, reason = "the table of outcomes is the point of a long run")]

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use runtime::{Random, Runtime, SeededRandom};
use storage::local::{self, LocalConfig};
use storage::{
    CommitStatus, ContentsVersion, Direction, KeyRange, ScanLimit, StorageError, Store, View,
    WriteBatch,
};

/// Enough for every kind of file and damage to meet several times, in seconds.
const DAMAGES_DEFAULT: usize = 360;
const SEED_DEFAULT: u64 = 20_260_401;

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// Set in the process that is to write a store and die.
const DYING: &str = "ORRERY_DAMAGE_WRITER";

#[test]
fn damage_is_repaired_or_refused() {
    if let Ok(task) = std::env::var(DYING) {
        write_and_die(&task);
    }
    let number = |name, default| {
        std::env::var(name).map_or(default, |text: String| text.parse().expect("a number"))
    };
    let damages = usize::try_from(number("ORRERY_DAMAGES", DAMAGES_DEFAULT as u64)).unwrap();
    let seed = number("ORRERY_SEED", SEED_DEFAULT);
    println!("{damages} damages; repeat with ORRERY_DAMAGES={damages} ORRERY_SEED={seed}");
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        before(info);
    }));

    let random = SeededRandom::new(seed);
    let originals = Original::all();
    let mut table = Table::default();
    for number in 0..damages {
        let original = &originals[number % originals.len()];
        let damage = Damage::draw(original, &random);
        let verdict = try_damage(original, &damage);
        if verdict.is_bad() {
            println!("damage {number} on {}: {damage:?}: {verdict:?}", original.name);
        }
        table.count(&damage, &verdict);
    }
    println!("{table}");
    assert_eq!(table.bad(), 0, "see the lines above; seed {seed}");
}

/// A store as it was left, and what it must hold.
struct Original {
    name: &'static str,
    folder: tempfile::TempDir,
    rows: BTreeMap<Bytes, Bytes>,
    files: Vec<(Kind, PathBuf)>,
}

impl Original {
    fn all() -> Vec<Original> {
        let originals = vec![
            Original::make("stopped cleanly", 40, 0),
            Original::make("killed, all in the journal", 0, 40),
            Original::make("killed, tables and journal", 250, 40),
            Original::make("killed in the middle of flushing", 60, 120),
        ];
        for original in &originals {
            let copy = tempfile::tempdir().unwrap();
            copy_folder(original.folder.path(), copy.path());
            assert_eq!(judge(copy.path(), &original.rows), Verdict::Repaired, "undamaged");
        }
        originals
    }

    /// Writes `flushed` batches and stops, then `fresh` ones in a process that is
    /// killed once they are acknowledged.
    fn make(name: &'static str, flushed: u32, fresh: u32) -> Original {
        let folder = tempfile::tempdir().unwrap();
        let mut rows = BTreeMap::new();
        let config = LocalConfig { memtable_bytes: 48 << 10, ..LocalConfig::default() };
        let store = local::create(folder.path(), config, &Runtime::real()).unwrap();
        (0..flushed).for_each(|number| write(store.as_ref(), &mut rows, number));
        if flushed > 0 {
            store.close().unwrap();
        }
        drop(store);
        if fresh > 0 {
            let task = format!("{flushed} {fresh} {}", folder.path().display());
            let writer = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "damage_is_repaired_or_refused", "--nocapture"])
                .env(DYING, task)
                .output()
                .unwrap();
            assert_eq!(writer.status.code(), None, "the writer was to die: {writer:?}");
            (flushed..flushed + fresh).for_each(|number| drop(batch(&mut rows, number)));
        }
        let mut files = Vec::new();
        list_files(folder.path(), Path::new(""), &mut files);
        let files = files.into_iter().map(|file| (Kind::of(&file), file)).collect();
        Original { name, folder, rows, files }
    }
}

/// The other process: ends without unwinding, flushing or closing anything.
fn write_and_die(task: &str) -> ! {
    let mut words = task.splitn(3, ' ');
    let mut number = || words.next().unwrap().parse::<u32>().unwrap();
    let (first, count) = (number(), number());
    let store = open(Path::new(words.next().unwrap())).unwrap();
    (first..first + count).for_each(|number| write(store.as_ref(), &mut BTreeMap::new(), number));
    std::process::abort();
}

fn write(store: &dyn Store, rows: &mut BTreeMap<Bytes, Bytes>, number: u32) {
    assert_eq!(store.write_session().submit(batch(rows, number)).wait(), CommitStatus::Durable);
}

/// A batch that adds, replaces and removes.
fn batch(rows: &mut BTreeMap<Bytes, Bytes>, number: u32) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for part in 0..8_u32 {
        let key = Bytes::from(format!("key {:04}", (number * 8 + part) % 700));
        if (number + part) % 5 == 4 {
            rows.remove(&key);
            batch.delete(key);
        } else {
            let value = Bytes::from(format!("{number:>3} {part} ").repeat(12));
            rows.insert(key.clone(), value.clone());
            batch.put(key, value);
        }
    }
    batch
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Format,
    Watermark,
    Journal,
    TablePointer,
    TableList,
    Table,
}

impl Kind {
    fn of(file: &Path) -> Kind {
        let text = file.to_str().unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        match name {
            "FORMAT" => Kind::Format,
            "WITNESS" => Kind::Watermark,
            _ if text.starts_with("journal/") => Kind::Journal,
            "current" => Kind::TablePointer,
            _ if text.contains("/tables/") => Kind::Table,
            _ if name.starts_with('v') => Kind::TableList,
            _ => panic!("a file that this test does not know: {text}"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Harm {
    Delete,
    Truncate { len: u64 },
    FlipBit { at: u64, bit: u8 },
    Zero { at: u64, len: u64 },
    Garbage { at: u64, len: u64, seed: u64 },
}

impl Harm {
    fn name(self) -> &'static str {
        match self {
            Harm::Delete => "delete",
            Harm::Truncate { .. } => "truncate",
            Harm::FlipBit { .. } => "flip a bit",
            Harm::Zero { .. } => "zero a range",
            Harm::Garbage { .. } => "garbage",
        }
    }

    fn draw(random: &dyn Random, used: u64) -> Harm {
        let below = |limit: u64| random.next_u64() % limit.max(1);
        let at = below(used);
        // Mostly small ranges, at times the rest of the file.
        let reach = (used - at).max(1);
        let len = if below(8) == 0 { reach } else { 1 + below(reach.min(2_000)) };
        match below(9) {
            0 => Harm::Delete,
            1 | 2 => Harm::Truncate { len: at },
            3..=5 => Harm::FlipBit { at, bit: u8::try_from(below(8)).unwrap() },
            6 | 7 => Harm::Zero { at, len },
            _ => Harm::Garbage { at, len, seed: below(u64::MAX) },
        }
    }

    fn inflict(self, path: &Path) {
        let (at, bytes) = match self {
            Harm::Delete => return fs::remove_file(path).unwrap(),
            Harm::Truncate { len } => {
                return OpenOptions::new().write(true).open(path).unwrap().set_len(len).unwrap();
            }
            Harm::FlipBit { at, bit } => {
                let byte = read_at(path, at, 1).first().copied().unwrap_or_default();
                (at, vec![byte ^ (1 << bit)])
            }
            Harm::Zero { at, len } => (at, vec![0; usize::try_from(len).unwrap()]),
            Harm::Garbage { at, len, seed } => {
                let mut bytes = vec![0; usize::try_from(len).unwrap()];
                SeededRandom::new(seed).fill(&mut bytes);
                (at, bytes)
            }
        };
        let mut file = OpenOptions::new().write(true).open(path).unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        file.write_all(&bytes).unwrap();
    }
}

#[derive(Debug)]
struct Damage {
    kind: Kind,
    file: PathBuf,
    harm: Harm,
}

impl Damage {
    /// Kinds of files are drawn before files, so that the small ones get their share, and
    /// positions from the part that is in use.
    fn draw(original: &Original, random: &dyn Random) -> Damage {
        let below = |limit: usize| {
            usize::try_from(random.next_u64() % limit as u64).expect("below a length")
        };
        let mut kinds: Vec<Kind> = original.files.iter().map(|(kind, _)| *kind).collect();
        kinds.sort();
        kinds.dedup();
        // Journals and tables hold the data: they get most of all damages.
        for data in [Kind::Journal, Kind::Table] {
            if kinds.contains(&data) {
                kinds.extend([data; 3]);
            }
        }
        let kind = kinds[below(kinds.len())];
        let files: Vec<&PathBuf> =
            original.files.iter().filter(|(of, _)| *of == kind).map(|(_, file)| file).collect();
        let file = files[below(files.len())].clone();
        let used = used_len(&original.folder.path().join(&file));
        Damage { kind, file, harm: Harm::draw(random, used) }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Repaired,
    RefusedOnOpen,
    RefusedOnRead,
    SilentLoss(String),
    /// Refused, but the folder was changed.
    Touched,
    Panic,
}

impl Verdict {
    fn is_bad(&self) -> bool {
        matches!(self, Verdict::SilentLoss(_) | Verdict::Panic | Verdict::Touched)
    }
}

fn try_damage(original: &Original, damage: &Damage) -> Verdict {
    let folder = tempfile::tempdir().unwrap();
    copy_folder(original.folder.path(), folder.path());
    damage.harm.inflict(&folder.path().join(&damage.file));
    let panics = PANICS.load(Ordering::SeqCst);
    let verdict = std::panic::catch_unwind(|| judge(folder.path(), &original.rows));
    match verdict {
        Ok(verdict) if PANICS.load(Ordering::SeqCst) == panics => verdict,
        Ok(_) | Err(_) => Verdict::Panic,
    }
}

/// Opening for reading finds what opening and reading finds, and leaves every file as it
/// is.
fn judge(folder: &Path, rows: &BTreeMap<Bytes, Bytes>) -> Verdict {
    let before = fingerprint(folder);
    let examined = examine(folder, rows);
    if fingerprint(folder) != before {
        return Verdict::Touched;
    }
    let verdict = judge_open(folder, rows);
    match (examined, &verdict) {
        (Ok(true), Verdict::RefusedOnOpen | Verdict::RefusedOnRead) => {
            Verdict::SilentLoss("reading alone took it for whole".to_owned())
        }
        (Ok(false), Verdict::Repaired) => {
            Verdict::SilentLoss("reading alone found damage".to_owned())
        }
        (Ok(_), _) => verdict,
        (Err(difference), _) => Verdict::SilentLoss(format!("reading alone: {difference}")),
    }
}

/// Whether everything reads well in a store that is not written to.
fn examine(folder: &Path, rows: &BTreeMap<Bytes, Bytes>) -> Result<bool, String> {
    match local::open_read_only(folder, ContentsVersion::default()) {
        Ok(store) => compare(store.as_ref(), rows),
        Err(error) => {
            assert!(is_clear(&error), "unclear: {error}");
            assert!(error.to_string().contains(folder.to_str().unwrap()), "{error}");
            Ok(false)
        }
    }
}

fn judge_open(folder: &Path, rows: &BTreeMap<Bytes, Bytes>) -> Verdict {
    let before = fingerprint(folder);
    let store = match open(folder) {
        Ok(store) => store,
        Err(error) => {
            assert!(is_clear(&error), "unclear: {error}");
            let touched = fingerprint(folder) != before;
            return if touched { Verdict::Touched } else { Verdict::RefusedOnOpen };
        }
    };
    match compare(store.as_ref(), rows) {
        Ok(true) => {}
        Ok(false) => return Verdict::RefusedOnRead,
        Err(difference) => return Verdict::SilentLoss(difference),
    }
    // A store that was taken for intact must go on working.
    let mut rows = rows.clone();
    write(store.as_ref(), &mut rows, 1_000);
    store.close().unwrap();
    match compare(open(folder).unwrap().as_ref(), &rows) {
        Ok(true) => Verdict::Repaired,
        Ok(false) => Verdict::RefusedOnRead,
        Err(difference) => Verdict::SilentLoss(difference),
    }
}

fn is_clear(error: &StorageError) -> bool {
    matches!(error, StorageError::Damaged { .. } | StorageError::UnknownVersion { .. })
}

/// Whether everything reads well. An answer that is given must be right, also
/// when another one is refused.
fn compare(store: &dyn Store, rows: &BTreeMap<Bytes, Bytes>) -> Result<bool, String> {
    let view = store.view().unwrap();
    let mut whole = store.verify().inspect_err(|error| assert!(is_clear(error))).is_ok();
    for number in 0..700 {
        let key = Bytes::from(format!("key {number:04}"));
        match view.get(&key) {
            Ok(found) if found.as_ref() == rows.get(&key) => {}
            Ok(found) => return Err(format!("{key:?} reads {found:?}")),
            Err(_) => whole = false,
        }
    }
    for direction in [Direction::Forward, Direction::Backward] {
        whole &= compare_scan(view.as_ref(), rows, direction)?;
    }
    Ok(whole)
}

fn compare_scan(
    view: &dyn View,
    rows: &BTreeMap<Bytes, Bytes>,
    direction: Direction,
) -> Result<bool, String> {
    let mut expected: Vec<(Bytes, Bytes)> =
        rows.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    if direction == Direction::Backward {
        expected.reverse();
    }
    let mut found = Vec::new();
    let mut rest = Some(KeyRange::all());
    while let Some(range) = rest {
        let Ok(chunk) = view.scan(&range, direction, ScanLimit::rows(50)) else {
            let right = expected.starts_with(&found);
            return if right { Ok(false) } else { Err(format!("{direction:?} scan differs")) };
        };
        found.extend(chunk.rows);
        rest = chunk.rest;
    }
    if found == expected { Ok(true) } else { Err(format!("{direction:?} scan differs")) }
}

fn open(folder: &Path) -> Result<Arc<dyn Store>, StorageError> {
    local::open(folder, LocalConfig::default(), &Runtime::real())
}

fn list_files(root: &Path, below: &Path, files: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> =
        fs::read_dir(root.join(below)).unwrap().map(|entry| entry.unwrap()).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = below.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            list_files(root, &path, files);
        } else {
            files.push(path);
        }
    }
}

fn fingerprint(folder: &Path) -> Vec<(PathBuf, u64, u32)> {
    let mut files = Vec::new();
    list_files(folder, Path::new(""), &mut files);
    let describe = |file: PathBuf| {
        let path = folder.join(&file);
        let used = read_at(&path, 0, used_len(&path));
        (file, fs::metadata(&path).unwrap().len(), crc32fast::hash(&used))
    };
    files.into_iter().map(describe).collect()
}

/// Copies a folder, leaving the zeros at the end of preallocated files as holes.
fn copy_folder(from: &Path, to: &Path) {
    let mut files = Vec::new();
    list_files(from, Path::new(""), &mut files);
    for file in files {
        let (source, target) = (from.join(&file), to.join(&file));
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        let mut copy = File::create(&target).unwrap();
        copy.write_all(&read_at(&source, 0, used_len(&source))).unwrap();
        copy.set_len(fs::metadata(&source).unwrap().len()).unwrap();
    }
    for folder in ["tree/tables", "journal"] {
        fs::create_dir_all(to.join(folder)).unwrap();
    }
}

/// The length without zeros at the end, for files that are preallocated.
fn used_len(path: &Path) -> u64 {
    const PIECE: u64 = 64 << 10;
    let mut len = fs::metadata(path).unwrap().len();
    while len > PIECE && read_at(path, len - PIECE, PIECE).iter().all(|byte| *byte == 0) {
        len -= PIECE;
    }
    if len <= PIECE {
        let bytes = read_at(path, 0, len);
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        return used as u64;
    }
    len
}

fn read_at(path: &Path, at: u64, len: u64) -> Vec<u8> {
    let mut file = File::open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    let mut bytes = Vec::new();
    file.take(len).read_to_end(&mut bytes).unwrap();
    bytes
}

/// How often each damage to each kind of file ended how.
#[derive(Default)]
struct Table {
    rows: BTreeMap<(Kind, &'static str), [usize; 5]>,
}

impl Table {
    fn count(&mut self, damage: &Damage, verdict: &Verdict) {
        let column = match verdict {
            Verdict::Repaired => 0,
            Verdict::RefusedOnOpen => 1,
            Verdict::RefusedOnRead => 2,
            Verdict::SilentLoss(_) | Verdict::Touched => 3,
            Verdict::Panic => 4,
        };
        self.rows.entry((damage.kind, damage.harm.name())).or_default()[column] += 1;
    }

    fn bad(&self) -> usize {
        self.rows.values().map(|counts| counts[3] + counts[4]).sum()
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| file | damage | repaired | refused on open | on read | silent | panic |")?;
        writeln!(f, "|---|---|---|---|---|---|---|")?;
        let mut total = [0; 5];
        for ((kind, harm), counts) in &self.rows {
            let [repaired, open, read, silent, panic] = counts;
            writeln!(
                f,
                "| {kind:?} | {harm} | {repaired} | {open} | {read} | {silent} | {panic} |"
            )?;
            total.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        let [repaired, open, read, silent, panic] = total;
        writeln!(f, "| all | all | {repaired} | {open} | {read} | {silent} | {panic} |")
    }
}
