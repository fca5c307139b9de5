//! The errors of queries, grouped by what the caller can do about them.

use std::fmt;
use std::ops::Range;

use model::json::{Object, Value};

use crate::context::UserFunctionError;

/// The position of a construct in a query text, as byte offsets.
///
/// All spans are equal: the position of a node is not part of its meaning, and two trees
/// are equal if they mean the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Offsets beyond 4 GB saturate; [`crate::QUERY_BYTES_MAX`] is far below.
    #[must_use]
    pub fn new(start: usize, end: usize) -> Span {
        let narrow = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
        Span { start: narrow(start), end: narrow(end) }
    }

    /// From the start of this to the end of the other.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start, end: other.end }
    }

    #[must_use]
    pub fn range(self) -> Range<usize> {
        let widen = |offset: u32| usize::try_from(offset).expect("usize has at least 32 bits");
        widen(self.start)..widen(self.end)
    }

    pub(crate) fn slice(self, text: &str) -> &str {
        text.get(self.range()).unwrap_or_default()
    }
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

impl Eq for Span {}

/// The service's code for a refusal. Clients and tests match on these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub(crate) &'static str);

/// Which stage refuses a query: planning, execution, or both.
///
/// Clients request a plan first, and the service plans more than it executes: when planning
/// it knows neither the indexing policy, nor user-defined functions, nor some limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    Plan,
    Run,
    Both,
}

/// The table of refusals with a position in the text: name, code, and the stage that
/// refuses.
macro_rules! codes {
    ($($name:ident = $code:literal, $door:ident;)*) => {
        impl Code {
            $(pub const $name: Code = Code($code);)*

            /// All codes, and the stage that refuses with them.
            pub const ALL: &[(Code, Door)] = &[$((Code::$name, Door::$door),)*];
        }
    };
}

codes! {
    SYNTAX = "SC1001", Both;
    END_OF_TEXT = "SC1002", Both;
    INVALID_CHARACTER = "SC1010", Both;
    INVALID_NUMBER = "SC1011", Both;
    INVALID_STRING = "SC1012", Both;
    STAR_WITHOUT_FROM = "SC1021", Both;
    TOO_COMPLEX = "SC1030", Both;
    UNRESOLVED = "SC2001", Both;
    UNKNOWN_FUNCTION = "SC2005", Both;
    DUPLICATE_SOURCE = "SC2021", Both;
    DUPLICATE_NAME = "SC2022", Both;
    DUPLICATE_DEFINITION = "SC2023", Both;
    STAR_WITH_AGGREGATE = "SC2040", Both;
    STAR_WITH_GROUP_BY = "SC2041", Both;
    STAR_WITH_JOIN = "SC2042", Both;
    ARGUMENT_COUNT = "SC2050", Both;
    HASH_MODULO = "SC2051", Both;
    HASH_SEED = "SC2052", Both;
    TIME_SPAN = "SC2053", Both;
    TOP_COUNT = "SC2060", Both;
    LIMIT_COUNT = "SC2061", Both;
    OFFSET_COUNT = "SC2062", Both;
    LET_IN_GROUP_BY = "SC2090", Both;
    LET_IN_ORDER_BY = "SC2091", Both;
    NESTED_AGGREGATE = "SC2101", Both;
    NOT_GROUPED = "SC2102", Both;
    NOT_ORDERED = "SC2103", Both;
    AGGREGATE_IN_FILTER = "SC2104", Both;
    UNREFERRING_GROUP_KEY = "SC2110", Both;
    GROUP_KEY = "SC2111", Both;
    CARDINALITY = "SC2201", Both;
    ORDER_BY_IN_SUBQUERY = "SC2202", Both;
    TOP_IN_SUBQUERY = "SC2203", Both;
    OFFSET_IN_SUBQUERY = "SC2204", Both;
    TOP_WITH_OFFSET = "SC2205", Both;
    ESCAPE_CHARACTER = "SC2207", Both;
    RANK_FUNCTION = "SC2221", Both;
    RANK_WITH_IN = "SC2223", Both;
    RANK_WITH_JOIN = "SC2224", Both;
    RANK_WITH_SUBQUERY = "SC2225", Both;
    RANK_IN_SUBQUERY = "SC2228", Both;
    SCORE_OUTSIDE_RANK = "SC2240", Both;
    NOT_SUPPORTED = "SC2990", Both;
    // The codes of limits follow the order of the account's settings; those for the
    // text, joins and user-defined functions are known from the service.
    TEXT_LENGTH = "SC3020", Both;
    JOIN_COUNT = "SC3002", Both;
    AND_COUNT = "SC3003", Run;
    OR_COUNT = "SC3004", Run;
    UDF_COUNT = "SC3005", Both;
    IN_ITEM_COUNT = "SC3006", Run;
}

impl Code {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// One error in the query text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code} at {}..{}: {message}", position.start, position.end)]
pub struct SyntaxError {
    pub code: Code,
    /// Byte offsets. The service counts UTF-16 units: see [`SyntaxError::place`].
    pub position: Range<usize>,
    pub message: String,
}

/// A position in lines and columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorLocation {
    /// From one.
    pub line: usize,
    /// In characters, from one.
    pub column: usize,
    /// UTF-16 units from the start of the text, as in the service's `location`.
    pub start: usize,
    pub end: usize,
}

impl SyntaxError {
    pub(crate) fn new(code: Code, span: Span, message: impl Into<String>) -> SyntaxError {
        SyntaxError { code, position: span.range(), message: message.into() }
    }

    fn to_value(&self, text: &str) -> Value {
        let place = self.place(text);
        let count = |offset: usize| i64::try_from(offset).unwrap_or(i64::MAX);
        let location =
            Object::from_iter([("start", count(place.start)), ("end", count(place.end))]);
        let mut error = Object::from_iter([("severity", "Error")]);
        error.insert("location", location);
        error.insert("code", self.code.as_str());
        error.insert("message", self.message.as_str());
        error.into()
    }

    /// Translates the position into lines, columns and UTF-16 units of its text.
    #[must_use]
    pub fn place(&self, text: &str) -> ErrorLocation {
        let before = text.get(..self.position.start).unwrap_or(text);
        let inside = text.get(self.position.clone()).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let start = before.encode_utf16().count();
        ErrorLocation {
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            start,
            end: start + inside.encode_utf16().count(),
        }
    }
}

/// Why a query has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The text is invalid: the client must change it. Never empty; the service lists every
    /// error that it finds.
    #[error("{}", list(.0))]
    Invalid(Vec<SyntaxError>),

    /// The text is valid, but the service does not plan such queries: the client must
    /// rephrase it.
    #[error("{0}")]
    Refused(Refusal),

    /// A user-defined function failed, or does not exist.
    #[error("user-defined function '{name}': {source}")]
    UserFunction { name: String, source: UserFunctionError },

    /// The text is valid, but this engine does not support it yet.
    #[error("{what} is not supported yet")]
    Unsupported { what: String },

    /// The query exceeds a limit of one request. The client must ask for less.
    #[error("the query exceeds the limit of {limit} {what}")]
    Limit { what: &'static str, limit: usize },

    /// The query was cancelled: the client has gone, or the server stops.
    #[error("the query was stopped")]
    Stopped,

    /// Other queries hold so much memory that there is none for this one. The client may
    /// try again.
    #[error("there is no memory left for the query at the moment")]
    OutOfMemory,

    /// A scalar subquery returned more than one row, so it has no single value.
    #[error("a scalar subquery gave more than one row")]
    Cardinality,

    /// The result contains NaN or an infinity, which JSON cannot represent.
    #[error("the result holds a number that is not finite")]
    NotFinite,
}

/// Queries that the service parses and then refuses to plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    #[error(
        "Unsupported ORDER BY clause. ORDER BY item expression could not be mapped to a document path."
    )]
    OrderByExpression,

    #[error(
        "The query of a computed property must be of the form SELECT VALUE <expression> FROM <alias>."
    )]
    ComputedProperty,

    /// A request without a text, or with parameters that are not a list of names and
    /// values.
    #[error("One of the specified inputs is invalid")]
    Input,

    #[error(
        "Invalid query. Specified parameter name '{name}' is invalid. Parameter names should be \
         in the format of symbol '@' followed by a valid identifier. E.g. @param1"
    )]
    ParameterName { name: String },

    #[error("Invalid query. Specified duplicate parameter name '{name}'.")]
    DuplicateParameter { name: String },

    /// Functions that only rewritten texts of the service itself call.
    #[error("'{name}' is not a recognized built-in function name.")]
    InternalFunction { name: String },

    #[error("Order-by over correlated collections is not supported.")]
    OrderByElements,

    #[error("Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates.")]
    NonValueAggregate,

    #[error("Compositions of aggregates and other expressions are not allowed.")]
    ComposedAggregate,

    #[error(
        "Query contains 1 or more unsupported features. Upgrade your SDK to a version that does \
         support the requested features:\r\n{}",
        .features.iter().map(|feature| missing(feature)).collect::<Vec<_>>().join("\r\n")
    )]
    UnsupportedFeatures { features: Vec<&'static str> },
}

fn missing(feature: &str) -> String {
    format!("Query contained {feature}, which the calling client does not support.")
}

impl Refusal {
    /// The stage that refuses; the other half of the table that [`Code::ALL`] begins.
    #[must_use]
    pub fn door(&self) -> Door {
        match self {
            Refusal::OrderByExpression
            | Refusal::Input
            | Refusal::ParameterName { .. }
            | Refusal::DuplicateParameter { .. } => Door::Both,
            // Execution combines the aggregates, which otherwise the client would have to
            // do.
            Refusal::NonValueAggregate
            | Refusal::ComposedAggregate
            | Refusal::UnsupportedFeatures { .. } => Door::Plan,
            // A definition is neither planned nor executed by itself, but with a query.
            Refusal::ComputedProperty
            | Refusal::InternalFunction { .. }
            | Refusal::OrderByElements => Door::Run,
        }
    }

    /// The number that clients match on, where the service has one.
    #[must_use]
    pub fn code(&self) -> Option<u32> {
        match self {
            Refusal::OrderByExpression => Some(2206),
            Refusal::ComputedProperty
            | Refusal::Input
            | Refusal::ParameterName { .. }
            | Refusal::DuplicateParameter { .. }
            | Refusal::InternalFunction { .. }
            | Refusal::OrderByElements
            | Refusal::NonValueAggregate
            | Refusal::ComposedAggregate
            | Refusal::UnsupportedFeatures { .. } => None,
        }
    }

    fn to_value(&self) -> Option<Value> {
        let code = self.code()?;
        let mut error = Object::from_iter([("severity", "Error")]);
        error.insert("code", code);
        error.insert("message", self.to_string());
        Some(error.into())
    }
}

impl QueryError {
    pub(crate) fn uncallable(name: &str) -> QueryError {
        QueryError::Unsupported { what: format!("calling the user-defined function '{name}'") }
    }

    /// The error body of the service, as its clients parse it. `text` is the query.
    ///
    /// Errors with a position or a number are a list of objects under `errors`, all others
    /// a list of texts under `Errors`.
    #[must_use]
    pub fn to_value(&self, text: &str) -> Value {
        let errors: Vec<Value> = match self {
            QueryError::Invalid(errors) => errors.iter().map(|e| e.to_value(text)).collect(),
            QueryError::Refused(refusal) => refusal.to_value().into_iter().collect(),
            QueryError::UserFunction { .. }
            | QueryError::Unsupported { .. }
            | QueryError::Limit { .. }
            | QueryError::Stopped
            | QueryError::OutOfMemory
            | QueryError::Cardinality
            | QueryError::NotFinite => Vec::new(),
        };
        if errors.is_empty() {
            return Object::from_iter([("Errors", vec![self.to_string()])]).into();
        }
        Object::from_iter([("errors", errors)]).into()
    }
}

impl From<Refusal> for QueryError {
    fn from(refusal: Refusal) -> QueryError {
        QueryError::Refused(refusal)
    }
}

impl From<SyntaxError> for QueryError {
    fn from(error: SyntaxError) -> QueryError {
        QueryError::Invalid(vec![error])
    }
}

fn list(errors: &[SyntaxError]) -> String {
    errors.iter().map(SyntaxError::to_string).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_characters_and_utf16_units() {
        let text = "SELECT\n  \"é😀\" 5";
        let start = text.find('5').expect("it is there");
        let error = SyntaxError::new(Code::SYNTAX, Span::new(start, start + 1), "");
        assert_eq!(error.place(text), ErrorLocation { line: 2, column: 8, start: 15, end: 16 });
    }

    #[test]
    fn places_beyond_the_text_do_not_panic() {
        let error = SyntaxError::new(Code::SYNTAX, Span::new(2, 90), "");
        assert_eq!(error.place("é"), ErrorLocation { line: 1, column: 2, start: 1, end: 1 });
    }
}
