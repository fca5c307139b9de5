//! Cursors: where the next page of a query begins (keyset pagination).
//!
//! A cursor is a position in the order in which a query scans or sorts, and the counts up
//! to there. It names no physical partition and no bucket, so it means the same after a
//! restart, a split and a merge; and no snapshot is kept for it: an item that is written
//! after the position is returned, one that is written before it is not.

use model::epk::{Epk, EpkRange};
use model::varint::{bytes, number, put_bytes, put_number, take};
use partition::{Given, MARKS_MAX, Point};

/// The position between two pages of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Which query it belongs to.
    pub(crate) query: u32,
    /// Rows still to be skipped by OFFSET.
    pub(crate) skip: u64,
    /// Rows already returned, of the whole query.
    pub(crate) given: u64,
    pub(crate) resume: ResumePoint,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResumePoint {
    /// The rows are computed again and as many as were returned are skipped: rows of
    /// subqueries over all items have nothing else that identifies them.
    Recount,
    /// The ring before this position is done, the rest is not begun.
    FromEpk(Epk),
    AfterItem(AfterItem),
    AfterRow(AfterRow),
}

/// A position in the order of the query, or of rows that are groups or distinct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AfterRow {
    /// An outline of the part of the ring that the query covered. A query over more would
    /// miss what the rest has before the point.
    pub(crate) scope: EpkRange,
    pub(crate) point: Point,
}

/// A position among the items of a partition, in the order of creation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AfterItem {
    /// What the query asked of the partition when it came to it: by now the partition may
    /// have been split or merged. What comes before that on the ring is done, what comes
    /// after it is not begun.
    pub(crate) group: EpkRange,
    pub(crate) ordinal: u64,
    /// Number of rows of this item that were returned. `None` if it is done.
    pub(crate) rows: Option<u32>,
}

/// A cursor that was not made by this version, or not for this query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    #[error("the cursor is malformed")]
    Malformed,
    #[error("the cursor belongs to another query")]
    OtherQuery,
}

/// Bytes of a position of the ring that an outline keeps: all bytes of hashes.
const OUTLINE_BYTES_MAX: usize = 48;

const VERSION: u8 = 2;
const AGAIN: u8 = 0;
const AFTER: u8 = 1;
const MORE_ROWS: u8 = 2;
const FROM: u8 = 64;
/// A position in the order, and whether rows that begin like it are done: all or some.
const PAST: u8 = 128;
const ALL_DONE: u8 = 1;
const SOME_DONE: u8 = 2;

impl AfterRow {
    pub(crate) fn new(scope: &EpkRange, point: Point) -> AfterRow {
        AfterRow { scope: outline(scope), point }
    }

    /// Whether it applies to a query over this part of the ring.
    pub(crate) fn serves(&self, scope: &EpkRange) -> bool {
        self.scope.covers(&outline(scope))
    }
}

/// A range that contains another one and has short bounds. If one range covers another, so
/// do their outlines.
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
        match &self.resume {
            ResumePoint::Recount => out.push(AGAIN),
            ResumePoint::FromEpk(position) => {
                out.push(FROM);
                put_bytes(&mut out, position.as_bytes());
            }
            ResumePoint::AfterItem(AfterItem { group, ordinal, rows }) => {
                out.push(AFTER | if rows.is_some() { MORE_ROWS } else { 0 });
                put_bytes(&mut out, group.min.as_bytes());
                put_bytes(&mut out, group.max.as_bytes());
                put_number(&mut out, *ordinal);
                if let Some(rows) = rows {
                    put_number(&mut out, u64::from(*rows));
                }
            }
            ResumePoint::AfterRow(past) => put_past(&mut out, past),
        }
        out
    }

    /// The position of the ring where the next page begins, if there is one.
    #[must_use]
    pub fn position(&self) -> Option<&Epk> {
        match &self.resume {
            ResumePoint::Recount | ResumePoint::AfterRow(_) => None,
            ResumePoint::FromEpk(position) => Some(position),
            ResumePoint::AfterItem(after) => Some(&after.group.min),
        }
    }

    /// Whether the next page continues where it is in a partition, rather than with the next
    /// one.
    #[must_use]
    pub fn is_inside_a_partition(&self) -> bool {
        !matches!(self.resume, ResumePoint::FromEpk(_))
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
    let resume = match take(input)? {
        AGAIN => ResumePoint::Recount,
        FROM => {
            ResumePoint::FromEpk(epk(input).filter(|position| EpkRange::full().contains(position))?)
        }
        flags if flags & !MORE_ROWS == AFTER => {
            let (group, ordinal) = (ring_part(input)?, number(input)?);
            let rows = match flags & MORE_ROWS {
                0 => None,
                _ => Some(u32::try_from(number(input)?).ok()?),
            };
            ResumePoint::AfterItem(AfterItem { group, ordinal, rows })
        }
        flags if flags & !(ALL_DONE | SOME_DONE) == PAST => {
            let (scope, sort_key) = (ring_part(input)?, bytes(input)?.to_vec());
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
            ResumePoint::AfterRow(AfterRow {
                scope,
                point: Point { sort_key, past: flags & ALL_DONE != 0, given },
            })
        }
        _ => return None,
    };
    let query = u32::from_be_bytes(*query);
    input.is_empty().then_some(Cursor { query, skip, given, resume })
}

fn put_past(out: &mut Vec<u8>, AfterRow { scope, point }: &AfterRow) {
    let all = if point.past { ALL_DONE } else { 0 };
    out.push(PAST | all | if point.given.is_some() { SOME_DONE } else { 0 });
    put_bytes(out, scope.min.as_bytes());
    put_bytes(out, scope.max.as_bytes());
    put_bytes(out, &point.sort_key);
    if let Some(Given { rows, marks }) = &point.given {
        put_number(out, u64::from(*rows));
        let marks: Vec<u8> = marks.iter().flat_map(|mark| mark.to_be_bytes()).collect();
        put_bytes(out, &marks);
    }
}

/// A part of the ring.
fn ring_part(input: &mut &[u8]) -> Option<EpkRange> {
    let range = EpkRange::new(epk(input)?, epk(input)?);
    (!range.is_empty() && EpkRange::full().covers(&range)).then_some(range)
}

fn epk(input: &mut &[u8]) -> Option<Epk> {
    Epk::from_bytes(bytes(input)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cursors() -> impl Strategy<Value = Cursor> {
        let key = || prop::collection::vec(any::<u8>(), 0..=partition::SORT_KEY_BYTES_MAX);
        let group = EpkRange::new(Epk::from_bytes(&[5, 0, 1]).unwrap(), Epk::max());
        let after = (any::<u64>(), any::<Option<u32>>()).prop_map(move |(ordinal, rows)| {
            ResumePoint::AfterItem(AfterItem { group: group.clone(), ordinal, rows })
        });
        let from = ResumePoint::FromEpk(Epk::from_bytes(&[5, 0, 1]).unwrap());
        let marks = prop::collection::vec(any::<u32>(), 0..=MARKS_MAX);
        let given = prop::option::of((any::<u32>(), marks));
        let past = (key(), any::<bool>(), given).prop_map(|(sort_key, past, given)| {
            let given = given.map(|(rows, marks)| Given { rows, marks });
            let long = |byte| Epk::from_bytes(&[byte; 128]).unwrap();
            let scope = EpkRange::new(long(5), long(6));
            ResumePoint::AfterRow(AfterRow::new(&scope, Point { sort_key, past, given }))
        });
        let resume = prop_oneof![Just(ResumePoint::Recount), Just(from), after, past];
        (any::<u32>(), any::<u64>(), any::<u64>(), resume)
            .prop_map(|(query, skip, given, resume)| Cursor { query, skip, given, resume })
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

        /// A range that lies within another has an outline within the other's outline.
        #[test]
        fn outlines_cover_what_their_ranges_cover(mut bounds: [Vec<u8>; 4]) {
            bounds.sort();
            let epk = |bytes: &Vec<u8>| Epk::from_bytes(&[&[1; 47], &**bytes].concat()).ok();
            let [Some(a), Some(b), Some(c), Some(d)] = bounds.each_ref().map(epk) else {
                return Ok(());
            };
            let past = AfterRow::new(&EpkRange::new(a, d), Point::default());
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
