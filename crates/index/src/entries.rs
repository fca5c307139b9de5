//! The walk over an item that finds its entries.
//!
//! Items are looked at as text; only values on indexed paths are decoded. A part
//! of the item that no path of the policy reaches is skipped unread.

use model::json::{DEPTH_MAX, JsonKind, Raw};

use crate::absence::encode_members;
use crate::path_hash::PathHash;
use crate::plan::{Composite, IndexPlan, Node, Slot};
use crate::value::{IndexValue, TEXT_BYTES_MAX};

impl IndexPlan {
    /// Gives every entry of an item to `sink`, each once, in byte order. The
    /// caller adds what makes entries of different items differ.
    ///
    /// An entry takes at least two bytes of the item's text (`1,`), so the limit
    /// on item size bounds their number; the buffer here holds about 20 bytes
    /// per entry besides the text of strings.
    pub fn entries(&self, item: Raw<'_>, sink: &mut dyn FnMut(&[u8])) {
        let Some(root) = &self.root else { return };
        let mut walk = Walk::new(self.seed, self.slots.len());
        let item_hash = PathHash::item(self.seed);
        let place = Place { node: Some(root), inherited: root.below(false), is_named: true };
        walk.below(item, item_hash, place, 0);
        for (slot, found) in self.slots.iter().zip(&walk.found) {
            undefined_entry(&mut walk.entries, slot, *found);
        }
        for composite in &self.composites {
            composite_entry(&mut walk.entries, composite, &walk.found);
        }
        walk.entries.drain_sorted(sink);
    }
}

/// Where a walk is, as the policy sees it.
#[derive(Clone, Copy)]
struct Place<'p> {
    node: Option<&'p Node>,
    /// What the policy says about everything here unless the node, or one below it, says
    /// otherwise.
    inherited: bool,
    /// Whether no array is above.
    is_named: bool,
}

impl Place<'_> {
    fn is_reached(self) -> bool {
        self.node.is_some() || self.inherited
    }

    fn is_indexed(self) -> bool {
        self.node.map_or(self.inherited, |node| node.here(self.inherited))
    }
}

struct Walk<'a> {
    seed: u64,
    entries: Entries,
    /// The value of each slot, once met.
    found: Vec<Option<Raw<'a>>>,
}

impl<'a> Walk<'a> {
    fn new(seed: u64, slots: usize) -> Walk<'a> {
        Walk { seed, entries: Entries::default(), found: vec![None; slots] }
    }

    fn value(&mut self, value: Raw<'a>, hash: PathHash, place: Place<'_>, depth: usize) {
        let slot = place.node.and_then(|node| node.slot);
        if let Some(found) = slot.and_then(|at| self.found.get_mut(at)) {
            *found = Some(value);
        }
        if place.is_indexed() {
            self.entries.push(hash, |out| IndexValue::from(value).encode(TEXT_BYTES_MAX, out));
        }
        let inherited = place.node.map_or(place.inherited, |node| node.below(place.inherited));
        let place = Place { inherited, ..place };
        // Items were checked for depth when they were stored.
        if place.is_reached() && depth < DEPTH_MAX {
            self.below(value, hash, place, depth + 1);
        }
    }

    fn below(&mut self, value: Raw<'a>, hash: PathHash, place: Place<'_>, depth: usize) {
        match value.kind() {
            JsonKind::Object => {
                let mut names = PathHash::NONE;
                for (name, member) in value.members() {
                    let node = place.node.and_then(|node| node.property_child(&name));
                    let place = Place { node, ..place };
                    if place.is_reached() {
                        let hash = hash.property(self.seed, &name);
                        if place.is_indexed() {
                            names = names.together(hash);
                        }
                        self.value(member, hash, place, depth);
                    }
                }
                if place.inherited && place.is_named {
                    self.entries.push(hash.members(self.seed), |out| encode_members(names, out));
                }
            }
            JsonKind::Array => {
                let node = place.node.and_then(Node::elements_child);
                let place = Place { node, is_named: false, ..place };
                if place.is_reached() {
                    let hash = hash.elements(self.seed);
                    for element in value.elements() {
                        self.value(element, hash, place, depth);
                    }
                }
            }
            JsonKind::Null | JsonKind::Bool | JsonKind::Number | JsonKind::String => {}
        }
    }
}

fn undefined_entry(entries: &mut Entries, slot: &Slot, found: Option<Raw<'_>>) {
    if slot.undefined && found.is_none() {
        entries.push(slot.hash, |out| IndexValue::Undefined.encode(0, out));
    }
}

fn composite_entry(entries: &mut Entries, composite: &Composite, found: &[Option<Raw<'_>>]) {
    entries.push(composite.hash, |out| {
        for (slot, order) in &composite.parts {
            let value = found.get(*slot).copied().flatten();
            let value = value.map_or(IndexValue::Undefined, IndexValue::from);
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
