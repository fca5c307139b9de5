//! What a query may know of the world besides documents and parameters.
//!
//! There is no clock and no randomness down here: whoever runs a query says what
//! time it is and where random numbers begin, and the same context gives the
//! same rows.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use model::json::Value;
use model::policy::{ComputedProperty, GeospatialConfig};

/// The surroundings of a query. The default knows nothing: it is 1970, and there
/// are no computed properties and no functions of the user's.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// What the query takes for the current time, in ticks of 100 nanoseconds
    /// since 1970. All rows of a query see the same time.
    pub now_ticks: i64,
    /// Where RAND begins.
    pub seed: u64,
    /// What the container takes coordinates for.
    pub spatial: GeospatialConfig,
    /// The container's computed properties.
    pub computed: Vec<ComputedProperty>,
    /// The container's functions; without them a query that calls one can be
    /// planned, but not run.
    pub functions: Option<Arc<dyn UserFunctions>>,
    /// Whoever runs the query and may have it stop.
    pub watch: Option<Arc<dyn Watch>>,
    /// Whoever wants to know how long functions take.
    pub meter: Option<Arc<dyn StepMeter>>,
}

/// Keeps an eye on a query while it is bound and evaluated.
pub trait Watch: Debug + Send + Sync {
    /// Asked every [`crate::WATCH_STEPS`] steps, on the thread that the query runs on, so
    /// that others can have a turn meanwhile. A query that may not go on ends with
    /// [`crate::QueryError::Stopped`].
    fn may_go_on(&self) -> bool;
}

/// Whose function a call is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    System,
    User,
}

/// Measures how long functions take.
pub trait StepMeter: Debug + Send + Sync {
    /// The time since some moment.
    fn now(&self) -> Duration;

    /// Takes down how long a call took, without its arguments.
    fn took(&self, called: Called, time: Duration);
}

/// The functions that users have stored with a container.
pub trait UserFunctions: Debug + Send + Sync {
    /// Whether there is a function of that name; names keep their case.
    fn contains(&self, name: &str) -> bool;

    /// Calls a function; `None` is undefined. Never asked about arguments that
    /// are undefined: such a call is undefined by itself.
    fn call(&self, name: &str, arguments: &[Value]) -> Result<Option<Value>, UserFunctionError>;
}

/// Why a call gave no value, in words for the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UserFunctionError {
    pub message: String,
}
