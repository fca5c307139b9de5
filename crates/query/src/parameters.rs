//! The parameters of a query text.

use std::collections::{BTreeMap, BTreeSet};

use model::json::Value;

use crate::error::{QueryError, Refusal};
use crate::lexer::is_parameter;

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

    /// Reads the list that clients send: `[{"name": "@id", "value": …}, …]`. A parameter
    /// without a value is undefined, as if it were missing.
    pub fn from_list(list: &Value) -> Result<Parameters, QueryError> {
        let items = list.as_array().ok_or(Refusal::Input)?;
        let (mut values, mut names) = (BTreeMap::new(), BTreeSet::new());
        for item in items {
            let name = item.get("name").and_then(Value::as_str).ok_or(Refusal::Input)?;
            if !is_parameter(name) {
                return Err(Refusal::ParameterName { name: name.to_owned() }.into());
            }
            if !names.insert(name) {
                return Err(Refusal::DuplicateParameter { name: name.to_owned() }.into());
            }
            if let Some(value) = item.get("value") {
                values.insert(name.to_owned(), value.clone());
            }
        }
        Ok(Parameters { values })
    }

    /// Adds or replaces one value.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Parameters {
        self.values.insert(name.to_owned(), value.into());
        self
    }

    /// All of them, in the order of their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.values.iter()
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }
}
