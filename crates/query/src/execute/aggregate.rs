//! Aggregates: how they treat undefined and mixed values is the service's table, recorded
//! from its emulator.

use std::collections::BTreeSet;

use super::partial::{PartialAggregate, Plain};
use crate::error::QueryError;
use crate::eval::{
    ALLOCATION_BYTES, Budget, Datum, Type, distinction, order_beyond_doubles, total_order,
};

/// The aggregate functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AggregateKind {
    Count,
    CountIf,
    Sum,
    Average,
    Min,
    Max,
    MakeList,
    MakeSet,
}

/// The names in queries and in plans.
const NAMES: [(AggregateKind, &str, &str); 8] = [
    (AggregateKind::Count, "COUNT", "Count"),
    (AggregateKind::CountIf, "COUNTIF", "CountIf"),
    (AggregateKind::Sum, "SUM", "Sum"),
    (AggregateKind::Average, "AVG", "Average"),
    (AggregateKind::Min, "MIN", "Min"),
    (AggregateKind::Max, "MAX", "Max"),
    (AggregateKind::MakeList, "MAKELIST", "MakeList"),
    (AggregateKind::MakeSet, "MAKESET", "MakeSet"),
];

impl AggregateKind {
    pub(crate) fn find(name: &str) -> Option<AggregateKind> {
        NAMES.iter().find(|(_, own, _)| own.eq_ignore_ascii_case(name)).map(|(kind, ..)| *kind)
    }

    /// The function's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// The name that plans have for it.
    #[must_use]
    pub fn plan_name(self) -> &'static str {
        self.names().1
    }

    fn names(self) -> (&'static str, &'static str) {
        let found = NAMES.iter().find(|(kind, ..)| *kind == self);
        found.map_or(("", ""), |(_, name, plan_name)| (name, plan_name))
    }
}

/// What a text in a set takes besides its bytes.
pub(super) const SEEN_BYTES: usize = 2 * size_of::<String>() + ALLOCATION_BYTES;

/// The state of one aggregate over the values seen so far.
#[derive(Debug)]
pub(super) enum Accumulator {
    Count(usize),
    CountIf(usize),
    /// `total` is `None` once something that is no number was seen.
    Sum {
        total: Option<f64>,
        count: usize,
        average: bool,
    },
    Extreme {
        best: Extreme,
        largest: bool,
    },
    List {
        values: Vec<Datum<'static>>,
        seen: Option<BTreeSet<String>>,
    },
}

#[derive(Debug)]
pub(super) enum Extreme {
    Nothing,
    Value(Datum<'static>),
    /// An array or object was seen, which is not comparable with primitives.
    Spoilt,
}

impl Accumulator {
    pub(super) fn new(kind: AggregateKind) -> Accumulator {
        let sum = |average| Accumulator::Sum { total: Some(0.0), count: 0, average };
        let extreme = |largest| Accumulator::Extreme { best: Extreme::Nothing, largest };
        let list = |seen| Accumulator::List { values: Vec::new(), seen };
        match kind {
            AggregateKind::Count => Accumulator::Count(0),
            AggregateKind::CountIf => Accumulator::CountIf(0),
            AggregateKind::Sum => sum(false),
            AggregateKind::Average => sum(true),
            AggregateKind::Min => extreme(false),
            AggregateKind::Max => extreme(true),
            AggregateKind::MakeList => list(None),
            AggregateKind::MakeSet => list(Some(BTreeSet::new())),
        }
    }

    /// Adds a value. Returns the bytes that it keeps for it, which are counted already.
    pub(super) fn add(&mut self, value: &Datum<'_>, budget: &Budget) -> Result<usize, QueryError> {
        if !value.is_defined() {
            return Ok(0);
        }
        budget.spend_reading(value.weight())?;
        match self {
            Accumulator::Count(count) => *count += 1,
            Accumulator::CountIf(count) => *count += usize::from(value.as_bool() == Some(true)),
            Accumulator::Sum { total, count, .. } => {
                *total = total.zip(value.as_f64()).map(|(total, number)| total + number);
                *count += 1;
            }
            Accumulator::Extreme { best, largest } => {
                return best.consider(value, *largest, budget);
            }
            Accumulator::List { values, seen } => {
                budget.spend_reading(value.effort())?;
                return list(values, seen.as_mut(), value, budget);
            }
        }
        Ok(0)
    }

    /// Its state, for another accumulator of its kind to continue.
    pub(super) fn into_partial(self) -> PartialAggregate {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        match self {
            Accumulator::Count(count) | Accumulator::CountIf(count) => {
                PartialAggregate::Count(number(count))
            }
            Accumulator::Sum { total, count, .. } => {
                PartialAggregate::Sum { total, count: number(count) }
            }
            Accumulator::Extreme { best: Extreme::Nothing, .. } => PartialAggregate::Extreme(None),
            Accumulator::Extreme { best: Extreme::Value(value), .. } => {
                PartialAggregate::Extreme(Some(Plain::of(&value)))
            }
            Accumulator::Extreme { best: Extreme::Spoilt, .. } => PartialAggregate::Spoilt,
            Accumulator::List { values, .. } => {
                PartialAggregate::List(values.iter().map(Plain::of).collect())
            }
        }
    }

    /// Adds the state of another one of its kind over later values. Returns the bytes that
    /// it keeps for that, which are counted already.
    pub(super) fn merge(
        &mut self,
        partial: PartialAggregate,
        budget: &Budget,
    ) -> Result<usize, QueryError> {
        let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        match (self, partial) {
            (
                Accumulator::Count(count) | Accumulator::CountIf(count),
                PartialAggregate::Count(other),
            ) => *count = count.saturating_add(number(other)),
            (
                Accumulator::Sum { total, count, .. },
                PartialAggregate::Sum { total: other, count: more },
            ) => {
                *total = total.zip(other).map(|(total, other)| total + other);
                *count = count.saturating_add(number(more));
            }
            (Accumulator::Extreme { best, largest }, PartialAggregate::Extreme(Some(value))) => {
                return best.consider(&value.into_datum(), *largest, budget);
            }
            (Accumulator::Extreme { best, .. }, PartialAggregate::Spoilt) => {
                *best = Extreme::Spoilt;
            }
            (Accumulator::List { values, seen }, PartialAggregate::List(others)) => {
                let mut kept = 0;
                for value in others {
                    kept += list(values, seen.as_mut(), &value.into_datum(), budget)?;
                }
                return Ok(kept);
            }
            // Nothing was accumulated, or it is the state of another kind.
            _ => {}
        }
        Ok(0)
    }

    pub(super) fn finish(self) -> Datum<'static> {
        match self {
            Accumulator::Count(count) | Accumulator::CountIf(count) => Datum::count(count),
            Accumulator::Sum { total: None, .. } => Datum::Undefined,
            Accumulator::Sum { total: Some(total), average: false, .. } => Datum::number(total),
            Accumulator::Sum { count: 0, .. } => Datum::Undefined,
            Accumulator::Sum { total: Some(total), count, .. } => {
                let count = Datum::count(count).as_f64().unwrap_or(f64::NAN);
                Datum::number(total / count)
            }
            Accumulator::Extreme { best: Extreme::Value(value), .. } => value,
            Accumulator::Extreme { .. } => Datum::Undefined,
            Accumulator::List { values, .. } => Datum::array(values),
        }
    }
}

/// Adds a value to a list, unless it was seen. Returns the bytes that takes.
fn list(
    values: &mut Vec<Datum<'static>>,
    seen: Option<&mut BTreeSet<String>>,
    value: &Datum<'_>,
    budget: &Budget,
) -> Result<usize, QueryError> {
    // A growing list has up to twice the capacity that it needs.
    let mut kept = 2 * size_of::<Datum<'_>>() + value.footprint();
    if let Some(seen) = seen {
        let distinction = distinction(value);
        kept += distinction.len() + SEEN_BYTES;
        if !seen.insert(distinction) {
            return Ok(0);
        }
    }
    budget.spend_bytes(kept)?;
    budget.spend_bytes(value.footprint())?;
    values.push(value.detached());
    Ok(kept)
}

impl Extreme {
    fn consider(
        &mut self,
        value: &Datum<'_>,
        largest: bool,
        budget: &Budget,
    ) -> Result<usize, QueryError> {
        let before = match self {
            Extreme::Spoilt => return Ok(0),
            _ if matches!(value.type_of(), Type::Array | Type::Object) => {
                *self = Extreme::Spoilt;
                return Ok(0);
            }
            Extreme::Nothing => 0,
            Extreme::Value(best) => {
                // One of integers with the same double, whichever comes first: DISTINCT tells
                // them apart.
                let order =
                    total_order(value, best).then_with(|| order_beyond_doubles(value, best));
                if !(if largest { order.is_gt() } else { order.is_lt() }) {
                    return Ok(0);
                }
                best.footprint()
            }
        };
        let grown = value.footprint().saturating_sub(before);
        budget.spend_bytes(grown)?;
        *self = Extreme::Value(value.detached());
        Ok(grown)
    }
}
