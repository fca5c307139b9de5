//! Predicates that one composite index satisfies together: equality on its leading paths,
//! and a range of the next one or an order by it.

use std::ops::Bound as Edge;
use std::sync::Arc;

use index::{CompositeIndex, EntryOrder, EntryRange, IndexPlan, Next};
use model::json::Value;
use query::{Comparison, Composite, Indexed as _, Predicate};

use super::access::IndexRange;
use super::indexes::Indexes;

/// The key range of a composite index that satisfies the predicates.
pub(super) struct Slice {
    pub(super) leaf: IndexRange,
    /// Number of paths with equality.
    pub(super) equal: usize,
    /// Number of predicates that are satisfied.
    pub(super) conditions: usize,
    /// Whether all paths have a value, so that its entries are in the order of ordinals.
    pub(super) is_point: bool,
}

/// A composite index and the values that predicates give to its leading paths.
struct Given<'r> {
    plan: &'r IndexPlan,
    index: CompositeIndex,
    /// Names of each path, and whether it is descending.
    order: Vec<(Vec<&'r str>, bool)>,
    values: Vec<&'r Value>,
}

/// The slice that satisfies most of the conjuncts.
pub(super) fn widest(indexes: Indexes<'_>, parts: &[Predicate]) -> Option<Slice> {
    let composites = indexes.composites();
    let slices = composites.iter().filter_map(|of| Given::by(indexes, of, parts)?.slice(parts));
    slices.reduce(|best, slice| if slice.conditions > best.conditions { slice } else { best })
}

/// The slices whose entries are in the order of one path and then of ordinals, as those of
/// the path alone are. Items without a value there are in them.
pub(super) fn in_order_of(
    indexes: Indexes<'_>,
    parts: &[Predicate],
    names: &[&str],
) -> Vec<(IndexRange, EntryOrder)> {
    let composites = indexes.composites();
    let in_order = |of: &Composite| {
        let given = Given::by(indexes, of, parts)?;
        let (last, descends) = given.order.get(given.values.len())?;
        // An index that begins with a descending path is stored in reverse. Read backwards,
        // a descending path would ascend, but ordinals would not.
        let ascends = *descends == given.index.backwards;
        if last != names || given.order.len() != given.values.len() + 1 || !ascends {
            return None;
        }
        let next = match bounds_at(parts, last) {
            (Edge::Unbounded, Edge::Unbounded) => None,
            (lower, upper) => Some(Next::Between(lower, upper)),
        };
        Some((given.leaf(next)?, given.plan.composite_order(given.index, &given.values)))
    };
    composites.iter().filter_map(in_order).collect()
}

impl<'r> Given<'r> {
    fn by(indexes: Indexes<'r>, of: &'r Composite, parts: &'r [Predicate]) -> Option<Given<'r>> {
        let order: Vec<(Vec<&str>, bool)> = of
            .iter()
            .map(|(names, way)| (names.iter().map(String::as_str).collect(), *way))
            .collect();
        let values: Vec<&Value> =
            order.iter().map_while(|(names, _)| value_at(parts, names)).collect();
        let plan = indexes.config.plans.values().next_back().filter(|_| !values.is_empty())?;
        let index = plan.composite_index(&order)?;
        Some(Given { plan, index, order, values })
    }

    fn slice(&self, parts: &[Predicate]) -> Option<Slice> {
        let equal = self.values.len();
        let Some((names, _)) = self.order.get(equal) else {
            let leaf = self.leaf(None)?;
            return Some(Slice { leaf, equal, conditions: equal, is_point: true });
        };
        let (lower, upper) = bounds_at(parts, names);
        let bounds = [lower, upper].iter().filter(|edge| **edge != Edge::Unbounded).count();
        if bounds == 0 {
            return None;
        }
        let leaf = self.leaf(Some(Next::Between(lower, upper)))?;
        Some(Slice { leaf, equal, conditions: equal + bounds, is_point: false })
    }

    fn leaf(&self, next: Option<Next<'_>>) -> Option<IndexRange> {
        let range: EntryRange = match next {
            None => self.plan.composite_range(self.index, &self.values),
            Some(next) => self.plan.composite_next(self.index, &self.values, next)?,
        };
        Some(IndexRange { of: described(&self.order), range })
    }
}

/// The paths of an order, as text.
pub(super) fn described(order: &[(Vec<&str>, bool)]) -> Arc<str> {
    let paths: Vec<String> =
        order.iter().map(|(names, _)| format!("/{}", names.join("/"))).collect();
    paths.join(", ").into()
}

/// The value that predicates give to a path, if entries begin with it.
pub(super) fn value_at<'r>(parts: &'r [Predicate], names: &[&str]) -> Option<&'r Value> {
    comparisons_at(parts, names)
        .filter(|(_, value)| index::has_one_entry(value))
        .find_map(|(comparison, value)| (comparison == Comparison::Equal).then_some(value))
}

/// The first lower and the first upper bound that predicates give to a path.
fn bounds_at<'r>(parts: &'r [Predicate], names: &[&str]) -> (Edge<&'r Value>, Edge<&'r Value>) {
    let (mut lower, mut upper) = (Edge::Unbounded, Edge::Unbounded);
    for (comparison, value) in comparisons_at(parts, names) {
        let (edge, at) = match comparison {
            Comparison::Equal | Comparison::NotEqual => continue,
            Comparison::Greater => (&mut lower, Edge::Excluded(value)),
            Comparison::GreaterEqual => (&mut lower, Edge::Included(value)),
            Comparison::Less => (&mut upper, Edge::Excluded(value)),
            Comparison::LessEqual => (&mut upper, Edge::Included(value)),
        };
        if *edge == Edge::Unbounded {
            *edge = at;
        }
    }
    (lower, upper)
}

fn comparisons_at<'r>(
    parts: &'r [Predicate],
    names: &[&str],
) -> impl Iterator<Item = (Comparison, &'r Value)> {
    parts.iter().filter_map(move |part| {
        let Predicate::Compare { path, comparison, value } = part else { return None };
        (path.names().as_deref() == Some(names)).then_some((*comparison, value))
    })
}
