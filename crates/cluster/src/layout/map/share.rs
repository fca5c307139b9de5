//! How a container's throughput is divided between its ranges.
//!
//! Evenly, unless the throughput was redistributed. Then each range has a weight, and its
//! share is its weight among all of them: whole numbers, so that halves of halves stay
//! exact and maps can be compared.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::{ContainerMap, LayoutError, PartitionId, PartitionRecord};

/// Above this, weights are scaled down before they are doubled. The rounding error is far
/// below one RU/s.
const WEIGHT_MAX: u64 = 1 << WEIGHT_BITS;

/// What a double holds exactly.
const WEIGHT_BITS: u32 = 53;

/// Which ranges get the throughput of a range that is split for its storage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Division {
    /// All ranges an equal share, as documented.
    #[default]
    Even,
    /// Its children, as users have reported.
    Inherited,
}

/// The name of an unknown division.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is neither even nor inherited")]
pub struct DivisionError(String);

impl FromStr for Division {
    type Err = DivisionError;

    fn from_str(text: &str) -> Result<Division, DivisionError> {
        match text {
            "even" => Ok(Division::Even),
            "inherited" => Ok(Division::Inherited),
            _ => Err(DivisionError(text.to_owned())),
        }
    }
}

impl ContainerMap {
    /// Whether ranges have weights of their own instead of equal shares.
    #[must_use]
    pub fn is_weighted(&self) -> bool {
        self.weighted
    }

    /// The share of the whole that a range has.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "weights need no more than 53 bits")]
    pub fn fraction(&self, record: &PartitionRecord) -> f64 {
        record.weight as f64 / self.weight_sum() as f64
    }

    /// The same layout, divided by these weights, in whatever unit. Every range
    /// needs one.
    pub fn with_weights(
        &self,
        weights: &BTreeMap<PartitionId, u128>,
    ) -> Result<ContainerMap, LayoutError> {
        let common = weights.values().fold(0, |common, weight| divisor(common, *weight)).max(1);
        let largest = weights.values().max().copied().unwrap_or(1) / common;
        let shift = (u128::BITS - largest.leading_zeros()).saturating_sub(WEIGHT_BITS);
        let smaller =
            |weight: u128| u64::try_from((weight / common) >> shift).unwrap_or(WEIGHT_MAX).max(1);
        let mut map = self.clone();
        map.weighted = true;
        for record in &mut map.ranges {
            let weight = weights.get(&record.id).filter(|weight| **weight > 0);
            record.weight = smaller(*weight.ok_or(LayoutError::NoRange(record.id))?);
        }
        Ok(map)
    }

    /// The same layout, divided evenly from now on.
    #[must_use]
    pub fn divided_evenly(&self) -> ContainerMap {
        let mut map = self.clone();
        map.weighted = false;
        map.ranges.iter_mut().for_each(|record| record.weight = 1);
        map
    }

    /// The same layout in which every range keeps its share: if it is split, its children
    /// divide it.
    #[must_use]
    pub fn divided_by_inheritance(&self) -> ContainerMap {
        ContainerMap { weighted: true, ..self.clone() }
    }

    /// Doubles all weights, so that the one of `parent` can be halved, and returns
    /// the half.
    pub(super) fn halve(&mut self, parent: u64) -> u64 {
        if !self.weighted {
            return 1;
        }
        let too_large = self.ranges.iter().any(|record| record.weight > WEIGHT_MAX);
        let (shrink, parent) = if too_large { (2, (parent / 2).max(1)) } else { (1, parent) };
        for record in &mut self.ranges {
            record.weight = (record.weight / shrink).max(1) * 2;
        }
        parent
    }

    /// The weight of the range that these are merged into.
    pub(super) fn joined(&self, parents: &[PartitionRecord]) -> u64 {
        if self.weighted { parents.iter().map(|parent| parent.weight).sum() } else { 1 }
    }

    /// Divides the weights by their greatest common divisor.
    pub(super) fn reduce(&mut self) {
        let weights = self.ranges.iter().map(|record| u128::from(record.weight));
        let common = weights.fold(0, divisor);
        if let Ok(common @ 2..) = u64::try_from(common) {
            self.ranges.iter_mut().for_each(|record| record.weight /= common);
        }
    }

    /// Never zero: every map has a range, and every range a weight.
    pub(super) fn weight_sum(&self) -> u64 {
        self.ranges.iter().map(|record| record.weight).fold(0, u64::saturating_add).max(1)
    }

    pub(super) fn weights_are_sound(&self) -> bool {
        let allowed = |weight| if self.weighted { weight > 0 } else { weight == 1 };
        self.ranges.iter().all(|record| allowed(record.weight))
    }
}

/// The greatest common divisor.
fn divisor(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { divisor(b, a % b) }
}
