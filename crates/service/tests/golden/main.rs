//! Scripts that run against the door on both backends, with one and with several
//! physical partitions; any difference fails.
//!
//! Catalogue: `create PARENT KIND BODY [ru=N | auto=N]`, `upsert PARENT KIND BODY`,
//! `read LINK [none-match=E]`, `replace LINK BODY [match=E]`, `delete LINK [match=E]`,
//! `migrate LINK autoscale|manual`,
//! `list PARENT KIND [max=N]`, `query PARENT KIND TEXT [parameters=JSON]`. `account` is the parent of databases and offers; `ru=any` asks
//! for one partition in some worlds and for five in the others.
//!
//! Items of the container chosen with `use LINK`: `item.create BODY`, `item.upsert
//! BODY`, `item.read ID`, `item.replace ID BODY`, `item.delete ID`, `item.patch ID
//! BODY`, each with `[key=JSON] [match=E] [none-match=E] [session=T]`; `batch KEY
//! OPERATION…`, `bulk [range=N] KEY OPERATION …`, `items [max=N] [key=JSON] [range=N]`, `ranges`.
//!
//! Also: `as anonymous|reader|account`, `save NAME` (keeps the last etag for
//! `match=NAME`), `advance SECONDS`, `sweep`, `check`, `scale` (carries out pending changes of
//! throughput), `reopen [profile=YEAR] [scale=N] [throttle=WHOSE] [serverless=BOOL]`.
//!
//! Items are shown without system properties, which depend on the number of
//! partitions; `[system]` shows them, and `[route]` who served a request, with a
//! transcript for each number. Update with `UPDATE_GOLDENFILES=1`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod world;

use std::error::Error;
use std::path::PathBuf;

use goldenscript::{Command, Context};
use world::World;

/// Throughput that gives one physical partition, and one that gives five.
const THROUGHPUTS: [u32; 2] = [400, 30_000];

#[test]
fn scripts() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
    let mut scripts: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    let run = |script: &PathBuf| goldenscript::run(&mut Mirror::new(), script);
    let failures = scripts.iter().filter_map(|script| {
        let error = run(script).err()?;
        Some(format!("{}: {error}", script.display()))
    });
    let failures: Vec<String> = failures.collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs every command in all worlds.
struct Mirror {
    /// The backends, for each throughput.
    worlds: Vec<[World; 2]>,
}

impl Mirror {
    fn new() -> Mirror {
        let pair = |ru| [World::memory(ru), World::local(ru)];
        Mirror { worlds: THROUGHPUTS.into_iter().map(pair).collect() }
    }
}

fn sorted(answer: &Result<String, String>) -> Result<Vec<&str>, &String> {
    let mut lines: Vec<&str> = answer.as_ref()?.lines().collect();
    lines.sort_unstable();
    Ok(lines)
}

impl goldenscript::Runner for Mirror {
    type Command = Command;

    fn run(&mut self, command: &Command, context: &Context) -> Result<String, Box<dyn Error>> {
        let mut answers = Vec::new();
        for [memory, local] in &mut self.worlds {
            let answer = memory.run(command, &context.tags);
            assert_eq!(local.run(command, &context.tags), answer, "backends differ at {command}");
            answers.push((memory.ru, answer));
        }
        let (_, first) = answers.first().unwrap();
        if context.tags.is_empty() {
            // Items are listed partition after partition.
            let is_list = command.name == "items";
            for (ru, answer) in &answers {
                let same = if is_list { sorted(answer) == sorted(first) } else { answer == first };
                assert!(same, "{ru} RU/s differ at {command}: {answer:?}, {first:?}");
            }
            return Ok(first.clone()?);
        }
        let mut output = String::new();
        for (ru, answer) in answers {
            output.push_str(&format!("at {ru} RU/s:\n{}", answer?));
        }
        Ok(output)
    }
}
