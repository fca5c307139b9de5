//! Points in an order of rows: where a query goes on.
//!
//! Rows are compared by their places: bytes that are made of what they are sorted by. A
//! point lies between two places, whether or not there is a row on either side. So it
//! means the same whichever way leads to the rows, and whatever was written or removed
//! since; and of two points, rows must be behind both.

use index::SortKey;
use model::position::Ordinal;

/// Bytes of a place that a point keeps. Clients carry cursors in a header of which
/// some allow a kilobyte, in an encoding that makes four bytes of three. It is more than
/// any index entry has, so rows that are alike up to there are alike to every index.
pub(crate) const PLACE_BYTES_MAX: usize = 560;

/// Bytes at the end of a place by which rows are told apart whose places are too long.
const MARK_BYTES: usize = 16;

/// A point in an order of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// What places are compared with.
    pub(crate) place: Vec<u8>,
    /// Whether rows are done whose places begin like this.
    pub(crate) past: bool,
    /// Which of them are done, if only some.
    pub(crate) given: Option<Given>,
}

/// Rows that are done, of those whose places are alike as far as a point keeps them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    /// How many.
    pub(crate) rows: u32,
    /// What the place of the last of them ends with: their number changes when something
    /// is written among them.
    pub(crate) mark: Vec<u8>,
}

impl Point {
    /// The point that a client names by what rows are sorted by, each key with whether it
    /// descends: before the rows with these keys, or behind them, or before those of them
    /// whose items are not before one.
    #[must_use]
    pub fn of_keys(keys: &[(SortKey, bool)], item: Option<Ordinal>, is_behind: bool) -> Point {
        let mut place = Vec::new();
        for (key, descends) in keys {
            index::encode_key(key, *descends, &mut place);
        }
        if let Some(item) = item.filter(|_| !is_behind) {
            let backwards = keys.first().is_some_and(|(_, descends)| *descends);
            index::encode_ordinal(item.as_u64(), backwards, &mut place);
        }
        Point { place, past: is_behind, given: None }
    }

    /// The point behind a row, which follows the rows that another point is behind.
    pub(crate) fn behind(place: &[u8], before: &Point) -> Point {
        let Some(kept) = place.get(..PLACE_BYTES_MAX).filter(|kept| kept.len() < place.len())
        else {
            return Point::past(place.to_vec());
        };
        let given = before.given.as_ref().filter(|_| before.place == kept);
        let rows = given.map_or(0, |given| given.rows).saturating_add(1);
        let given = Some(Given { rows, mark: mark_of(place).to_vec() });
        Point { place: kept.to_vec(), past: false, given }
    }

    /// The point behind all rows whose places begin so.
    pub(crate) fn past(place: Vec<u8>) -> Point {
        Point { place, past: true, given: None }
    }

    /// Whether a row is before it for sure: of rows that are alike as far as it goes, that
    /// is to be found out among all of them.
    pub(crate) fn is_behind(&self, place: &[u8]) -> bool {
        *place < *self.place || (self.past && place.starts_with(&self.place))
    }

    /// Whether a row is one of those of which some are done.
    pub(crate) fn is_among(&self, place: &[u8]) -> bool {
        self.given.is_some() && place.starts_with(&self.place)
    }

    /// How many of the rows are done that begin like its place: given in order, all of them
    /// and nothing else before the first that begins otherwise.
    pub(crate) fn done<'r>(&self, places: impl Iterator<Item = &'r [u8]>) -> usize {
        let Some(given) = &self.given else { return 0 };
        let among: Vec<&[u8]> = places.take_while(|place| self.is_among(place)).collect();
        let last = among.iter().rposition(|place| mark_of(place) == given.mark);
        let counted = usize::try_from(given.rows).unwrap_or(usize::MAX);
        last.map_or(counted.min(among.len()), |last| last + 1)
    }
}

fn mark_of(place: &[u8]) -> &[u8] {
    place.get(place.len().saturating_sub(MARK_BYTES)..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_before_or_behind_a_point() {
        let point = Point::past(b"ab".to_vec());
        assert!(point.is_behind(b"aa") && point.is_behind(b"ab") && point.is_behind(b"abc"));
        assert!(!point.is_behind(b"ac"));
        let at = Point { past: false, ..point };
        assert!(at.is_behind(b"aa") && !at.is_behind(b"ab") && !at.is_behind(b"abc"));
        assert!(!Point::default().is_behind(b""));
    }

    /// A place that is too long is found again by its end, and by number if it is gone.
    #[test]
    fn long_places_are_counted() {
        let long = |end: u8| [vec![7; PLACE_BYTES_MAX], vec![end; MARK_BYTES]].concat();
        let places = [long(1), long(2), long(4), vec![8]];
        let second = Point::behind(&long(2), &Point::behind(&long(1), &Point::default()));
        let done = |point: &Point, places: &[Vec<u8>]| point.done(places.iter().map(|p| &**p));
        assert_eq!(second.given.as_ref().map(|given| given.rows), Some(2));
        assert_eq!(done(&second, &places), 2);
        let more = [long(0), long(1), long(2), long(4)];
        assert_eq!(done(&second, &more), 3, "one was written before it");
        assert_eq!(done(&second, &[long(1), long(4), long(5)]), 2, "it is gone");
        assert_eq!(done(&second, &[long(4)]), 1);
        assert!(!second.is_behind(&long(1)) && second.is_behind(&[6]));
    }
}
