//! The traversal of an item that finds its entries.
//!
//! Items are read as text; only values on indexed paths are decoded. A part of the item
//! that no path of the policy reaches is skipped unread, unless it is in an array or object
//! that has an entry: such entries carry a hash of everything inside. All hashes come from
//! the one traversal, from the inside out, so nothing is hashed once for each level above it.

use std::borrow::Cow;

use model::json::{DEPTH_MAX, JsonKind, NestedHash, Place, PlacedHash, Raw};

use crate::absence::encode_members;
use crate::path_hash::PathHash;
use crate::plan::{Composite, IndexPlan, Node, Slot};
use crate::value::{IndexValue, TEXT_BYTES_MAX};

impl IndexPlan {
    /// Passes every entry of an item to `sink`, each once, in byte order. The caller
    /// appends what distinguishes the entries of different items. The item is given as the
    /// objects that its members are in: its own text, and what the database adds to it.
    ///
    /// An entry takes at least two bytes of the item's text (`1,`), so the limit on item
    /// size bounds their number; the buffer here holds about 20 bytes per entry besides the
    /// text of strings, and 25 for one of an array or object.
    pub fn entries(&self, item: &[Raw<'_>], sink: &mut dyn FnMut(&[u8])) {
        let Some(root) = &self.root else { return };
        let mut traversal = Traversal::new(self.seed, self.slots.len());
        let item_hash = PathHash::item(self.seed);
        let position =
            PolicyPosition { node: Some(root), inherited: root.below(false), is_named: true };
        let members = item.iter().flat_map(|part| part.members());
        traversal.members(members, item_hash, position, 0, &mut None);
        for (slot, found) in self.slots.iter().zip(&traversal.found) {
            undefined_entry(&mut traversal.entries, slot, found.as_ref());
        }
        for composite in &self.composites {
            composite_entry(&mut traversal.entries, composite, &traversal.found);
        }
        traversal.entries.drain_sorted(sink);
    }
}

/// Where a traversal is in the policy.
#[derive(Clone, Copy)]
struct PolicyPosition<'p> {
    node: Option<&'p Node>,
    /// What the policy says about everything here unless the node, or one below it, says
    /// otherwise.
    inherited: bool,
    /// Whether no array is above.
    is_named: bool,
}

impl PolicyPosition<'_> {
    fn is_reached(self) -> bool {
        self.node.is_some() || self.inherited
    }

    fn is_indexed(self) -> bool {
        self.node.map_or(self.inherited, |node| node.here(self.inherited))
    }
}

struct Traversal<'a> {
    seed: u64,
    entries: Entries,
    /// The value of each slot, once found.
    found: Vec<Option<IndexValue<'a>>>,
}

impl<'a> Traversal<'a> {
    fn new(seed: u64, slots: usize) -> Traversal<'a> {
        Traversal { seed, entries: Entries::default(), found: vec![None; slots] }
    }

    /// A value and what is in it. `place` asks for its hash there.
    fn value(
        &mut self,
        value: Raw<'a>,
        hash: PathHash,
        position: PolicyPosition<'_>,
        depth: usize,
        place: Option<Place>,
    ) -> Option<PlacedHash> {
        let slot = position.node.and_then(|node| node.slot);
        let is_kept = position.is_indexed() || slot.is_some();
        let (known, placed) = if let Some(scalar) = IndexValue::scalar(value) {
            (Some(scalar), place.map(|place| place.hash(value)))
        } else {
            let wanted = place.or(is_kept.then_some(Place::ALONE));
            let mut sum = wanted.map(|place| started(value, place));
            self.below(value, hash, position, depth, &mut sum);
            let (alone, placed) = sum.map(NestedHash::finish).unzip();
            let is_array = value.kind() == JsonKind::Array;
            let known = if is_array { IndexValue::Array } else { IndexValue::Object };
            (alone.map(known), placed)
        };
        if let Some(known) = known.filter(|_| is_kept) {
            if position.is_indexed() {
                self.entries.push(hash, |out| known.encode(TEXT_BYTES_MAX, out));
            }
            if let Some(found) = slot.and_then(|at| self.found.get_mut(at)) {
                *found = Some(known);
            }
        }
        placed
    }

    /// What is in an array or object; adds it to the hash of that, if it is wanted.
    fn below(
        &mut self,
        value: Raw<'a>,
        hash: PathHash,
        position: PolicyPosition<'_>,
        depth: usize,
        sum: &mut Option<NestedHash>,
    ) {
        let inherited =
            position.node.map_or(position.inherited, |node| node.below(position.inherited));
        let position = PolicyPosition { inherited, ..position };
        // Items were checked for depth when they were stored.
        if depth >= DEPTH_MAX || !(position.is_reached() || sum.is_some()) {
            return;
        }
        if value.kind() == JsonKind::Object {
            self.members(value.members(), hash, position, depth + 1, sum);
        } else {
            let node = position.node.and_then(Node::elements_child);
            let position = PolicyPosition { node, is_named: false, ..position };
            self.elements(value, hash.elements(self.seed), position, depth + 1, sum);
        }
    }

    /// The elements of an array.
    fn elements(
        &mut self,
        array: Raw<'a>,
        hash: PathHash,
        position: PolicyPosition<'_>,
        depth: usize,
        sum: &mut Option<NestedHash>,
    ) {
        if !position.is_reached() && sum.is_none() {
            return;
        }
        for (element, index) in array.elements().zip(0..) {
            let place = sum.map(|_| Place::element(index));
            let part = if position.is_reached() {
                self.value(element, hash, position, depth, place)
            } else {
                place.map(|place| place.hash(element))
            };
            add(sum, part);
        }
    }

    /// The members of an object.
    fn members(
        &mut self,
        members: impl Iterator<Item = (Cow<'a, str>, Raw<'a>)>,
        hash: PathHash,
        position: PolicyPosition<'_>,
        depth: usize,
        sum: &mut Option<NestedHash>,
    ) {
        let mut names = PathHash::NONE;
        for (name, member) in members {
            let place = sum.map(|_| Place::member(&name));
            let node = position.node.and_then(|node| node.property_child(&name));
            let position = PolicyPosition { node, ..position };
            if !position.is_reached() {
                add(sum, place.map(|place| place.hash(member)));
                continue;
            }
            let hash = hash.property(self.seed, &name);
            if position.is_indexed() {
                names = names.together(hash);
            }
            let part = self.value(member, hash, position, depth, place);
            add(sum, part);
        }
        if position.inherited && position.is_named {
            self.entries.push(hash.members(self.seed), |out| encode_members(names, out));
        }
    }
}

/// The hash of an array or object without its parts.
fn started(value: Raw<'_>, place: Place) -> NestedHash {
    let is_array = value.kind() == JsonKind::Array;
    if is_array { NestedHash::array(place) } else { NestedHash::object(place) }
}

fn add(sum: &mut Option<NestedHash>, part: Option<PlacedHash>) {
    if let Some((sum, part)) = sum.as_mut().zip(part) {
        sum.add(part);
    }
}

fn undefined_entry(entries: &mut Entries, slot: &Slot, found: Option<&IndexValue<'_>>) {
    if slot.undefined && found.is_none() {
        entries.push(slot.hash, |out| IndexValue::Undefined.encode(0, out));
    }
}

fn composite_entry(entries: &mut Entries, composite: &Composite, found: &[Option<IndexValue<'_>>]) {
    entries.push(composite.hash, |out| {
        for (slot, order) in &composite.parts {
            let value = found.get(*slot).and_then(Option::as_ref);
            let value = value.unwrap_or(&IndexValue::Undefined);
            value.encode_part(*order, composite.text_max, out);
        }
    });
}

/// Entries one after the other in one buffer: an item has dozens.
#[derive(Default)]
struct Entries {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Entries {
    fn push(&mut self, hash: PathHash, write: impl FnOnce(&mut Vec<u8>)) {
        self.bytes.extend(hash.to_bytes());
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    fn drain_sorted(self, sink: &mut dyn FnMut(&[u8])) {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let mut entries: Vec<&[u8]> = starts
            .zip(&self.ends)
            .map(|(start, end)| self.bytes.get(start..*end).expect("ends only grow"))
            .collect();
        entries.sort_unstable();
        entries.dedup();
        entries.into_iter().for_each(sink);
    }
}
