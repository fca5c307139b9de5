//! Time, real and simulated.
//!
//! Two readings, because they answer different questions: `now` is what goes
//! into documents and may jump when an operator sets the machine's clock;
//! `monotonic` is for measuring and waiting and never goes back.
//!
//! A [`VirtualClock`] can be moved ahead of the machine's, so that a test sees in a second what
//! takes a month. Each reading then has a twin: `machine_now` is the time of clients, which
//! virtual time leaves alone, and `steady` is what has passed for budgets and quiet partitions.
//! What measures work stays with `monotonic`: no work takes a month.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millis(u64);

impl Millis {
    #[must_use]
    pub const fn from_unix_ms(ms: u64) -> Millis {
        Millis(ms)
    }

    #[must_use]
    pub const fn as_unix_ms(self) -> u64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down.
    #[must_use]
    pub const fn as_unix_seconds(self) -> u64 {
        self.0 / 1_000
    }

    /// Stops at the end of time instead of wrapping.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Millis {
        let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Millis(self.0.saturating_add(ms))
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// Ticks of 100 nanoseconds in a millisecond.
const TICKS_PER_MILLI: i64 = 10_000;

pub trait Clock: Send + Sync + fmt::Debug {
    /// Wall-clock time. May go back: callers that need order clamp it themselves.
    fn now(&self) -> Millis;

    /// Wall-clock time in ticks of 100 nanoseconds since 1970, as finely as the clock goes.
    fn now_ticks(&self) -> i64 {
        let millis = i64::try_from(self.now().as_unix_ms()).unwrap_or(i64::MAX);
        millis.saturating_mul(TICKS_PER_MILLI)
    }

    /// Wall-clock time as clients have it.
    fn machine_now(&self) -> Millis {
        self.now()
    }

    /// Time since this clock was made. Never goes back.
    fn monotonic(&self) -> Duration;

    /// Like `monotonic`, but moved together with `now` where that is possible.
    fn steady(&self) -> Duration {
        self.monotonic()
    }

    /// This clock, if it can be moved.
    fn as_virtual(&self) -> Option<&VirtualClock> {
        None
    }

    /// Blocks the calling thread, so never to be called on an async worker.
    fn sleep(&self, duration: Duration);
}

/// The machine's clock.
#[derive(Debug)]
pub struct RealClock {
    started: Instant,
}

impl RealClock {
    #[must_use]
    #[allow(clippy::disallowed_methods, reason = "this is the clock everyone else takes")]
    pub fn new() -> RealClock {
        RealClock { started: Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> RealClock {
        RealClock::new()
    }
}

impl Clock for RealClock {
    #[allow(clippy::disallowed_methods, reason = "this is the clock everyone else takes")]
    fn now(&self) -> Millis {
        // A machine set to before 1970 reads as 1970 rather than failing.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Millis(0).plus(since)
    }

    #[allow(clippy::disallowed_methods, reason = "this is the clock everyone else takes")]
    fn now_ticks(&self) -> i64 {
        const NANOS_PER_TICK: u128 = 100;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_nanos() / NANOS_PER_TICK).unwrap_or(i64::MAX)
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    #[allow(clippy::disallowed_methods, reason = "this is the clock everyone else takes")]
    fn sleep(&self, duration: Duration) {
        crate::may_wait();
        std::thread::sleep(duration);
    }
}

/// A clock that was set ahead of another one, and can be set further ahead; never back.
#[derive(Debug)]
pub struct VirtualClock {
    machine: Arc<dyn Clock>,
    ahead_ms: AtomicU64,
}

impl VirtualClock {
    /// Not ahead at first.
    #[must_use]
    pub fn new(machine: Arc<dyn Clock>) -> VirtualClock {
        VirtualClock { machine, ahead_ms: AtomicU64::new(0) }
    }

    /// By how much it is ahead.
    #[must_use]
    pub fn ahead(&self) -> Duration {
        Duration::from_millis(self.ahead_ms.load(Ordering::Acquire))
    }

    /// Sets it as far ahead as this, unless it is further already.
    pub fn set_ahead(&self, ahead: Duration) {
        let ms = u64::try_from(ahead.as_millis()).unwrap_or(u64::MAX);
        self.ahead_ms.fetch_max(ms, Ordering::AcqRel);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Millis {
        self.machine.now().plus(self.ahead())
    }

    fn now_ticks(&self) -> i64 {
        let ahead_ms = i64::try_from(self.ahead().as_millis()).unwrap_or(i64::MAX);
        self.machine.now_ticks().saturating_add(ahead_ms.saturating_mul(TICKS_PER_MILLI))
    }

    fn machine_now(&self) -> Millis {
        self.machine.now()
    }

    fn monotonic(&self) -> Duration {
        self.machine.monotonic()
    }

    fn steady(&self) -> Duration {
        self.machine.monotonic().saturating_add(self.ahead())
    }

    fn as_virtual(&self) -> Option<&VirtualClock> {
        Some(self)
    }

    fn sleep(&self, duration: Duration) {
        self.machine.sleep(duration);
    }
}

/// A clock that moves only when it is set, or when someone sleeps on it: `sleep` moves it
/// forward and returns at once.
#[derive(Debug)]
pub struct SimulatedClock {
    state: Mutex<SimulatedTime>,
}

#[derive(Debug)]
struct SimulatedTime {
    now: Millis,
    monotonic: Duration,
    /// What each look adds to the monotonic reading.
    per_look: Duration,
}

impl SimulatedClock {
    /// Where simulated time begins: 2020-01-01T00:00:00Z, a date that reads as
    /// plausible in documents and as obviously not today in logs.
    pub const EPOCH: Millis = Millis(1_577_836_800_000);

    #[must_use]
    pub fn new() -> SimulatedClock {
        let (monotonic, per_look) = (Duration::ZERO, Duration::ZERO);
        let state = SimulatedTime { now: SimulatedClock::EPOCH, monotonic, per_look };
        SimulatedClock { state: Mutex::new(state) }
    }

    pub fn advance(&self, duration: Duration) {
        let mut state = self.state();
        state.now = state.now.plus(duration);
        state.monotonic = state.monotonic.saturating_add(duration);
    }

    /// Sets the wall clock, possibly backwards, as an operator might. The monotonic reading
    /// does not move.
    pub fn set(&self, now: Millis) {
        self.state().now = now;
    }

    /// From now on, this much time passes between two looks at the monotonic reading: code
    /// that looks often enough finds that its work takes long.
    pub fn slow_down(&self, per_look: Duration) {
        self.state().per_look = per_look;
    }

    fn state(&self) -> std::sync::MutexGuard<'_, SimulatedTime> {
        self.state.lock().expect("no code panics while it holds the simulated time")
    }
}

impl Default for SimulatedClock {
    fn default() -> SimulatedClock {
        SimulatedClock::new()
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Millis {
        self.state().now
    }

    fn monotonic(&self) -> Duration {
        let mut state = self.state();
        state.monotonic = state.monotonic.saturating_add(state.per_look);
        state.monotonic
    }

    fn sleep(&self, duration: Duration) {
        self.advance(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_time_stands_still_until_moved() {
        let clock = SimulatedClock::new();
        assert_eq!(clock.now(), SimulatedClock::EPOCH);
        assert_eq!(clock.monotonic(), Duration::ZERO);
        clock.sleep(Duration::from_millis(1_500));
        assert_eq!(clock.now().as_unix_ms(), SimulatedClock::EPOCH.as_unix_ms() + 1_500);
        assert_eq!(clock.monotonic(), Duration::from_millis(1_500));
    }

    #[test]
    fn setting_the_wall_clock_back_leaves_monotonic_time_alone() {
        let clock = SimulatedClock::new();
        clock.advance(Duration::from_secs(10));
        clock.set(Millis::from_unix_ms(5));
        assert_eq!(clock.now(), Millis::from_unix_ms(5));
        assert_eq!(clock.monotonic(), Duration::from_secs(10));
    }

    #[test]
    fn virtual_time_is_ahead_and_work_takes_as_long_as_it_takes() {
        let machine = Arc::new(SimulatedClock::new());
        let clock = VirtualClock::new(Arc::clone(&machine) as Arc<dyn Clock>);
        let (month, second) = (Duration::from_secs(30 * 24 * 3_600), Duration::from_secs(1));
        let (now, ticks) = (clock.now(), clock.now_ticks());
        clock.set_ahead(month);
        machine.advance(second);
        assert_eq!(clock.ahead(), month);
        assert_eq!(clock.now(), now.plus(month + second));
        assert_eq!(clock.now_ticks() - ticks, 10_000_000 * (30 * 24 * 3_600 + 1));
        assert_eq!(clock.machine_now(), now.plus(second));
        assert_eq!((clock.monotonic(), clock.steady()), (second, month + second));
        clock.set_ahead(second);
        assert_eq!(clock.ahead(), month, "it never goes back");
        assert!(machine.as_virtual().is_none());
    }

    #[test]
    fn millis_round_down_and_saturate() {
        assert_eq!(Millis::from_unix_ms(1_999).as_unix_seconds(), 1);
        assert_eq!(Millis::from_unix_ms(1).plus(Duration::MAX).as_unix_ms(), u64::MAX);
    }
}
