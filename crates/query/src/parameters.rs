//! The values that come along with a query text.

use std::collections::BTreeMap;

use model::json::Value;

use crate::error::QueryError;

/// Parameters by name; names begin with `@` and keep their case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parameters {
    values: BTreeMap<String, Value>,
}

impl Parameters {
    #[must_use]
    pub fn none() -> Parameters {
        Parameters::default()
    }

    /// Reads the list that clients send: `[{"name": "@id", "value": …}, …]`.
    /// The last of two values for one name counts.
    pub fn from_list(list: &Value) -> Result<Parameters, QueryError> {
        let problem = |problem| QueryError::Parameters { problem };
        let items = list.as_array().ok_or(problem("not a list"))?;
        let pair = |item: &Value| {
            let name = item.get("name").and_then(Value::as_str).filter(|name| is_name(name));
            let value = item.get("value").cloned();
            name.map(str::to_owned).zip(value)
        };
        let values = items.iter().map(pair).collect::<Option<_>>();
        values
            .map(|values| Parameters { values })
            .ok_or(problem("each needs a name that begins with '@' and a value"))
    }

    /// Adds or replaces one value.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Parameters {
        self.values.insert(name.to_owned(), value.into());
        self
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    bytes.next() == Some(b'@')
        && bytes.next().is_some_and(first)
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
