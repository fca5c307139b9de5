//! What a request says besides what it is about.

use model::epk::{Epk, EpkRange};
use model::limits::Limits;
use model::partition_key::PartitionKey;
use model::session::{RangeToken, SessionToken};
use protocol::error::WireError;
use service::{Caller, Conditions, EtagMatch, PartitionId, Priority};

use crate::codec::{Key, Known, OperationType, request, value_type};

/// Page size if the client does not set one.
const PAGE_ITEMS_DEFAULT: usize = 100;

/// The client leaves the page size to the server.
const PAGE_ITEMS_ANY: u32 = u32::MAX;

/// How much of a token an error message repeats.
const TOKEN_CHARACTERS_SHOWN: usize = 64;

/// The bit of a client that can follow merges of partitions.
const MERGE: u32 = 1;

/// The value of a preference for answers without items.
const MINIMAL: u8 = 1;

/// Bounds of a part of the ring that are hexadecimal text, in spite of their type.
const HEX_BOUNDS: u8 = 3;

/// Levels of consistency that are stronger than the account's, which is Session.
const STRONGER: [u8; 2] = [0, 1];

/// The tokens of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters<'a> {
    tokens: Known<'a>,
}

impl<'a> Parameters<'a> {
    pub(crate) fn new(tokens: Known<'a>) -> Parameters<'a> {
        Parameters { tokens }
    }

    pub(crate) fn text(self, key: Key<value_type::String>) -> Option<&'a str> {
        self.tokens.get(key)
    }

    pub(crate) fn flag(self, key: Key<value_type::Byte>) -> bool {
        self.tokens.get(key).is_some_and(|value| value != 0)
    }

    pub(crate) fn partition_key(self) -> Result<Option<PartitionKey>, WireError> {
        let text = self.tokens.get(request::PARTITION_KEY);
        text.map(|text| PartitionKey::parse_json(text).map_err(WireError::key)).transpose()
    }

    /// One token for both conditions: which of them is meant depends on the operation.
    pub(crate) fn conditions(self, operation: OperationType) -> Conditions {
        let etag = self.tokens.get(request::MATCH).filter(|etag| !etag.is_empty());
        let etag = etag.map(|etag| EtagMatch(etag.to_owned()));
        let is_read = matches!(operation, OperationType::Read | OperationType::ReadFeed);
        let (if_match, if_none_match) = if is_read { (None, etag) } else { (etag, None) };
        Conditions { if_match, if_none_match }
    }

    /// What the client has seen of the partition that it has addressed. After a split it sends the
    /// position in the parent under the name of the child, so the name says nothing.
    pub(crate) fn session(
        self,
        at: Option<PartitionId>,
    ) -> Result<Option<SessionToken>, WireError> {
        let Some(text) = self.tokens.get(request::SESSION_TOKEN).filter(|text| !text.is_empty())
        else {
            return Ok(None);
        };
        let invalid = |_| {
            let shown: String = text.chars().take(TOKEN_CHARACTERS_SHOWN).collect();
            WireError::bad_request(format!("The session token provided '{shown}' is invalid."))
        };
        let token = SessionToken::parse(text).map_err(invalid)?;
        let Some(at) = at else { return Ok(Some(token)) };
        let renamed = |seen: &RangeToken| RangeToken { range: at.0, ..seen.clone() };
        Ok(Some(SessionToken::new(token.ranges().iter().map(renamed).collect())))
    }

    /// The page size; a client that leaves it to the server gets `chosen`.
    pub(crate) fn items_max(self, chosen: usize) -> usize {
        match self.tokens.get(request::PAGE_SIZE) {
            None | Some(0) => PAGE_ITEMS_DEFAULT,
            Some(PAGE_ITEMS_ANY) => chosen,
            Some(count) => usize::try_from(count).unwrap_or(usize::MAX),
        }
    }

    /// The range that a request without a key names, `<id>` or `<container rid>,<id>`.
    pub(crate) fn range(self) -> Result<Option<PartitionId>, WireError> {
        let Some(text) = self.tokens.get(request::PARTITION_KEY_RANGE_ID) else { return Ok(None) };
        let id = text.rsplit(',').next().unwrap_or(text).trim();
        let id = id.parse().map_err(|_| WireError::bad_request("Invalid PartitionKeyRangeId"))?;
        Ok(Some(PartitionId(id)))
    }

    /// The part of the ring that the client asks for.
    pub(crate) fn within(self) -> Result<EpkRange, WireError> {
        if self.tokens.get(request::READ_FEED_KEY_TYPE) != Some(HEX_BOUNDS) {
            return Ok(EpkRange::full());
        }
        let invalid =
            || WireError::bad_request("The bounds of effective partition keys are invalid.");
        let bound = |key, default| match self.tokens.get(key) {
            Some(bytes) => {
                let text = std::str::from_utf8(bytes).map_err(|_| invalid())?;
                Epk::from_hex(text).map_err(|_| invalid())
            }
            None => Ok(default),
        };
        let (min, max) =
            (bound(request::START_EPK, Epk::MIN)?, bound(request::END_EPK, Epk::max())?);
        Ok(EpkRange::new(min, max))
    }

    pub(crate) fn merge_aware(self) -> bool {
        self.tokens.get(request::SDK_SUPPORTED_CAPABILITIES).is_some_and(|bits| bits & MERGE != 0)
    }

    pub(crate) fn wants_minimal(self) -> bool {
        self.tokens.get(request::RETURN_PREFERENCE) == Some(MINIMAL)
    }

    /// A client may ask for less consistency than the account has, never for more.
    pub(crate) fn check_consistency(self) -> Result<(), WireError> {
        let asked = self.tokens.get(request::CONSISTENCY_LEVEL);
        if asked.is_some_and(|level| STRONGER.contains(&level)) {
            return Err(WireError::bad_request(
                "The consistency level of the request is stronger than that of the account, which is Session.",
            ));
        }
        Ok(())
    }

    /// The caller's priority and throughput bucket, for when there is not enough throughput for
    /// all.
    pub(crate) fn caller(self, limits: &Limits) -> Result<Caller, WireError> {
        let invalid = |name| WireError::bad_request(format!("The value of {name} is invalid."));
        let priority = match self.tokens.get(request::PRIORITY_LEVEL) {
            None => Priority::default(),
            Some(1) => Priority::High,
            Some(2) => Priority::Low,
            Some(_) => return Err(invalid("PriorityLevel")),
        };
        let bucket = self.tokens.get(request::THROUGHPUT_BUCKET).map(u32::from);
        let known = |id: &u32| (1..=limits.throughput_buckets_max).contains(id);
        if bucket.as_ref().is_some_and(|id| !known(id)) {
            return Err(invalid("ThroughputBucket"));
        }
        Ok(Caller { priority, bucket })
    }

    /// The trigger that a client names. The service runs one before and one after a write.
    pub(crate) fn trigger(self, key: Key<value_type::String>) -> Result<Option<String>, WireError> {
        let name = self.tokens.get(key).map(str::trim).filter(|name| !name.is_empty());
        if name.is_some_and(|name| name.contains(',')) {
            let message = "Currently only one trigger is permitted per operation.";
            return Err(WireError::bad_request(message));
        }
        Ok(name.map(str::to_owned))
    }
}
