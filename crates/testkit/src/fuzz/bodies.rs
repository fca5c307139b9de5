//! The bodies themselves, one for each reader of foreign bytes.
//!
//! Most promise the same: what was accepted can be written out and read again
//! as the same thing. That catches a reader that lets too much in as well as a
//! writer that loses something.

use std::fmt::{Debug, Display};
use std::str::from_utf8;

use index::Decoded;
use model::json::{self, Object, Raw};
use model::partition_key::{HashVersion, KeyKind, KeyPath, PartitionKey, PartitionKeyDefinition};
use model::policy::{ContainerDefinition, IndexingPolicy};
use model::rid::{ChildRid, ContainerRid, DatabaseRid, ItemRid, OfferRid, PermissionRid, UserRid};
use model::session::SessionToken;
use query::Query;

/// A container's definition reads the same from what clients are shown.
pub fn container_definition(input: &[u8]) {
    let Ok(body) = json::parse(input) else { return };
    let Ok(definition) = ContainerDefinition::parse(&body) else { return };
    let again = ContainerDefinition::parse(&definition.to_value());
    assert_eq!(again.as_ref(), Ok(&definition));
    assert_eq!(definition.check_replace(&definition), Ok(()), "it may stay as it is");
}

/// A value of an index entry is read or refused, and reading ends.
pub fn index_value(mut input: &[u8]) {
    let mut left = input.len();
    while let Ok(decoded) = Decoded::read(&mut input) {
        assert!(input.len() < left, "{decoded} took no bytes");
        left = input.len();
    }
}

/// An indexing policy reads the same from what clients are shown.
pub fn indexing_policy(input: &[u8]) {
    let Ok(body) = json::parse(input) else { return };
    let Ok(policy) = IndexingPolicy::parse(&body) else { return };
    assert_eq!(IndexingPolicy::parse(&policy.to_value()).as_ref(), Ok(&policy));
}

/// Accepted JSON means the same when written out and read again, and looking
/// into the text gives what the tree gives.
pub fn json_value(input: &[u8]) {
    let Ok(raw) = json::parse_raw(input) else { return };
    let value = raw.to_value();
    let written = value.to_string();
    let again = json::parse(written.as_bytes()).expect("what we write, we can read");
    assert_eq!(again, value, "read back from {written}");
    assert_eq!(again.to_string(), written, "writing is stable");
    for (name, member) in value.as_object().into_iter().flat_map(Object::iter) {
        let looked_up = raw.get(name).map(Raw::to_value);
        assert_eq!(looked_up.as_ref(), Some(member), "property {name:?}");
    }
}

/// A key from a request header survives being written out, and lies on the ring
/// of every kind of container, inside the range that its prefix gives.
pub fn partition_key(input: &[u8]) {
    let Ok(text) = from_utf8(input) else { return };
    let Ok(key) = PartitionKey::parse_header(text) else { return };
    survives(&key, PartitionKey::parse_header);
    for definition in definitions(key.components().len()) {
        let location = definition.locate(&key).expect("it has as many paths as the key has values");
        let range = definition.prefix_range(&key).expect("a whole key is its own prefix");
        assert!(range.min <= location.epk && location.epk < range.max, "{location:?} in {range:?}");
        let (first, last) = definition.prefix_places(&key).expect("a whole key is its own prefix");
        assert!(first <= location.place && location.place <= last, "{location:?}");
    }
}

/// Definitions with so many paths, of every kind and version there is.
fn definitions(paths: usize) -> Vec<PartitionKeyDefinition> {
    let parse = |path: &str| KeyPath::parse(path).expect("a plain path");
    let paths: Vec<KeyPath> = ["/a", "/b", "/c"].into_iter().take(paths).map(parse).collect();
    let kinds = [
        (KeyKind::Hash, HashVersion::V1),
        (KeyKind::Hash, HashVersion::V2),
        (KeyKind::MultiHash, HashVersion::V2),
    ];
    kinds
        .into_iter()
        .filter_map(|(kind, version)| {
            PartitionKeyDefinition::new(paths.clone(), kind, version).ok()
        })
        .collect()
}

/// A path names at least one property, and the same ones when read again.
pub fn partition_key_path(input: &[u8]) {
    let Ok(text) = from_utf8(input) else { return };
    let Ok(path) = KeyPath::parse(text) else { return };
    assert!(!path.names().is_empty(), "{text:?} names nothing");
    survives(&path, KeyPath::parse);
}

/// A resource id of any kind is the same one when read again.
pub fn resource_id(input: &[u8]) {
    let Ok(text) = from_utf8(input) else { return };
    accept(DatabaseRid::parse(text), DatabaseRid::parse);
    accept(ContainerRid::parse(text), ContainerRid::parse);
    accept(UserRid::parse(text), UserRid::parse);
    accept(PermissionRid::parse(text), PermissionRid::parse);
    accept(ItemRid::parse(text), ItemRid::parse);
    accept(ChildRid::parse(text), ChildRid::parse);
    accept(OfferRid::parse(text), OfferRid::parse);
}

/// A session token keeps every range's progress.
pub fn session_token(input: &[u8]) {
    let Ok(text) = from_utf8(input) else { return };
    accept(SessionToken::parse(text), SessionToken::parse);
}

/// Query text is parsed or refused, at any depth and length; a tree printed as
/// text parses to the same tree.
pub fn sql_parse(input: &[u8]) {
    let Ok(text) = from_utf8(input) else { return };
    let Ok(query) = Query::parse(text) else { return };
    let printed = query.syntax().to_string();
    let again = Query::parse(&printed);
    assert_eq!(again.as_ref().map(Query::syntax), Ok(query.syntax()), "printed as {printed}");
}

/// What was accepted survives being written out; the rest is fine.
fn accept<T: Debug + Display + PartialEq, E: Debug + PartialEq>(
    parsed: Result<T, E>,
    parse: impl Fn(&str) -> Result<T, E>,
) {
    if let Ok(value) = parsed {
        survives(&value, parse);
    }
}

fn survives<T: Debug + Display + PartialEq, E: Debug + PartialEq>(
    value: &T,
    parse: impl Fn(&str) -> Result<T, E>,
) {
    let written = value.to_string();
    assert_eq!(parse(&written).as_ref(), Ok(value), "written as {written}");
}
