//! The bodies themselves, one for each parser of untrusted bytes.
//!
//! Most promise the same: what was accepted can be written out and read back as the same
//! value. That catches a reader that accepts too much as well as a writer that loses
//! something.

use std::fmt::{Debug, Display};
use std::ops::ControlFlow;
use std::str::from_utf8;
use std::sync::Arc;

use hybrid_row::batch::{BATCH_OPERATION, BATCH_RESULT};
use hybrid_row::{HybridRow, RecordWriter, Records};
use index::{Decoded, encode_typed};
use model::json::{self, Object, Raw};
use model::partition_key::{HashVersion, KeyKind, KeyPath, PartitionKey, PartitionKeyDefinition};
use model::policy::{ContainerDefinition, IndexingPolicy};
use model::rid::{ChildRid, ContainerRid, DatabaseRid, ItemRid, OfferRid, PermissionRid, UserRid};
use model::session::SessionToken;
use model::typed::Typed;
use query::{Bound, Features, KeyShape, Parameters, Query, QueryError, RingRange, Run};

/// A container's definition reads the same from what clients see.
pub fn container_definition(input: &[u8]) {
    let Ok(body) = json::parse(input) else { return };
    let Ok(definition) = ContainerDefinition::parse(&body) else { return };
    let again = ContainerDefinition::parse(&definition.to_value());
    assert_eq!(again.as_ref(), Ok(&definition));
    assert_eq!(definition.check_replace(&definition), Ok(()), "it may stay as it is");
}

/// A row of a batch, or a stream of them, means the same when written out and read back.
pub fn hybrid_row(input: &[u8]) {
    let rows = Records::new(input).map_while(Result::ok);
    // A stream's checksums keep changed rows away from the reader; these bypass them.
    for bytes in rows.chain([input]) {
        for layout in [&BATCH_OPERATION, &BATCH_RESULT] {
            let Ok(row) = HybridRow::read(layout, bytes) else { continue };
            let mut written = RecordWriter::with_capacity(1, bytes.len());
            written.push(&row).expect("it is no longer than what was read");
            let written = written.finish();
            let mut again = Records::new(&written);
            let first = again.next().expect("one was written").expect("what we write, we can read");
            let second = HybridRow::read(layout, first).expect("what we write, we can read");
            let mut rewritten = Vec::new();
            second.write(&mut rewritten);
            assert_eq!(rewritten, first, "writing is stable");
            assert!(again.next().is_none(), "one was written");
        }
    }
}

/// A value of an index entry is read or refused, and reading ends.
pub fn index_value(mut input: &[u8]) {
    let mut left = input.len();
    while let Ok(decoded) = Decoded::read(&mut input) {
        assert!(input.len() < left, "{decoded} took no bytes");
        left = input.len();
    }
}

/// An indexing policy reads the same from what clients see.
pub fn indexing_policy(input: &[u8]) {
    let Ok(body) = json::parse(input) else { return };
    let Ok(policy) = IndexingPolicy::parse(&body) else { return };
    assert_eq!(IndexingPolicy::parse(&policy.to_value()).as_ref(), Ok(&policy));
}

/// Accepted JSON has one canonical form, means the same when written out and read back, and
/// looking into the text gives what the tree gives.
pub fn json_value(input: &[u8]) {
    let Ok(text) = json::canonical(input) else { return };
    assert_eq!(json::canonical(text.as_bytes()).as_deref(), Ok(&*text), "canonical form is stable");
    let raw = json::parse_raw(text.as_bytes()).expect("canonical form is strict");
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
    let Ok(key) = PartitionKey::parse_json(text) else { return };
    survives(&key, PartitionKey::parse_json);
    for definition in definitions(key.components().len()) {
        let position = definition.locate(&key).expect("it has as many paths as the key has values");
        let range = definition.prefix_range(&key).expect("a whole key is its own prefix");
        assert!(range.contains(&position), "{position:?} in {range:?}");
    }
}

/// Definitions with `paths` paths, of every kind and version.
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

/// A path names at least one property, and the same ones when read back.
pub fn partition_key_path(input: &[u8]) {
    let Ok(text) = from_utf8(input) else { return };
    let Ok(path) = KeyPath::parse(text) else { return };
    assert!(!path.names().is_empty(), "{text:?} names nothing");
    survives(&path, KeyPath::parse);
}

/// A resource id of any kind is the same one when read back.
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

/// Documents that queries find something in.
const DOCUMENTS: [&str; 3] = [
    r#"{"id":"1","a":1,"b":"x","l":["a","b",1],"k":"k","n":2,"d":"2020-01-31T10:00:00Z"}"#,
    r#"{"id":"2","a":"é","b c":[true],"l":[],"c":"abc","n":null,"o":{"type":"Point","coordinates":[1,2]}}"#,
    r#"{"id":"3","a":{"b":[[1]]},"l":[{"a":1},{"a":2}],"n":-1.5}"#,
];

/// Steps for one input: enough for a query over three documents.
const RUN_STEPS: usize = 200_000;

/// A query is planned, bound and run, or refused; what the plan rewrites parses, and the
/// documents that give rows are in the plan's ranges.
pub fn sql_run(input: &[u8]) {
    let Ok(text) = from_utf8(input) else { return };
    let Ok(query) = Query::parse(text) else { return };
    let (parameters, context) = (Parameters::none().with("@p", 1_u32), Arc::default());
    let key = PartitionKeyDefinition::hash(["/a"]).expect("a plain path");
    let shape = KeyShape::from(&key);
    if let Ok(plan) = query.plan(&parameters, &context, &shape, &Features::all()) {
        let (rewritten, hole) =
            (plan.info.rewritten, "{documentdb-formattableorderbyquery-filter}");
        let filled = rewritten.replace(hole, "true");
        let refused = matches!(Query::parse(&filled), Err(QueryError::Invalid(_)));
        assert!(filled.is_empty() || !refused, "rewritten as {filled}");
    }
    let Ok(bound) = query.bind_in(&parameters, &context) else { return };
    let (mut run, mut rows) = (Run::new(&bound, RUN_STEPS), 0);
    for document in DOCUMENTS.map(Raw::trusted) {
        let before = rows;
        let given = run.document(document.into(), &mut |row| {
            rows += usize::from(row.value()?.is_some());
            Ok(ControlFlow::Continue(()))
        });
        if given.is_err() {
            return;
        }
        assert!(rows == before || is_looked_at(document, &bound, &key), "{document:?}");
    }
}

fn is_looked_at(document: Raw<'_>, bound: &Bound, key: &PartitionKeyDefinition) -> bool {
    let Ok(own) = key.extract(document) else { return true };
    let epk = key.epk(&own).expect("a whole key");
    let ranges = bound.key_ranges(&KeyShape::from(key)).on_ring(key);
    let holds = |range: &RingRange| {
        range.min <= epk && (epk < range.max || (range.max_inclusive && epk == range.max))
    };
    !bound.reads_documents() || ranges.iter().any(holds)
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

/// A value with a type survives both of its texts, and has the same index entry from either.
pub fn typed_value(input: &[u8]) {
    let Some(typed) = json::parse(input).ok().as_ref().and_then(Typed::read) else { return };
    let entry = |typed: &Typed| {
        let mut entry = Vec::new();
        encode_typed(typed, &mut entry);
        entry
    };
    for text in [typed.to_value().to_string(), typed.to_typed_value().to_string()] {
        let value = json::parse(text.as_bytes()).expect("what we write, we can read");
        let again = Typed::read(&value).expect("it keeps its type");
        assert_eq!(format!("{again:?}"), format!("{typed:?}"), "read back from {text}");
        assert_eq!(entry(&again), entry(&typed), "{text}");
    }
}
