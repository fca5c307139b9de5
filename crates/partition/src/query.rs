//! Finding the items that a query may be about, in one bucket at a time.
//!
//! An [`AccessPath`] says where to look: at every item, along the entries of one index,
//! or at the items that several indexes agree on. A [`BucketScan`] goes that way through
//! one bucket and gives [`Candidate`]s, each with a *position*: its key without what
//! names the bucket. Positions of several buckets can be compared, which is how
//! whoever asks many buckets brings their candidates into one order, and a walk can
//! begin behind any position, which is how a query goes on with its next page.

mod absent;
mod access;
mod by_value;
mod composite;
mod indexes;
mod planner;
mod scan;
mod set_cursor;

pub use access::AccessPath;
pub(crate) use planner::choose;
pub use planner::{AccessPlan, OrderError, ScanOrder, Statistics};
pub use scan::{BucketScan, Candidate, ScanEntry, ScanScope, ScanStart, ScanStats};
pub(crate) use set_cursor::{count_entries, count_sets_of_names, count_values};

/// How a query finds its items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Approach {
    /// Through the index, where that helps.
    #[default]
    Index,
    /// By reading every item, whatever the index knows: what answers are compared with.
    Scan,
}
