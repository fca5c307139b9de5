//! Functions about the item itself, and those that give another value each time.

use model::rid::ItemRid;

use super::{Function, at, defined, only};
use crate::eval::{Datum, identity};

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

/// A 64-bit hash (FNV-1a) of what the value means: equal values have equal hashes. A
/// number that it is divided by, and one that it begins from, may follow.
fn hash<'a>(arguments: &[Datum<'a>]) -> Datum<'a> {
    let seed = at(arguments, 2).as_i64().unwrap_or(0);
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
    let value = only(arguments);
    let hash = match value.is_defined() {
        true => {
            let begin = 0xCBF2_9CE4_8422_2325_u64 ^ seed.cast_unsigned();
            identity(value).bytes().fold(begin, mix).cast_signed()
        }
        false => seed,
    };
    match at(arguments, 1).as_i64() {
        None => Datum::number(hash),
        Some(modulo) => defined(hash.checked_rem(modulo).map(Datum::number)),
    }
}
