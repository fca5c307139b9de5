//! Which indexes a query can be served from, and which others would serve it.
//!
//! This is what the service reports to clients that ask for index metrics: a function of
//! the query and the policy, not of the data. An index is *used* if a predicate of the
//! query can be answered from it, even where an execution chooses another access path
//! because that costs less: with few items left, those are scanned instead. The actual
//! access path is in the execution's explanation. A predicate that no index can answer,
//! such as one on the result of a function, names none.
//!
//! The rule was derived from recorded answers of the service:
//!
//! - Each path in a predicate of the filter has an index that is used or, if the policy
//!   excludes it, wanted. So has each path in a call in the output, and each whose values
//!   are aggregated over all rows (`SUM(c.v)`), all of which are in the index. They come in
//!   the order of the query, but for `/id`, which comes last.
//! - The path of an order is used, too. If there is a predicate on it beside others, the
//!   scan along the order answers it, and the path is not named for it.
//! - A composite index is wanted of all paths with an equality and one with a range: one
//!   index per range. An order by another path stands for a range where there is none, and
//!   so do groups by several paths that all have an equality.
//! - A predicate that nearly every item satisfies, such as that a value exists, has little
//!   impact.

use std::fmt;

use model::json::write_string;

use crate::bind::{Path, PathStep, Program, path_of};
use crate::execute::AggregateKind;
use crate::predicate::{Comparison, Predicate, calls_of, filter_of};

/// Paths of a composite index: no policy takes more.
const COMPOSITE_PATHS_MAX: usize = 8;

/// Which indexes a query uses, and which it would use if there were any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexUse {
    pub used: Vec<IndexSpec>,
    pub wanted: Vec<IndexSpec>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexSpec {
    Single {
        /// As policies spell it: `/a/b/?`.
        path: String,
        impact: Impact,
    },
    /// Paths as policies spell them, each with whether it is descending.
    Composite(Vec<(String, bool)>),
}

/// How likely it is, by the shape of the query alone, that an index makes it cheaper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Impact {
    Low,
    High,
}

/// The indexes of a container.
pub trait Indexed {
    /// Whether the values at a path are indexed; `None` if no policy could index them.
    fn place(&self, path: &Path) -> Option<bool>;

    /// The composite indexes: names of properties, and whether they are descending.
    fn composites(&self) -> Vec<Composite>;
}

/// The paths of a composite index, each with whether it is descending.
pub type Composite = Vec<(Vec<String>, bool)>;

pub(crate) fn index_use(program: &Program, indexed: &dyn Indexed) -> IndexUse {
    let predicate = filter_of(program).predicate;
    if predicate == Predicate::Never {
        return IndexUse::default();
    }
    let mut places = FilteredPaths { indexed, found: Vec::new() };
    places.require(&predicate, true);
    calls_of(program).iter().for_each(|call| places.require(call, true));
    places.summed_up(program);
    let shape = Shape::of(program, &predicate, indexed);
    let proposed = shape.proposed();
    places.order(program, &proposed);
    places.found.sort_by_key(|place| place.path.names().is_some_and(|names| names == ["id"]));
    let composites = indexed.composites();
    let serves = |of: &&Composite| {
        is_in_order(of, program)
            || shape.gives_all(of)
            || proposed.iter().any(|proposed| proposed.is_met_by(of))
    };
    let lacking = |proposed: &&Proposed<'_>| !composites.iter().any(|of| proposed.is_met_by(of));
    let served = composites.iter().filter(serves).map(spelled);
    let lacking = proposed.iter().filter(lacking).map(Proposed::spelled);
    IndexUse {
        used: places.named(true).chain(served).collect(),
        wanted: places.named(false).chain(lacking).collect(),
    }
}

/// Paths of predicates, in the order of the query.
struct FilteredPaths<'p> {
    indexed: &'p dyn Indexed,
    found: Vec<FilteredPath>,
}

struct FilteredPath {
    path: Path,
    used: bool,
    impact: Impact,
}

/// Whether a predicate can be answered from indexes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Served {
    No,
    /// If the policy did not exclude a path.
    IfIndexed,
    Yes,
}

impl FilteredPaths<'_> {
    /// Records the paths of a predicate, which can be of use unless another predicate needs
    /// a full scan.
    fn require(&mut self, predicate: &Predicate, of_use: bool) {
        if let Predicate::All(parts) = predicate {
            return parts.iter().for_each(|part| self.require(part, of_use));
        }
        let served = self.served(predicate);
        if let Predicate::Either(parts) = predicate {
            if served > Served::No {
                let of_use = of_use && served == Served::Yes;
                parts.iter().for_each(|part| self.require(part, of_use));
            }
            return;
        }
        let impact = if predicate.is_presence() { Impact::Low } else { Impact::High };
        match (served, predicate.path()) {
            (Served::Yes, Some(path)) if of_use => self.note(path, true, impact),
            (Served::IfIndexed, Some(path)) => self.note(path, false, impact),
            (Served::Yes | Served::IfIndexed | Served::No, _) => {}
        }
    }

    /// Of a conjunction one predicate suffices, of a disjunction each must be served.
    fn served(&self, predicate: &Predicate) -> Served {
        let each = |parts: &[Predicate]| -> Vec<Served> {
            parts.iter().map(|part| self.served(part)).collect()
        };
        match predicate {
            Predicate::All(parts) => each(parts).into_iter().max().unwrap_or(Served::No),
            Predicate::Either(parts) => each(parts).into_iter().min().unwrap_or(Served::No),
            // Nearly all values differ from one.
            Predicate::Compare { comparison: Comparison::NotEqual, .. }
            | Predicate::Anything
            | Predicate::Never => Served::No,
            Predicate::Compare { path, .. }
            | Predicate::OneOf { path, .. }
            | Predicate::Prefix { path, .. }
            | Predicate::Types { path, .. } => match self.indexed.place(path) {
                None => Served::No,
                Some(false) => Served::IfIndexed,
                Some(true) => Served::Yes,
            },
        }
    }

    fn note(&mut self, path: &Path, used: bool, impact: Impact) {
        match self.found.iter_mut().find(|place| place.path == *path) {
            Some(place) => place.impact = place.impact.max(impact),
            None => self.found.push(FilteredPath { path: path.clone(), used, impact }),
        }
    }

    /// Records the paths of aggregates over all rows. Those of a group are computed from
    /// items.
    fn summed_up(&mut self, program: &Program) {
        let whole = program.block.grouping.iter().filter(|grouping| grouping.keys.is_empty());
        let sums = whole.flat_map(|grouping| &grouping.aggregates).filter(|aggregate| {
            use AggregateKind::{Average, Count, Max, Min, Sum};
            matches!(aggregate.kind, Average | Count | Max | Min | Sum)
        });
        for aggregate in sums {
            let path = path_of(&aggregate.argument, &|slot| program.paths.get(&slot));
            let path = path.filter(|path| !path.steps().is_empty());
            let place = path.and_then(|path| Some((self.indexed.place(&path)?, path)));
            if let Some((used, path)) = place {
                self.note(&path, used, Impact::High);
            }
        }
    }

    /// Names the path of an order by one path, unless it is there for a predicate that the
    /// scan along the order answers.
    fn order(&mut self, program: &Program, proposed: &[Proposed<'_>]) {
        let [key] = program.block.order.as_slice() else { return };
        let path = &key.path;
        let in_composite = proposed.iter().any(|proposed| proposed.paths().any(|own| own == path));
        let others = self.found.iter().any(|place| place.used && place.path != *path);
        let has_condition = self.found.iter().any(|place| place.path == *path);
        if has_condition && others && !in_composite {
            self.found.retain(|place| place.path != *path);
        } else if self.indexed.place(path) == Some(true) {
            self.note(path, true, Impact::High);
        }
    }

    fn named(&self, used: bool) -> impl Iterator<Item = IndexSpec> {
        let places = self.found.iter().filter(move |place| place.used == used);
        places.map(|place| IndexSpec::Single {
            path: format!("{}/?", place.path.in_policy()),
            impact: place.impact,
        })
    }
}

/// The input of composite index proposals.
struct Shape<'p> {
    equal: Vec<&'p Path>,
    ranges: Vec<&'p Path>,
    /// The path of an order by one path.
    order: Option<&'p Path>,
    groups: Vec<Path>,
}

impl<'p> Shape<'p> {
    fn of(program: &'p Program, predicate: &'p Predicate, indexed: &dyn Indexed) -> Shape<'p> {
        let fits = |path: &Path| path.names().is_some() && indexed.place(path).is_some();
        let (mut equal, mut ranges) = (Vec::new(), Vec::new());
        for part in predicate.parts() {
            let Predicate::Compare { path, comparison, .. } = part else { continue };
            match comparison {
                _ if !fits(path) => {}
                Comparison::Equal => equal.push(path),
                Comparison::NotEqual => {}
                Comparison::Less
                | Comparison::LessEqual
                | Comparison::Greater
                | Comparison::GreaterEqual => ranges.push(path),
            }
        }
        let equal = distinct(equal);
        ranges.retain(|path| !equal.contains(path));
        let order = match program.block.order.as_slice() {
            [key] => Some(&key.path).filter(|path| fits(path) && !equal.contains(path)),
            _ => None,
        };
        Shape { ranges: distinct(ranges), order, groups: groups_of(program), equal }
    }

    /// Whether an index contains all paths with an equality.
    fn gives_all(&self, composite: &Composite) -> bool {
        composite.len() == self.equal.len()
            && composite
                .iter()
                .all(|(names, _)| self.equal.iter().any(|path| is_named(path, names)))
    }

    fn proposed(&self) -> Vec<Proposed<'_>> {
        let equal = || self.equal.clone();
        let range = |last: &&'p Path| Proposed { equal: equal(), next: Some(Asked::Range(last)) };
        let mut proposed: Vec<Proposed<'_>> = self.ranges.iter().map(range).collect();
        if proposed.is_empty() {
            let order =
                |last: &&'p Path| Proposed { equal: equal(), next: Some(Asked::Order(last)) };
            proposed.extend(self.order.iter().map(order));
            let given =
                self.groups.len() > 1 && self.groups.iter().all(|g| self.equal.contains(&g));
            proposed.extend(
                given.then(|| Proposed { equal: self.groups.iter().collect(), next: None }),
            );
        }
        proposed.retain(|proposed| {
            !proposed.equal.is_empty() && proposed.paths().count() <= COMPOSITE_PATHS_MAX
        });
        proposed
    }
}

/// A composite index that would serve the query: paths with an equality, and one after
/// them.
struct Proposed<'s> {
    equal: Vec<&'s Path>,
    next: Option<Asked<'s>>,
}

#[derive(Clone, Copy)]
enum Asked<'s> {
    Range(&'s Path),
    Order(&'s Path),
}

impl Proposed<'_> {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        let next = self.next.map(|(Asked::Range(path) | Asked::Order(path))| path);
        self.equal.iter().copied().chain(next)
    }

    /// Whether an existing index serves as well. It may have the equalities in another
    /// order, and further paths after a range. Rows that compare equal come in its
    /// direction, which they only do along an index with the same directions.
    fn is_met_by(&self, composite: &Composite) -> bool {
        let is = |path: &Path, (names, _): &(Vec<String>, bool)| is_named(path, names);
        let given = composite.get(..self.equal.len()).unwrap_or_default();
        let values = given.len() == self.equal.len()
            && self.equal.iter().all(|path| given.iter().any(|part| is(path, part)));
        let rest = composite.get(self.equal.len()..).unwrap_or_default();
        values
            && match (self.next, rest) {
                (None, rest) => rest.is_empty(),
                (Some(Asked::Range(path)), [next, ..]) => is(path, next),
                (Some(Asked::Order(path)), [next]) => {
                    is(path, next) && given.first().is_some_and(|first| first.1 == next.1)
                }
                (Some(Asked::Range(_) | Asked::Order(_)), _) => false,
            }
    }

    fn spelled(&self) -> IndexSpec {
        IndexSpec::Composite(self.paths().map(|path| (path.in_policy(), false)).collect())
    }
}

fn is_named(path: &Path, names: &[String]) -> bool {
    path.names().is_some_and(|own| names.iter().eq(own))
}

/// The paths that a query groups by; empty if it groups by something else, too.
fn groups_of(program: &Program) -> Vec<Path> {
    let keys = program.block.grouping.iter().flat_map(|grouping| &grouping.keys);
    let place = |slot| program.paths.get(&slot);
    keys.map(|key| path_of(&key.expr, &place)).collect::<Option<_>>().unwrap_or_default()
}

fn distinct(paths: Vec<&Path>) -> Vec<&Path> {
    let mut seen: Vec<&Path> = Vec::with_capacity(paths.len());
    for path in paths {
        if !seen.contains(&path) {
            seen.push(path);
        }
    }
    seen
}

/// Whether an index is in the order of the query, read in one direction or the other.
fn is_in_order(composite: &Composite, program: &Program) -> bool {
    let order = &program.block.order;
    let mut parts = composite.iter().zip(order);
    let turned = parts.clone().next().map(|((_, own), key)| *own != key.descending);
    composite.len() == order.len()
        && parts.all(|((names, own), key)| {
            is_named(&key.path, names) && Some(*own != key.descending) == turned
        })
}

fn spelled(composite: &Composite) -> IndexSpec {
    let path = |names: &[String]| names.iter().map(|name| in_policy(name)).collect::<String>();
    let parts = composite.iter().map(|(names, descending)| (path(names), *descending));
    IndexSpec::Composite(parts.collect())
}

impl fmt::Display for IndexSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IndexSpec::Single { path, impact: Impact::High } => f.write_str(path),
            IndexSpec::Single { path, impact: Impact::Low } => write!(f, "{path} a little"),
            IndexSpec::Composite(paths) => {
                let path = |(path, descending): &(String, bool)| {
                    format!("{path}{}", if *descending { " desc" } else { "" })
                };
                write!(f, "({})", paths.iter().map(path).collect::<Vec<_>>().join(" "))
            }
        }
    }
}

impl Path {
    /// As indexing policies spell it, without its ending: an element of an array is any of
    /// them, and names with characters other than letters are quoted.
    #[must_use]
    pub fn in_policy(&self) -> String {
        let step = |step: &PathStep| match step {
            PathStep::Name(name) => in_policy(name),
            PathStep::Index(_) | PathStep::Each => "/[]".to_owned(),
        };
        self.steps().iter().map(step).collect()
    }
}

fn in_policy(name: &str) -> String {
    let plain = |sign: char| sign.is_alphanumeric() || sign == '_';
    if !name.is_empty() && name.chars().all(plain) {
        return format!("/{name}");
    }
    let mut text = "/".to_owned();
    write_string(&mut text, name);
    text
}
