//! The planner: chooses the access path of a query.
//!
//! Predicates of the filter are turned into sets of index entries. Equality sets are always
//! worth it: they are intersected (zig-zag) without being read to their ends. Ranges may
//! cover nearly everything, so their selectivity is measured first, up to a bound: a
//! *probe*. An order is served by scanning along an index, unless the filter leaves so few
//! items that sorting them costs less. Rows without an order come in that of creation,
//! whatever the access path: so a page can begin where one on another path has ended.

use std::fmt;
use std::ops::Bound as Edge;
use std::sync::Arc;

use index::{Absence, EntryOrder, EntryRange};
use model::json::{JsonKind, Value};
use query::{Bound, Comparison, IndexUse, Order, Path, Predicate};

use super::Approach;
use super::access::{AccessPath, IndexRange, OrdinalSet};
use super::composite::{self, described, value_at};
use super::indexes::Indexes;
use crate::command::PartitionError;
use crate::config::PartitionConfig;

/// Items up to which loading and sorting is preferred to scanning the index of the order.
pub(super) const SORT_ITEMS_MAX: u64 = 1_000;

/// Upper bound of the entries that are collected to sort them by ordinal.
const COLLECT_ENTRIES_MAX: u64 = 10_000;

/// The same where the alternative is to walk through all items: entries take a millisecond
/// for some thousands, a walk through a million items half a minute.
const COLLECT_OR_WALK_MAX: u64 = 50_000;

/// Upper bound of the sets of names that are read to find the items without a value. A set
/// costs as much as looking up an item.
const NAMES_MAX: u64 = 1_000;

/// A range that was probed this far counts as wide: half a millisecond.
const PROBE_MAX: u64 = 1_000;

/// Cost of finding an item by an index lookup, relative to reading it in a full scan.
pub(super) const LOOKUP_FACTOR: u64 = 4;

/// Cost of looking an item up and evaluating it, relative to reading an index entry.
const ITEM_FACTOR: u64 = 10;

/// The access path of a query, and what it provides.
#[derive(Clone, Debug)]
pub struct AccessPlan {
    /// Shared by the queries to all partitions.
    pub access: Arc<AccessPath>,
    /// Whether candidates come in the order of the query.
    pub ordered: bool,
    /// The order of the entries that are scanned for an order, if they are.
    pub along: Option<EntryOrder>,
    /// Whether the access path covers the filter, so that no residual filter is evaluated.
    pub covers_filter: bool,
}

impl AccessPlan {
    /// The plan of a query that no item can match.
    #[must_use]
    pub fn nothing() -> AccessPlan {
        AccessPlan {
            access: Arc::new(AccessPath::Nothing),
            ordered: true,
            along: None,
            covers_filter: true,
        }
    }
}

/// As text, for operators and for transcripts.
impl fmt::Display for AccessPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.access)?;
        if !self.covers_filter {
            f.write_str(", filter")?;
        }
        if !self.ordered {
            f.write_str(", sort")?;
        }
        Ok(())
    }
}

/// An order that no index serves. The service sorts by index alone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    #[error("The index path corresponding to the specified order-by item is excluded.")]
    Excluded,
    #[error(
        "The order by query does not have a corresponding composite index that it can be served from."
    )]
    NoComposite,
}

/// What the caller knows about the items of a query: the input of cost estimates.
pub trait Statistics {
    /// Number of entries in a range; counting may stop at `most`.
    fn entries(&self, range: &EntryRange, most: u64) -> Result<u64, PartitionError>;

    /// Number of sets of names among the entries for the names of members; counting may
    /// stop at `most`.
    fn sets_of_names(&self, range: &EntryRange, most: u64) -> Result<u64, PartitionError>;

    /// Number of distinct values in a part of an index, as far as its entries show;
    /// counting may stop at `most`.
    fn values(
        &self,
        range: &EntryRange,
        order: &EntryOrder,
        most: u64,
    ) -> Result<u64, PartitionError>;

    /// Approximate number of entries in a range; counting may stop at `most`.
    fn sampled_entries(&self, range: &EntryRange, most: u64) -> Result<u64, PartitionError>;

    /// Number of items of a set in the partition keys that the query covers; counting may
    /// stop at `most`.
    fn key_members(&self, set: &OrdinalSet, most: u64) -> Result<u64, PartitionError>;

    /// Number of rows that are wanted.
    fn rows(&self) -> u64;

    /// Number of items that a page may scan.
    fn items_max(&self) -> u64;

    /// Whether the query covers single partition keys only.
    fn is_narrow(&self) -> bool;

    /// Number of items that a full scan would read.
    fn items(&self) -> Result<u64, PartitionError>;

    /// Number of items that the query's scope has, as far as that is known at little cost;
    /// counting may stop at `most`.
    fn scope_items(&self, most: u64) -> Result<u64, PartitionError>;

    /// Number of items that the container has around them.
    fn items_around(&self) -> Result<u64, PartitionError>;
}

/// Chooses the plan, for all buckets alike.
pub(crate) fn plan(
    config: &PartitionConfig,
    (bound, approach): (&Bound, Approach),
    statistics: &dyn Statistics,
) -> Result<Result<AccessPlan, OrderError>, PartitionError> {
    let counts = bound.counts_documents();
    let planner = Planner { indexes: Indexes { config }, statistics, counts };
    let order = bound.order();
    let served = match planner.order(&order, bound)? {
        Ok(served) => served,
        Err(error) => return Ok(Err(error)),
    };
    let scan = AccessPlan {
        access: Arc::new(AccessPath::Items),
        ordered: order.is_empty() && !bound.streams(),
        along: None,
        covers_filter: false,
    };
    if approach == Approach::Scan {
        return Ok(Ok(scan));
    }
    let filter = bound.filter();
    if filter.predicate == Predicate::Never {
        return Ok(Ok(AccessPlan {
            access: Arc::new(AccessPath::Nothing),
            ordered: true,
            covers_filter: true,
            ..scan
        }));
    }
    let scan = AccessPlan { covers_filter: filter.predicate == Predicate::Anything, ..scan };
    let found = planner.find(&filter.predicate)?;
    let found = planner.together(filter.predicate.parts()).or(found);
    let found =
        found.map(|found| IndexMatch { whole: found.whole && filter.covers_filter, ..found });
    let mut choice = match served {
        Some(served) => planner.ordered(served, found, scan)?,
        None => match planner.by_value(bound, found.as_ref())? {
            Some(served) => along(served, scan),
            None if bound.streams() => planner.by_creation(found, scan)?,
            None => planner.unordered(found, scan)?,
        },
    };
    choice.covers_filter = choice.covers_filter && filter.covers_filter;
    Ok(Ok(choice))
}

/// The indexes that a query can be served from, and those that it lacks, whichever of them
/// the plan takes.
pub(crate) fn index_use(config: &PartitionConfig, bound: &Bound) -> IndexUse {
    bound.index_use(&Indexes { config })
}

pub(super) struct Planner<'c> {
    pub(super) indexes: Indexes<'c>,
    pub(super) statistics: &'c dyn Statistics,
    /// Whether the query only counts items.
    counts: bool,
}

/// An index that is in the order of the query.
pub(super) struct OrderedIndex {
    of: Arc<str>,
    pub(super) range: EntryRange,
    backwards: bool,
    /// Whether only a part of it is read, whose leading values are given.
    pub(super) begun: bool,
    pub(super) order: EntryOrder,
    /// How to find items without a value, if it has no entries for them.
    absent: Option<Box<Absence>>,
}

/// The index that serves an order, if one does.
pub(super) type OrderServed = Result<Option<OrderedIndex>, OrderError>;

/// A set of index entries that satisfies a predicate.
pub(super) struct IndexMatch {
    pub(super) set: OrdinalSet,
    /// Whether it satisfies the whole predicate.
    whole: bool,
    /// Whether an item may have several entries in it.
    repeats: bool,
    /// Whether it contains a range, whose selectivity is not known.
    ranges: bool,
}

impl Planner<'_> {
    /// The index that serves an order. `None` without an order, for an order by something
    /// that no policy could index, and during a backfill.
    fn order(&self, order: &[Order<'_>], bound: &Bound) -> Result<OrderServed, PartitionError> {
        let names: Option<Vec<(Vec<&str>, bool)>> =
            order.iter().map(|key| Some((key.path.names()?, key.descending))).collect();
        let indexable =
            |_: &Vec<(Vec<&str>, bool)>| order.iter().all(|key| self.indexes.could_have(key.path));
        match (order, names.filter(indexable)) {
            ([], _) | (_, None) => Ok(Ok(None)),
            _ if bound.is_aggregated() => Ok(Ok(None)),
            ([key], Some(_)) => self.single_order(key, bound),
            (_, Some(names)) => Ok(self.composite_order(&names, bound)),
        }
    }

    fn single_order(&self, key: &Order<'_>, bound: &Bound) -> Result<OrderServed, PartitionError> {
        if self.indexes.path_in_force(key.path).is_none() {
            return Ok(Err(OrderError::Excluded));
        }
        let values = bound.value_order().unwrap_or_default();
        let required = values.first().is_some_and(|value| value.required);
        self.along_path(key, bound, required).map(Ok)
    }

    /// Along the entries of one path, all of them or those of items that have a value
    /// there.
    pub(super) fn along_path(
        &self,
        key: &Order<'_>,
        bound: &Bound,
        required: bool,
    ) -> Result<Option<OrderedIndex>, PartitionError> {
        let Some(path) = self.indexes.path(key.path) else { return Ok(None) };
        let predicate = bound.filter().predicate;
        if let Some(served) = self.begun_order(key, &predicate) {
            return Ok(Some(served));
        }
        let all = if required { path.is_defined() } else { path.all() };
        let mut range = self.narrowed(all, key.path, &predicate);
        let mut absent = None;
        if !path.has_undefined() && range.start == path.all().start {
            absent = self.absent(key.path)?.map(Box::new);
            if absent.is_none() {
                return Ok(None);
            }
            // Items that were written under another policy may have entries for a missing
            // value. They are found together with all others that have none.
            range = range.intersect(&path.is_defined());
        }
        let (of, order) = (key.path.in_policy().into(), path.order());
        let served =
            OrderedIndex { of, range, backwards: key.descending, begun: false, order, absent };
        Ok(Some(served))
    }

    /// How items without a value are found, if that costs little besides those items.
    fn absent(&self, path: &Path) -> Result<Option<Absence>, PartitionError> {
        let Some(absence) = self.indexes.absence(path) else { return Ok(None) };
        for object in &absence.objects {
            if self.statistics.sets_of_names(&object.range, NAMES_MAX)? >= NAMES_MAX {
                return Ok(None);
            }
        }
        for range in &absence.others {
            if self.statistics.entries(range, COLLECT_ENTRIES_MAX)? >= COLLECT_ENTRIES_MAX {
                return Ok(None);
            }
        }
        Ok(Some(absence))
    }

    /// Along a composite index whose last path is that of the order and whose others have
    /// values by the filter.
    fn begun_order(&self, key: &Order<'_>, predicate: &Predicate) -> Option<OrderedIndex> {
        let (names, parts) = (key.path.names()?, predicate.parts());
        let leaves = composite::in_order_of(self.indexes, parts, &names);
        let (IndexRange { of, range }, order) = leaves.into_iter().next()?;
        let (backwards, absent) = (key.descending, None);
        Some(OrderedIndex { of, range, backwards, begun: true, order, absent })
    }

    /// Along a composite index, or the part of it whose leading values are given by the
    /// filter.
    pub(super) fn composite_order(
        &self,
        order: &[(Vec<&str>, bool)],
        bound: &Bound,
    ) -> OrderServed {
        let mut plans = self.indexes.config.plans.values().rev();
        let plan = plans.next().ok_or(OrderError::NoComposite)?;
        let index = plan.composite_index(order).ok_or(OrderError::NoComposite)?;
        if !plans.all(|plan| plan.composite_index(order) == Some(index)) {
            return Ok(None);
        }
        let predicate = bound.filter().predicate;
        let given = |(names, _): &(Vec<&str>, bool)| value_at(predicate.parts(), names);
        let values: Vec<&Value> = order.iter().map_while(given).collect();
        let range = plan.composite_range(index, &values);
        let of = described(order);
        let (begun, order) = (!values.is_empty(), plan.composite_order(index, &[]));
        let (backwards, absent) = (index.backwards, None);
        Ok(Some(OrderedIndex { of, range, backwards, begun, order, absent }))
    }

    /// The part of a path's entries that satisfies the filter's predicates on the path.
    fn narrowed(&self, all: EntryRange, path: &Path, predicate: &Predicate) -> EntryRange {
        let about = predicate.parts().iter().filter(|part| part.path() == Some(path));
        about.fold(all, |range, part| match self.leaf(part) {
            Some(OrdinalSet::Equal(part) | OrdinalSet::Within(part)) => {
                range.intersect(&part.range)
            }
            Some(OrdinalSet::All(_) | OrdinalSet::Any(_)) | None => range,
        })
    }

    /// In the order of creation: the items of a set, or all. What is small is read in
    /// sequence and sorted instead, which takes a fraction of the time of looking items up.
    fn by_creation(
        &self,
        found: Option<IndexMatch>,
        scan: AccessPlan,
    ) -> Result<AccessPlan, PartitionError> {
        if let Some(found) = found
            && !self.is_costly(&found)?
        {
            let (covers, access) = (found.whole, AccessPath::Set(found.set));
            let covers_filter = covers && access.is_exact();
            let access = Arc::new(access);
            return Ok(AccessPlan { covers_filter, access, ordered: true, ..scan });
        }
        let little = SORT_ITEMS_MAX.max(self.statistics.rows().saturating_mul(2));
        let little = little.min(COLLECT_ENTRIES_MAX).min(self.statistics.items_max());
        if self.statistics.scope_items(little + 1)? <= little {
            return Ok(scan);
        }
        Ok(AccessPlan { access: Arc::new(AccessPath::Created), ordered: true, ..scan })
    }

    /// Whether finding the items of a set in the order of creation costs more than walking
    /// through all. The entries of ranges have to be collected first, all of them; walking
    /// ends when there are enough rows.
    fn is_costly(&self, found: &IndexMatch) -> Result<bool, PartitionError> {
        if self.statistics.is_narrow() {
            return self.is_wide(found);
        }
        if !found.set.has_ranges() {
            return Ok(false);
        }
        let (items, rows) = (self.statistics.items()?, self.statistics.rows());
        let walk = ITEM_FACTOR.saturating_mul(rows.min(items)).saturating_mul(items);
        let most = walk.isqrt().clamp(1, COLLECT_OR_WALK_MAX);
        Ok(self.sampled_members(&found.set, most)? >= most)
    }

    fn unordered(
        &self,
        found: Option<IndexMatch>,
        scan: AccessPlan,
    ) -> Result<AccessPlan, PartitionError> {
        let Some(found) = found else { return Ok(scan) };
        let covers = found.whole;
        // Where each entry yields a row, a page reads no more entries than rows.
        let unsure = found.ranges && !(covers && scan.ordered);
        let counts = covers && self.counts;
        if (unsure || (self.statistics.is_narrow() && !counts)) && self.is_wide(&found)? {
            return Ok(scan);
        }
        let access = Arc::new(as_access(found));
        Ok(AccessPlan { covers_filter: covers && access.is_exact(), access, ..scan })
    }

    /// Whether a full scan costs less than looking up these.
    fn is_wide(&self, found: &IndexMatch) -> Result<bool, PartitionError> {
        let items = self.statistics.items()?;
        let most = PROBE_MAX.min(items / LOOKUP_FACTOR + 1);
        Ok(self.members(&found.set, most)? >= most)
    }

    /// Along the index of the order, unless few items are left to be sorted.
    fn ordered(
        &self,
        served: OrderedIndex,
        found: Option<IndexMatch>,
        scan: AccessPlan,
    ) -> Result<AccessPlan, PartitionError> {
        let most = if served.begun { SORT_ITEMS_MAX / 10 } else { SORT_ITEMS_MAX };
        if let Some(found) = found
            && self.members(&found.set, most)? < most
            && !(self.statistics.is_narrow() && self.is_wide(&found)?)
        {
            let covers = found.whole;
            let access = Arc::new(as_access(found));
            return Ok(AccessPlan { covers_filter: covers && access.is_exact(), access, ..scan });
        }
        if self.statistics.is_narrow() && !served.begun {
            // The index also contains the items of all other partition keys.
            if self.is_small(self.statistics.items()?)? {
                return Ok(scan);
            }
        }
        Ok(along(served, scan))
    }

    /// Whether the query covers so few of a container's items that an index scan would read
    /// too many others.
    pub(super) fn is_small(&self, items: u64) -> Result<bool, PartitionError> {
        let around = self.statistics.items_around()?;
        Ok(items <= SORT_ITEMS_MAX || items.saturating_mul(items) <= around)
    }

    /// Upper bound of the members of a set, counted up to `most`. Those of other partition
    /// keys do not count, unless the set has ranges.
    pub(super) fn members(&self, set: &OrdinalSet, most: u64) -> Result<u64, PartitionError> {
        if self.statistics.is_narrow() && !set.has_ranges() {
            return self.statistics.key_members(set, most);
        }
        count(set, most, &mut |range, most| self.statistics.entries(range, most))
    }

    /// The same, approximately.
    fn sampled_members(&self, set: &OrdinalSet, most: u64) -> Result<u64, PartitionError> {
        count(set, most, &mut |range, most| self.statistics.sampled_entries(range, most))
    }

    fn find(&self, predicate: &Predicate) -> Result<Option<IndexMatch>, PartitionError> {
        if let Predicate::All(parts) = predicate {
            return self.find_all(parts);
        }
        if let Predicate::Either(parts) = predicate {
            return self.find_any(parts);
        }
        let Some(set) = self.leaf(predicate) else { return Ok(None) };
        let elements = predicate.path().is_some_and(|path| path.names().is_none());
        let any_text = matches!(predicate, Predicate::Prefix { ignores_case: true, .. });
        let whole = predicate.path().is_none_or(is_exact_place) && !any_text;
        let ranges = matches!(set, OrdinalSet::Within(_));
        Ok(Some(IndexMatch { set, whole, repeats: elements, ranges }))
    }

    /// Using a composite index, if it satisfies all equality predicates and more: its
    /// entries are at most as many as those of the values.
    fn together(&self, parts: &[Predicate]) -> Option<IndexMatch> {
        let slice = composite::widest(self.indexes, parts)?;
        let is_narrow = |part: &&Predicate| {
            matches!(
                part,
                Predicate::Compare { comparison: Comparison::Equal, .. }
                    | Predicate::OneOf { .. }
                    | Predicate::Either(_)
            )
        };
        let narrow = parts.iter().filter(is_narrow).count();
        if slice.equal < narrow {
            return None;
        }
        let whole = slice.conditions == parts.len();
        let set = if slice.is_point {
            OrdinalSet::Equal(slice.leaf)
        } else {
            OrdinalSet::Within(slice.leaf)
        };
        Some(IndexMatch { set, whole, repeats: false, ranges: false })
    }

    /// The intersection of equality sets; if there are none, the narrowest of the ranges.
    fn find_all(&self, parts: &[Predicate]) -> Result<Option<IndexMatch>, PartitionError> {
        let (mut sets, mut ranges, mut whole) = (Vec::new(), Vec::new(), true);
        for part in parts {
            match self.find(part)? {
                None => whole = false,
                Some(found) => {
                    whole = whole && found.whole;
                    if !found.ranges {
                        sets.push(found.set);
                    } else if !narrow(&mut ranges, part, &found) {
                        ranges.push((part, found));
                    }
                }
            }
        }
        if sets.is_empty() {
            let ranges = ranges.into_iter().map(|(_, found)| found).collect();
            return self.narrowest(ranges, whole);
        }
        let whole = whole && ranges.is_empty();
        let set = if sets.len() == 1 { sets.swap_remove(0) } else { OrdinalSet::All(sets) };
        Ok(Some(IndexMatch { set, whole, repeats: false, ranges: false }))
    }

    fn narrowest(
        &self,
        mut found: Vec<IndexMatch>,
        whole: bool,
    ) -> Result<Option<IndexMatch>, PartitionError> {
        if found.len() < 2 {
            return Ok(found.pop().map(|found| IndexMatch { whole, ..found }));
        }
        let mut narrowest: Option<(u64, IndexMatch)> = None;
        for found in found {
            let most = narrowest.as_ref().map_or(PROBE_MAX, |(least, _)| *least);
            let members = self.members(&found.set, most)?;
            if narrowest.is_none() || members < most {
                narrowest = Some((members, found));
            }
        }
        Ok(narrowest.map(|(_, found)| IndexMatch { whole: false, ..found }))
    }

    /// A union: every part must have a set, or there is none.
    fn find_any(&self, parts: &[Predicate]) -> Result<Option<IndexMatch>, PartitionError> {
        let mut found_parts = Vec::with_capacity(parts.len());
        for part in parts {
            let Some(found) = self.find(part)? else { return Ok(None) };
            found_parts.push(found);
        }
        let whole = found_parts.iter().all(|found| found.whole);
        let ranges = found_parts.iter().any(|found| found.ranges);
        let set = OrdinalSet::Any(found_parts.into_iter().map(|found| found.set).collect());
        if ranges && self.members(&set, COLLECT_ENTRIES_MAX)? >= COLLECT_ENTRIES_MAX {
            return Ok(None);
        }
        Ok(Some(IndexMatch { set, whole, repeats: true, ranges }))
    }

    /// Key ranges that satisfy a predicate on one path.
    fn leaf(&self, predicate: &Predicate) -> Option<OrdinalSet> {
        let place = predicate.path()?;
        let path = self.indexes.path(place)?;
        let of: Arc<str> = place.in_policy().into();
        let leaf = |range: EntryRange| IndexRange { of: Arc::clone(&of), range };
        match predicate {
            // Equal arrays and objects are entries with one hash, unless such integers are in
            // them of which several have one double.
            Predicate::Compare { comparison: Comparison::Equal, value, .. }
                if !index::has_one_entry(value) =>
            {
                let is_array = value.as_array().is_some();
                let kind = if is_array { JsonKind::Array } else { JsonKind::Object };
                Some(OrdinalSet::Within(leaf(EntryRange { exact: false, ..path.of_type(kind) })))
            }
            Predicate::OneOf { values, .. } if !values.iter().all(index::has_one_entry) => None,
            Predicate::Compare { comparison, value, .. } => {
                let range = match comparison {
                    Comparison::Equal => return Some(OrdinalSet::Equal(leaf(path.equal(value)))),
                    Comparison::NotEqual => return None,
                    Comparison::Less => path.between(Edge::Unbounded, Edge::Excluded(value)),
                    Comparison::LessEqual => path.between(Edge::Unbounded, Edge::Included(value)),
                    Comparison::Greater => path.between(Edge::Excluded(value), Edge::Unbounded),
                    Comparison::GreaterEqual => {
                        path.between(Edge::Included(value), Edge::Unbounded)
                    }
                };
                range.map(|range| OrdinalSet::Within(leaf(range)))
            }
            Predicate::OneOf { values, .. } => {
                let values = path.any_of(values).into_iter();
                Some(OrdinalSet::Any(values.map(|range| OrdinalSet::Equal(leaf(range))).collect()))
            }
            Predicate::Prefix { prefix, ignores_case: false, .. } => {
                Some(OrdinalSet::Within(leaf(path.starts_with(prefix))))
            }
            // Entries are in the order of texts with their case.
            Predicate::Prefix { ignores_case: true, .. } => {
                Some(OrdinalSet::Within(leaf(EntryRange {
                    exact: false,
                    ..path.of_type(JsonKind::String)
                })))
            }
            Predicate::Types { types, .. } => match types {
                [kind] => Some(OrdinalSet::Within(leaf(path.of_type(*kind)))),
                all if all.len() == KINDS => Some(OrdinalSet::Within(leaf(path.is_defined()))),
                _ => {
                    Some(OrdinalSet::Within(leaf(EntryRange { exact: false, ..path.is_defined() })))
                }
            },
            // These select no entries, nor do future variants yet.
            Predicate::Anything
            | Predicate::Never
            | Predicate::All(_)
            | Predicate::Either(_)
            | _ => None,
        }
    }
}

/// Upper bound of the members of a set, where `entries` counts those of a range up to a
/// bound.
fn count(
    set: &OrdinalSet,
    most: u64,
    entries: &mut dyn FnMut(&EntryRange, u64) -> Result<u64, PartitionError>,
) -> Result<u64, PartitionError> {
    match set {
        OrdinalSet::Equal(leaf) | OrdinalSet::Within(leaf) => entries(&leaf.range, most),
        OrdinalSet::All(sets) => sets.iter().try_fold(most, |least, set| {
            if least == 0 { Ok(0) } else { Ok(least.min(count(set, least, entries)?)) }
        }),
        OrdinalSet::Any(sets) => sets.iter().try_fold(0, |sum: u64, set| {
            if sum >= most { Ok(sum) } else { Ok(sum + count(set, most - sum, entries)?) }
        }),
    }
}

/// Intersects two ranges of one path, as in BETWEEN; whether there was another one.
fn narrow(ranges: &mut [(&Predicate, IndexMatch)], part: &Predicate, found: &IndexMatch) -> bool {
    let OrdinalSet::Within(leaf) = &found.set else { return false };
    if found.repeats || part.path().is_none() {
        return false;
    }
    match ranges.iter_mut().find(|(other, _)| other.path() == part.path()) {
        Some((_, IndexMatch { set: OrdinalSet::Within(other), .. })) => {
            other.range = other.range.intersect(&leaf.range);
            true
        }
        Some(_) | None => false,
    }
}

/// Along the index of the order.
fn along(
    OrderedIndex { of, range, backwards, order, absent, .. }: OrderedIndex,
    scan: AccessPlan,
) -> AccessPlan {
    let access = AccessPath::Entries { of, ranges: vec![range], absent, backwards };
    AccessPlan { access: Arc::new(access), ordered: true, along: Some(order), ..scan }
}

/// The types that a value may have.
const KINDS: usize = 6;

fn as_access(found: IndexMatch) -> AccessPath {
    match found.set {
        OrdinalSet::Within(IndexRange { of, range }) if !found.repeats => {
            AccessPath::Entries { of, ranges: vec![range], absent: None, backwards: false }
        }
        set @ (OrdinalSet::Equal(_)
        | OrdinalSet::Within(_)
        | OrdinalSet::All(_)
        | OrdinalSet::Any(_)) => AccessPath::Set(set),
    }
}

/// Whether entries distinguish the path itself: those of array elements do not have the
/// index.
fn is_exact_place(path: &Path) -> bool {
    path.steps().iter().all(|step| !matches!(step, query::PathStep::Index(_)))
}
