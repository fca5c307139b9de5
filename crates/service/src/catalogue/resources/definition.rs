//! The definitions of users, permissions and scripts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::json::{Object, Value};
use model::name::ResourceName;
use model::partition_key::PartitionKey;

use crate::catalogue::kind::{Kind, Link};
use crate::error::ServiceError;

const TRIGGER_TYPES: [&str; 2] = ["Pre", "Post"];
const TRIGGER_OPERATIONS: [&str; 6] = ["All", "Create", "Update", "Delete", "Replace", "Upsert"];
const PERMISSION_MODES: [&str; 2] = ["Read", "All"];

/// The name that a body gives to its resource.
pub(super) fn name(body: &Value) -> Result<ResourceName, ServiceError> {
    let id = body.get("id").ok_or_else(|| missing("id"))?;
    let id = id.as_str().ok_or_else(|| wrong("id", "a string", id))?;
    Ok(ResourceName::parse(id)?)
}

/// Checks a body and keeps what belongs to its kind.
pub(super) fn parse(kind: Kind, body: &Value) -> Result<Object, ServiceError> {
    let mut definition = Object::from_iter([("id", name(body)?.as_str())]);
    match kind {
        Kind::StoredProcedure | Kind::UserDefinedFunction => {
            definition.insert("body", text(body, "body")?)
        }
        Kind::Trigger => {
            definition.insert("body", text(body, "body")?);
            definition.insert("triggerType", one_of(body, "triggerType", &TRIGGER_TYPES)?);
            definition
                .insert("triggerOperation", one_of(body, "triggerOperation", &TRIGGER_OPERATIONS)?);
        }
        Kind::Permission => permission(&mut definition, body)?,
        Kind::ClientEncryptionKey => encryption_key(&mut definition, body)?,
        Kind::Database | Kind::Container | Kind::User | Kind::Offer => {}
    }
    Ok(definition)
}

fn permission(definition: &mut Object, body: &Value) -> Result<(), ServiceError> {
    definition.insert("permissionMode", one_of(body, "permissionMode", &PERMISSION_MODES)?);
    let resource = text(body, "resource")?;
    if Link::parse_with_item(resource).and_then(|(link, _item)| link.kind()).is_none() {
        return Err(ServiceError::invalid(format!("'{resource}' is not the link of a resource")));
    }
    definition.insert("resource", resource);
    if let Some(key) = body.get("resourcePartitionKey").filter(|key| !key.is_null()) {
        PartitionKey::parse_json(&key.to_string())?;
        definition.insert("resourcePartitionKey", key.clone());
    }
    Ok(())
}

/// Only its clients can verify a wrapped key; its form can be checked.
fn encryption_key(definition: &mut Object, body: &Value) -> Result<(), ServiceError> {
    definition.insert("encryptionAlgorithm", text(body, "encryptionAlgorithm")?);
    let wrapped = text(body, "wrappedDataEncryptionKey")?;
    if STANDARD.decode(wrapped).map_or(true, |key| key.is_empty()) {
        return Err(ServiceError::invalid(
            "'wrappedDataEncryptionKey' must be base64 of some bytes",
        ));
    }
    definition.insert("wrappedDataEncryptionKey", wrapped);
    let metadata = body.get("keyWrapMetadata").ok_or_else(|| missing("keyWrapMetadata"))?;
    if metadata.as_object().is_none() {
        return Err(wrong("keyWrapMetadata", "an object", metadata));
    }
    for name in ["type", "value"] {
        text(metadata, name)?;
    }
    definition.insert("keyWrapMetadata", metadata.clone());
    Ok(())
}

fn text<'a>(body: &'a Value, name: &str) -> Result<&'a str, ServiceError> {
    match body.get(name) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(wrong(name, "a string", other)),
        None => Err(missing(name)),
    }
}

fn missing(name: &str) -> ServiceError {
    ServiceError::invalid(format!(
        "The input content is invalid because the required properties - '{name}; ' - are missing"
    ))
}

/// One of a few words, case-insensitively, as clients disagree on it; kept as the client
/// spells it, because clients compare what comes back with what they sent.
fn one_of<'a>(body: &'a Value, name: &str, words: &[&str]) -> Result<&'a str, ServiceError> {
    let given = text(body, name)?;
    if words.iter().any(|word| word.eq_ignore_ascii_case(given)) {
        return Ok(given);
    }
    Err(ServiceError::invalid(format!(
        "'{given}' is not a valid {name}: use one of {}",
        words.join(", ")
    )))
}

fn wrong(name: &str, expected: &str, found: &Value) -> ServiceError {
    ServiceError::invalid(format!(
        "The property '{name}' must be {expected}, not {}",
        found.type_name()
    ))
}
