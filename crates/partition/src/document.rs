//! From a request body to the text that is stored.
//!
//! The text stays the client's, in canonical form: its members are copied as they are; only
//! the five system properties are the database's, and they are always at the end.

use bytes::Bytes;
use model::etag::Etag;
use model::json::{self, JsonError, JsonKind, Raw};
use model::limits::Limits;
use model::name::{ItemId, NameError};
use model::policy::{OwnTtl, PolicyError};
use model::position::Timestamp;
use model::rid::ItemRid;

/// Set by the database on every write; what a client sends under these names is dropped.
pub(crate) const SYSTEM_PROPERTIES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/// Space for the system properties in the stored text.
const SYSTEM_BYTES: usize = 240;

/// A body that may be written: an object of acceptable size and depth with an id.
#[derive(Clone, Debug)]
pub struct Document {
    id: ItemId,
    own_ttl: Option<OwnTtl>,
    text: Bytes,
}

/// Why a body cannot be written. All of these are the client's to correct.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    #[error("Request size is too large: {bytes} bytes, at most {max} are allowed")]
    TooLarge { bytes: usize, max: usize },
    #[error("The request body is not valid JSON: {0}")]
    Json(#[from] JsonError),
    #[error("The request body must be a JSON object")]
    NotAnObject,
    #[error("The input content is invalid because the required properties - 'id; ' - are missing")]
    MissingId,
    #[error("The input content is invalid because the property 'id' must be a string")]
    IdType,
    #[error(transparent)]
    Id(#[from] NameError),
    #[error(transparent)]
    Ttl(#[from] PolicyError),
}

impl Document {
    /// Checks a body as a client sent it.
    pub fn parse(body: Bytes, limits: &Limits) -> Result<Document, DocumentError> {
        let max = usize::try_from(limits.item_bytes_max).unwrap_or(usize::MAX);
        let check_size = |text: &Bytes| {
            let bytes = text.len();
            if bytes > max { Err(DocumentError::TooLarge { bytes, max }) } else { Ok(()) }
        };
        check_size(&body)?;
        let text = json::canonical_body(&body)?;
        check_size(&text)?;
        let raw = trusted(&text);
        if raw.kind() != JsonKind::Object {
            return Err(DocumentError::NotAnObject);
        }
        let id = raw.get("id").ok_or(DocumentError::MissingId)?;
        let id = ItemId::parse(&id.as_str().ok_or(DocumentError::IdType)?)?;
        let own_ttl = OwnTtl::of_item(raw)?;
        Ok(Document { id, own_ttl, text })
    }

    #[must_use]
    pub fn id(&self) -> &ItemId {
        &self.id
    }

    #[must_use]
    pub fn json(&self) -> Raw<'_> {
        trusted(&self.text)
    }

    pub(crate) fn own_ttl(&self) -> Option<OwnTtl> {
        self.own_ttl
    }

    /// The text to store.
    pub(crate) fn stored(&self, rid: ItemRid, etag: &Etag, ts: Timestamp) -> Bytes {
        stored(self.json(), rid, etag, ts)
    }
}

fn trusted(text: &Bytes) -> Raw<'_> {
    Raw::trusted(std::str::from_utf8(text).expect("`canonical_body` returns UTF-8"))
}

/// The text to store of an object, which may have system properties of its own.
pub(crate) fn stored(object: Raw<'_>, rid: ItemRid, etag: &Etag, ts: Timestamp) -> Bytes {
    let mut out = String::with_capacity(object.text().len() + SYSTEM_BYTES);
    write_own_members(&mut out, object);
    let (database, container) = (rid.container().database(), rid.container());
    out.push_str(&format!(
        "\"_rid\":\"{rid}\",\"_self\":\"dbs/{database}/colls/{container}/docs/{rid}/\",\"_etag\":"
    ));
    json::write_string(&mut out, etag.as_str());
    out.push_str(&format!(",\"_attachments\":\"attachments/\",\"_ts\":{}}}", ts.secs()));
    out.into()
}

/// Writes `{` and the client's members, each followed by a comma.
fn write_own_members(out: &mut String, raw: Raw<'_>) {
    let is_system = |name: &str| SYSTEM_PROPERTIES.contains(&name);
    if !raw.members().any(|(name, _)| is_system(&name)) {
        // There is at least the id, so a comma always follows.
        let text = raw.text();
        out.push_str(text.strip_suffix('}').unwrap_or(text).trim_end());
        out.push(',');
        return;
    }
    out.push('{');
    for (name, value) in raw.members().filter(|(name, _)| !is_system(name)) {
        json::write_string(out, &name);
        out.push(':');
        out.push_str(value.text());
        out.push(',');
    }
}
