//! Timings of a scan, for clients that ask for them.
//!
//! Two readings of the clock take about as long as one step along an index, so nothing is
//! measured otherwise.

use std::cell::Cell;
use std::time::Duration;

use super::request::{ScanTimes, TimeSlice};

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// Reading index entries.
    Finding,
    /// Loading items.
    Loading,
    /// Serialising rows.
    Writing,
}

/// Adds up the activities of one execution.
pub(super) struct Stopwatch<'t> {
    /// `None` if timings are not requested.
    clock: Option<&'t dyn TimeSlice>,
    finding: Cell<Duration>,
    loading: Cell<Duration>,
    writing: Cell<Duration>,
}

impl<'t> Stopwatch<'t> {
    pub(super) fn new(slice: &'t dyn TimeSlice, is_timed: bool) -> Stopwatch<'t> {
        let zero = || Cell::new(Duration::ZERO);
        let clock = is_timed.then_some(slice);
        Stopwatch { clock, finding: zero(), loading: zero(), writing: zero() }
    }

    pub(super) fn measure<T>(&self, activity: Activity, work: impl FnOnce() -> T) -> T {
        let Some(clock) = self.clock else { return work() };
        let before = clock.elapsed();
        let done = work();
        let sum = match activity {
            Activity::Finding => &self.finding,
            Activity::Loading => &self.loading,
            Activity::Writing => &self.writing,
        };
        sum.set(sum.get() + clock.elapsed().saturating_sub(before));
        done
    }

    pub(super) fn times(&self) -> ScanTimes {
        ScanTimes {
            finding: self.finding.get(),
            loading: self.loading.get(),
            writing: self.writing.get(),
        }
    }
}
