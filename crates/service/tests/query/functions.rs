//! User-defined functions: those of the oracle, and those that fail.

use std::collections::BTreeMap;

use lab::queries::{Ask, Lab, PAGE_ALL, definition};
use model::json::{self, Value};
use query::{UserFunctionError, UserFunctions};
use script::{Environment, Script, ScriptLimits, StoredFunction};
use service::{Approach, ServiceError};

/// Functions that are made anew for each call, on the thread that calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct PlainFunctions(BTreeMap<String, String>);

impl PlainFunctions {
    pub(crate) fn insert(&mut self, name: &str, text: &str) {
        self.0.insert(name.to_owned(), text.to_owned());
    }
}

impl UserFunctions for PlainFunctions {
    fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Result<Option<Value>, UserFunctionError> {
        let script = Script::compile(name, &self.0[name]).unwrap();
        let limits = ScriptLimits::default();
        let mut function = StoredFunction::new(&script, limits, Timeless).unwrap();
        let arguments = Value::from(arguments.to_vec()).to_string();
        let value = function.call(&arguments);
        let value = value.map_err(|fault| UserFunctionError { message: fault.to_string() })?;
        Ok(value.map(|value| json::parse(value.as_bytes()).unwrap()))
    }
}

struct Timeless;

impl Environment for Timeless {
    fn now_ms(&mut self) -> i64 {
        0
    }

    fn random(&mut self) -> u64 {
        0
    }

    fn is_out_of_time(&mut self) -> bool {
        false
    }
}

const ITEMS: usize = 30;

fn lab() -> Lab {
    let lab = Lab::memory();
    lab.create_container(&definition(r#"{"partitionKey":{"paths":["/pk"]}}"#)).unwrap();
    for n in 0..ITEMS {
        lab.put(&format!(r#"{{"id":"{n}","pk":"{}","n":{n}}}"#, n % 7)).unwrap();
    }
    lab
}

/// A function that fails, loops for ever, recurses or uses too much memory ends its query
/// and nothing else.
#[test]
fn a_function_that_fails_ends_its_query() {
    let lab = lab();
    lab.service().limit_scripts(ScriptLimits { ticks_max: 500, ..ScriptLimits::default() });
    for (name, text, message) in [
        ("throws", "function () { throw new Error('no'); }", "Error: no"),
        ("loops", "function () { for (;;); }", "exceeded the time"),
        ("recurses", "function f() { return f() + 1; }", "Out of stack space"),
        ("fills", "function () { var a = []; for (;;) a.push([a.length]); }", "Out of memory"),
        ("broken", "function (", "SyntaxError"),
        ("context", "function () { return getContext(); }", "getContext is not defined"),
        ("waits", "async function () { await new Promise(function () {}); }", "never settled"),
    ] {
        lab.create_function(name, text).unwrap();
        let ask = Ask::new(format!("SELECT VALUE udf.{name}(c.n) FROM c"));
        for approach in [Approach::Index, Approach::Scan] {
            let failed = lab.all(&ask, approach, PAGE_ALL, |_| {});
            let Err(ServiceError::Query { report }) = failed else { panic!("{name}: {failed:?}") };
            assert!(report.to_string().contains(message), "{name}: {report}");
        }
    }
    let ask = Ask::new("SELECT VALUE c.n FROM c".to_owned());
    assert_eq!(lab.all(&ask, Approach::Index, PAGE_ALL, |_| {}).unwrap().rows.len(), ITEMS);
}
