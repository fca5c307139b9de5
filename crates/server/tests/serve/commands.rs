//! Commands that are not servers.

use std::io::Read as _;
use std::process::Stdio;

use crate::program::{command, folder, run, text};

/// Sixteen of these cost more than the container's throughput of a second.
const LARGE_BYTES: &str = "900000";

#[test]
fn the_bench_is_not_throttled() {
    let (folder, _) = folder();
    let arguments = ["bench", "--seconds", "1", "--clients", "16", "--bytes", LARGE_BYTES];
    let done = run(command(folder.path()).args(arguments));
    assert!(done.status.success(), "{}", text(&done.stderr));
    let shown = text(&done.stdout);
    for phase in ["creates", "fsyncs", "point reads"] {
        assert!(shown.contains(phase), "{shown}");
    }
}

#[test]
fn whoever_stops_reading_the_certificate_hears_no_complaint() {
    let (folder, data) = folder();
    let mut child = command(folder.path())
        .arg("cert")
        .arg("--data")
        .arg(&data)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut complaint = String::new();
    child.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
    assert!(child.wait().unwrap().success(), "{complaint}");
    assert_eq!(complaint, "");
}
