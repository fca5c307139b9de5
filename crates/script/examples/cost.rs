//! What does a script cost: parsing it, running it once, calling a function for a document?
//!
//! `cargo run --release -p script --example cost`. Each line is a mean over a number of
//! repetitions after a warm-up, in processor time where the system tells it, so that other
//! work on the machine does not count.
#![allow(clippy::print_stdout, reason = "a program for people")]
#![allow(clippy::disallowed_methods, reason = "it measures time")]

#[path = "../tests/golden/memory.rs"]
#[allow(dead_code, reason = "a test's host, of which this needs a part")]
mod memory;

use std::time::Instant;

use memory::{Memory, surroundings};
use script::{Script, ScriptCache, ScriptLimits, ScriptTask, StoredFunction, run};

const SMALL: &str = "function (n) { getContext().getResponse().setBody(n + 1); }";
const HUNDRED: &str = "function (count) {
    for (var i = 0; i < count; i++)
        if (!__.createDocument(__.getSelfLink(), { id: 'i' + i, pk: 'a', total: i, tags: ['x', 'y'] })) throw new Error('not accepted');
}";
const TAX: &str = "function tax(income) { return income < 1000 ? income * 0.1 : income * 0.4; }";
const DOCUMENT: &str =
    "function (doc) { return doc.tags.map((tag) => tag.toUpperCase()).join() + doc.total; }";

fn measure(what: &str, count: u32, mut work: impl FnMut()) {
    for _ in 0..count / 10 + 1 {
        work();
    }
    let begin = (processor_nanos(), Instant::now());
    for _ in 0..count {
        work();
    }
    let nanos = match (begin.0, processor_nanos()) {
        (Some(before), Some(after)) => after - before,
        _ => begin.1.elapsed().as_secs_f64() * 1e9,
    };
    let micros = nanos / 1e3 / f64::from(count);
    println!("{what:<58} {micros:>10.2} µs {:>10.0} /s", 1e6 / micros);
}

/// Processor time of this thread so far.
fn processor_nanos() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok()
}

fn procedure(script: &Script, arguments: &str) {
    let task = ScriptTask::Procedure { arguments };
    let ended = run(script, &task, &surroundings(), ScriptLimits::default(), Memory::default());
    ended.result.expect("the scripts of this program are right");
}

fn main() {
    let large = format!(
        "function () {{ {} }}",
        "var x = [1, 'two', { three: 3 }].map((v) => v);\n".repeat(1300)
    );
    measure("parse a script of 60 bytes", 2_000, || drop(Script::compile("s", SMALL)));
    measure("parse a script of 64 KB", 100, || drop(Script::compile("l", &large)));
    let cache = ScriptCache::default();
    measure("find a script in the cache", 20_000, || drop(cache.get("s", SMALL)));
    let (small, long) = (
        Script::compile("s", SMALL).expect("the scripts of this program are right"),
        Script::compile("l", &large).expect("the scripts of this program are right"),
    );
    measure("run a procedure that sets a body", 2_000, || procedure(&small, "[1]"));
    measure("run a procedure of 64 KB", 200, || procedure(&long, "[]"));
    let hundred = Script::compile("h", HUNDRED).expect("the scripts of this program are right");
    measure("run a procedure that creates 100 documents", 300, || procedure(&hundred, "[100]"));
    let function = |text: &str| {
        let script = Script::compile("f", text).expect("the scripts of this program are right");
        StoredFunction::new(&script, ScriptLimits::default(), Memory::default())
            .expect("the scripts of this program are right")
    };
    measure("make a function", 2_000, || drop(function(TAX)));
    let mut tax = function(TAX);
    measure("call a function of a number", 100_000, || drop(tax.call("[2000]")));
    let mut document = function(DOCUMENT);
    let text = r#"[{"id":"1","pk":"a","total":12.5,"tags":["red","green"],"address":{"city":"Berlin","zip":"10115"}}]"#;
    measure("call a function of a document of 100 bytes", 50_000, || drop(document.call(text)));
    for n in 0..1_000 {
        cache
            .get("s", &format!("{HUNDRED}\n// {n}"))
            .expect("the scripts of this program are right");
    }
    let (scripts, bytes) = cache.size();
    println!("cache: {scripts} scripts, {} bytes each", bytes / scripts);
}
