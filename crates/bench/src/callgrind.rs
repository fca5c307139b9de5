//! Reads what callgrind leaves: the sum of all instructions, and calls of allocators.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};

/// Counts of one run of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) instructions: u64,
    /// Calls that allocate or grow, of the C library's allocator and of mimalloc.
    pub(crate) allocations: u64,
}

impl Counts {
    pub(crate) fn parse(text: &str) -> Result<Counts> {
        let mut names = Names::default();
        let (mut caller, mut callee) = ("", "");
        let (mut instructions, mut allocations) = (None, 0);
        for line in text.lines() {
            if let Some(function) = line.strip_prefix("fn=") {
                caller = names.resolve(function);
            } else if let Some(function) = line.strip_prefix("cfn=") {
                callee = names.resolve(function);
            } else if let Some(calls) = line.strip_prefix("calls=") {
                // Allocators call themselves by other names.
                if is_allocation(callee) && !is_allocator(caller) {
                    let count = calls.split(' ').next().and_then(|count| count.parse().ok());
                    allocations += count.unwrap_or(0);
                }
            } else if let Some(total) =
                line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: "))
            {
                instructions = total.trim().parse().ok();
            }
        }
        let instructions = instructions.context("callgrind wrote no sum")?;
        Ok(Counts { instructions, allocations })
    }
}

/// Functions are named once and numbered from then on: `(7) main`, `(7)`.
#[derive(Debug, Default)]
struct Names<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Names<'a> {
    fn resolve(&mut self, function: &'a str) -> &'a str {
        match function.split_once(' ') {
            Some((number, name)) => {
                self.0.insert(number, name);
                name
            }
            None => self.0.get(function).copied().unwrap_or(function),
        }
    }
}

fn is_allocation(function: &str) -> bool {
    let name = function.strip_prefix("mi_").unwrap_or(function);
    let name = name.split(['\'', '@']).next().unwrap_or(name);
    ["malloc", "calloc", "zalloc", "realloc", "posix_memalign", "aligned_alloc"]
        .iter()
        .any(|begin| name.starts_with(begin))
}

fn is_allocator(function: &str) -> bool {
    function.starts_with("mi_") || function.starts_with("_mi_") || is_allocation(function)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_allocators_are_counted_once() {
        let text = "fn=(1) main\n1 5\ncfn=(2) mi_malloc_aligned\ncalls=3 0\n1 90\n\
                    fn=(2)\n1 9\ncfn=(3) mi_malloc\ncalls=3 0\n1 60\nfn=(1)\ncfn=(4) free\n\
                    calls=3 0\n1 1\ncfn=(5) realloc\ncalls=2 0\n1 1\ntotals: 166\n";
        let counts = Counts::parse(text).unwrap();
        assert_eq!(counts, Counts { instructions: 166, allocations: 5 });
    }
}
