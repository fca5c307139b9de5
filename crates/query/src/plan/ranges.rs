//! Which partition keys a query can be about.
//!
//! A predicate is turned into boxes: for each path of the key, the values it
//! may have. For hashed keys only single values help; a range of values is
//! everywhere on the ring.

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::BTreeSet;

use model::epk::{Epk, EpkRange};
use model::partition_key::{KeyComponent, KeyKind, PartitionKey, PartitionKeyDefinition};

use crate::analysis::{Constraint, Domain, Root, Span, ValuePath, Values, member_domain};
use crate::bound::Key;

/// Boxes that are worth telling apart: one per item of the longest IN list.
const BOXES_MAX: usize = crate::parser::IN_ITEMS_MAX;

/// Pairs of boxes that are tried in all, for a filter that says many things about the key:
/// some milliseconds.
const PAIRS_MAX: usize = 4 * BOXES_MAX;

/// The keys that a query can be about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyRanges {
    Everything,
    Nothing,
    /// At least one, all different.
    Some(Vec<PlannedRange>),
}

/// Keys from one to another. Fewer components than the key has paths stand for
/// all keys that begin so.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlannedRange {
    pub min: Vec<KeyBound>,
    pub max: Vec<KeyBound>,
    pub min_inclusive: bool,
    pub max_inclusive: bool,
}

/// A value of a key, or the end of what values of a type there can be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyBound {
    /// Before all numbers.
    MinNumber,
    Value(KeyComponent),
    /// Behind all numbers.
    MaxNumber,
    /// Behind all strings.
    MaxString,
}

impl KeyBound {
    /// The place of the bound's type among the types, and its place within it.
    fn rank(&self) -> (u8, u8) {
        match self {
            KeyBound::Value(KeyComponent::Undefined) => (0, 1),
            KeyBound::Value(KeyComponent::Null) => (1, 1),
            KeyBound::Value(KeyComponent::Bool(_)) => (2, 1),
            KeyBound::MinNumber => (3, 0),
            KeyBound::Value(KeyComponent::Number(_)) => (3, 1),
            KeyBound::MaxNumber => (3, 2),
            KeyBound::Value(KeyComponent::String(_)) => (4, 1),
            KeyBound::MaxString => (4, 2),
        }
    }
}

impl Ord for KeyBound {
    fn cmp(&self, other: &KeyBound) -> Ordering {
        match (self, other) {
            (KeyBound::Value(a), KeyBound::Value(b)) => a.cmp(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

impl PartialOrd for KeyBound {
    fn partial_cmp(&self, other: &KeyBound) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The values that one path may have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Interval {
    min: KeyBound,
    max: KeyBound,
    min_inclusive: bool,
    max_inclusive: bool,
}

/// One interval per path, `None` where any value will do.
type KeyBox = Vec<Option<Interval>>;

/// The keys of documents that a constraint allows, for a key of these paths.
pub(super) fn ranges(constraint: &Constraint, kind: KeyKind, paths: &[Vec<String>]) -> KeyRanges {
    let boxes = boxes(constraint, paths, &Cell::new(PAIRS_MAX));
    let found: Option<BTreeSet<PlannedRange>> =
        boxes.iter().map(|key_box| range(key_box, kind)).collect();
    match found {
        None => KeyRanges::Everything,
        Some(found) if found.is_empty() => KeyRanges::Nothing,
        Some(found) => KeyRanges::Some(found.into_iter().collect()),
    }
}

/// `pairs` are those that may still be tried.
fn boxes(constraint: &Constraint, paths: &[Vec<String>], pairs: &Cell<usize>) -> Vec<KeyBox> {
    let everything = || vec![vec![None; paths.len()]];
    match constraint {
        Constraint::Anything => everything(),
        Constraint::Never => Vec::new(),
        Constraint::At(place, domain) => {
            let each = paths.iter().enumerate().filter_map(|(at, path)| {
                let intervals = intervals(&*at_path(place, domain, path)?)?;
                Some(intervals.into_iter().map(|i| box_with(at, i, paths.len())).collect())
            });
            let all = each.reduce(|a, b: Vec<KeyBox>| intersection(a, b, pairs));
            all.unwrap_or_else(everything)
        }
        Constraint::Either(parts) => {
            let boxes: Vec<KeyBox> =
                parts.iter().flat_map(|part| self::boxes(part, paths, pairs)).collect();
            if boxes.len() > BOXES_MAX { everything() } else { boxes }
        }
        Constraint::All(parts) => {
            let telling = parts.iter().filter(|part| concerns(part, paths));
            let each = telling.map(|part| self::boxes(part, paths, pairs));
            let all = each.reduce(|a, b| intersection(a, b, pairs));
            all.unwrap_or_else(everything)
        }
    }
}

/// Whether a constraint can say anything about the key.
fn concerns(constraint: &Constraint, paths: &[Vec<String>]) -> bool {
    let Constraint::At(place, _) = constraint else { return true };
    paths.iter().any(|path| leads_to(place, path))
}

/// Whether a place is a path of the key, or an object that it leads into.
fn leads_to(place: &ValuePath, path: &[String]) -> bool {
    let same = |(key, name): (&Key, &String)| matches!(key, Key::Name(own) if own == name);
    place.root == Root::Document
        && place.steps.len() <= path.len()
        && place.steps.iter().zip(path).all(same)
}

/// What a place and its values say about a path of the key.
fn at_path<'d>(place: &ValuePath, domain: &'d Domain, path: &[String]) -> Option<Cow<'d, Domain>> {
    if !leads_to(place, path) {
        return None;
    }
    match path.get(place.steps.len()..)? {
        [] => Some(Cow::Borrowed(domain)),
        rest => member_domain(domain, rest).map(Cow::Owned),
    }
}

fn box_with(place: usize, interval: Interval, paths: usize) -> KeyBox {
    (0..paths).map(|at| (at == place).then(|| interval.clone())).collect()
}

/// What lies in a box of both. Too many pairs are not tried: the keys of one
/// side alone are a true answer, too, and the side that knows the first path is
/// the better one, best of all by single values.
fn intersection(a: Vec<KeyBox>, b: Vec<KeyBox>, pairs: &Cell<usize>) -> Vec<KeyBox> {
    let tried = a.len().saturating_mul(b.len());
    let left = pairs.get().checked_sub(tried).filter(|_| tried <= BOXES_MAX);
    pairs.set(left.unwrap_or(pairs.get()));
    if left.is_none() {
        let leads = |boxes: &[KeyBox]| boxes.iter().all(|one| matches!(one.first(), Some(Some(_))));
        let is_point = |one: &KeyBox| matches!(one.first(), Some(Some(first)) if first.is_point());
        let points = |boxes: &[KeyBox]| boxes.iter().all(is_point);
        let worth =
            |boxes: &[KeyBox]| (points(boxes), leads(boxes), std::cmp::Reverse(boxes.len()));
        return if worth(&a) >= worth(&b) { a } else { b };
    }
    a.iter().flat_map(|a| b.iter().filter_map(|b| overlap(a, b))).collect()
}

fn overlap(a: &KeyBox, b: &KeyBox) -> Option<KeyBox> {
    a.iter()
        .zip(b)
        .map(|(a, b)| match (a, b) {
            (Some(a), Some(b)) => a.overlap(b).map(Some),
            (Some(one), None) | (None, Some(one)) => Some(Some(one.clone())),
            (None, None) => Some(None),
        })
        .collect()
}

impl Interval {
    fn overlap(&self, other: &Interval) -> Option<Interval> {
        let (min, min_inclusive) = if self.min == other.min {
            (&self.min, self.min_inclusive && other.min_inclusive)
        } else if self.min > other.min {
            (&self.min, self.min_inclusive)
        } else {
            (&other.min, other.min_inclusive)
        };
        let (max, max_inclusive) = if self.max == other.max {
            (&self.max, self.max_inclusive && other.max_inclusive)
        } else if self.max < other.max {
            (&self.max, self.max_inclusive)
        } else {
            (&other.max, other.max_inclusive)
        };
        let empty = min > max || (min == max && !(min_inclusive && max_inclusive));
        (!empty).then(|| Interval {
            min: min.clone(),
            max: max.clone(),
            min_inclusive,
            max_inclusive,
        })
    }

    fn is_point(&self) -> bool {
        self.min == self.max
    }
}

fn point(component: KeyComponent) -> Interval {
    let bound = KeyBound::Value(component);
    Interval { min: bound.clone(), max: bound, min_inclusive: true, max_inclusive: true }
}

/// The intervals that the values of a key lie in; `None` if that says nothing. Arrays and
/// objects are no keys of their own: they count as undefined. So do items without a
/// value, which are not looked for there.
fn intervals(domain: &Domain) -> Option<Vec<Interval>> {
    let structures = [&domain.arrays, &domain.objects];
    if domain.undefined || structures.iter().any(|all| all.as_points().is_none()) {
        return None;
    }
    let mut found = Vec::new();
    if structures.iter().any(|all| !all.is_empty()) {
        found.push(point(KeyComponent::Undefined));
    }
    let flags = [
        (domain.null, KeyComponent::Null),
        (domain.no, KeyComponent::Bool(false)),
        (domain.yes, KeyComponent::Bool(true)),
    ];
    found.extend(flags.into_iter().filter(|(has, _)| *has).map(|(_, one)| point(one)));
    match &domain.numbers {
        all if all.is_all() => return None,
        Values::Points(points) if points.iter().any(|point| !point.is_finite()) => return None,
        Values::Points(points) => found.extend(points.iter().map(|n| point((*n).into()))),
        Values::Span(span) => found.push(spanned(
            span,
            |number: &f64| (*number).into(),
            (KeyBound::MinNumber, false),
            KeyBound::MaxNumber,
        )),
    }
    let string = |text: &String| KeyComponent::String(text.clone());
    match &domain.strings {
        all if all.is_all() => return None,
        Values::Points(points) => found.extend(points.iter().map(|text| point(string(text)))),
        Values::Span(span) => {
            let least = KeyBound::Value(KeyComponent::String(String::new()));
            found.push(spanned(span, string, (least, true), KeyBound::MaxString));
        }
    }
    Some(found)
}

fn spanned<T>(
    span: &Span<T>,
    component: impl Fn(&T) -> KeyComponent,
    least: (KeyBound, bool),
    greatest: KeyBound,
) -> Interval {
    let bound = |(value, own): &(T, bool)| (KeyBound::Value(component(value)), *own);
    let (min, min_inclusive) = span.low.as_ref().map_or(least, bound);
    let (max, max_inclusive) = span.high.as_ref().map_or((greatest, false), bound);
    Interval { min, max, min_inclusive, max_inclusive }
}

/// The keys of a box, `None` if they are everywhere.
fn range(key_box: &KeyBox, kind: KeyKind) -> Option<PlannedRange> {
    let helps = |interval: &&Interval| kind == KeyKind::Range || interval.is_point();
    let leading: Vec<&Interval> =
        key_box.iter().map_while(|interval| interval.as_ref().filter(helps)).collect();
    let complete = leading.len() == key_box.len() || kind != KeyKind::Hash;
    if leading.is_empty() || !complete {
        return None;
    }
    Some(PlannedRange {
        min: leading.iter().map(|interval| interval.min.clone()).collect(),
        max: leading.iter().map(|interval| interval.max.clone()).collect(),
        min_inclusive: leading.iter().all(|interval| interval.min_inclusive),
        max_inclusive: leading.iter().all(|interval| interval.max_inclusive),
    })
}

impl PlannedRange {
    /// The one key, or beginning of keys, that the range is about.
    #[must_use]
    pub fn key(&self) -> Option<PartitionKey> {
        let value = |bound: &KeyBound| match bound {
            KeyBound::Value(component) => Some(component.clone()),
            KeyBound::MinNumber | KeyBound::MaxNumber | KeyBound::MaxString => None,
        };
        (self.min == self.max).then(|| self.min.iter().map(value).collect())?
    }
}

/// A range of the ring as plans tell it to clients, who include its end where it
/// is a single position.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RingRange {
    pub min: Epk,
    pub max: Epk,
    pub max_inclusive: bool,
}

impl KeyRanges {
    /// Whether there is just one key, with a value for every path.
    #[must_use]
    pub fn is_one_key(&self, paths: usize) -> bool {
        let KeyRanges::Some(ranges) = self else { return false };
        let [range] = ranges.as_slice() else { return false };
        range.key().is_some_and(|key| key.components().len() == paths)
    }

    /// Where the items of these keys are, in order and apart from each other.
    #[must_use]
    pub fn positions(&self, definition: &PartitionKeyDefinition) -> Vec<EpkRange> {
        match self {
            KeyRanges::Everything => vec![EpkRange::full()],
            KeyRanges::Nothing => Vec::new(),
            KeyRanges::Some(ranges) => {
                let place = |range: &PlannedRange| definition.prefix_range(&range.key()?).ok();
                let places: Option<Vec<EpkRange>> = ranges.iter().map(place).collect();
                places.map_or_else(|| vec![EpkRange::full()], positions_apart)
            }
        }
    }

    /// The places on a container's ring as clients know it, in order and apart from
    /// each other. Keys of one EPK are not told apart there.
    #[must_use]
    pub fn on_ring(&self, definition: &PartitionKeyDefinition) -> Vec<RingRange> {
        let everything =
            || vec![RingRange { min: Epk::MIN, max: Epk::max(), max_inclusive: false }];
        match self {
            KeyRanges::Everything => everything(),
            KeyRanges::Nothing => {
                vec![RingRange { min: Epk::MIN, max: Epk::MIN, max_inclusive: true }]
            }
            KeyRanges::Some(ranges) => {
                let place = |range: &PlannedRange| ring_range(&range.key()?, definition);
                let places: Option<Vec<RingRange>> = ranges.iter().map(place).collect();
                places.map_or_else(everything, apart)
            }
        }
    }
}

fn ring_range(key: &PartitionKey, definition: &PartitionKeyDefinition) -> Option<RingRange> {
    if key.components().len() == definition.paths().len() {
        let epk = definition.epk(key).ok()?;
        return Some(RingRange { min: epk.clone(), max: epk, max_inclusive: true });
    }
    let EpkRange { min, max } = definition.prefix_range(key).ok()?;
    Some(RingRange { min, max, max_inclusive: false })
}

/// Sorts ranges and leaves out those that lie in others: prefixes have what is below
/// them, and no ranges overlap otherwise.
fn positions_apart(mut ranges: Vec<EpkRange>) -> Vec<EpkRange> {
    ranges.sort();
    ranges.dedup_by(|next, kept| kept.covers(next));
    ranges
}

/// The same for clients.
fn apart(mut ranges: Vec<RingRange>) -> Vec<RingRange> {
    ranges.sort();
    let mut apart: Vec<RingRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        let covered = apart.last().is_some_and(|last| {
            range.min < last.max || (range.min == last.max && last.max_inclusive)
        });
        if !covered {
            apart.push(range);
        }
    }
    apart
}
