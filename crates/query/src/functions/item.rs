//! Functions about the item itself, and those that give another value each time.

use model::json::DistinctHash;
use model::rid::ItemRid;

use super::{Function, at, defined, only};
use crate::eval::Datum;

pub(super) const TABLE: &[Function] = &[
    Function::new(&["DOCUMENTID"], (1, 1), document_id),
    Function::new(&["HASH"], (1, 3), hash).taking_undefined(),
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

/// The lower half of the hash by which clients tell values apart, begun from a seed. A
/// number that it is divided by, and the seed, may follow.
fn hash<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    let seed = at(arguments, 2).as_i64().unwrap_or(0);
    let Ok(value) = only(arguments).to_value() else { return Datum::Undefined };
    let hash = value.map_or(seed, |value| DistinctHash::seeded(&value, seed).halves().0);
    match at(arguments, 1).as_i64() {
        None => Datum::number(hash),
        Some(modulo) => defined(hash.checked_rem(modulo).map(Datum::number)),
    }
}
