//! Scripts that mean harm: each is stopped with the right fault, nothing of it is kept, and
//! the next script runs as if nothing had happened.
//!
//! Time stands still here. What ends a script is the number of times that the engine asked
//! whether to go on, so the outcome does not depend on the machine.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

#[path = "golden/memory.rs"]
mod memory;

use memory::{Breaks, Memory, surroundings};
use script::{Ended, Fault, Script, ScriptLimits, ScriptTask, StoredFunction};
use serde_json::json;

/// Far fewer questions than a real run may have, so that tests are quick: enough to use up
/// the memory.
const TICKS: u64 = 400;
/// For scripts that only loop.
const TICKS_OF_LOOPS: u64 = 40;

fn limits() -> ScriptLimits {
    within(TICKS)
}

fn within(ticks_max: u64) -> ScriptLimits {
    ScriptLimits { ticks_max, ..ScriptLimits::default() }
}

fn host() -> Memory {
    let mut host = Memory::default();
    host.put(json!({"id": "1", "pk": "a", "n": 1})).unwrap();
    host
}

fn run(text: &str) -> Ended<Memory> {
    run_within(limits(), text)
}

fn run_within(limits: ScriptLimits, text: &str) -> Ended<Memory> {
    let script = Script::compile("hostile", text).unwrap();
    let task = ScriptTask::Procedure { arguments: "[]" };
    script::run(&script, &task, &surroundings(), limits, host())
}

/// Runs a script after it wrote a document, and expects a fault.
fn fault_of(body: &str) -> Fault {
    fault_within(limits(), body)
}

fn fault_within(limits: ScriptLimits, body: &str) -> Fault {
    let text = format!(
        "function () {{ __.createDocument(__.getSelfLink(), {{ id: \"2\", pk: \"a\" }}, function () {{ {body} }}); }}"
    );
    let fault = run_within(limits, &text).result.expect_err(body);
    let next = run("function () { getContext().getResponse().setBody([[].concat(1), {}.x]); }");
    assert_eq!(next.result, Ok(Some("[[1],null]".to_owned())), "after {body}");
    fault
}

fn is_stopped(body: &str) {
    assert_eq!(fault_within(within(TICKS_OF_LOOPS), body), Fault::OutOfSteps, "{body}");
}

fn is_out_of_memory(body: &str) {
    assert_eq!(fault_of(body), Fault::OutOfMemory, "{body}");
}

fn throws(body: &str, name: &str) {
    let fault = fault_of(body);
    let Fault::Thrown(thrown) = &fault else { panic!("{body}: {fault}") };
    assert_eq!(thrown.name, name, "{body}: {thrown}");
}

#[test]
fn loops_for_ever() {
    for body in [
        "for (;;);",
        "while (true) { try { for (;;); } catch (e) {} finally { continue; } }",
        "for (;;) try { null.x } catch (e) {}",
        "(function f() { try { f(); } finally { f(); } })();",
        "var o = { get a() { for (;;); } }; o.a;",
        "new Proxy({}, { get() { for (;;); } }).x;",
        "String({ toString() { for (;;); } });",
        "[1, 2].sort(() => { for (;;); });",
        "for (const x of (function* () { for (;;) yield 1; })());",
        "eval('for (;;);');",
        "new Function('for (;;);')();",
        "(async () => { for (;;) await 0; })();",
        "label: for (;;) { for (;;) continue label; }",
        "var m = new Map(); for (let i = 0; ; i = (i + 1) % 1000) m.set(i, i);",
        "Array.from({ length: 1e3, get 5() { for (;;); } });",
        "JSON.stringify({ toJSON() { for (;;); } });",
        "'x'.replace(/x/, () => { for (;;); });",
        "__.response.setBody({ toJSON() { for (;;); } });",
    ] {
        is_stopped(body);
    }
}

#[test]
fn regular_expressions_that_backtrack() {
    is_stopped("/^(a+)+$/.test('a'.repeat(40) + 'b');");
    is_stopped("/(x+x+)+y/.exec('x'.repeat(50));");
    is_stopped("'a'.repeat(60).replace(/(a|a|a)*b/, '');");
    is_stopped("try { /^(a|a?)+$/.test('a'.repeat(50) + 'b'); } catch (e) {} for (;;);");
}

#[test]
fn loops_inside_the_engine() {
    for body in [
        "new Array(4294967295).indexOf(1);",
        "Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1);",
        "Array.prototype.forEach.call({ length: 2 ** 53 - 1 }, () => {});",
        "Array.prototype.reduce.call({ length: 2 ** 53 - 1 }, () => {});",
        "new Array(4294967295).every(() => true);",
        "Array.prototype.lastIndexOf.call({ length: 2 ** 53 - 1 }, 1);",
        "Array.prototype.includes.call({ length: 2 ** 53 - 1 }, 1);",
        "Array.prototype.findLast.call({ length: 2 ** 53 - 1 }, () => false);",
        "Array.from({ length: 1e9 }, () => { for (;;); });",
        "new Array(4294967295).values().drop(2 ** 52).next();",
        "var a = []; for (let i = 0; i < 30; i++) a = [a, a]; JSON.stringify(a, null, 1);",
        "var a = []; for (let i = 0; i < 30; i++) a = [a, a]; JSON.stringify(a, ['x']);",
        "var a = {}; for (let i = 0; i < 30; i++) a = { b: a, c: a }; __.response.setBody(a);",
        "new Set(new Array(4294967295));",
        "var a = [], i = a.values(); a.length = 4294967295; new Set(i);",
        "new Set(Array.prototype.values.call({ length: 2 ** 53 - 1 }));",
        "new Array(4294967295).keys().forEach(Math.abs);",
        "new Set([undefined]).union({ size: 1, has() {}, keys: () => new Array(4294967295).values() });",
        "var a = []; for (let i = 0; i < 40; i++) a = [a, a]; a.flat(Infinity);",
        "var s = 'a'.repeat(1e6), a = []; for (let i = 0; i < 1e4; i++) a[i] = s; a.sort(); for (;;);",
    ] {
        is_stopped(body);
    }
    for body in [
        "new Array(4294967295).join('');",
        "String(new Array(4294967295));",
        "new Array(4294967295).fill(0);",
        "new Array(4294967295).reverse();",
        "new Array(4294967295).sort();",
        "new Array(4294967295).slice(5);",
        "new Array(4294967295).concat(1);",
        "[].concat(new Array(4294967295), new Array(4294967295));",
        "new Array(4294967295).copyWithin(5, 1);",
        "new Array(4294967295).splice(5, 1);",
        "new Array(4294967295).shift();",
        "new Array(4294967294).unshift(1);",
        "new Array(4294967295).flatMap((x) => x);",
        "new Array(4294967295).flat();",
        "new Array(4294967295).toReversed();",
        "new Array(4294967295).toLocaleString();",
        "Array.prototype.slice.call({ length: 2 ** 53 - 1 });",
        "Array.prototype.join.call({ length: 2 ** 53 - 1 }, '');",
        "[].concat({ length: 2 ** 53 - 1, [Symbol.isConcatSpreadable]: true });",
        "'a'.repeat(5e6).indexOf('a'.repeat(2e6) + 'b');",
        "'a'.repeat(5e6).split('a'.repeat(2e6) + 'b');",
        "'a'.repeat(5e6).replaceAll({ toString() { return 'a'.repeat(2e6) + 'b'; } }, '');",
        "'a'.repeat(5e6).lastIndexOf('b' + 'a'.repeat(2e6));",
        "'\\u0301\\u0316'.repeat(1e6).normalize();",
        "'\\u0301\\u0316'.repeat(1e6).localeCompare('x');",
    ] {
        throws(body, "RangeError");
    }
    for body in [
        "Array.prototype.reverse.call({ length: 2 ** 53 - 1 });",
        "Array.prototype.sort.call({ length: 2 ** 53 - 1 });",
        "new Proxy([], { get(t, k) { return k === 'length' ? 2 ** 53 - 1 : t[k]; } }).reverse();",
        "Array.prototype.fill.call(new Proxy([], { get: () => 2 ** 53 - 1 }), 0);",
    ] {
        throws(body, "TypeError");
    }
}

#[test]
fn allocates_without_end() {
    for body in [
        "var a = []; for (;;) a.push(new Array(1000).fill(0));",
        "var s = 'x'; for (;;) { s += s; s.charCodeAt(1); }",
        "'x'.repeat(2 ** 28);",
        "new Uint8Array(2 ** 30);",
        "new ArrayBuffer(2 ** 31 - 1);",
        "var o = {}; for (let i = 0; ; i++) o['key' + i] = { i };",
        "'x'.padEnd(2 ** 28, 'ab');",
        "Array.from({ length: 2 ** 32 - 1 });",
        "var m = new Map(); for (let i = 0; ; i++) m.set(i, 'x'.repeat(100));",
        "var f = []; for (;;) f.push(() => f);",
        "(function again(p) { again.all = [again.all, new Array(1e5).fill(p)]; Promise.resolve().then(() => again(p)); })();",
    ] {
        let fault = fault_of(body);
        assert_eq!(fault, Fault::OutOfMemory, "{body}");
    }
    is_out_of_memory(
        "var a = []; for (;;) { try { for (;;) a.push(new Array(1e5).fill(0)); } catch (e) { throw e; } }",
    );
    // Caught, it goes on until its steps are used up.
    is_stopped(
        "for (;;) { try { var a = []; for (;;) a.push(new Array(1e5).fill(0)); } catch (e) {} }",
    );
}

#[test]
fn recurses_without_end() {
    for body in [
        "(function f() { f(); })();",
        "(function f() { return [1].map(f); })();",
        "var o = { get a() { return this.a; } }; o.a;",
        "var p = new Proxy({}, { get(t, k, r) { return r[k]; } }); p.x;",
        "(function f(...a) { f(...a, 1); })();",
        "class A { constructor() { new A(); } } new A();",
        "JSON.parse('['.repeat(1e6));",
        "var a = []; for (let i = 0; i < 1e5; i++) a = [a]; JSON.stringify(a);",
        "var a = []; for (let i = 0; i < 1e5; i++) a = [a]; __.response.setBody(a);",
        "eval('('.repeat(1e5));",
        "new RegExp('('.repeat(1e5));",
        "var s = '1'; s = '-'.repeat(0) + '!'.repeat(1e6) + s; eval(s);",
        "String.prototype.toString = function () { return `${this}`; }; `${new String('x')}`;",
        "var a = []; a[0] = a; a.flat(Infinity);",
    ] {
        let fault = fault_of(body);
        // The parser says it in its own way.
        let parsed = matches!(&fault, Fault::Thrown(thrown) if thrown.name == "SyntaxError");
        assert!(fault == Fault::StackOverflow || parsed, "{body}: {fault}");
    }
}

#[test]
fn large_results() {
    let three = "__.response.setBody('x'.repeat(3 << 20));";
    let fault = fault_of(three);
    assert!(matches!(&fault, Fault::Thrown(thrown) if thrown.number == Some(413)), "{fault}");
    throws("__.response.setBody({ a: new Array(1e6).fill('xxx') });", "Error");
    // A getter can answer differently when the result is written.
    let late = "var n = 1; __.response.setBody({ get a() { return 'x'.repeat(n++ > 1 ? 3 << 20 : 1); } });";
    assert!(matches!(fault_of(late), Fault::ResultTooLarge { .. }));
}

#[test]
fn promises_that_never_settle() {
    let fault = run("async function () { await new Promise(() => {}); }").result;
    assert_eq!(fault, Err(Fault::Unsettled));
    is_stopped("(function f() { Promise.resolve().then(f); })();");
    is_stopped("Promise.resolve({ then(resolve) { resolve(this); } });");
}

#[test]
fn operations_are_counted_even_if_nothing_is_read() {
    let limits = ScriptLimits { calls_max: 50, ..limits() };
    let script = Script::compile(
        "queue",
        "function () { var n = 0; while (__.readDocument(__.getAltLink() + '/docs/1')) n++; __.response.setBody(n); }",
    );
    let task = ScriptTask::Procedure { arguments: "" };
    let ended = script::run(&script.unwrap(), &task, &surroundings(), limits, host());
    assert_eq!(ended.result, Ok(Some("50".to_owned())));
    assert_eq!(ended.usage.calls, 50);

    // Callbacks that ask for more end when no more is accepted.
    let ended = run("function next() { __.readDocument(__.getAltLink() + '/docs/1', next); }");
    assert_eq!(ended.result, Ok(Some("\"\"".to_owned())));
    assert_eq!(ended.usage.calls, script::limits::CALLS_MAX);
}

/// A script does what it can to globals and prototypes; the next one sees none of it.
#[test]
fn nothing_passes_from_run_to_run() {
    let pollute = "function () {
        leaked = 1; globalThis.also = 2; this.third = 3;
        Object.prototype.polluted = 'x'; Array.prototype.push = () => 'mine'; Array.prototype[0] = 7;
        String.prototype.trim = () => 'mine'; Function.prototype.call = null; Function.prototype.apply = null;
        JSON.stringify = () => '\"forged\"'; JSON.parse = () => ({}); Math.random = () => 4; Date.now = () => 0;
        Promise.prototype.then = null; Symbol.iterator; Array.prototype[Symbol.iterator] = null;
        getContext().getCollection().createDocument = null; getContext = null; ErrorCodes = null; console.log = null;
        Object.defineProperty(Object.prototype, 'number', { get() { return 500; }, set() {} });
        Object.defineProperty(Array.prototype, 1, { set() { throw 'trap'; } });
        Error.prototype.toString = () => 'x'; RegExp.prototype.exec = () => null; Reflect.apply = null;
        delete globalThis.Object; globalThis.Array = 5; undefined_ = void 0;
    }";
    let look = "function () {
        getContext().getResponse().setBody([typeof leaked, typeof also, typeof third, {}.polluted, [1].push(2), [][0],
            ' a '.trim(), Math.max.call(null, 1, 2), JSON.stringify({}), JSON.parse('[1]'), Math.random() < 1, Date.now(),
            typeof Promise.prototype.then, [...'ab'], typeof ErrorCodes, typeof console.log, {}.number, String(new Error('e')),
            typeof Object, typeof Array, typeof undefined_]);
    }";
    let clean = run(look).result.unwrap().unwrap();
    for _ in 0..3 {
        let polluted = run(pollute);
        assert!(polluted.result.is_ok(), "{:?}", polluted.result);
        assert_eq!(run(look).result.unwrap().unwrap(), clean);
    }
    assert!(
        clean.starts_with(
            r#"["undefined","undefined","undefined",null,2,null,"a",2,"{}",[1],true,"#
        )
    );
}

/// Whatever a script does to prototypes, operations do what they say.
#[test]
fn pollution_does_not_reach_the_host() {
    let text = "function () {
        Object.defineProperty(Object.prototype, 'number', { get() { return 500; }, configurable: true });
        Object.prototype.etag = 'wrong'; Object.prototype.next = {}; Object.prototype.disableAutomaticIdGeneration = true;
        Array.prototype.push = Array.prototype.concat = Array.prototype.join = () => { throw new Error('trap'); };
        Function.prototype.call = Function.prototype.apply = () => { throw new Error('trap'); };
        JSON.stringify = JSON.parse = () => { throw new Error('trap'); };
        Array.prototype[Symbol.iterator] = () => { throw new Error('trap'); };
        String.prototype.split = String.prototype.indexOf = () => { throw new Error('trap'); };
        RegExp.prototype.exec = RegExp.prototype[Symbol.replace] = () => { throw new Error('trap'); };
        delete Object.prototype.number;
        __.createDocument(__.getSelfLink(), { id: '2', pk: 'a' }, {}, function (err, doc) {
            __.filter((d) => d.id === '2', function (err, feed) {
                __.queryDocuments(__.getSelfLink(), 'SELECT VALUE COUNT(1) FROM c', function (err, page, options) {
                    console.log('%s', page.length);
                    __.response.setBody({ id: doc.id, found: feed.length, count: page.length });
                });
            });
        });
    }";
    let ended = run(text);
    assert_eq!(ended.result, Ok(Some(r#"{"id":"2","found":1,"count":1}"#.to_owned())));
    assert_eq!(ended.host.staged, [r#"create {"id":"2","pk":"a"}"#]);
}

/// No global leads to a function of the host but through the documented objects.
#[test]
fn globals_are_the_documented_ones() {
    let text = "function () {
        const known = new Set(Object.getOwnPropertyNames(globalThis));
        __.response.setBody(['native', 'facts', 'step', 'scriptArgs', 'print', 'gc', 'std', 'os', 'bjson', 'navigator', 'load', 'Deno']
            .filter((name) => known.has(name)).concat(['getContext', '__', 'ErrorCodes', 'console', '__docDbMain'].filter((name) => !known.has(name))));
    }";
    assert_eq!(run(text).result, Ok(Some("[]".to_owned())));
    // Functions of ours show neither their callers nor their arguments.
    for text in [
        "function f() { return __.getSelfLink.caller; }",
        "function f() { return getContext.arguments; }",
    ] {
        let text = format!(
            "function () {{ {text} try {{ __.response.setBody(typeof f()); }} catch (e) {{ __.response.setBody('refused'); }} }}"
        );
        let result = run(&text).result.unwrap().unwrap();
        assert!(result == "\"refused\"" || result == "\"undefined\"", "{text}: {result}");
    }
}

#[test]
fn functions_are_bounded_over_all_calls() {
    let script = Script::compile("f", "function (n) { if (n) for (;;); return n; }").unwrap();
    let mut function = StoredFunction::new(&script, limits(), host()).unwrap();
    assert_eq!(function.call("[0]"), Ok(Some("0".to_owned())));
    assert_eq!(function.call("[1]"), Err(Fault::OutOfSteps));
    assert_eq!(function.call("[0]"), Err(Fault::OutOfSteps));
    assert_eq!(function.calls(), 3);

    let grow = Script::compile(
        "g",
        "function () { (globalThis.a ||= []).push('x'.repeat(1e6).split('')); }",
    );
    let mut function = StoredFunction::new(&grow.unwrap(), limits(), host()).unwrap();
    let mut faults = (0..200).filter_map(|_| function.call("[]").err());
    assert_eq!(faults.next(), Some(Fault::OutOfMemory));
}

#[test]
fn texts_that_are_too_large_or_odd() {
    let bytes_max = script::limits::SOURCE_BYTES_MAX;
    let large = format!("function () {{ /*{}*/ }}", "x".repeat(bytes_max));
    assert!(matches!(Script::compile("large", &large), Err(Fault::SourceTooLarge { .. })));
    for text in [
        "function () { \0 }",
        "\u{feff}function (",
        "<!-- x",
        "}",
        "import x from 'y'",
        "export default 1",
    ] {
        let compiled = Script::compile("odd", text);
        assert!(
            matches!(compiled, Err(Fault::Syntax { .. } | Fault::Thrown(_))),
            "{text:?}: {compiled:?}"
        );
    }
    let deep = format!("function () {{ return {}1{}; }}", "(".repeat(200_000), ")".repeat(200_000));
    assert!(matches!(
        Script::compile("deep", &deep),
        Err(Fault::StackOverflow | Fault::Syntax { .. })
    ));
    let named = Script::compile("a\0b\n(c):1", "function () { throw new Error('x'); }").unwrap();
    let task = ScriptTask::Procedure { arguments: "[]" };
    let ended = script::run(&named, &task, &surroundings(), limits(), host());
    assert!(matches!(ended.result, Err(Fault::Thrown(_))));
}

#[test]
fn arguments_are_bounded() {
    let script = Script::compile("count", "function () { __.response.setBody(arguments.length); }");
    let script = script.unwrap();
    let call = |arguments: &str| {
        let task = ScriptTask::Procedure { arguments };
        script::run(&script, &task, &surroundings(), limits(), host()).result
    };
    assert_eq!(call("[1,2,3]"), Ok(Some("3".to_owned())));
    let many = format!("[{}0]", "0,".repeat(script::limits::ARGUMENTS_MAX));
    assert!(matches!(call(&many), Err(Fault::Arguments { .. })));
    let large = format!("[\"{}\"]", "x".repeat(script::limits::ARGUMENTS_BYTES_MAX));
    assert!(matches!(call(&large), Err(Fault::Arguments { .. })));
    let deep = "[".repeat(1_000_000);
    assert!(matches!(call(&deep), Err(Fault::Arguments { .. })));
}

/// A panic of the host is one of the thread that runs the script, and of nothing else.
#[test]
fn a_host_that_panics() {
    for (breaks, text) in [
        (Breaks::Clock, "function () { try { Date.now(); } catch (e) {} }"),
        (Breaks::Clock, "function () { Promise.resolve().then(() => new Date()); }"),
        (Breaks::Deadline, "function () { for (;;); }"),
        (Breaks::Deadline, "function () { /^(a+)+$/.test('a'.repeat(40) + 'b'); }"),
    ] {
        let script = Script::compile("panics", text).unwrap();
        let broken = std::panic::catch_unwind(|| {
            let task = ScriptTask::Procedure { arguments: "" };
            let mut host = host();
            host.breaks = Some(breaks);
            script::run(&script, &task, &surroundings(), limits(), host).result
        });
        assert!(broken.is_err(), "{text}: {broken:?}");
        let next = run("function () { __.response.setBody(1); }");
        assert_eq!(next.result, Ok(Some("1".to_owned())));
    }
}
