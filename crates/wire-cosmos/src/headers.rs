//! The request headers that change behaviour, read once and checked.

use http::HeaderMap;
use model::limits::Limits;
use model::partition_key::PartitionKey;
use model::session::SessionToken;
use service::{
    Caller, Conditions, EtagMatch, Priority, Throughput, manual_throughput, parse_autoscale,
};

use protocol::error::WireError;

pub(crate) const ACROSS_PARTITIONS: &str = "x-ms-documentdb-query-enablecrosspartition";
pub(crate) const ACTIVITY_ID: &str = "x-ms-activity-id";
pub(crate) const BATCH_ATOMIC: &str = "x-ms-cosmos-batch-atomic";
pub(crate) const BATCH_CONTINUE: &str = "x-ms-cosmos-batch-continue-on-error";
pub(crate) const CAPABILITIES: &str = "x-ms-cosmos-sdk-supportedcapabilities";
const CONSISTENCY_LEVEL: &str = "x-ms-consistency-level";
pub(crate) const CONTINUATION: &str = "x-ms-continuation";
pub(crate) const END_EPK: &str = "x-ms-end-epk";
const IF_NONE_MATCH: &str = "if-none-match";
pub(crate) const IS_BATCH: &str = "x-ms-cosmos-is-batch-request";
pub(crate) const IS_QUERY: &str = "x-ms-documentdb-isquery";
pub(crate) const IS_QUERY_PLAN: &str = "x-ms-cosmos-is-query-plan-request";
pub(crate) const IS_UPSERT: &str = "x-ms-documentdb-is-upsert";
const MAX_ITEM_COUNT: &str = "x-ms-max-item-count";
pub(crate) const PARTITION_KEY: &str = "x-ms-documentdb-partitionkey";
const PRIORITY: &str = "x-ms-cosmos-priority-level";
pub(crate) const RANGE_ID: &str = "x-ms-documentdb-partitionkeyrangeid";
pub(crate) const SESSION_TOKEN: &str = "x-ms-session-token";
pub(crate) const START_EPK: &str = "x-ms-start-epk";
const SERIALIZATION_FORMATS: &str = "x-ms-cosmos-supported-serialization-formats";
const THROUGHPUT_BUCKET: &str = "x-ms-cosmos-throughput-bucket";
const VERSION: &str = "x-ms-version";

/// Standard headers that change what a request means.
const OURS: [&str; 8] = [
    "a-im",
    "authorization",
    "content-type",
    "date",
    "if-match",
    "if-modified-since",
    IF_NONE_MATCH,
    "prefer",
];

/// Headers whose empty value means absent. Some clients send all that they know.
const ABSENT_IF_EMPTY: [&str; 7] =
    [ACTIVITY_ID, CONTINUATION, CONSISTENCY_LEVEL, SESSION_TOKEN, MAX_ITEM_COUNT, "a-im", "prefer"];

/// The versions of the protocol that SDKs know. A request need not name one.
const VERSIONS: [&str; 21] = [
    "2014-08-21",
    "2015-04-08",
    "2015-06-03",
    "2015-08-06",
    "2015-12-16",
    "2016-05-30",
    "2016-07-11",
    "2016-11-14",
    "2017-01-19",
    "2017-02-22",
    "2017-05-03",
    "2017-11-15",
    "2018-06-18",
    "2018-08-31",
    "2018-09-17",
    "2018-12-31",
    "2019-10-14",
    "2020-07-15",
    "2020-11-05",
    "2024-05-15",
    "2024-06-06",
];

/// How items can be encoded. Answers are JSON text, which all clients accept.
const FORMATS: [&str; 3] = ["JsonText", "CosmosBinary", "HybridRow"];

/// From the strongest to the weakest.
const CONSISTENCY_LEVELS: [&str; 5] =
    ["Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual"];
/// The account's own.
pub(crate) const CONSISTENCY: &str = "Session";

/// How much of a token an error message repeats.
const TOKEN_CHARACTERS_SHOWN: usize = 64;

/// Page size if the client does not set one.
pub(crate) const PAGE_ITEMS_DEFAULT: usize = 100;

/// The headers of one request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers<'a> {
    map: &'a HeaderMap,
}

impl<'a> Headers<'a> {
    pub(crate) fn new(map: &'a HeaderMap) -> Headers<'a> {
        Headers { map }
    }

    /// A header as text. Bytes that are not ASCII count as absent here and fail
    /// where the header is needed.
    pub(crate) fn text(self, name: &str) -> Option<&'a str> {
        let text = self.map.get(name)?.to_str().ok()?;
        (!text.is_empty() || !ABSENT_IF_EMPTY.contains(&name)).then_some(text)
    }

    /// Clients write booleans in every case, and also say `False`.
    pub(crate) fn flag(self, name: &str) -> bool {
        self.text(name).is_some_and(|value| value.eq_ignore_ascii_case("true"))
    }

    pub(crate) fn partition_key(self) -> Result<Option<PartitionKey>, WireError> {
        match self.map.get(PARTITION_KEY) {
            None => Ok(None),
            Some(value) => {
                let text = std::str::from_utf8(value.as_bytes())
                    .map_err(|_| self.invalid(PARTITION_KEY))?;
                Ok(Some(PartitionKey::parse_json(text).map_err(WireError::key)?))
            }
        }
    }

    pub(crate) fn conditions(self) -> Result<Conditions, WireError> {
        let etag = |name| self.text(name).map(|value| EtagMatch(value.to_owned()));
        // As if the client had an etag that no item can have.
        if self.text(IF_NONE_MATCH) == Some("") {
            return Err(self.invalid(IF_NONE_MATCH));
        }
        Ok(Conditions { if_match: etag("if-match"), if_none_match: etag(IF_NONE_MATCH) })
    }

    /// What the client has seen already.
    pub(crate) fn session(self) -> Result<Option<SessionToken>, WireError> {
        let Some(text) = self.text(SESSION_TOKEN) else { return Ok(None) };
        let invalid = |_| {
            let shown: String = text.chars().take(TOKEN_CHARACTERS_SHOWN).collect();
            WireError::bad_request(format!("The session token provided '{shown}' is invalid."))
        };
        SessionToken::parse(text).map(Some).map_err(invalid)
    }

    /// Refuses ambiguous headers: one that is not text, or that occurs twice. A proxy
    /// before or after us might read it differently.
    pub(crate) fn check_readable(self) -> Result<(), WireError> {
        let prefixes = ["x-ms-", "x-orrery-"];
        let ours = |name: &str| {
            prefixes.iter().any(|prefix| name.starts_with(prefix)) || OURS.contains(&name)
        };
        for name in self.map.keys().filter(|name| ours(name.as_str())) {
            let mut values = self.map.get_all(name).iter();
            let first = values.next();
            let text = first.is_some_and(|value| {
                value.to_str().is_ok()
                    || name == PARTITION_KEY && std::str::from_utf8(value.as_bytes()).is_ok()
            });
            if !text || values.any(|value| Some(value) != first) {
                return Err(self.invalid(name.as_str()));
            }
        }
        Ok(())
    }

    /// Refuses unknown versions: a client that names one expects other answers.
    pub(crate) fn check_dialect(self) -> Result<(), WireError> {
        let version = self.text(VERSION).filter(|version| !version.is_empty());
        if version.is_some_and(|version| !VERSIONS.contains(&version)) {
            return Err(self.invalid(VERSION));
        }
        let formats = self.text(SERIALIZATION_FORMATS).filter(|formats| !formats.is_empty());
        let is_known =
            |format: &str| FORMATS.iter().any(|known| known.eq_ignore_ascii_case(format.trim()));
        if formats.is_some_and(|formats| !formats.split(',').all(is_known)) {
            return Err(self.invalid(SERIALIZATION_FORMATS));
        }
        Ok(())
    }

    /// Whether the client speaks this version of the protocol or a later one. A client that
    /// names none is taken for an old one.
    pub(crate) fn speaks(self, version: &str) -> bool {
        // Dates of this form sort as text.
        self.text(VERSION).is_some_and(|named| named >= version)
    }

    /// Whether the client names this version of the protocol or an earlier one.
    pub(crate) fn speaks_at_most(self, version: &str) -> bool {
        self.text(VERSION).is_some_and(|named| !named.is_empty() && named <= version)
    }

    /// Items are always indexed as the policy says; a directive must at least be one.
    pub(crate) fn check_indexing_directive(self) -> Result<(), WireError> {
        const NAME: &str = "x-ms-indexing-directive";
        // Some clients send the number instead of the word.
        const DIRECTIVES: [&str; 6] = ["default", "include", "exclude", "0", "1", "2"];
        match self.text(NAME) {
            Some(text) if !DIRECTIVES.iter().any(|word| word.eq_ignore_ascii_case(text)) => {
                Err(self.invalid(NAME))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A client may ask for less consistency than the account has, never for more.
    pub(crate) fn check_consistency(self) -> Result<(), WireError> {
        let Some(asked) = self.text(CONSISTENCY_LEVEL) else { return Ok(()) };
        let rank = |name: &str| {
            CONSISTENCY_LEVELS.iter().position(|level| level.eq_ignore_ascii_case(name))
        };
        match rank(asked) {
            None => Err(self.invalid(CONSISTENCY_LEVEL)),
            asked if asked < rank(CONSISTENCY) => Err(WireError::bad_request(format!(
                "The consistency level of the request is stronger than that of the account, which is {CONSISTENCY}."
            ))),
            Some(_) => Ok(()),
        }
    }

    /// The page size; -1 leaves it to the server, which then uses `chosen`. A client that
    /// wants no rows (Java sends 0 with `TOP 0`) does not set a page size.
    pub(crate) fn items_max(self, chosen: usize) -> Result<usize, WireError> {
        match self.text(MAX_ITEM_COUNT).map(str::trim) {
            None | Some("0") => Ok(PAGE_ITEMS_DEFAULT),
            Some("-1") => Ok(chosen),
            Some(text) => match text.parse::<usize>() {
                Ok(count) if count > 0 => Ok(count),
                _ => {
                    Err(WireError::bad_request(format!("'{text}' is not a valid {MAX_ITEM_COUNT}")))
                }
            },
        }
    }

    /// Whether the client declares that it can follow merges of partitions.
    pub(crate) fn merge_aware(self) -> bool {
        const MERGE: u64 = 1;
        let capabilities = self.text(CAPABILITIES);
        capabilities
            .and_then(|bits| bits.trim().parse::<u64>().ok())
            .is_some_and(|bits| bits & MERGE != 0)
    }

    /// The caller's priority and throughput bucket, for when there is not enough throughput
    /// for all.
    pub(crate) fn caller(self, limits: &Limits) -> Result<Caller, WireError> {
        let priority = match self.text(PRIORITY).map(str::trim) {
            None | Some("") => Priority::default(),
            Some(text) if text.eq_ignore_ascii_case("high") => Priority::High,
            Some(text) if text.eq_ignore_ascii_case("low") => Priority::Low,
            Some(_) => return Err(self.invalid(PRIORITY)),
        };
        let known = |id: &u32| (1..=limits.throughput_buckets_max).contains(id);
        let bucket = match self.text(THROUGHPUT_BUCKET).map(str::trim) {
            None | Some("") => None,
            Some(text) => {
                let id = text.parse().ok().filter(known);
                Some(id.ok_or_else(|| self.invalid(THROUGHPUT_BUCKET))?)
            }
        };
        Ok(Caller { priority, bucket })
    }

    pub(crate) fn wants_minimal(self) -> bool {
        self.text("prefer").is_some_and(|value| value.eq_ignore_ascii_case("return=minimal"))
    }

    /// What a new database or container is to be given.
    pub(crate) fn throughput(self, limits: &Limits) -> Result<Option<Throughput>, WireError> {
        let manual = self.text("x-ms-offer-throughput");
        let autoscale = self.text("x-ms-cosmos-offer-autopilot-settings");
        match (manual, autoscale) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => Err(WireError::bad_request(
                "Both x-ms-offer-throughput and x-ms-cosmos-offer-autopilot-settings are given: only one can be.",
            )),
            (Some(text), None) => {
                let rate =
                    text.trim().parse().map_err(|_| self.invalid("x-ms-offer-throughput"))?;
                Ok(Some(manual_throughput(rate)))
            }
            (None, Some(text)) => {
                let invalid = |_| self.invalid("x-ms-cosmos-offer-autopilot-settings");
                let settings = model::json::parse(text.as_bytes()).map_err(invalid)?;
                Ok(Some(parse_autoscale(&settings, limits.autoscale_throughput_min)?))
            }
        }
    }

    pub(crate) fn invalid(self, name: &str) -> WireError {
        WireError::bad_request(format!("The value of the header {name} is invalid."))
    }
}
