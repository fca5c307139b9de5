//! Functions about the item itself, and those that give another value each time.

use model::rid::ItemRid;

use super::{Function, defined, only};
use crate::eval::{Datum, identity};

pub(super) const TABLE: &[Function] = &[
    Function::new(&["DOCUMENTID"], (1, 1), document_id),
    Function::new(&["HASH"], (1, 1), hash),
    Function::aware(&["RAND"], (0, 0), |ambient, _| Ok(Datum::number(ambient.random()))).volatile(),
];

/// The number of an item, which no other item of its container has.
fn document_id<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let rid = only(arguments).get("_rid");
        let ordinal = ItemRid::parse(&rid.as_str()?).ok()?.ordinal();
        i64::try_from(ordinal.as_u64()).ok().map(Datum::number)
    })())
}

/// A 32-bit hash (FNV-1a) of what the value means: equal values have equal hashes.
fn hash<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    let hash = identity(only(arguments)).bytes().fold(0x811C_9DC5, mix);
    Datum::number(i64::from(hash))
}
