//! Memory as a budget.
//!
//! Code that is about to keep bytes whose number a client decides reserves them from a
//! budget first, and gives them back by dropping the reservation. A budget counts; it
//! allocates nothing, and a count is only as accurate as what callers report.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A number of bytes, shared by all who reserve from it.
#[derive(Debug)]
pub struct MemoryBudget {
    limit: usize,
    held: AtomicUsize,
    /// The most that was held at once.
    high: AtomicUsize,
    refused: AtomicU64,
}

/// What a budget says about itself. The figures need not belong to one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUsage {
    pub limit: usize,
    pub held: usize,
    pub high: usize,
    /// How often there was not enough left.
    pub refused: u64,
}

/// The budget has too little left. Trying again later helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the memory set aside for this is used up")
    }
}

impl std::error::Error for OutOfMemory {}

/// Bytes of a budget, until dropped.
pub struct Reservation {
    budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl MemoryBudget {
    #[must_use]
    pub fn new(limit: usize) -> Arc<MemoryBudget> {
        Arc::new(MemoryBudget {
            limit,
            held: AtomicUsize::new(0),
            high: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
        })
    }

    /// A budget that only counts.
    #[must_use]
    pub fn unlimited() -> Arc<MemoryBudget> {
        MemoryBudget::new(usize::MAX)
    }

    /// Takes bytes, all or none.
    ///
    /// # Errors
    /// [`OutOfMemory`] if too few bytes are left.
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Result<Reservation, OutOfMemory> {
        let mut reservation = Reservation { budget: Arc::clone(self), bytes: 0 };
        reservation.grow(bytes)?;
        Ok(reservation)
    }

    #[must_use]
    pub fn usage(&self) -> MemoryUsage {
        MemoryUsage {
            limit: self.limit,
            held: self.held.load(Ordering::Relaxed),
            high: self.high.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }

    fn take(&self, bytes: usize) -> Result<(), OutOfMemory> {
        let add = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= self.limit);
        // Relaxed: nothing is published together with the count.
        match self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add) {
            Ok(before) => {
                self.high.fetch_max(before + bytes, Ordering::Relaxed);
                Ok(())
            }
            Err(_) => {
                self.refused.fetch_add(1, Ordering::Relaxed);
                Err(OutOfMemory)
            }
        }
    }
}

impl Reservation {
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes more, or keeps what it has.
    ///
    /// # Errors
    /// [`OutOfMemory`] if too few bytes are left.
    pub fn grow(&mut self, bytes: usize) -> Result<(), OutOfMemory> {
        self.budget.take(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Gives back everything above `bytes`.
    pub fn shrink_to(&mut self, bytes: usize) {
        let surplus = self.bytes.saturating_sub(bytes);
        self.budget.held.fetch_sub(surplus, Ordering::Relaxed);
        self.bytes -= surplus;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Random as _, SeededRandom};

    #[test]
    fn all_or_none_is_taken_and_all_comes_back() {
        let budget = MemoryBudget::new(10);
        let mut six = budget.reserve(6).unwrap();
        assert_eq!(budget.reserve(5).unwrap_err(), OutOfMemory);
        assert_eq!(six.grow(5), Err(OutOfMemory));
        assert_eq!(six.bytes(), 6);
        six.grow(4).unwrap();
        six.shrink_to(1);
        let rest = budget.reserve(9).unwrap();
        drop((six, rest));
        assert_eq!(budget.usage(), MemoryUsage { limit: 10, held: 0, high: 10, refused: 2 });
        assert!(MemoryBudget::unlimited().reserve(usize::MAX).is_ok());
    }

    /// Random reservations on several threads, checked after every step.
    #[test]
    fn never_more_is_held_than_there_is() {
        const LIMIT: usize = 1_000;
        let budget = MemoryBudget::new(LIMIT);
        std::thread::scope(|scope| {
            for seed in 0..8 {
                let budget = &budget;
                scope.spawn(move || {
                    let random = SeededRandom::new(seed);
                    let mut held: Vec<Reservation> = Vec::new();
                    for _ in 0..5_000 {
                        let number = random.next_u64();
                        let bytes = usize::try_from(number >> 8 & 0xFF).unwrap();
                        match (number & 3, held.last_mut()) {
                            (0, Some(last)) => last.shrink_to(bytes),
                            (1, Some(last)) => drop(last.grow(bytes)),
                            (2, Some(_)) => drop(held.swap_remove(0)),
                            _ => held.extend(budget.reserve(bytes)),
                        }
                        let own: usize = held.iter().map(Reservation::bytes).sum();
                        let all = budget.usage();
                        assert!(own <= LIMIT && all.held <= LIMIT && all.high <= LIMIT);
                    }
                });
            }
        });
        let usage = budget.usage();
        assert_eq!(usage.held, 0);
        assert!(usage.refused > 0 && usage.high > LIMIT / 2, "{usage:?}");
    }
}
