//! Scripts of transitions: a split, a merge or a re-bucketing is stopped at any of its
//! steps, inspected, ended by a crash or continued. They run on every backend; any
//! difference fails.
//!
//! Commands:
//! - `container [partitions=N]` starts over with one container.
//! - `upsert KEY ID [n=N]`, `delete KEY ID`, `fill N [bucket=B] [n=N]` (one item for each
//!   of the keys `k0`, `k1`, …, or of those of them in a bucket) write and wait for the
//!   disk. `start NAME upsert KEY ID [n=N]` only begins to; `waits NAME` shows that it has
//!   no answer yet, `answer NAME` waits for it.
//! - `split PARTITION [halve=bytes]`, `merge PARTITION…`, each with `[stop=STEP]`: keeps
//!   the transition at that step until `go_on [stop=STEP]`. `relieve [stop=STEP]` is what
//!   the background task does: it resumes moves from before a restart.
//! - `hold` keeps back what is submitted to the container's partitions, like a slow disk;
//!   `release` lets it pass.
//! - `crash` ends the process where it stands, and starts another on what is on the disk.
//! - `map` shows the stored map, `layout` the partitions in force with their LSNs, items and
//!   bytes, `disk` what is stored in each bucket, `retired` which buckets are garbage; `sweep`
//!   removes those.
//! - `read KEY ID`, `list`, `query TEXT`, `changes PARTITION [after=LSN]`: what clients see.
//! - `check` reads everything and compares.
//!
//! A STEP is a name of [`cluster::TransitionStep`], such as `double_writing`. Bounds are shown
//! by their first digits. Update with `UPDATE_GOLDENFILES=1`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[path = "../cluster/common.rs"]
#[allow(dead_code, reason = "shared with the other tests, each uses a part")]
mod common;
#[path = "../cluster/gate.rs"]
#[allow(dead_code, reason = "shared with the other tests, each uses a part")]
mod gate;
mod process;
mod show;
mod world;

use std::error::Error;
use std::path::Path;

use goldenscript::{Command, Context};
use world::World;

type Answer = Result<String, Box<dyn Error>>;

#[test]
fn transitions() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts/transitions");
    let mut scripts: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    let run = |script: &Path| goldenscript::run(&mut Mirror::new(), script);
    let failures = scripts.iter().filter_map(|script| {
        let error = run(script).err()?;
        Some(format!("{}: {error}", script.display()))
    });
    let failures: Vec<String> = failures.collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs every command on all backends.
struct Mirror {
    worlds: [World; 2],
}

impl Mirror {
    fn new() -> Mirror {
        Mirror { worlds: [World::memory(), World::local()] }
    }
}

impl goldenscript::Runner for Mirror {
    type Command = Command;

    fn run(&mut self, command: &Command, _context: &Context) -> Answer {
        let [memory, local] = &mut self.worlds;
        let on_memory = memory.run(command).map_err(|error| error.to_string());
        let on_local = local.run(command).map_err(|error| error.to_string());
        assert_eq!(on_memory, on_local, "backends differ at {command}");
        Ok(on_memory?)
    }

    /// Whatever a script did, the store must be consistent at its end.
    fn end_script(&mut self) -> Result<(), Box<dyn Error>> {
        self.worlds.iter_mut().try_for_each(World::finish)
    }
}
