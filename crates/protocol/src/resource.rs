//! Resources as clients know them.

use bytes::Bytes;
use http::StatusCode;
use model::json::{self, Value};
use model::policy::{without_outdated_indexes, without_system_key};
use service::{EffectKind, Kind};

#[must_use]
pub fn as_they_are(body: Bytes) -> Bytes {
    without(body, "\"indexes\"", without_outdated_indexes)
}

/// Old clients require a key with every request on a container that has one, even if the
/// service added it.
#[must_use]
pub fn as_they_were(body: Bytes) -> Bytes {
    without(body, "\"systemKey\"", without_system_key)
}

/// Most contain nothing of the kind, which a search for the word shows without parsing the
/// text.
fn without(body: Bytes, word: &str, change: fn(&Value) -> Option<Value>) -> Bytes {
    let is_concerned = std::str::from_utf8(&body).is_ok_and(|text| text.contains(word));
    let changed = || change(&json::parse(&body).ok()?);
    match is_concerned.then(changed).flatten() {
        Some(shown) => shown.to_string().into(),
        None => body,
    }
}

/// The status of something done to one resource.
#[must_use]
pub fn status_of(kind: EffectKind) -> StatusCode {
    match kind {
        EffectKind::Created => StatusCode::CREATED,
        EffectKind::Replaced | EffectKind::Read => StatusCode::OK,
        EffectKind::Deleted => StatusCode::NO_CONTENT,
        EffectKind::NotModified => StatusCode::NOT_MODIFIED,
    }
}

/// The name of the array in a feed's envelope.
#[must_use]
pub fn feed_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Database => "Databases",
        Kind::Container => "DocumentCollections",
        Kind::User => "Users",
        Kind::Permission => "Permissions",
        Kind::ClientEncryptionKey => "ClientEncryptionKeys",
        Kind::StoredProcedure => "StoredProcedures",
        Kind::Trigger => "Triggers",
        Kind::UserDefinedFunction => "UserDefinedFunctions",
        Kind::Offer => "Offers",
    }
}
