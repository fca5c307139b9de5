//! Points in an order of rows: where a query resumes (keyset pagination).
//!
//! Rows are compared by their sort keys: bytes made of what they are sorted by. A point
//! lies between two sort keys, whether or not there is a row on either side. So it means
//! the same whichever access path finds the rows, and whatever was written or removed
//! since; and of two points, rows must be after both.

use index::SortValue;
use model::position::Ordinal;

/// Bytes of a sort key that a point keeps. Clients carry cursors in a header of which
/// some allow a kilobyte, in an encoding that makes four bytes of three. It is more than
/// any index entry has, so rows that are alike up to there are alike to every index.
pub const SORT_KEY_BYTES_MAX: usize = 560;

/// Bytes at the end of a sort key that distinguish rows whose sort keys are too long.
const MARK_BYTES: usize = 16;

/// Number of rows with truncated sort keys that a point remembers as done. If those are the
/// last ones and one of them still exists, nothing is repeated or missed.
pub const MARKS_MAX: usize = 16;

/// A point in an order of rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Point {
    /// What sort keys are compared with.
    pub sort_key: Vec<u8>,
    /// Whether rows are done whose sort keys have this prefix.
    pub past: bool,
    /// Which of them are done, if only some.
    pub given: Option<Given>,
}

/// The done rows among those whose sort keys are equal as far as a point keeps them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// Their number.
    pub rows: u32,
    /// Hashes of the ends of the last ones' sort keys: their number changes when something
    /// is written among them.
    pub marks: Vec<u32>,
}

impl Point {
    /// The point that a client names by sort values, each with whether it descends: before
    /// the rows with these values, or after them, or before those of them whose items are
    /// not before one.
    #[must_use]
    pub fn of_keys(keys: &[(SortValue, bool)], item: Option<Ordinal>, is_after: bool) -> Point {
        let mut sort_key = Vec::new();
        for (key, descends) in keys {
            index::encode_key(key, *descends, &mut sort_key);
        }
        if let Some(item) = item.filter(|_| !is_after) {
            let backwards = keys.first().is_some_and(|(_, descends)| *descends);
            index::encode_ordinal(item.as_u64(), backwards, &mut sort_key);
        }
        Point { sort_key, past: is_after, given: None }
    }

    /// The point after a row, which follows the rows that another point is after.
    #[must_use]
    pub fn after(sort_key: Vec<u8>, before: &Point) -> Point {
        let Some(kept) =
            sort_key.get(..SORT_KEY_BYTES_MAX).filter(|kept| kept.len() < sort_key.len())
        else {
            return Point::past(sort_key);
        };
        let given = before.given.as_ref().filter(|_| before.sort_key == kept);
        let rows = given.map_or(0, |given| given.rows).saturating_add(1);
        let mut marks = given.map(|given| given.marks.clone()).unwrap_or_default();
        marks.drain(..(marks.len() + 1).saturating_sub(MARKS_MAX));
        marks.push(mark_of(&sort_key));
        Point { sort_key: kept.to_vec(), past: false, given: Some(Given { rows, marks }) }
    }

    /// The point after all rows whose sort keys have this prefix.
    #[must_use]
    pub fn past(sort_key: Vec<u8>) -> Point {
        Point { sort_key, past: true, given: None }
    }

    /// Whether a row is surely before it: rows that are equal to a truncated point are
    /// decided among all of them.
    #[must_use]
    pub fn is_after(&self, sort_key: &[u8]) -> bool {
        *sort_key < *self.sort_key || (self.past && sort_key.starts_with(&self.sort_key))
    }

    /// Whether a row is one of those of which some are done.
    #[must_use]
    pub fn is_among(&self, sort_key: &[u8]) -> bool {
        self.given.is_some() && sort_key.starts_with(&self.sort_key)
    }

    /// The number of done rows among those whose sort keys have its prefix. The keys come
    /// in order: all of these, and nothing else before the first with another prefix.
    pub fn done<'r>(&self, sort_keys: impl Iterator<Item = &'r [u8]>) -> usize {
        let Some(given) = &self.given else { return 0 };
        let among: Vec<&[u8]> = sort_keys.take_while(|sort_key| self.is_among(sort_key)).collect();
        let last = among.iter().rposition(|sort_key| given.marks.contains(&mark_of(sort_key)));
        // If the last ones are all gone, those before them are counted.
        let counted = usize::try_from(given.rows).unwrap_or(usize::MAX);
        let counted = counted.saturating_sub(given.marks.len()).min(among.len());
        last.map_or(counted, |last| last + 1)
    }
}

/// FNV-1a of the end of a sort key.
fn mark_of(sort_key: &[u8]) -> u32 {
    let end = sort_key.get(sort_key.len().saturating_sub(MARK_BYTES)..).unwrap_or_default();
    end.iter()
        .fold(0x811C_9DC5, |hash: u32, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_before_or_behind_a_point() {
        let point = Point::past(b"ab".to_vec());
        assert!(point.is_after(b"aa") && point.is_after(b"ab") && point.is_after(b"abc"));
        assert!(!point.is_after(b"ac"));
        let at = Point { past: false, ..point };
        assert!(at.is_after(b"aa") && !at.is_after(b"ab") && !at.is_after(b"abc"));
        assert!(!Point::default().is_after(b""));
    }

    /// Sort keys that are too long are recognised by their ends, and by number if none of
    /// the last ones exists any more.
    #[test]
    fn long_places_are_counted() {
        let long = |end: u8| [vec![7; SORT_KEY_BYTES_MAX], vec![end; MARK_BYTES]].concat();
        let after = |ends: &[u8]| {
            ends.iter().fold(Point::default(), |point, end| Point::after(long(*end), &point))
        };
        let second = after(&[1, 2]);
        let done = |point: &Point, ends: &[u8]| {
            let sort_keys: Vec<Vec<u8>> = ends.iter().map(|end| long(*end)).collect();
            point.done(sort_keys.iter().map(|sort_key| &**sort_key))
        };
        assert_eq!(second.given.as_ref().map(|given| given.rows), Some(2));
        assert_eq!(done(&second, &[1, 2, 4]), 2);
        assert_eq!(done(&second, &[0, 1, 2, 4]), 3, "one was written before it");
        assert_eq!(done(&second, &[1, 4, 5]), 1, "it is gone");
        assert_eq!(done(&second, &[4]), 0, "both are gone");
        let many: Vec<u8> = (0..40).collect();
        assert_eq!(done(&after(&many), &[38, 41]), 1);
        assert_eq!(done(&after(&many), &[1, 2, 41]), 3, "as many as were before the last ones");
        assert!(!second.is_after(&long(1)) && second.is_after(&[6]));
    }
}
