//! Which index entries an item has under a policy, and which ranges of entries
//! answer a predicate.
//!
//! An [`IndexPlan`] is an indexing policy compiled for traversing items. It gives an item's
//! entries as byte strings (`path hash | value`), and for an indexed path an
//! [`IndexedPath`], which gives [`EntryRange`]s. Bytes compare as the values do, so a range
//! of values is a range of keys; see `docs/formats/index.md` for the bytes.
//!
//! Everything here is a pure function. Must not know: storage, SQL text.

mod absence;
mod entries;
mod explain;
mod order;
mod path_hash;
mod plan;
mod range;
mod typed;
mod value;

pub use absence::{Absence, Members, is_of_members, same_members};
pub use order::{
    EntryEnd, EntryOrder, Seek, SortValue, encode_key, encode_order, encode_ordinal,
    encode_sort_values, entry_part_of_values,
};
pub use path_hash::PathHash;
pub use plan::{CompositeIndex, IndexPlan, IndexedPath, Next};
pub use range::EntryRange;
pub use typed::encode_typed;
pub use value::{DecodeError, Decoded, IndexValue, has_one_entry};
