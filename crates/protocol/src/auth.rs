//! Who is asking: master-key authorisation, exactly as the SDKs sign, resource tokens, and tokens
//! of identity providers.
//!
//! A client signs verb, resource type, resource link and date with the account key. The
//! server derives type and link from what the request names; whatever it derives differently
//! from the client is refused, so odd spellings of a path open nothing.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use model::position::Timestamp;
use model::rid::DatabaseRid;
use percent_encoding::percent_decode_str;
use service::Principal;
use service::identity::jwt;
use service::identity::{AccountKeys, Issuer, TokenBearer, TokenRefused};
use sha2::Sha256;

use crate::token;

/// The key that every Cosmos DB emulator has and every SDK's samples use.
pub const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

/// Longest authorisation header that is parsed. A signature has a hundred bytes; a resource
/// token carries a key and an id, which may have three thousand.
const HEADER_BYTES_MAX: usize = 16 << 10;

/// What a request says about itself, as far as it is signed.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    pub verb: &'a str,
    /// Kinds and names in turn, such as `dbs`, `D`, `colls`; they end with a kind for a feed.
    pub segments: &'a [String],
    /// Further links that may have been signed instead, each for an item.
    pub other_links: &'a [String],
    pub authorization: Option<&'a str>,
    /// The `x-ms-date` header.
    pub ms_date: Option<&'a str>,
    /// The `date` header, which counts if the other is absent.
    pub date: Option<&'a str>,
}

/// Why a request is not authorised.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error(
        "Required Header authorization is missing. Ensure a valid Authorization token is passed."
    )]
    Missing,
    #[error("The authorization token is malformed.")]
    Malformed,
    #[error("Authorization by '{0}' is not supported by this server.")]
    Scheme(String),
    #[error("Neither x-ms-date nor date is a valid RFC 1123 date.")]
    Date,
    #[error(
        "The authorization token is not valid at the current time. Please create another token and retry (token \
         time: {token}, current server time: {server})."
    )]
    Skewed { token: String, server: String },
    #[error(
        "The input authorization token can't serve the request. The wrong key is being used or the expected payload \
         is not built as per the protocol. The server used the following payload to sign: '{payload}'"
    )]
    Signature { payload: String },
    #[error("The resource token was not issued by this account.")]
    Token,
    #[error("The AAD token can't serve the request: {0}.")]
    Bearer(#[from] TokenRefused),
    #[error(
        "The authorization token is not valid at the current time. Please create another token and retry (token \
         expiry time: {until}, current server time: {server})."
    )]
    Expired { until: String, server: String },
}

/// Whom to believe.
#[derive(Clone, Copy, Debug)]
pub struct Trusted<'a> {
    pub keys: &'a AccountKeys,
    pub issuers: &'a [Issuer],
    /// Whether a token that has a key in the place of its signature is believed.
    pub tokens_with_keys: bool,
    /// How far the date of a signature may be off.
    pub skew_secs_max: u64,
}

/// What time it is for whom.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Tokens end by the server's time, which may have been set ahead.
    pub server: Timestamp,
    /// Clients date their signatures by their own clocks, which virtual time leaves alone.
    pub clients: Timestamp,
}

/// Finds out who is asking.
pub fn authenticate(
    claim: Claim<'_>,
    trusted: Trusted<'_>,
    times: Times,
) -> Result<Principal, Refused> {
    let keys = trusted.keys;
    let header = claim.authorization.filter(|header| !header.is_empty()).ok_or(Refused::Missing)?;
    let signature = match parse_header(header)? {
        Shown::Signature(signature) => signature,
        Shown::Token(token) => {
            return Ok(Principal::Holder(Arc::new(token::verify(keys, &token, times.server)?)));
        }
        Shown::Bearer(token) => {
            return Ok(Principal::Bearer(Arc::new(bearer(&token, trusted, times)?)));
        }
    };
    let dates =
        Dates { ms: claim.ms_date.unwrap_or_default(), plain: claim.date.unwrap_or_default() };
    dates.check(times.clients, trusted.skew_secs_max)?;
    let payloads = payloads(&claim, dates);
    let signed_by =
        |key: &[u8]| payloads.iter().any(|payload| is_signature(key, payload, &signature));
    if keys.any_full(signed_by) {
        return Ok(Principal::Account);
    }
    if keys.any_read_only(signed_by) {
        return Ok(Principal::Reader);
    }
    let payload =
        payloads.first().map(|payload| payload.escape_default().to_string()).unwrap_or_default();
    Err(Refused::Signature { payload })
}

/// Who bears a token of an identity provider, or one that has a key in it.
fn bearer(token: &str, trusted: Trusted<'_>, times: Times) -> Result<TokenBearer, TokenRefused> {
    if trusted.tokens_with_keys {
        let is_key = |key: &[u8]| trusted.keys.is_full_key_in_any_form(key);
        if let Some(checked) = jwt::verify_key_bearer(is_key, token, times.server) {
            return checked;
        }
    }
    jwt::verify(trusted.issuers, token, times.server)
}

/// The credentials of a request. Not to be shown.
enum Shown {
    Signature(Vec<u8>),
    /// The `sig` of a resource token.
    Token(String),
    /// The token of an identity provider.
    Bearer(String),
}

/// `type=master&ver=1.0&sig=…`, `type=resource&ver=1&sig=…` or `type=aad&ver=1.0&sig=…`,
/// percent-encoded or not.
fn parse_header(header: &str) -> Result<Shown, Refused> {
    if header.len() > HEADER_BYTES_MAX {
        return Err(Refused::Malformed);
    }
    // Malformed input stays as it is and fails later.
    let decoded = percent_decode_str(header).decode_utf8_lossy();
    let mut fields = decoded.splitn(3, '&').map(|field| field.split_once('='));
    let mut field = |name: &str| match fields.next() {
        Some(Some((found, value))) if found.eq_ignore_ascii_case(name) => Ok(value.to_owned()),
        _ => Err(Refused::Malformed),
    };
    let scheme = field("type")?;
    let (version, signature) = (field("ver")?, field("sig")?);
    match (scheme.to_ascii_lowercase().as_str(), version.as_str()) {
        ("master", "1.0") => {
            let signature = STANDARD.decode(signature).map_err(|_| Refused::Malformed)?;
            Ok(Shown::Signature(signature))
        }
        ("resource", "1" | "1.0") => Ok(Shown::Token(signature)),
        ("aad", "1.0") => Ok(Shown::Bearer(signature)),
        ("master" | "resource" | "aad", _) => Err(Refused::Malformed),
        _ => Err(Refused::Scheme(scheme.chars().take(20).collect())),
    }
}

/// A time as HTTP spells it.
pub fn rfc1123(time: Timestamp) -> String {
    httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_secs(time.secs()))
}

pub fn parse_rfc1123(text: &str) -> Option<Timestamp> {
    let time = httpdate::parse_http_date(text).ok()?;
    let since_epoch = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_millis(since_epoch.as_secs().checked_mul(1000)?))
}

#[derive(Clone, Copy, Debug)]
struct Dates<'a> {
    ms: &'a str,
    plain: &'a str,
}

impl Dates<'_> {
    fn check(self, now: Timestamp, skew_secs_max: u64) -> Result<(), Refused> {
        let text = if self.ms.is_empty() { self.plain } else { self.ms };
        let time = parse_rfc1123(text).ok_or(Refused::Date)?;
        if time.secs().abs_diff(now.secs()) <= skew_secs_max {
            return Ok(());
        }
        Err(Refused::Skewed { token: text.to_owned(), server: rfc1123(now) })
    }
}

/// The texts that a client may have signed for this resource: by name, and by
/// resource id where the path could be one.
fn payloads(claim: &Claim<'_>, dates: Dates<'_>) -> Vec<String> {
    let Claim { verb, segments, other_links, .. } = *claim;
    let (kind, link) = signed_resource(segments);
    let text = |link: &str| {
        format!(
            "{}\n{}\n{link}\n{}\n{}\n",
            verb.to_ascii_lowercase(),
            kind.to_ascii_lowercase(),
            dates.ms.to_ascii_lowercase(),
            dates.plain.to_ascii_lowercase()
        )
    };
    let plain = if dates.ms.is_empty() {
        text(&link)
    } else {
        text_without_date(verb, kind, &link, dates.ms)
    };
    let mut payloads = vec![plain];
    payloads.extend(other_links.iter().map(|link| text_without_date(verb, "docs", link, dates.ms)));
    if let Some(rid) = signed_rid(segments, &link) {
        payloads.push(text_without_date(verb, kind, &rid, dates.ms));
    }
    payloads
}

/// With `x-ms-date` the last field is empty, whatever `date` a proxy added.
fn text_without_date(verb: &str, kind: &str, link: &str, ms_date: &str) -> String {
    let (verb, kind) = (verb.to_ascii_lowercase(), kind.to_ascii_lowercase());
    format!("{verb}\n{kind}\n{link}\n{}\n\n", ms_date.to_ascii_lowercase())
}

/// The type and link that a path stands for.
fn signed_resource(segments: &[String]) -> (&str, String) {
    let segments = match segments {
        [front @ .., operations, action]
            if operations == "operations" && action == "partitionkeydelete" =>
        {
            front
        }
        all => all,
    };
    match segments {
        [] => ("", String::new()),
        [front @ .., kind] if segments.len() % 2 == 1 => (kind, front.join("/")),
        [.., kind, _] => (kind, segments.join("/")),
        // One segment is odd and was handled above.
        [kind] => (kind, String::new()),
    }
}

/// By resource id, only the last id counts, in lower case.
fn signed_rid(segments: &[String], link: &str) -> Option<String> {
    let by_rid = match segments {
        [kind, ..] if kind == "offers" => true,
        [kind, database, ..] => kind == "dbs" && DatabaseRid::parse(database).is_ok(),
        _ => false,
    };
    let last = link.rsplit('/').next().unwrap_or_default();
    (by_rid && !last.is_empty()).then(|| last.to_ascii_lowercase())
}

fn is_signature(key: &[u8], payload: &str, signature: &[u8]) -> bool {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return false };
    mac.update(payload.as_bytes());
    // Compares in constant time.
    mac.verify_slice(signature).is_ok()
}
