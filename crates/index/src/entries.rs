//! The walk over an item that finds its entries.
//!
//! Items are looked at as text; only values on indexed paths are decoded. A part
//! of the item that no path of the policy reaches is skipped unread.

use model::json::{DEPTH_MAX, Kind, Raw};

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
        walk.below(item, item_hash, Some(root), root.below(false), 0);
        for (slot, found) in self.slots.iter().zip(&walk.found) {
            undefined_entry(&mut walk.entries, slot, *found);
        }
        for composite in &self.composites {
            composite_entry(&mut walk.entries, composite, &walk.found);
        }
        walk.entries.drain_sorted(sink);
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

    /// One value. `inherited` is what the policy says about everything here
    /// unless `node`, or one below it, says otherwise.
    fn value(
        &mut self,
        value: Raw<'a>,
        hash: PathHash,
        node: Option<&Node>,
        inherited: bool,
        depth: usize,
    ) {
        if let Some(place) = node.and_then(|node| node.slot).and_then(|at| self.found.get_mut(at)) {
            *place = Some(value);
        }
        if node.map_or(inherited, |node| node.here(inherited)) {
            self.entries.push(hash, |out| IndexValue::from(value).encode(TEXT_BYTES_MAX, out));
        }
        let inherited = node.map_or(inherited, |node| node.below(inherited));
        // Items were checked for depth when they were stored.
        if (node.is_some() || inherited) && depth < DEPTH_MAX {
            self.below(value, hash, node, inherited, depth + 1);
        }
    }

    fn below(
        &mut self,
        value: Raw<'a>,
        hash: PathHash,
        node: Option<&Node>,
        inherited: bool,
        depth: usize,
    ) {
        match value.kind() {
            Kind::Object => {
                for (name, member) in value.members() {
                    let node = node.and_then(|node| node.property_child(&name));
                    if node.is_some() || inherited {
                        let hash = hash.property(self.seed, &name);
                        self.value(member, hash, node, inherited, depth);
                    }
                }
            }
            Kind::Array => {
                let node = node.and_then(Node::elements_child);
                if node.is_some() || inherited {
                    let hash = hash.elements(self.seed);
                    for element in value.elements() {
                        self.value(element, hash, node, inherited, depth);
                    }
                }
            }
            Kind::Null | Kind::Bool | Kind::Number | Kind::String => {}
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
