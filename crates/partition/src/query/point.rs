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
pub const PLACE_BYTES_MAX: usize = 560;

/// Bytes at the end of a place by which rows are told apart whose places are too long.
const MARK_BYTES: usize = 16;

/// Rows with places that are too long, of which a point remembers that they are done. If it
/// is the last ones and one of them is still there, nothing is repeated or missed.
pub const MARKS_MAX: usize = 16;

/// A point in an order of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// What places are compared with.
    pub place: Vec<u8>,
    /// Whether rows are done whose places begin like this.
    pub past: bool,
    /// Which of them are done, if only some.
    pub given: Option<Given>,
}

/// Rows that are done, of those whose places are alike as far as a point keeps them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// How many.
    pub rows: u32,
    /// Hashes of what the places of the last of them end with: their number changes when
    /// something is written among them.
    pub marks: Vec<u32>,
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
    #[must_use]
    pub fn behind(place: &[u8], before: &Point) -> Point {
        let Some(kept) = place.get(..PLACE_BYTES_MAX).filter(|kept| kept.len() < place.len())
        else {
            return Point::past(place.to_vec());
        };
        let given = before.given.as_ref().filter(|_| before.place == kept);
        let rows = given.map_or(0, |given| given.rows).saturating_add(1);
        let mut marks = given.map(|given| given.marks.clone()).unwrap_or_default();
        marks.drain(..(marks.len() + 1).saturating_sub(MARKS_MAX));
        marks.push(mark_of(place));
        Point { place: kept.to_vec(), past: false, given: Some(Given { rows, marks }) }
    }

    /// The point behind all rows whose places begin so.
    #[must_use]
    pub fn past(place: Vec<u8>) -> Point {
        Point { place, past: true, given: None }
    }

    /// Whether a row is before it for sure: of rows that are alike as far as it goes, that
    /// is to be found out among all of them.
    #[must_use]
    pub fn is_behind(&self, place: &[u8]) -> bool {
        *place < *self.place || (self.past && place.starts_with(&self.place))
    }

    /// Whether a row is one of those of which some are done.
    #[must_use]
    pub fn is_among(&self, place: &[u8]) -> bool {
        self.given.is_some() && place.starts_with(&self.place)
    }

    /// How many of the rows are done that begin like its place: given in order, all of them
    /// and nothing else before the first that begins otherwise.
    pub fn done<'r>(&self, places: impl Iterator<Item = &'r [u8]>) -> usize {
        let Some(given) = &self.given else { return 0 };
        let among: Vec<&[u8]> = places.take_while(|place| self.is_among(place)).collect();
        let last = among.iter().rposition(|place| given.marks.contains(&mark_of(place)));
        // If the last ones are all gone, those before them are counted.
        let counted = usize::try_from(given.rows).unwrap_or(usize::MAX);
        let counted = counted.saturating_sub(given.marks.len()).min(among.len());
        last.map_or(counted, |last| last + 1)
    }
}

/// FNV-1a of what a place ends with.
fn mark_of(place: &[u8]) -> u32 {
    let end = place.get(place.len().saturating_sub(MARK_BYTES)..).unwrap_or_default();
    end.iter()
        .fold(0x811C_9DC5, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
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

    /// Places that are too long are found again by their ends, and by number if none of the
    /// last ones is there.
    #[test]
    fn long_places_are_counted() {
        let long = |end: u8| [vec![7; PLACE_BYTES_MAX], vec![end; MARK_BYTES]].concat();
        let behind = |ends: &[u8]| {
            ends.iter().fold(Point::default(), |point, end| Point::behind(&long(*end), &point))
        };
        let second = behind(&[1, 2]);
        let done = |point: &Point, ends: &[u8]| {
            let places: Vec<Vec<u8>> = ends.iter().map(|end| long(*end)).collect();
            point.done(places.iter().map(|place| &**place))
        };
        assert_eq!(second.given.as_ref().map(|given| given.rows), Some(2));
        assert_eq!(done(&second, &[1, 2, 4]), 2);
        assert_eq!(done(&second, &[0, 1, 2, 4]), 3, "one was written before it");
        assert_eq!(done(&second, &[1, 4, 5]), 1, "it is gone");
        assert_eq!(done(&second, &[4]), 0, "both are gone");
        let many: Vec<u8> = (0..40).collect();
        assert_eq!(done(&behind(&many), &[38, 41]), 1);
        assert_eq!(done(&behind(&many), &[1, 2, 41]), 3, "as many as were before the last ones");
        assert!(!second.is_behind(&long(1)) && second.is_behind(&[6]));
    }
}
