//! Finding items that have no value at a path.
//!
//! Entries exist for values that are present. Absence is found by the property names of
//! objects: all items with the same set of names in an object are one run of entries, and
//! one of them shows for all whether the name in question is in the set.

use model::policy::PolicyPathStep;

use crate::path_hash::PathHash;
use crate::plan::{IndexPlan, Node};
use crate::range::{EntryRange, after};
use crate::value::{ARRAY, MEMBERS, NULL, STRING};

/// Bytes of the hash at the beginning of an entry.
const HASH_BYTES: usize = 8;
/// Bytes of an entry for a set of names: hash, tag and names.
const MEMBERS_BYTES: usize = HASH_BYTES + 1 + HASH_BYTES;

/// The entries of items without a value at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Absence {
    /// What entries of these items would begin with, if they had one.
    pub key: Vec<u8>,
    /// Entries of such items, in the order of ordinals.
    pub runs: Vec<EntryRange>,
    /// Entries of such items in another order.
    pub others: Vec<EntryRange>,
    /// Objects along the path in which it may end.
    pub objects: Vec<Members>,
}

/// The names that objects at one path have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// The entries for them: one run for each set of names.
    pub range: EntryRange,
    /// The path to the object, and one of the names.
    pub names: Vec<String>,
}

impl IndexPlan {
    /// How items without a value at a path are found. `None` if no entries show it.
    #[must_use]
    pub fn absence(&self, names: &[&str]) -> Option<Absence> {
        let step = |name: &&str| PolicyPathStep::Property((*name).to_owned());
        let steps: Vec<PolicyPathStep> = names.iter().map(step).collect();
        let mut absence = Absence {
            key: self.path(&steps)?.undefined_key(),
            runs: Vec::new(),
            others: Vec::new(),
            objects: Vec::new(),
        };
        let mut node = self.root.as_ref();
        let mut inherited = node?.below(false);
        for (at, name) in names.iter().enumerate() {
            let above = steps.get(..at)?;
            let path = self.path(above).filter(|_| at > 0);
            if let Some(path) = path.filter(|path| path.has_undefined()) {
                // These are all that have no value above.
                let start = path.undefined_key();
                let run = EntryRange { end: after(&start), start, exact: true };
                absence =
                    Absence { runs: vec![run], others: Vec::new(), objects: Vec::new(), ..absence };
            }
            if let Some(path) = path {
                absence
                    .others
                    .extend([path.between_tags(NULL, STRING), path.between_tags(ARRAY, ARRAY)]);
            }
            let own = self.path(steps.get(..=at)?);
            if inherited && own.is_some() && (at == 0 || path.is_some()) {
                let range = members_range(self.hash(above).members(self.seed));
                let names = names.get(..=at)?.iter().map(|name| (*name).to_owned()).collect();
                absence.objects.push(Members { range, names });
            } else if !own.is_some_and(|path| path.has_undefined()) {
                return None;
            }
            node = node.and_then(|node: &Node| node.property_child(name));
            inherited = node.map_or(inherited, |node| node.below(inherited));
        }
        Some(absence)
    }
}

/// The common prefix of all entries for the same set of names, given one such entry and
/// whatever follows it.
#[must_use]
pub fn same_members(entry: &[u8]) -> Option<&[u8]> {
    entry.get(..MEMBERS_BYTES).filter(|entry| is_of_members(entry))
}

/// Whether an entry is for a set of names: no client chose that value.
#[must_use]
pub fn is_of_members(entry: &[u8]) -> bool {
    entry.get(HASH_BYTES) == Some(&MEMBERS)
}

pub(crate) fn encode_members(names: PathHash, out: &mut Vec<u8>) {
    out.push(MEMBERS);
    out.extend(names.to_bytes());
}

fn members_range(hash: PathHash) -> EntryRange {
    let mut start = hash.to_bytes().to_vec();
    start.push(MEMBERS);
    EntryRange { end: after(&start), start, exact: true }
}
