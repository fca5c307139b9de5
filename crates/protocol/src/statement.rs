//! Queries as they are in bodies.

use model::json::Value;

use crate::error::WireError;

/// A query as it is in a body.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub text: String,
    pub parameters: Value,
}

impl Statement {
    /// # Errors
    /// There is no query in the body.
    pub fn read(body: &Value) -> Result<Statement, WireError> {
        let text = body.get("query").and_then(Value::as_str);
        let text =
            text.ok_or_else(|| WireError::bad_request("The request body has no 'query' text."))?;
        let parameters = body.get("parameters").filter(|value| !value.is_null()).cloned();
        let parameters = parameters.unwrap_or_else(|| Value::Array(Vec::new()));
        Ok(Statement { text: text.to_owned(), parameters })
    }
}
