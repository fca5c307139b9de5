//! Bodies for server-side JavaScript: any text, any arguments, any result.
//!
//! Scripts come from clients and are run. So it is not enough that they are refused or end:
//! the same script in the same surroundings must end the same way.

use std::str::from_utf8;

use script::{
    ContainerLinks, Environment, Fault, FeedPage, Host, HostReason, HostRefusal, IndexAction,
    ItemLink, Question, Read, Script, ScriptLimits, ScriptTask, StoredFunction, Surroundings,
};

/// Little of everything, so that an input takes milliseconds.
const LIMITS: ScriptLimits = ScriptLimits {
    memory_bytes_max: 8 << 20,
    stack_bytes_max: 256 << 10,
    ticks_max: 20,
    calls_max: 20,
    pages_max: 20,
    log_bytes_max: 1 << 10,
    result_bytes_max: 64 << 10,
};

/// Any text is refused, or runs and ends; twice the same way.
pub fn script_text(input: &[u8]) {
    let Ok(text) = from_utf8(input) else { return };
    let Ok(script) = Script::compile("fuzz", text) else { return };
    same_twice(&script, "[1, {\"a\": [\"b\"]}]");
}

/// What a script can return is JSON of bounded size that means the same when it is returned
/// again. The input is an expression.
pub fn script_result(input: &[u8]) {
    let Ok(text) = from_utf8(input) else { return };
    let text = format!("function () {{ getContext().getResponse().setBody(\n{text}\n); }}");
    let Ok(script) = Script::compile("fuzz", &text) else { return };
    let Some(json) = same_twice(&script, "") else { return };
    assert!(json.len() <= LIMITS.result_bytes_max);
    returned(&json);
}

/// Arguments are refused, or come back as JSON that comes back the same.
pub fn script_arguments(input: &[u8]) {
    let Ok(text) = from_utf8(input) else { return };
    let script = Script::compile("echo", "function () { return Array.from(arguments); }");
    let script = script.expect("it is JavaScript");
    let mut echo =
        StoredFunction::new(&script, LIMITS, Refusing::default()).expect("it fits into the limits");
    let Ok(Some(json)) = echo.call(text) else { return };
    let again = echo.call(&json);
    assert_eq!(again, Ok(Some(json)));
}

/// A value passes through a script unchanged.
fn returned(json: &str) {
    let script = Script::compile("echo", "function (x) { return x; }").expect("it is JavaScript");
    let mut echo =
        StoredFunction::new(&script, LIMITS, Refusing::default()).expect("it fits into the limits");
    match echo.call(&format!("[{json}]")) {
        // As text a value may fit where its objects do not.
        Err(Fault::OutOfMemory | Fault::OutOfSteps) => {}
        again => assert_eq!(again, Ok(Some(json.to_owned()))),
    }
}

fn same_twice(script: &Script, arguments: &str) -> Option<String> {
    let task = ScriptTask::Procedure { arguments };
    let run = || script::run(script, &task, &surroundings(), LIMITS, Refusing::default());
    let (first, second) = (run(), run());
    assert_eq!(first.result, second.result);
    assert_eq!(first.log, second.log);
    assert_eq!(first.usage, second.usage);
    first.result.ok().flatten()
}

fn surroundings() -> Surroundings {
    Surroundings {
        links: ContainerLinks {
            of_rids: "dbs/a/colls/b/".into(),
            of_names: "dbs/c/colls/d".into(),
        },
        quota_max: String::new(),
        quota_usage: String::new(),
    }
}

/// A host without documents that does nothing.
#[derive(Default)]
struct Refusing {
    drawn: u64,
}

fn refuse<T>() -> Result<T, HostRefusal> {
    Err(HostRefusal { reason: HostReason::NotFound, message: "nothing is here".to_owned() })
}

impl Environment for Refusing {
    fn now_ms(&mut self) -> i64 {
        0
    }

    fn random(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.drawn
    }

    fn is_out_of_time(&mut self) -> bool {
        false
    }
}

impl Host for Refusing {
    fn accepts(&mut self) -> bool {
        true
    }

    fn read(&mut self, _: &ItemLink, _: Option<&str>) -> Result<Read, HostRefusal> {
        refuse()
    }

    fn create(&mut self, _: &str, _: IndexAction) -> Result<String, HostRefusal> {
        refuse()
    }

    fn upsert(&mut self, _: &str, _: IndexAction) -> Result<String, HostRefusal> {
        refuse()
    }

    fn replace(
        &mut self,
        _: &ItemLink,
        _: &str,
        _: Option<&str>,
        _: IndexAction,
    ) -> Result<String, HostRefusal> {
        refuse()
    }

    fn delete(&mut self, _: &ItemLink, _: Option<&str>) -> Result<(), HostRefusal> {
        refuse()
    }

    fn query(&mut self, _: &Question<'_>) -> Result<FeedPage, HostRefusal> {
        Ok(FeedPage::default())
    }
}
