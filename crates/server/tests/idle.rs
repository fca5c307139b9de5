//! Many idle connections are parked: only a socket and a small task remain of each, and
//! others are served.
//!
//! `ORRERY_CONNECTIONS` sets how many. Then the memory that each costs is measured as well,
//! which is meaningful on an otherwise idle machine: `cargo xtask soak` does so.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]
#![allow(clippy::print_stdout, reason = "figures are what the soak is for")]

#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "serve/client.rs"]
mod client;
#[allow(dead_code, reason = "the tests of `serve` use more of it")]
#[path = "serve/program.rs"]
mod program;

use client::{connect, get, wait_until_parked};
use program::Program;

/// Connections of an ordinary run. The usual limit is 1,024 files.
const CONNECTIONS_DEFAULT: u64 = 300;

#[test]
fn idle_connections_are_parked_and_others_are_served() {
    let asked = std::env::var("ORRERY_CONNECTIONS").ok();
    let connections = asked.as_ref().map_or(CONNECTIONS_DEFAULT, |text| text.parse().unwrap());
    let program = Program::in_memory();
    get(&mut connect(program.address()), "/_orrery/health");
    let before = memory::resident_bytes(&program);
    let mut streams: Vec<_> = (0..connections).map(|_| connect(program.address())).collect();
    for stream in &mut streams {
        assert_eq!(get(stream, "/_orrery/health").status, 200);
    }
    wait_until_parked(program.address(), connections);
    if asked.is_some() {
        memory::judge(&program, before, connections);
    }
    assert_eq!(get(&mut connect(program.address()), "/_orrery/ready").status, 200);
    for stream in &mut streams {
        assert_eq!(get(stream, "/_orrery/health").status, 200);
    }
}

/// Known on Linux only.
mod memory {
    use super::program::Program;

    /// Twice what it is on a quiet machine: the more connections are being answered at the
    /// same moment, the more the heap fragments.
    const BYTES_PER_CONNECTION_MAX: u64 = 32 << 10;
    /// What the process may grow by anyway, as its threads start to use their heaps.
    const BYTES_ANYWAY: u64 = 2 << 20;

    pub(super) fn resident_bytes(program: &Program) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", program.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
    }

    pub(super) fn judge(program: &Program, before: Option<u64>, connections: u64) {
        let Some((before, after)) = before.zip(resident_bytes(program)) else {
            println!("left out: the memory of idle connections, which only Linux tells");
            return;
        };
        let grown = after.saturating_sub(before);
        println!("{connections} idle connections: {} bytes each", grown / connections);
        let allowed = connections * BYTES_PER_CONNECTION_MAX + BYTES_ANYWAY;
        assert!(grown <= allowed, "{grown} bytes for {connections} connections");
    }
}
