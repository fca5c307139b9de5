//! The context of a query: everything besides documents and parameters.
//!
//! There is no clock and no randomness in this crate: the caller provides the time and the
//! seed of random numbers, and the same context gives the same rows.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use model::json::Value;
use model::policy::{ComputedProperty, GeospatialConfig};

/// The context of a query. The default is empty: it is 1970, and there are no computed
/// properties and no user-defined functions.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The current time of the query, in ticks of 100 nanoseconds since 1970. All rows of a
    /// query see the same time.
    pub now_ticks: i64,
    /// The seed of RAND.
    pub seed: u64,
    /// Whether the container's coordinates are geography or geometry.
    pub spatial: GeospatialConfig,
    /// The container's computed properties.
    pub computed: Vec<ComputedProperty>,
    /// The container's functions; without them a query that calls one can be
    /// planned, but not run.
    pub functions: Option<Arc<dyn UserFunctions>>,
    /// Can stop the query while it runs.
    pub watch: Option<Arc<dyn Watch>>,
    /// Measures functions, if timings are requested.
    pub meter: Option<Arc<dyn StepMeter>>,
}

/// Watches a query while it is bound and evaluated.
pub trait Watch: Debug + Send + Sync {
    /// Called every [`crate::WATCH_STEPS`] steps, on the thread that the query runs on, so
    /// that other queries can have a turn meanwhile. A query that may not continue ends
    /// with [`crate::QueryError::Stopped`].
    fn may_go_on(&self) -> bool;
}

/// The kind of a called function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    System,
    User,
}

/// Measures the time that functions take.
pub trait StepMeter: Debug + Send + Sync {
    /// The time since some moment.
    fn now(&self) -> Duration;

    /// Records how long a call took, without its arguments.
    fn took(&self, called: Called, time: Duration);
}

/// The functions that users have stored with a container.
pub trait UserFunctions: Debug + Send + Sync {
    /// Whether there is a function of that name; names keep their case.
    fn contains(&self, name: &str) -> bool;

    /// Calls a function; `None` is undefined. Never called with undefined arguments: such a
    /// call is undefined by itself.
    fn call(&self, name: &str, arguments: &[Value]) -> Result<Option<Value>, UserFunctionError>;
}

/// Why a call gave no value, as text for the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UserFunctionError {
    pub message: String,
}
