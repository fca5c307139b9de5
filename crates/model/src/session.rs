//! Session tokens: how much a client has seen of each partition key range.
//!
//! A client sends back what it got, often for several ranges, possibly for parents of
//! today's ranges, and possibly for ranges that are irrelevant to the request. So a token
//! is parsed as a list and looked up, never trusted as a whole.

use std::fmt;

use crate::position::Lsn;

/// Bytes that a token may have: 2,000 ranges with two regions each.
pub const TOKEN_BYTES_MAX: usize = 128 << 10;

/// The version that accounts with one region use. Clients refuse to compare
/// tokens that differ in shape, so a server must not change it at run time.
pub const SINGLE_REGION_VERSION: i64 = -1;

/// The progress of one client in some ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionToken {
    ranges: Vec<RangeToken>,
}

/// The progress in one range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeToken {
    /// The id of the partition key range, which clients see in `pkranges`.
    pub range: u32,
    /// Changes when regions come or go; a token of a higher version than the
    /// partition's is from its future.
    pub version: i64,
    pub lsn: Lsn,
    /// Progress by region id, in accounts that write in several regions.
    pub regions: Vec<(u32, Lsn)>,
}

/// The text is not a session token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The session token part '{part}' is invalid.")]
pub struct SessionTokenError {
    /// The part for one range that cannot be read, cut to a readable length.
    pub part: String,
}

impl RangeToken {
    /// The token of an account with one region.
    #[must_use]
    pub fn new(range: u32, lsn: Lsn) -> RangeToken {
        RangeToken { range, version: SINGLE_REGION_VERSION, lsn, regions: Vec::new() }
    }

    fn parse(part: &str) -> Option<RangeToken> {
        let (range, progress) = part.split_once(':')?;
        let range = decimal(range)?;
        // The form of the first clients: only an LSN.
        let Some((version, rest)) = progress.split_once('#') else {
            return Some(RangeToken::new(range, Lsn::from_u64(decimal(progress)?)));
        };
        let version: i64 = version.parse().ok()?;
        let mut fields = rest.split('#');
        let lsn = Lsn::from_u64(decimal(fields.next()?)?);
        let regions: Option<Vec<_>> = fields.map(parse_region).collect();
        Some(RangeToken { range, version, lsn, regions: regions? })
    }
}

fn parse_region(field: &str) -> Option<(u32, Lsn)> {
    let (region, lsn) = field.split_once('=')?;
    Some((decimal(region)?, Lsn::from_u64(decimal(lsn)?)))
}

/// Reads digits only: `parse` alone would take a sign.
fn decimal<T: std::str::FromStr>(text: &str) -> Option<T> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

impl SessionToken {
    #[must_use]
    pub fn new(ranges: Vec<RangeToken>) -> SessionToken {
        SessionToken { ranges }
    }

    /// Reads the header; an empty one is an empty token.
    pub fn parse(text: &str) -> Result<SessionToken, SessionTokenError> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err(refused(text));
        }
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let ranges: Result<_, _> =
            parts.map(|part| RangeToken::parse(part).ok_or_else(|| refused(part))).collect();
        ranges.map(SessionToken::new)
    }

    #[must_use]
    pub fn ranges(&self) -> &[RangeToken] {
        &self.ranges
    }

    /// The progress in one range. A client that merged tokens carelessly may send
    /// several for it; the furthest counts.
    #[must_use]
    pub fn range(&self, range: u32) -> Option<&RangeToken> {
        let of_range = self.ranges.iter().filter(|token| token.range == range);
        of_range.max_by_key(|token| (token.version, token.lsn))
    }
}

fn refused(part: &str) -> SessionTokenError {
    SessionTokenError { part: part.chars().take(64).collect() }
}

impl fmt::Display for RangeToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}#{}", self.range, self.version, self.lsn)?;
        self.regions.iter().try_for_each(|(region, lsn)| write!(f, "#{region}={lsn}"))
    }
}

impl fmt::Display for SessionToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, token) in self.ranges.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            token.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_forms_that_clients_send() {
        let token = SessionToken::parse("0:-1#510").unwrap();
        assert_eq!(token.ranges(), [RangeToken::new(0, Lsn::from_u64(510))]);
        assert_eq!(token.to_string(), "0:-1#510");

        let many = SessionToken::parse("0:-1#5, 1:-1#7,").unwrap();
        assert_eq!(many.to_string(), "0:-1#5,1:-1#7");
        assert_eq!(many.range(1).unwrap().lsn, Lsn::from_u64(7));
        assert_eq!(many.range(2), None);

        let regions = SessionToken::parse("12:3#100#4=90#5=1").unwrap();
        let token = regions.range(12).unwrap();
        assert_eq!((token.version, token.regions.len()), (3, 2));
        assert_eq!(regions.to_string(), "12:3#100#4=90#5=1");

        assert_eq!(SessionToken::parse("0:5").unwrap().to_string(), "0:-1#5");
        assert_eq!(SessionToken::parse("").unwrap(), SessionToken::default());
    }

    #[test]
    fn the_furthest_counts() {
        let token = SessionToken::parse("0:1#9,0:2#3,0:2#2").unwrap();
        let found = token.range(0).unwrap();
        assert_eq!((found.version, found.lsn.get()), (2, 3));
    }

    #[test]
    fn what_is_not_a_token_is_refused() {
        for bad in
            ["0", "0:", ":1", "a:1", "0:1#", "0:1#+5", "0:1#5#6", "0:1#5#a=1", "-1:5", "0:-5"]
        {
            assert!(SessionToken::parse(bad).is_err(), "{bad}");
        }
        assert!(SessionToken::parse("99999999999:-1#5").is_err());
        assert!(SessionToken::parse(&"0:5,".repeat(TOKEN_BYTES_MAX)).is_err());
    }
}
