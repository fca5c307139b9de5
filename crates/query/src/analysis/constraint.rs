//! What must hold of places in a document, joined by AND and OR.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not named says nothing, and that is true of every form"
)]

use std::collections::BTreeMap;

use super::domain::{Domain, Structures};
use crate::bound::{Key, Slot};

/// Times that alternatives are looked at again when one of them has become certain.
const ROUNDS_MAX: usize = 4;

/// Alternatives that are still told apart.
const ALTERNATIVES_MAX: usize = crate::parser::IN_ITEMS_MAX;

/// Where a place begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Root {
    Document,
    /// A row that is no place in the document, such as an element of an array.
    Slot(Slot),
}

/// The path from a document, or from a row, to a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ValuePath {
    pub(crate) root: Root,
    pub(crate) steps: Vec<Key>,
}

impl ValuePath {
    pub(crate) fn new(root: Root) -> ValuePath {
        ValuePath { root, steps: Vec::new() }
    }

    pub(crate) fn to(mut self, key: Key) -> ValuePath {
        self.steps.push(key);
        self
    }

    pub(crate) fn is_document(&self) -> bool {
        self.root == Root::Document && self.steps.is_empty()
    }

    /// The path without its last step, and what must be there for that step.
    fn parent(&self) -> Option<(ValuePath, Domain)> {
        let mut steps = self.steps.clone();
        let kind = match steps.pop()? {
            Key::Name(_) => Domain::objects(),
            Key::Index(_) => Domain::arrays(),
        };
        Some((ValuePath { root: self.root, steps }, kind))
    }
}

#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "most constraints are about a place")]
pub(crate) enum Constraint {
    Anything,
    Never,
    At(ValuePath, Domain),
    All(Vec<Constraint>),
    Either(Vec<Constraint>),
}

type Known = BTreeMap<ValuePath, Domain>;

impl Constraint {
    pub(crate) fn at(place: ValuePath, domain: Domain) -> Constraint {
        if domain.is_any() {
            return Constraint::Anything;
        }
        if domain.is_empty() { Constraint::Never } else { Constraint::At(place, domain) }
    }

    pub(crate) fn all(parts: Vec<Constraint>) -> Constraint {
        let mut all = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Constraint::Never => return Constraint::Never,
                Constraint::Anything => {}
                Constraint::All(inner) => all.extend(inner),
                part => all.push(part),
            }
        }
        match all.len() {
            0 => Constraint::Anything,
            1 => all.swap_remove(0),
            _ => Constraint::All(all),
        }
    }

    pub(crate) fn either(parts: Vec<Constraint>) -> Constraint {
        let mut all = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Constraint::Anything => return Constraint::Anything,
                Constraint::Never => {}
                Constraint::Either(inner) => all.extend(inner),
                part => all.push(part),
            }
        }
        match all.len() {
            0 => Constraint::Never,
            1 => all.swap_remove(0),
            n if n > ALTERNATIVES_MAX => Constraint::Anything,
            _ => Constraint::Either(all),
        }
    }

    /// The same without what contradicts itself: one domain per place, and only
    /// alternatives that agree with what holds in any case.
    pub(crate) fn reduced(self) -> Constraint {
        reduce(self, &Known::new()).unwrap_or(Constraint::Never)
    }
}

/// `None` if it cannot hold where the known holds.
fn reduce(constraint: Constraint, outer: &Known) -> Option<Constraint> {
    match constraint {
        Constraint::Anything => Some(Constraint::Anything),
        Constraint::Never => None,
        Constraint::At(..) => reduce_all(vec![constraint], outer),
        Constraint::All(parts) => reduce_all(parts, outer),
        Constraint::Either(parts) => {
            let parts: Vec<Constraint> =
                parts.into_iter().filter_map(|part| reduce(part, outer)).collect();
            match Constraint::either(parts) {
                Constraint::Never => None,
                either => Some(either),
            }
        }
    }
}

fn reduce_all(parts: Vec<Constraint>, outer: &Known) -> Option<Constraint> {
    let (mut own, mut pending) = (Known::new(), parts);
    for _ in 0..ROUNDS_MAX {
        let (mut later, mut learnt) = (Vec::new(), false);
        for part in std::mem::take(&mut pending) {
            match part {
                Constraint::At(place, domain) => {
                    learn(&mut own, outer, place, domain)?;
                    learnt = true;
                }
                Constraint::All(inner) => later.extend(inner),
                part => later.push(part),
            }
        }
        let known = joined(outer, &own);
        let mut certain = false;
        for part in later {
            match reduce_part(part, &known)? {
                Constraint::Anything => {}
                part @ (Constraint::At(..) | Constraint::All(_)) => {
                    certain = true;
                    pending.push(part);
                }
                part => pending.push(part),
            }
        }
        if !certain && !learnt {
            break;
        }
    }
    let mut all: Vec<Constraint> =
        own.into_iter().map(|(place, domain)| Constraint::At(place, domain)).collect();
    all.extend(pending);
    Some(Constraint::all(all))
}

fn reduce_part(part: Constraint, known: &Known) -> Option<Constraint> {
    if matches!(part, Constraint::Either(_)) { reduce(part, known) } else { Some(part) }
}

fn joined(outer: &Known, own: &Known) -> Known {
    let mut known = outer.clone();
    known.extend(own.iter().map(|(place, domain)| (place.clone(), domain.clone())));
    known
}

/// Adds what holds at a place, and what that says of the places it lies in.
fn learn(own: &mut Known, outer: &Known, place: ValuePath, domain: Domain) -> Option<()> {
    let before = own.get(&place).or_else(|| outer.get(&place));
    let after = match before {
        Some(before) => before.and(&domain),
        None => domain,
    };
    if after.is_empty() {
        return None;
    }
    let parent = place.parent();
    let around = parent.as_ref().and_then(|(path, _)| own.get(path).or_else(|| outer.get(path)));
    let fits = around.is_none_or(|around| has_member(around, &place, &after));
    if !fits || !has_known_members(own, outer, &place, &after) {
        return None;
    }
    let within = parent.filter(|_| !after.undefined);
    own.insert(place, after);
    within.map_or(Some(()), |(parent, kind)| learn(own, outer, parent, kind))
}

/// Whether values of a domain can have a member like that, by the last step of its place.
fn has_member(domain: &Domain, place: &ValuePath, member: &Domain) -> bool {
    let Some(Key::Name(name)) = place.steps.last() else { return true };
    let own = member_domain(domain, std::slice::from_ref(name));
    own.is_none_or(|own| !own.and(member).is_empty())
}

/// Whether values of a domain can have what is known of their members.
fn has_known_members(own: &Known, outer: &Known, place: &ValuePath, domain: &Domain) -> bool {
    if !matches!(&domain.objects, Structures::Points(points) if !points.is_empty()) {
        return true;
    }
    let is_below = |inner: &ValuePath| {
        inner.root == place.root
            && inner.steps.len() == place.steps.len() + 1
            && inner.steps.starts_with(&place.steps)
    };
    let mut members = own.iter().chain(outer).filter(|(inner, _)| is_below(inner));
    members.all(|(inner, member)| has_member(domain, inner, member))
}

/// What a domain says of a member of its values.
pub(crate) fn member_domain(domain: &Domain, names: &[String]) -> Option<Domain> {
    let plain = Domain { objects: Structures::NONE, ..domain.clone() };
    let Structures::Points(points) = &domain.objects else { return None };
    if !plain.is_empty() || points.is_empty() {
        return None;
    }
    let members = points.iter().map(|point| {
        let inner = names.iter().try_fold(point, |value, name| value.get(name));
        inner.map_or(Domain::UNDEFINED, Domain::of_value)
    });
    members.reduce(|all, next| all.or(next))
}
