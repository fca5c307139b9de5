//! From a request body to the text that is stored.
//!
//! The text stays the client's, in canonical form, less what it has under the names of
//! system properties: those are the database's, and part of the record, not of the text.

use bytes::Bytes;
use model::json::{self, JsonError, JsonKind, Raw};
use model::limits::Limits;
use model::name::{ItemId, NameError};
use model::policy::{OwnTtl, PolicyError};
use model::system_properties::SYSTEM_PROPERTIES;

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

    /// The text to store, which is the client's own unless it names system properties.
    pub(crate) fn stored(&self) -> Bytes {
        without_system_properties(&self.text)
    }
}

/// The text of an object less its members with the names of system properties.
pub(crate) fn without_system_properties(text: &Bytes) -> Bytes {
    let is_system = |name: &str| SYSTEM_PROPERTIES.contains(&name);
    let object = trusted(text);
    if !object.members().any(|(name, _)| is_system(&name)) {
        return text.clone();
    }
    let mut out = String::with_capacity(text.len());
    let members = object.members().filter(|(name, _)| !is_system(name));
    for (at, (name, value)) in members.enumerate() {
        out.push(if at == 0 { '{' } else { ',' });
        json::write_string(&mut out, &name);
        out.push(':');
        out.push_str(value.text());
    }
    // There is at least the id.
    out.push('}');
    out.into()
}

fn trusted(text: &Bytes) -> Raw<'_> {
    Raw::trusted(std::str::from_utf8(text).expect("the text of an item is UTF-8"))
}
