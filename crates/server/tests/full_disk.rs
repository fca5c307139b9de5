//! A disk of 200 MB is filled under load, filled to the last byte by another program,
//! killed, restarted, relieved by dropping a container, compacted and checked: every step
//! works, and nothing that was acknowledged is lost.
//!
//! The disk is a real one, mounted in a mount namespace of the test's own, where the machine
//! allows that, and a quota at the storage door elsewhere; the output says which.
//! `ORRERY_DISK_MB` sets its size.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]
#![allow(clippy::print_stdout, reason = "the figures of a run are the point of a soak")]

#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "serve/client.rs"]
mod client;
#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "serve/program.rs"]
mod program;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use runtime::{Clock as _, Random as _, RealClock, Runtime, SeededRandom};
use rustix::process::Signal;
use wire_cosmos::EMULATOR_KEY;

use client::{Reply, Signed, connect, create_database, get, send_signed};
use program::{Program, command, run, text};

const DISK_MB_DEFAULT: u64 = 200;
const WRITERS: u64 = 8;
const FILL_BYTES: usize = 64_000;

/// Refusals in a row after which a writer believes that the disk is full.
const REFUSALS_MAX: u64 = 5;

/// Writes of one writer at most, so that a disk that never fills ends the test.
const WRITES_MAX: u64 = 100_000;

/// Longer than the pause between two sweeps: only a hang reaches it.
const PATIENCE: Duration = Duration::from_secs(180);

/// Times that the disk is filled before it must stay full.
const ROUNDS_MAX: u64 = 20;

/// Items checked along the way, one in sixteen; at the end all are.
const SAMPLE_EVERY: usize = 16;

/// How long another program takes all there is.
const HOG_FOR: Duration = Duration::from_secs(2);

const NAME: &str = "a_full_disk_is_no_trap";
/// Set when the test runs in a mount namespace of its own.
const INSIDE: &str = "ORRERY_FULL_DISK_INSIDE";

/// The disk under test.
struct Disk {
    folder: PathBuf,
    bytes: u64,
    mounted: bool,
}

impl Disk {
    fn command(&self) -> Command {
        let mut command = command(&self.folder);
        if !self.mounted {
            command.env("ORRERY_TEST_DISK_BYTES_MAX", self.bytes.to_string());
        }
        command
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn serve(&self) -> Program {
        let mut command = self.command();
        command.args(["--json", "--listen", "127.0.0.1:0", "--data"]).arg(self.data());
        Program::start_as(&mut command)
    }

    fn do_offline(&self, what: &str) {
        let done = run(self.command().args([what, "--data"]).arg(self.data()));
        let (said, errors) = (text(&done.stdout), text(&done.stderr));
        println!("{what}: {}", said.trim());
        assert!(done.status.success(), "{what} failed: {said}{errors}");
    }

    /// Fills what is left, as another program would. Nothing where the disk is a quota.
    fn hog(&self) -> Hog {
        let path = self.folder.join("hog");
        if self.mounted {
            let mut file = std::fs::File::create(&path).unwrap();
            let piece = vec![7; 64 << 10];
            while file.write_all(&piece).is_ok() {}
        }
        Hog(path)
    }

    /// The same, and keeps it for a while.
    fn hog_for(&self, duration: Duration) -> Hog {
        let hog = self.hog();
        RealClock::new().sleep(duration);
        hog
    }

    fn used(&self) -> u64 {
        testkit::files::bytes_in(&self.data())
    }
}

struct Hog(PathBuf);

impl Drop for Hog {
    fn drop(&mut self) {
        let _never_made = std::fs::remove_file(&self.0);
    }
}

/// Runs this test again in a mount namespace of its own. None where that is not allowed.
fn run_inside() -> Option<bool> {
    let probe = "mount -t tmpfs -o size=1m none /tmp";
    let allowed = Command::new("unshare").args(["-m", "sh", "-c", probe]).output();
    if !allowed.is_ok_and(|probe| probe.status.success()) {
        return None;
    }
    let again = std::env::current_exe().unwrap();
    let mut inside = Command::new("unshare");
    inside.arg("-m").arg(again).args(["--exact", NAME, "--nocapture"]).env(INSIDE, "1");
    let output = inside.output().unwrap();
    println!("{}{}", text(&output.stdout), text(&output.stderr));
    Some(output.status.success())
}

fn mount(folder: &Path, megabytes: u64) -> &'static str {
    let image = folder.join("image");
    let disk = folder.join("disk");
    std::fs::create_dir(&disk).unwrap();
    let script = format!(
        "truncate -s {megabytes}M {image} && mkfs.ext4 -q -m 0 {image} && mount -o loop {image} {disk}",
        image = image.display(),
        disk = disk.display()
    );
    let done =
        |script: &str| Command::new("sh").args(["-c", script]).output().unwrap().status.success();
    if done(&script) {
        return "an ext4 loop mount";
    }
    assert!(done(&format!("mount -t tmpfs -o size={megabytes}m none {}", disk.display())));
    "a tmpfs mount"
}

#[test]
fn a_full_disk_is_no_trap() {
    let inside = std::env::var_os(INSIDE).is_some();
    if !inside && let Some(passed) = run_inside() {
        assert!(passed, "see above");
        return;
    }
    let megabytes =
        std::env::var("ORRERY_DISK_MB").map_or(DISK_MB_DEFAULT, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let kind = if inside { mount(folder.path(), megabytes) } else { "a quota" };
    println!("a disk of {megabytes} MB: {kind}");
    let mounted = inside;
    let place = if mounted { folder.path().join("disk") } else { folder.path().to_owned() };
    let disk = Disk { folder: place, bytes: megabytes << 20, mounted };
    tell_the_story(&disk);
    if mounted {
        Command::new("umount").arg(&disk.folder).status().unwrap();
    }
}

fn tell_the_story(disk: &Disk) {
    let server = disk.serve();
    let mut stream = connect(server.address());
    assert_eq!(create_database(&mut stream, "d").status, 201);
    for name in ["kept", "dropped"] {
        create_container(&mut stream, name);
    }
    let mut ledger = BTreeSet::new();
    if disk.mounted {
        ledger = race(disk, server.address());
        println!("{} items while another program filled the disk", ledger.len());
        await_writes(&mut stream, 1 << 50);
    }
    // A running compaction may have given something back since the last refusal.
    let ready = (0..ROUNDS_MAX)
        .map(|round| {
            ledger.extend(fill_from(server.address(), round << 20, &["kept", "dropped"]));
            get(&mut stream, "/_orrery/ready")
        })
        .find(|ready| ready.status == 503)
        .expect("it is full in the end");
    let kept = ledger.iter().filter(|number| container_of(**number) == "kept").count();
    println!(
        "full after {} acknowledged items ({} MB), {} MB in files",
        ledger.len(),
        ledger.len() * FILL_BYTES / 1_000_000,
        disk.used() / 1_000_000
    );
    assert!(ledger.len() as u64 * FILL_BYTES as u64 > disk.bytes / 4, "hardly anything fitted");
    assert!(ready.body.contains("no space left on device"), "{}", ready.body);
    let some: BTreeSet<u64> = ledger.iter().copied().step_by(SAMPLE_EVERY).collect();
    assert_eq!(lost(&mut stream, &some, &["kept", "dropped"]), 0, "while it is full");
    stop(server);

    let hog = disk.hog();
    let server = disk.serve();
    let mut stream = connect(server.address());
    if disk.mounted {
        assert_refused(&create_item(&mut stream, WRITES_MAX * WRITERS));
    }
    assert_eq!(lost(&mut stream, &some, &["kept", "dropped"]), 0, "with no byte left");
    server.kill();
    let server = disk.serve();
    let mut stream = connect(server.address());
    drop_container(&mut stream, "dropped");
    println!("dropped a container with not a byte left");
    stop(server);
    let server = disk.serve();
    drop(hog);
    // Filled once more, so that offline commands find a full disk, too. The sweep needs a
    // moment before there is space for as much as was dropped.
    let (clock, mut more) = (RealClock::new(), BTreeSet::new());
    let from = clock.monotonic();
    while more.len() < kept / 2 {
        assert!(clock.monotonic() - from < PATIENCE, "{} more, then no more", more.len());
        clock.sleep(Duration::from_millis(100));
        more.extend(fill_from(
            server.address(),
            (1 << 40) + more.len() as u64 * 1_000_000,
            &["kept"],
        ));
    }
    println!("{} more items until it was full again", more.len());
    stop(server);
    disk.do_offline("compact");
    disk.do_offline("check");
    let server = disk.serve();
    let mut stream = connect(server.address());
    assert_eq!(lost(&mut stream, &ledger, &["kept"]), 0);
    assert_eq!(lost(&mut stream, &more, &["kept"]), 0);
    println!("{kept} + {} items are there, 0 lost", more.len());
    stop(server);
}

/// Writes while another program fills the disk as well, and then stops.
fn race(disk: &Disk, address: SocketAddr) -> BTreeSet<u64> {
    let (folder, mounted, bytes) = (disk.folder.clone(), disk.mounted, disk.bytes);
    let hogging = move || drop(Disk { folder, bytes, mounted }.hog_for(HOG_FOR));
    let hogging = Runtime::real().tasks.spawn("hog", Box::new(hogging)).unwrap();
    let ledger = fill_from(address, 1 << 30, &["kept", "dropped"]);
    hogging.join().unwrap();
    ledger
}

fn await_writes(stream: &mut TcpStream, first: u64) {
    let clock = RealClock::new();
    let from = clock.monotonic();
    while create_item(stream, first + u64::try_from(clock.monotonic().as_millis()).unwrap()).status
        != 201
    {
        assert!(clock.monotonic() - from < PATIENCE, "writes do not go on");
        clock.sleep(Duration::from_millis(100));
    }
}

fn container_of(number: u64) -> &'static str {
    if number.is_multiple_of(2) { "kept" } else { "dropped" }
}

/// Lets all writers write until the disk is full. Returns what was acknowledged.
fn fill_from(address: SocketAddr, first: u64, containers: &'static [&str]) -> BTreeSet<u64> {
    let tasks = Runtime::real().tasks;
    let (said, heard) = std::sync::mpsc::sync_channel(1_024);
    let step = 3 - containers.len() as u64;
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let said = said.clone();
            let body = move || {
                let mut stream = connect(address);
                let mut refusals = 0;
                for at in 0..WRITES_MAX {
                    let number = first + (at * WRITERS + writer) * step;
                    let reply = create_item(&mut stream, number);
                    match reply.status {
                        201 => {
                            refusals = 0;
                            said.send(number).unwrap();
                        }
                        // Whether it was done is not known, or there was too much to do.
                        408 | 429 => {}
                        _ => {
                            assert_refused(&reply);
                            refusals += 1;
                        }
                    }
                    if refusals == REFUSALS_MAX {
                        return;
                    }
                }
                panic!("never full");
            };
            tasks.spawn(&format!("writer-{writer}"), Box::new(body)).unwrap()
        })
        .collect();
    drop(said);
    let ledger = heard.into_iter().collect();
    for writer in writers {
        writer.join().expect("every answer is clear");
    }
    ledger
}

fn assert_refused(reply: &Reply) {
    assert_eq!(reply.status, 503, "{}", reply.body);
    assert!(reply.body.contains("No space left on device"), "{}", reply.body);
}

/// How many acknowledged items of some containers are not there as they were written.
fn lost(stream: &mut TcpStream, ledger: &BTreeSet<u64>, containers: &[&str]) -> usize {
    let ours = ledger.iter().filter(|number| containers.contains(&container_of(**number)));
    let is_lost = |number: &u64| {
        let link = format!("dbs/d/colls/{}/docs/{number}", container_of(*number));
        let path = format!("/{link}");
        let read = Signed { method: "GET", path: &path, kind: "docs", link: &link };
        let reply = send_signed(stream, EMULATOR_KEY, read, &key_header(*number), "");
        reply.status != 200 || reply.json()["fill"].as_str() != Some(&fill_of(*number))
    };
    ours.copied().filter(is_lost).count()
}

fn create_item(stream: &mut TcpStream, number: u64) -> Reply {
    let link = format!("dbs/d/colls/{}", container_of(number));
    let path = format!("/{link}/docs");
    let create = Signed { method: "POST", path: &path, kind: "docs", link: &link };
    let body = format!(r#"{{"id":"{number}","fill":"{}"}}"#, fill_of(number));
    send_signed(stream, EMULATOR_KEY, create, &key_header(number), &body)
}

fn key_header(number: u64) -> String {
    format!("x-ms-documentdb-partitionkey: [\"{number}\"]\r\n")
}

/// A text that belongs to the number, and hardly compresses.
fn fill_of(number: u64) -> String {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| {
        let mut bytes = vec![0; FILL_BYTES / 4 * 3];
        SeededRandom::new(number).fill(&mut bytes);
        STANDARD.encode(bytes)
    });
    let (head, tail) = text.split_at(usize::try_from(number % text.len() as u64).unwrap());
    format!("{number}{tail}{head}")
}

fn create_container(stream: &mut TcpStream, name: &str) {
    let create = Signed { method: "POST", path: "/dbs/d/colls", kind: "colls", link: "dbs/d" };
    let body = format!(r#"{{"id":"{name}","partitionKey":{{"paths":["/id"],"version":2}}}}"#);
    assert_eq!(send_signed(stream, EMULATOR_KEY, create, "", &body).status, 201);
}

fn drop_container(stream: &mut TcpStream, name: &str) {
    let (path, link) = (format!("/dbs/d/colls/{name}"), format!("dbs/d/colls/{name}"));
    let delete = Signed { method: "DELETE", path: &path, kind: "colls", link: &link };
    let reply = send_signed(stream, EMULATOR_KEY, delete, "", "");
    assert_eq!(reply.status, 204, "{}", reply.body);
}

fn stop(server: Program) {
    server.signal(Signal::TERM);
    let (status, errors) = server.wait();
    assert!(status.success(), "{errors}");
}
