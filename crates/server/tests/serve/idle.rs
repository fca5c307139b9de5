//! Many connections that have nothing to say.

use std::time::Duration;

use runtime::{Clock as _, RealClock};

/// Longer than it takes until an idle connection is parked.
pub(crate) fn pause() {
    RealClock::new().sleep(Duration::from_millis(400));
}

#[cfg(target_os = "linux")]
mod memory {
    use super::pause;
    use crate::client::{connect, get};
    use crate::program::Program;

    /// Connections of this test. Few enough for the usual limit of 1,024 files.
    const CONNECTIONS: u64 = 800;
    const BYTES_PER_CONNECTION_MAX: u64 = 16 << 10;
    /// What the process may grow by anyway, as its threads come to use their parts of
    /// the heap.
    const BYTES_ANYWAY: u64 = 2 << 20;

    fn resident_bytes(program: &Program) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", program.id()));
        let status = status.expect("the process is there");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.map(|line| line.trim().trim_end_matches(" kB").parse::<u64>());
        kilobytes.expect("Linux says it").expect("Linux gives a number") << 10
    }

    #[test]
    fn idle_connections_are_cheap_and_others_are_served() {
        let program = Program::in_memory();
        get(&mut connect(program.address()), "/_orrery/health");
        let before = resident_bytes(&program);
        let mut streams: Vec<_> = (0..CONNECTIONS).map(|_| connect(program.address())).collect();
        for stream in &mut streams {
            assert_eq!(get(stream, "/_orrery/health").status, 200);
        }
        pause();
        let grown = resident_bytes(&program).saturating_sub(before);
        let allowed = CONNECTIONS * BYTES_PER_CONNECTION_MAX + BYTES_ANYWAY;
        assert!(grown <= allowed, "{grown} bytes for {CONNECTIONS} connections");
        assert_eq!(get(&mut connect(program.address()), "/_orrery/ready").status, 200);
        for stream in &mut streams {
            assert_eq!(get(stream, "/_orrery/health").status, 200);
        }
    }
}
