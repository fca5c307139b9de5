//! The query language: text → syntax tree → bound tree → rows.
//!
//! A [`Query`] is text that parsed, or a tree that a program made; binding it to parameters
//! resolves names and functions and gives a [`Bound`] query, which can be evaluated on one
//! document at a time or executed over many. Documents stay JSON text: a filter looks up
//! the properties it needs and builds nothing.
//!
//! Must not know: storage, partitions, HTTP.

mod advice;
mod analysis;
mod bind;
mod bound;
mod context;
mod document;
mod error;
mod eval;
mod execute;
mod functions;
mod index_use;
mod ledger;
mod lexer;
mod number;
mod parameters;
mod parser;
mod plan;
mod predicate;
mod query;
mod run;
pub mod syntax;
mod transfer;
mod tree;

pub use advice::Advice;
pub use bind::{Path, PathStep, UDF_CALLS_MAX};
pub use context::{Called, Context, StepMeter, UserFunctionError, UserFunctions, Watch};
pub use document::{AddedProperties, DocumentView};
pub use error::{Code, Door, ErrorLocation, QueryError, Refusal, Span, SyntaxError};
pub use eval::{STEPS_MAX, VALUE_BYTES_MAX, WATCH_STEPS};
pub use execute::PartialGroups;
pub use index_use::{Composite, Impact, IndexSpec, IndexUse, Indexed};
pub use ledger::{KEPT_BYTES_MAX, Ledger, Memory};
pub use number::Numeric;
pub use parameters::Parameters;
pub use parser::{
    AND_MAX, DEEP_STACK_BYTES, Depth, GROUP_KEYS_MAX, IN_ITEMS_MAX, JOINS_MAX, NESTING_MAX, OR_MAX,
    QUERY_BYTES_MAX, QueryLimits, SYMBOLS_MAX,
};
pub use plan::{
    AggregateKind, DistinctType, Feature, Features, KeyBound, KeyRanges, KeyShape, Plan,
    PlanOptions, PlannedRange, QueryInfo, RingRange,
};
pub use predicate::{Comparison, Filter, Predicate};
pub use query::{
    Bound, CONDITION_STEPS_MAX, Condition, Order, Query, canonical_expression,
    check_computed_property, evaluate, evaluate_in,
};
pub use run::{Aggregated, Argument, Row, RowSink, Run, ValueKey};
pub use syntax::EXPRESSION_HEIGHT_MAX;
