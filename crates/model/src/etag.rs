//! Etags: the name of one version of an item, and the conditions on it.

use std::fmt;

use crate::position::{Lsn, Timestamp};

/// Names one version of a resource. The quotes are part of the text, as clients
/// see it in `_etag` and send it back.
///
/// The form is in `docs/formats/rid.md`. Two writes in one partition differ in
/// LSN or step, so no two versions of an item share an etag.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Etag(Box<str>);

impl Etag {
    /// `step` is the position of the operation in its batch.
    #[must_use]
    pub fn new(lsn: Lsn, step: u16, timestamp: Timestamp) -> Etag {
        let low = lsn.get() & 0xFFFF_FFFF;
        let high = (lsn.get() >> 32) & 0xFFFF;
        // Wraps in 2106; the time is only informative.
        let secs = timestamp.secs() & 0xFFFF_FFFF;
        Etag(format!("\"{low:08x}-{high:04x}-{step:04x}-0000-{secs:08x}0000\"").into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether an `If-Match` or `If-None-Match` value names this version. `*` names every
    /// version; quotes may have been stripped in transit.
    #[must_use]
    pub fn matches(&self, condition: &str) -> bool {
        let condition = condition.trim();
        condition == "*" || unquoted(condition) == unquoted(&self.0)
    }
}

fn unquoted(text: &str) -> &str {
    text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text)
}

impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Etag({})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn etag(lsn: u64, step: u16) -> Etag {
        Etag::new(Lsn::from_u64(lsn), step, Timestamp::from_millis(0x6a7f_a98a_u64 * 1000))
    }

    #[test]
    fn text_has_the_shape_of_the_service() {
        assert_eq!(etag(0x4812, 2).as_str(), "\"00004812-0000-0002-0000-6a7fa98a0000\"");
        let big = etag(0x0001_2345_89AB_CDEF, u16::MAX);
        assert_eq!(big.as_str(), "\"89abcdef-2345-ffff-0000-6a7fa98a0000\"");
    }

    #[test]
    fn conditions() {
        let tag = etag(7, 0);
        assert!(tag.matches("*"));
        assert!(tag.matches(tag.as_str()));
        assert!(tag.matches(tag.as_str().trim_matches('"')));
        assert!(!tag.matches(etag(8, 0).as_str()));
        assert!(!tag.matches(etag(7, 1).as_str()));
        assert!(!tag.matches("") && !tag.matches("\"\"") && !tag.matches("\"*\""));
    }
}
