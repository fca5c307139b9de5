//! How soon after its start a server answers a signed point read, how much memory it holds
//! then, and how large the program is.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use runtime::{Clock as _, RealClock};
use rustix::process::Signal;
use testkit::files::bytes_in;

use crate::client::{Client, Document};
use crate::program::{Program, folder};

const GB_DEFAULT: f64 = 0.1;
/// Starts of each kind; the median counts.
const STARTS: usize = 5;

/// Documents of a batch, and batches in flight at a time.
const BATCH: u64 = 90;
const WRITERS: u64 = 8;

/// Documents that are written just before the server is killed.
const UNFLUSHED: u64 = 20_000;

/// The document that is read first.
const FIRST: (u64, u64) = (1 << 20, 0);

pub(crate) async fn report() {
    tell_sizes();
    tell_new_folders().await;
    let gb: f64 = std::env::var("ORRERY_BENCH_GB").map_or(GB_DEFAULT, |gb| gb.parse().unwrap());
    let (folder, data) = folder();
    let arguments = ["--data", &data.display().to_string()];
    let program =
        Program::start(folder.path(), &[&arguments[..], &["--durability", "os"]].concat());
    Client::connect(program.address()).await.prepare().await;
    let document = Document::new(FIRST.0, FIRST.1);
    assert_eq!(Client::connect(program.address()).await.create(&document).await, 201);
    fill(&program, 0, gb).await;
    stop(program);
    let disk = bytes_in(&data) >> 20;
    let mut taken = Vec::new();
    for _ in 0..STARTS {
        let (program, time, resident) = first_read(folder.path(), &arguments, 200).await;
        stop(program);
        taken.push((time, resident));
    }
    tell(&format!("{gb} GB of documents, {disk} MiB on disk"), &taken);
    taken.clear();
    for round in 1..=STARTS as u64 {
        let program = Program::start(folder.path(), &arguments);
        write(&program, round << 24, UNFLUSHED).await;
        program.kill();
        let (program, time, resident) = first_read(folder.path(), &arguments, 200).await;
        stop(program);
        taken.push((time, resident));
    }
    tell(&format!("the same, killed after {UNFLUSHED} more documents"), &taken);
}

async fn tell_new_folders() {
    for (name, in_memory) in [("a new folder (answers 404)", false), ("in memory (404)", true)] {
        let mut taken = Vec::new();
        for _ in 0..STARTS {
            let (folder, data) = folder();
            let data = data.display().to_string();
            let arguments: &[&str] = if in_memory { &["--in-memory"] } else { &["--data", &data] };
            let (program, time, resident) = first_read(folder.path(), arguments, 404).await;
            stop(program);
            taken.push((time, resident));
        }
        tell(name, &taken);
    }
}

fn tell(name: &str, taken: &[(Duration, u64)]) {
    let mut taken = taken.to_vec();
    taken.sort_unstable();
    let (time, resident) = taken[taken.len() / 2];
    let (slowest, _) = taken[taken.len() - 1];
    let resident = resident >> 20;
    println!(
        "first read   {name}: {time:.1?}, at most {slowest:.1?}; {resident} MiB resident then"
    );
}

/// From the start of the process to the answer.
async fn first_read(folder: &Path, arguments: &[&str], wanted: u16) -> (Program, Duration, u64) {
    let clock = RealClock::new();
    let program = Program::start(folder, arguments);
    let mut client = Client::connect(program.address()).await;
    let status = client.read(&Document::new(FIRST.0, FIRST.1)).await;
    let time = clock.monotonic();
    assert_eq!(status, wanted);
    let resident = resident_bytes(&program);
    (program, time, resident)
}

/// Writes documents of about `gb` gigabytes.
async fn fill(program: &Program, group: u64, gb: f64) {
    let one = Document::new(0, 0).body.len() as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a round figure")]
    write(program, group, (gb * 1e9 / one) as u64).await;
}

/// Writes `count` documents from a group on, in batches.
async fn write(program: &Program, group: u64, count: u64) {
    let address = program.address();
    let batches = count.div_ceil(BATCH);
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            tokio::spawn(async move {
                let mut client = Client::connect(address).await;
                for batch in (writer..batches).step_by(usize::try_from(WRITERS).unwrap()) {
                    let documents: Vec<Document> =
                        (0..BATCH).map(|number| Document::new(group + batch, number)).collect();
                    client.create_all(&documents).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

fn stop(program: Program) {
    program.signal(Signal::TERM);
    assert!(program.wait().0.success());
}

fn resident_bytes(program: &Program) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", program.id()));
    let status = status.unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.map_or(0, |line| line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10)
}

fn tell_sizes() {
    let program = Path::new(env!("CARGO_BIN_EXE_orrery"));
    let mib = |path: &Path| std::fs::metadata(path).unwrap().len() as f64 / f64::from(1 << 20);
    let stripped = tempfile::NamedTempFile::new().unwrap();
    let strip = Command::new("strip").arg("-o").arg(stripped.path()).arg(program).status();
    let without = match strip {
        Ok(status) if status.success() => {
            format!("{:.1} MiB without symbols", mib(stripped.path()))
        }
        Ok(_) | Err(_) => "no `strip` here to take its symbols away".to_owned(),
    };
    println!("the program  {:.1} MiB as built, {without}", mib(program));
}
