//! The door: text in, something that can be run out.

use crate::error::QueryError;
use crate::parser;
use crate::syntax::Select;

/// A query whose text is right. Names and functions are not looked at yet:
/// that needs the parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    select: Select,
}

impl Query {
    pub fn parse(text: &str) -> Result<Query, QueryError> {
        parser::parse_query(text).map(|select| Query { select })
    }

    /// The syntax tree; it prints as canonical text.
    #[must_use]
    pub fn syntax(&self) -> &Select {
        &self.select
    }
}
