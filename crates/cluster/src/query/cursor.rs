//! Where the next page of a query begins.
//!
//! A cursor is a place in the order in which a query meets its items, and what was
//! counted on the way there. It names no physical partition and no bucket, so it
//! means the same after a restart, a split and a merge; and no view of the past is
//! kept for it: what is written behind it is met, what is written before it is not.

use model::epk::{Epk, EpkRange};
use partition::ScanOrder;

use super::point::{Given, MARKS_MAX, Point};

/// The place between two pages of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Which query it belongs to.
    pub(crate) query: u32,
    /// Rows still to be left out by OFFSET.
    pub(crate) skip: u64,
    /// Rows already given, of the whole query.
    pub(crate) given: u64,
    pub(crate) place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The rows are made again and as many as were given are left out: rows of subqueries
    /// over all items have nothing else by which they could be told.
    Again,
    /// What comes before this position of the ring is done, the rest is not begun.
    From(Epk),
    Behind(Behind),
    Past(Past),
}

/// A place in the order of the query, or of rows that are groups or distinct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Past {
    /// The part of the ring that was asked for, in outline. Who asks for more would miss
    /// what the rest of it has before the point.
    pub(crate) scope: EpkRange,
    pub(crate) point: Point,
}

/// A place on the way to the items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Behind {
    /// The part of the ring that was being read. What comes before it is done, and what
    /// comes behind it is not begun.
    pub(crate) stretch: EpkRange,
    /// What it is a position in. The next page goes the same way, whatever would be
    /// chosen by then.
    pub(crate) way: ScanOrder,
    pub(crate) position: Position,
}

/// A place among the items of a stretch: a key without what names its bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) key: Vec<u8>,
    /// Whether only the beginning of the key is here.
    pub(crate) cut: bool,
    /// How many rows with this key were given. None if there are no more.
    pub(crate) rows: Option<u32>,
}

/// A cursor that this version did not make, or not for this query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    #[error("the cursor is malformed")]
    Malformed,
    #[error("the cursor belongs to another query")]
    OtherQuery,
}

/// Bytes of a key that a cursor keeps; see [`super::point::PLACE_BYTES_MAX`].
pub(crate) const KEY_BYTES_MAX: usize = 560;

/// Bytes of a position of the ring that an outline keeps: all of those that are hashes.
const OUTLINE_BYTES_MAX: usize = 48;

const VERSION: u8 = 1;
const AGAIN: u8 = 0;
const BEHIND: u8 = 1;
const CUT: u8 = 2;
const MORE_ROWS: u8 = 4;
/// Two bits that say what the position is in.
const WAYS: u8 = 24;
const FROM: u8 = 64;
/// A place in the order, and whether rows that begin like it are done: all or some.
const PAST: u8 = 128;
const ALL_DONE: u8 = 1;
const SOME_DONE: u8 = 2;
const WAYS_IN_ORDER: [ScanOrder; 3] = [ScanOrder::Items, ScanOrder::Ordinals, ScanOrder::Entries];

fn way_flags(way: ScanOrder) -> u8 {
    match way {
        ScanOrder::Items => 0,
        ScanOrder::Ordinals => 8,
        ScanOrder::Entries => 16,
    }
}

impl Position {
    /// The place of that key, behind all its rows.
    pub(crate) fn of(key: &[u8]) -> Position {
        match key.get(..KEY_BYTES_MAX) {
            Some(kept) if kept.len() < key.len() => Position::cut(kept),
            Some(_) | None => Position { key: key.to_vec(), ..Position::default() },
        }
    }

    /// The place of all keys that begin so.
    pub(crate) fn cut(beginning: &[u8]) -> Position {
        Position { key: beginning.to_vec(), cut: true, ..Position::default() }
    }

    /// Whether a key is the one at this place, as far as it is known.
    pub(crate) fn is_at(&self, key: &[u8]) -> bool {
        if self.cut { key.starts_with(&self.key) } else { key == self.key }
    }
}

impl Past {
    pub(crate) fn new(scope: &EpkRange, point: Point) -> Past {
        Past { scope: outline(scope), point }
    }

    /// Whether it means something to who asks for this part of the ring.
    pub(crate) fn serves(&self, scope: &EpkRange) -> bool {
        self.scope.covers(&outline(scope))
    }
}

/// A range around another one whose bounds are short. What covers a range has an outline
/// that covers its outline.
fn outline(range: &EpkRange) -> EpkRange {
    let cut = |epk: &Epk, behind: &[u8]| match epk.as_bytes().get(..OUTLINE_BYTES_MAX) {
        Some(kept) if kept.len() < epk.as_bytes().len() => {
            Epk::from_bytes(&[kept, behind].concat()).ok()
        }
        Some(_) | None => Some(epk.clone()),
    };
    let min = cut(&range.min, &[]).unwrap_or(Epk::MIN);
    EpkRange::new(min, cut(&range.max, &[0xFF]).unwrap_or(Epk::max()))
}

impl Cursor {
    /// The cursor as bytes, at most a kilobyte in base 64.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend(self.query.to_be_bytes());
        put_number(&mut out, self.skip);
        put_number(&mut out, self.given);
        match &self.place {
            Place::Again => out.push(AGAIN),
            Place::From(position) => {
                out.push(FROM);
                put_bytes(&mut out, position.as_bytes());
            }
            Place::Behind(Behind { stretch, way, position }) => {
                let cut = if position.cut { CUT } else { 0 };
                let rows = if position.rows.is_some() { MORE_ROWS } else { 0 };
                out.push(BEHIND | cut | rows | way_flags(*way));
                put_bytes(&mut out, stretch.min.as_bytes());
                put_bytes(&mut out, stretch.max.as_bytes());
                put_bytes(&mut out, &position.key);
                if let Some(rows) = position.rows {
                    put_number(&mut out, u64::from(rows));
                }
            }
            Place::Past(past) => put_past(&mut out, past),
        }
        out
    }

    /// Where on the ring the next page begins, if it is one place.
    #[must_use]
    pub fn position(&self) -> Option<&Epk> {
        match &self.place {
            Place::Again | Place::Past(_) => None,
            Place::From(position) => Some(position),
            Place::Behind(behind) => Some(&behind.stretch.min),
        }
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Cursor, CursorError> {
        parse(bytes).ok_or(CursorError::Malformed)
    }
}

fn parse(mut input: &[u8]) -> Option<Cursor> {
    let input = &mut input;
    if take(input)? != VERSION {
        return None;
    }
    let (query, rest) = input.split_first_chunk::<4>()?;
    *input = rest;
    let (skip, given) = (number(input)?, number(input)?);
    let place = match take(input)? {
        AGAIN => Place::Again,
        FROM => Place::From(epk(input).filter(|position| EpkRange::full().contains(position))?),
        flags if flags & !(CUT | MORE_ROWS | WAYS) == BEHIND => {
            let (stretch, key) = (stretch(input)?, bytes(input)?.to_vec());
            let rows = match flags & MORE_ROWS {
                0 => None,
                _ => Some(u32::try_from(number(input)?).ok()?),
            };
            let way = *WAYS_IN_ORDER.iter().find(|way| way_flags(**way) == flags & WAYS)?;
            let position = Position { key, cut: flags & CUT != 0, rows };
            Place::Behind(Behind { stretch, way, position })
        }
        flags if flags & !(ALL_DONE | SOME_DONE) == PAST => {
            let (scope, place) = (stretch(input)?, bytes(input)?.to_vec());
            let given = match flags & SOME_DONE {
                0 => None,
                _ => {
                    let rows = u32::try_from(number(input)?).ok()?;
                    let (marks, []) = bytes(input)?.as_chunks::<4>() else { return None };
                    let marks = Some(marks).filter(|marks| marks.len() <= MARKS_MAX)?;
                    Some(Given {
                        rows,
                        marks: marks.iter().copied().map(u32::from_be_bytes).collect(),
                    })
                }
            };
            Place::Past(Past { scope, point: Point { place, past: flags & ALL_DONE != 0, given } })
        }
        _ => return None,
    };
    let query = u32::from_be_bytes(*query);
    input.is_empty().then_some(Cursor { query, skip, given, place })
}

fn put_past(out: &mut Vec<u8>, Past { scope, point }: &Past) {
    let all = if point.past { ALL_DONE } else { 0 };
    out.push(PAST | all | if point.given.is_some() { SOME_DONE } else { 0 });
    put_bytes(out, scope.min.as_bytes());
    put_bytes(out, scope.max.as_bytes());
    put_bytes(out, &point.place);
    if let Some(Given { rows, marks }) = &point.given {
        put_number(out, u64::from(*rows));
        let marks: Vec<u8> = marks.iter().flat_map(|mark| mark.to_be_bytes()).collect();
        put_bytes(out, &marks);
    }
}

/// A part of the ring.
fn stretch(input: &mut &[u8]) -> Option<EpkRange> {
    let stretch = EpkRange::new(epk(input)?, epk(input)?);
    (!stretch.is_empty() && EpkRange::full().covers(&stretch)).then_some(stretch)
}

/// Seven bits at a time, the lowest first.
fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(u8::try_from(number & 0x7F).unwrap_or_default() | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap_or_default());
}

fn number(input: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = take(input)?;
        let bits = u64::from(byte & 0x7F);
        number |= bits.checked_shl(shift).filter(|shifted| shifted >> shift == bits)?;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend(bytes);
}

fn bytes<'i>(input: &mut &'i [u8]) -> Option<&'i [u8]> {
    let length = usize::try_from(number(input)?).ok()?;
    let (bytes, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(bytes)
}

fn epk(input: &mut &[u8]) -> Option<Epk> {
    Epk::from_bytes(bytes(input)?).ok()
}

fn take(input: &mut &[u8]) -> Option<u8> {
    let (byte, rest) = input.split_first()?;
    *input = rest;
    Some(*byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cursors() -> impl Strategy<Value = Cursor> {
        let key = || prop::collection::vec(any::<u8>(), 0..=KEY_BYTES_MAX);
        let position = (key(), any::<bool>(), any::<Option<u32>>());
        let position = position.prop_map(|(key, cut, rows)| Position { key, cut, rows });
        let stretch = EpkRange::new(Epk::from_bytes(&[5, 0, 1]).unwrap(), Epk::max());
        let way = prop::sample::select(WAYS_IN_ORDER.to_vec());
        let behind = (way, position).prop_map(move |(way, position)| {
            let stretch = stretch.clone();
            Place::Behind(Behind { stretch, way, position })
        });
        let from = Place::From(Epk::from_bytes(&[5, 0, 1]).unwrap());
        let marks = prop::collection::vec(any::<u32>(), 0..=MARKS_MAX);
        let given = prop::option::of((any::<u32>(), marks));
        let past = (key(), any::<bool>(), given).prop_map(|(place, past, given)| {
            let given = given.map(|(rows, marks)| Given { rows, marks });
            let long = |byte| Epk::from_bytes(&[byte; 128]).unwrap();
            let scope = EpkRange::new(long(5), long(6));
            Place::Past(Past::new(&scope, Point { place, past, given }))
        });
        let place = prop_oneof![Just(Place::Again), Just(from), behind, past];
        (any::<u32>(), any::<u64>(), any::<u64>(), place)
            .prop_map(|(query, skip, given, place)| Cursor { query, skip, given, place })
    }

    proptest! {
        #[test]
        fn bytes_lead_back(cursor in cursors()) {
            let bytes = cursor.to_bytes();
            prop_assert_eq!(Cursor::from_bytes(&bytes).unwrap(), cursor);
            prop_assert!(bytes.len() <= 768, "a kilobyte in base 64");
        }

        #[test]
        fn foreign_bytes_are_refused_or_mean_themselves(bytes: Vec<u8>) {
            if let Ok(cursor) = Cursor::from_bytes(&bytes) {
                prop_assert_eq!(Cursor::from_bytes(&cursor.to_bytes()).unwrap(), cursor);
            }
        }

        /// What is within a part of the ring is within its outline.
        #[test]
        fn outlines_cover_what_their_ranges_cover(mut bounds: [Vec<u8>; 4]) {
            bounds.sort();
            let epk = |bytes: &Vec<u8>| Epk::from_bytes(&[&[1; 47], &**bytes].concat()).ok();
            let [Some(a), Some(b), Some(c), Some(d)] = bounds.each_ref().map(epk) else {
                return Ok(());
            };
            let past = Past::new(&EpkRange::new(a, d), Point::default());
            prop_assert!(past.serves(&EpkRange::new(b, c)));
        }

        #[test]
        fn damaged_bytes_never_panic(cursor in cursors(), at: prop::sample::Index, byte: u8) {
            let mut bytes = cursor.to_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let _ = Cursor::from_bytes(&bytes);
            let _ = Cursor::from_bytes(&bytes[..at]);
        }
    }
}
