//! Functions of the item itself, and those that return another value each time.

use model::json::hash64;
use model::rid::ItemRid;

use super::{Function, at, defined, only};
use crate::eval::Datum;

pub(super) const TABLE: &[Function] = &[
    Function::new(&["DOCUMENTID"], (1, 1), document_id),
    Function::new(&["HASH"], (1, 3), hash).taking_undefined(),
    Function::aware(&["RAND"], (0, 0), |ambient, _| Ok(Datum::number(ambient.random()))).volatile(),
];

/// The number of an item, unique in its container.
fn document_id<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let rid = only(arguments).get("_rid");
        let ordinal = ItemRid::parse(&rid.as_str()?).ok()?.ordinal();
        i64::try_from(ordinal.as_u64()).ok().map(Datum::number)
    })())
}

/// A 64-bit hash of a value, with a seed, which is the hash of undefined itself. The second
/// argument is a modulus.
fn hash<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    defined((|| {
        let seed = at(arguments, 2).as_i64().unwrap_or(0);
        let hash = only(arguments).to_value().ok()?.map_or(seed, |value| hash64(&value, seed));
        match at(arguments, 1).as_i64() {
            None => Some(Datum::number(hash)),
            Some(modulo) => (modulo != 0).then(|| Datum::number(hash.wrapping_rem(modulo))),
        }
    })())
}
