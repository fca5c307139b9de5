//! Feeds a body with inputs until it panics or time is up.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::{Body, Mutator};

/// An input that made a body panic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("input {run} of {} bytes breaks a promise: {}", input.len(), input.escape_ascii())]
pub struct Crash {
    /// How many inputs ran before it.
    pub run: u64,
    pub input: Vec<u8>,
}

/// Runs the corpus as it is and then mutations of it, for as long as `go_on` returns true
/// for the number of runs so far. Returns that number.
///
/// The panic's own message goes wherever the panic hook sends it. A body that
/// overflows the stack ends the process: the printed seed repeats it.
pub fn run(
    body: Body,
    mutator: &mut Mutator,
    mut go_on: impl FnMut(u64) -> bool,
) -> Result<u64, Crash> {
    let mut runs = 0;
    for input in mutator.corpus().to_vec() {
        run_one(body, input, runs)?;
        runs += 1;
    }
    while go_on(runs) {
        run_one(body, mutator.next_input(), runs)?;
        runs += 1;
    }
    Ok(runs)
}

fn run_one(body: Body, input: Vec<u8>, run: u64) -> Result<(), Crash> {
    // The body borrows only the input, so nothing is left half done.
    let outcome = catch_unwind(AssertUnwindSafe(|| body(&input)));
    outcome.map_err(|_| Crash { run, input })
}

/// Reads the inputs in a folder, ordered by file name so that a seed means the same on
/// every machine. A missing folder is an empty corpus.
pub fn read_corpus(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries: io::Result<Vec<_>> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect();
    let mut paths = entries?;
    paths.sort();
    paths.iter().map(std::fs::read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuses_braces(input: &[u8]) {
        assert!(!input.contains(&b'{'));
    }

    #[test]
    fn a_broken_promise_is_found_and_its_input_kept() {
        let mut mutator = Mutator::new(vec![b"abc".to_vec()], 1);
        let crash = run(refuses_braces, &mut mutator, |runs| runs < 10_000).unwrap_err();
        assert!(crash.input.contains(&b'{'));
        assert!(crash.run > 0, "the corpus itself is fine");
    }

    #[test]
    fn a_kept_promise_runs_to_the_end() {
        let mut mutator = Mutator::new(vec![b"abc".to_vec()], 1);
        assert_eq!(run(|_| {}, &mut mutator, |runs| runs < 100), Ok(100));
    }

    #[test]
    fn the_corpus_runs_even_without_time() {
        let mut mutator = Mutator::new(vec![b"{".to_vec()], 1);
        let crash = run(refuses_braces, &mut mutator, |_| false).unwrap_err();
        assert_eq!(crash, Crash { run: 0, input: b"{".to_vec() });
    }
}
