//! The meter of one physical partition: what was spent, and by which keys.
//!
//! Everything is counted in bounded memory and under one short lock: totals since the
//! partition is served, a ring of seconds for the busiest one, and a sketch of the keys
//! that cost most (see [`Heavy`]).

mod heavy;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::charge::Charge;
use model::epk::Epk;

use heavy::Heavy;

/// Seconds over which the busiest is sought: the service's metric is per minute.
const WINDOW_SECS: u64 = 60;

/// Keys that the sketch holds. Any key that costs more than this fraction of the whole is
/// surely among them.
const KEYS_MAX: usize = 64;

/// Counts the use of one physical partition.
#[derive(Debug, Default)]
pub struct Meter {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    totals: Totals,
    seconds: Seconds,
    keys: Keys,
}

/// Counts that only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Requests that were admitted.
    pub requests: u64,
    /// Requests that were refused because the throughput was used up.
    pub throttled: u64,
    /// What the admitted requests cost.
    pub charge: Charge,
}

impl Totals {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Totals) -> Totals {
        Totals {
            requests: self.requests + other.requests,
            throttled: self.throttled + other.throttled,
            charge: self.charge + other.charge,
        }
    }
}

/// What a key cost during the last one to two minutes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeavyKey {
    /// Its position on the ring.
    pub position: Epk,
    /// An upper bound.
    pub charge: Charge,
    /// By how much `charge` may be too high.
    pub error: Charge,
}

impl Meter {
    /// Counts a request that was done.
    pub fn served(&self, now: Duration, position: Option<&Epk>, charge: Charge) {
        let mut state = self.state();
        state.totals.requests += 1;
        state.totals.charge += charge;
        state.seconds.add(now.as_secs(), charge);
        if let Some(position) = position {
            state.keys.add(now.as_secs(), position, charge);
        }
    }

    /// Counts a request that was refused.
    pub fn throttled(&self) {
        self.state().totals.throttled += 1;
    }

    #[must_use]
    pub fn totals(&self) -> Totals {
        self.state().totals
    }

    /// What the busiest second of the last minute cost.
    #[must_use]
    pub fn busiest_second(&self, now: Duration) -> Charge {
        self.state().seconds.busiest(now.as_secs())
    }

    /// The keys that cost most recently, the costliest first.
    #[must_use]
    pub fn heaviest(&self, now: Duration, keys_max: usize) -> Vec<HeavyKey> {
        self.state().keys.heaviest(now.as_secs(), keys_max)
    }

    /// A panic cannot leave counts in a state that matters.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A ring of the last seconds.
#[derive(Debug)]
struct Seconds {
    ring: Vec<(u64, Charge)>,
}

impl Default for Seconds {
    fn default() -> Seconds {
        Seconds { ring: (0..WINDOW_SECS).map(|second| (second, Charge::default())).collect() }
    }
}

impl Seconds {
    fn add(&mut self, second: u64, charge: Charge) {
        let place = usize::try_from(second % WINDOW_SECS).unwrap_or_default();
        let Some(entry) = self.ring.get_mut(place) else { return };
        if entry.0 != second {
            *entry = (second, Charge::default());
        }
        entry.1 += charge;
    }

    fn busiest(&self, second: u64) -> Charge {
        let recent = self.ring.iter().filter(|entry| entry.0 + WINDOW_SECS > second);
        recent.map(|entry| entry.1).max().unwrap_or_default()
    }
}

/// The sketch of this window and of the one before: what was hot an hour ago does
/// not hide what is hot now.
#[derive(Debug)]
struct Keys {
    window: u64,
    current: Heavy,
    last: Heavy,
}

impl Default for Keys {
    fn default() -> Keys {
        Keys { window: 0, current: Heavy::new(KEYS_MAX), last: Heavy::new(KEYS_MAX) }
    }
}

impl Keys {
    fn add(&mut self, second: u64, position: &Epk, charge: Charge) {
        self.turn(second);
        self.current.add(position, charge);
    }

    /// Begins a new window when it is time.
    fn turn(&mut self, second: u64) {
        let window = second / WINDOW_SECS;
        if window > self.window {
            let follows = window == self.window + 1;
            let ended = std::mem::replace(&mut self.current, Heavy::new(KEYS_MAX));
            self.last = if follows { ended } else { Heavy::new(KEYS_MAX) };
            self.window = window;
        }
    }

    fn heaviest(&mut self, second: u64, keys_max: usize) -> Vec<HeavyKey> {
        self.turn(second);
        let mut keys: Vec<HeavyKey> = self.current.entries().to_vec();
        for entry in self.last.entries() {
            match keys.iter_mut().find(|known| known.position == entry.position) {
                Some(known) => {
                    known.charge += entry.charge;
                    known.error += entry.error;
                }
                None => keys.push(entry.clone()),
            }
        }
        keys.sort_by(|a, b| b.charge.cmp(&a.charge).then_with(|| a.position.cmp(&b.position)));
        keys.truncate(keys_max);
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epk(byte: u8) -> Epk {
        Epk::from_bytes(&[byte]).unwrap()
    }

    fn units(units: u64) -> Charge {
        Charge::from_units(units)
    }

    fn at(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn totals_only_grow() {
        let meter = Meter::default();
        meter.served(at(1), None, units(21));
        meter.served(at(2), Some(&epk(1)), units(4));
        meter.throttled();
        assert_eq!(meter.totals(), Totals { requests: 2, throttled: 1, charge: units(25) });
    }

    #[test]
    fn the_busiest_second_is_of_the_last_minute() {
        let meter = Meter::default();
        for (second, charge) in [(5, 100), (5, 50), (6, 120), (70, 10)] {
            meter.served(at(second), None, units(charge));
        }
        for (now, busiest) in [(6, 150), (64, 150), (65, 120), (66, 10), (129, 10), (130, 0)] {
            assert_eq!(meter.busiest_second(at(now)), units(busiest), "at {now}");
        }
    }

    #[test]
    fn the_heaviest_keys_are_those_of_late() {
        let meter = Meter::default();
        for (second, key, charge) in [(1, 1, 500), (1, 2, 30), (61, 2, 40), (61, 3, 60)] {
            meter.served(at(second), Some(&epk(key)), units(charge));
        }
        let heaviest = |now| {
            let keys = meter.heaviest(at(now), 2);
            keys.into_iter().map(|key| (key.position, key.charge.units())).collect::<Vec<_>>()
        };
        assert_eq!(heaviest(62), [(epk(1), 500), (epk(2), 70)]);
        assert_eq!(heaviest(121), [(epk(3), 60), (epk(2), 40)]);
        assert_eq!(heaviest(181), []);
    }
}
