//! The traversal of an item that finds its entries.
//!
//! Items are read as text; only values on indexed paths are decoded. A part of the item
//! that no path of the policy reaches is skipped unread.

use std::borrow::Cow;

use model::json::{DEPTH_MAX, JsonKind, Raw};

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
    /// text of strings.
    pub fn entries(&self, item: &[Raw<'_>], sink: &mut dyn FnMut(&[u8])) {
        let Some(root) = &self.root else { return };
        let mut traversal = Traversal::new(self.seed, self.slots.len());
        let item_hash = PathHash::item(self.seed);
        let position =
            PolicyPosition { node: Some(root), inherited: root.below(false), is_named: true };
        let members = item.iter().flat_map(|part| part.members());
        traversal.members(members, item_hash, position, 0);
        for (slot, found) in self.slots.iter().zip(&traversal.found) {
            undefined_entry(&mut traversal.entries, slot, *found);
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
    found: Vec<Option<Raw<'a>>>,
}

impl<'a> Traversal<'a> {
    fn new(seed: u64, slots: usize) -> Traversal<'a> {
        Traversal { seed, entries: Entries::default(), found: vec![None; slots] }
    }

    fn value(
        &mut self,
        value: Raw<'a>,
        hash: PathHash,
        position: PolicyPosition<'_>,
        depth: usize,
    ) {
        let slot = position.node.and_then(|node| node.slot);
        if let Some(found) = slot.and_then(|at| self.found.get_mut(at)) {
            *found = Some(value);
        }
        if position.is_indexed() {
            self.entries.push(hash, |out| IndexValue::from(value).encode(TEXT_BYTES_MAX, out));
        }
        let inherited =
            position.node.map_or(position.inherited, |node| node.below(position.inherited));
        let position = PolicyPosition { inherited, ..position };
        // Items were checked for depth when they were stored.
        if position.is_reached() && depth < DEPTH_MAX {
            self.below(value, hash, position, depth + 1);
        }
    }

    fn below(
        &mut self,
        value: Raw<'a>,
        hash: PathHash,
        position: PolicyPosition<'_>,
        depth: usize,
    ) {
        match value.kind() {
            JsonKind::Object => self.members(value.members(), hash, position, depth),
            JsonKind::Array => {
                let node = position.node.and_then(Node::elements_child);
                let position = PolicyPosition { node, is_named: false, ..position };
                if position.is_reached() {
                    let hash = hash.elements(self.seed);
                    for element in value.elements() {
                        self.value(element, hash, position, depth);
                    }
                }
            }
            JsonKind::Null | JsonKind::Bool | JsonKind::Number | JsonKind::String => {}
        }
    }

    /// The members of an object.
    fn members(
        &mut self,
        members: impl Iterator<Item = (Cow<'a, str>, Raw<'a>)>,
        hash: PathHash,
        position: PolicyPosition<'_>,
        depth: usize,
    ) {
        let mut names = PathHash::NONE;
        for (name, member) in members {
            let node = position.node.and_then(|node| node.property_child(&name));
            let position = PolicyPosition { node, ..position };
            if position.is_reached() {
                let hash = hash.property(self.seed, &name);
                if position.is_indexed() {
                    names = names.together(hash);
                }
                self.value(member, hash, position, depth);
            }
        }
        if position.inherited && position.is_named {
            self.entries.push(hash.members(self.seed), |out| encode_members(names, out));
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
