//! Paths, definitions and values, case by case.

use super::*;
use crate::epk::{Epk, EpkRange};

fn names(path: &str) -> Vec<String> {
    KeyPath::parse(path).unwrap().names().to_vec()
}

fn definition(json: &str) -> Result<PartitionKeyDefinition, DefinitionError> {
    PartitionKeyDefinition::parse(&json::parse(json.as_bytes()).unwrap())
}

fn hash(paths: &[&str]) -> PartitionKeyDefinition {
    PartitionKeyDefinition::hash(paths).unwrap()
}

fn extract(paths: &[&str], document: &str) -> Result<PartitionKey, KeyError> {
    hash(paths).extract(json::parse_raw(document.as_bytes()).unwrap())
}

fn header(text: &str) -> Result<PartitionKey, KeyError> {
    PartitionKey::parse_json(text)
}

#[test]
fn paths_name_properties() {
    assert_eq!(names("/department"), ["department"]);
    assert_eq!(names("/properties/name"), ["properties", "name"]);
    assert_eq!(names("/id"), ["id"]);
    assert_eq!(names("/\"department name\""), ["department name"]);
    assert_eq!(names("/\"department name\"/x"), ["department name", "x"]);
    assert_eq!(names("/a_b1/日本"), ["a_b1", "日本"]);
    // What the Python client's tests declare.
    assert_eq!(names("/\"first level' 1*()\"/\"le/vel2\""), ["first level' 1*()", "le/vel2"]);
    assert_eq!(
        names("/'first level\" 1*()'/'first le/vel2'"),
        ["first level\" 1*()", "first le/vel2"]
    );
    assert_eq!(names(r#"/"a\"b\\c""#), [r#"a"b\c"#]);
    assert_eq!(KeyPath::parse("/a/b").unwrap().to_string(), "/a/b");
    assert_eq!(KeyPath::parse("/a").unwrap(), KeyPath::parse("/\"a\"").unwrap());
}

#[test]
fn paths_have_no_wildcards_and_no_empty_segments() {
    for (bad, position) in [
        ("", 0),
        ("department", 0),
        ("/", 0),
        ("//a", 0),
        ("/department/?", 11),
        ("/department/*", 11),
        ("/*", 0),
        ("/a/[]/b", 2),
        ("/a/", 2),
        ("/\"\"", 0),
        ("/\"open", 0),
        ("/\"a\"b", 0),
        ("/a\"b", 0),
        ("/a/b\n", 2),
        ("/id ds", 0),
        ("/\"a\\", 0),
    ] {
        assert_eq!(KeyPath::parse(bad).unwrap_err().position, position, "{bad:?}");
    }
    let error = KeyPath::parse("/department/?").unwrap_err().to_string();
    assert!(error.contains("'/department/?' could not be accepted"), "{error}");
}

#[test]
fn definitions_and_their_defaults() {
    let bare = definition(r#"{"paths":["/pk"]}"#).unwrap();
    assert_eq!((bare.kind(), bare.version()), (KeyKind::Hash, HashVersion::V1));
    assert_eq!(bare.to_value().to_string(), r#"{"paths":["/pk"],"kind":"Hash"}"#);

    let spoken = r#"{"paths":["/pk"],"kind":"Hash","version":1}"#;
    assert_eq!(definition(spoken).unwrap().to_value().to_string(), spoken);
    assert_eq!(definition(spoken).unwrap(), bare);

    let text = r#"{"paths":["/a","/b/c"],"kind":"MultiHash","version":2}"#;
    let deep = definition(text).unwrap();
    assert_eq!(deep.paths().len(), 2);
    assert_eq!(deep.to_value().to_string(), text);

    assert_eq!(definition(&text.replace('2', r#""V2""#)), Ok(deep));
    let old = definition(r#"{"paths":["/pk"],"version":"V1"}"#).unwrap();
    assert_eq!(old.version(), HashVersion::V1);

    let system = r#"{"paths":["/_partitionKey"],"kind":"Hash","version":2,"systemKey":true}"#;
    assert!(definition(system).unwrap().system_key());
    assert_eq!(definition(system).unwrap().to_value().to_string(), system);

    assert_eq!(definition(r#"{"paths":["/a"],"kind":"Range"}"#).unwrap().kind(), KeyKind::Range);
    assert!(definition(r#"{"paths":["/a"],"kind":"MultiHash","novelty":[]}"#).is_ok());
}

#[test]
fn definitions_that_the_service_refuses() {
    let four = r#"{"paths":["/a","/b","/c","/d"],"kind":"MultiHash","version":2}"#;
    assert_eq!(
        definition(four).unwrap_err().to_string(),
        "Too many partition key paths (4) specified. A maximum of 3 is allowed."
    );
    let flat = r#"{"paths":["/a","/b"],"kind":"Hash","version":2}"#;
    assert!(definition(flat).unwrap_err().to_string().starts_with("Too many partition key paths"));
    assert_eq!(definition(r#"{"paths":[]}"#), Err(DefinitionError::NoPaths));
    assert_eq!(
        definition(r#"{"paths":["/a"],"kind":"MultiHash","version":1}"#),
        Err(DefinitionError::MultiHashVersion)
    );
    for wrong in [
        "[]",
        "{}",
        r#"{"paths":"/a"}"#,
        r#"{"paths":[1]}"#,
        r#"{"paths":["/a"],"kind":1}"#,
        r#"{"paths":["/a"],"kind":"hash"}"#,
        r#"{"paths":["/a"],"version":3}"#,
        r#"{"paths":["/a"],"version":"2"}"#,
        r#"{"paths":["/a"],"systemKey":1}"#,
    ] {
        let error = definition(wrong).unwrap_err();
        assert!(matches!(error, DefinitionError::Type { .. }), "{wrong}: {error}");
    }
    assert!(matches!(definition(r#"{"paths":["/a/?"]}"#), Err(DefinitionError::Path(_))));
}

#[test]
fn headers_in_every_type() {
    assert_eq!(header(r#"["a"]"#), Ok(PartitionKey::new(["a"])));
    assert_eq!(header("[1.0]"), Ok(PartitionKey::new([1.0])));
    assert_eq!(header("[1]"), header("[1.0]"));
    assert_eq!(header("[-0.0]"), header("[0]"));
    assert_eq!(header("[null]").unwrap().components(), [KeyComponent::Null]);
    assert_eq!(header("[{}]").unwrap().components(), [KeyComponent::Undefined]);
    assert_ne!(header("[{}]"), header("[null]"));
    assert_eq!(header("[]"), Ok(PartitionKey::NONE));
    let mixed = r#"["\u00fc",-1.5e300,true]"#;
    assert_eq!(header(mixed).unwrap().to_string(), r#"["ü",-1.5e300,true]"#);
    assert_eq!(header(r#"[false,null,{}]"#).unwrap().to_string(), "[false,null,{}]");
}

#[test]
fn headers_that_are_refused() {
    assert_eq!(header("[[]]").unwrap_err().to_string(), "Partition key [[]] is invalid.");
    for bad in ["", "x", "\"a\"", "{}", "[1", "[{\"a\":1}]", "[[1]]", "[NaN]", "[1e999]"] {
        assert!(matches!(header(bad), Err(KeyError::Invalid { .. })), "{bad}");
    }
    assert_eq!(header("[1,2,3,4]"), Err(KeyError::Mismatch { expected: 3, given: 4 }));
    let longest = format!("[\"{}\"]", "x".repeat(KEY_BYTES_MAX));
    assert!(header(&longest).is_ok());
    let longer = format!("[\"{}\"]", "é".repeat(KEY_BYTES_MAX / 2 + 1));
    assert_eq!(header(&longer), Err(KeyError::TooLong { bytes: KEY_BYTES_MAX + 2 }));
    let escaped = format!("[\"{}\"]", "\\u0041".repeat(KEY_BYTES_MAX));
    assert!(header(&escaped).is_ok());
    assert!(matches!(header(&"[".repeat(1 << 20)), Err(KeyError::TooLong { .. })));
}

/// 2^60 has more digits than a double is sure of; JavaScript fills up with zeros.
#[test]
fn integers_that_doubles_cannot_hold() {
    for exact in [
        "9007199254740991",
        "9007199254740992",
        "-9223372036854775808",
        "1152921504606846976",
        "1152921504606847000",
        "1e30",
        "0.1",
    ] {
        assert!(header(&format!("[{exact}]")).is_ok(), "{exact}");
    }
    for lost in ["9007199254740993", "-9007199254740993", "9223372036854775807"] {
        assert_eq!(header(&format!("[{lost}]")), Err(KeyError::Precision), "{lost}");
        let document = format!("{{\"pk\":{lost}}}");
        assert_eq!(extract(&["/pk"], &document), Err(KeyError::Precision), "{lost}");
    }
    // Beyond 64 bits it is a double everywhere, and reads back as one.
    assert_eq!(header("[12345678901234567890]"), header("[1.2345678901234567e19]"));
}

#[test]
fn keys_of_documents() {
    let document = r#"{"id":"1","department name":"x","p":{"n":2,"o":{}},"z":null,"l":[1]}"#;
    let one = |path: &str| extract(&[path], document).map(|key| key.components()[0].clone());
    assert_eq!(one("/id"), Ok("1".into()));
    assert_eq!(one("/\"department name\""), Ok("x".into()));
    assert_eq!(one("/p/n"), Ok(2.0.into()));
    assert_eq!(one("/z"), Ok(KeyComponent::Null));
    assert_eq!(one("/missing"), Ok(KeyComponent::Undefined));
    assert_eq!(one("/id/deeper"), Ok(KeyComponent::Undefined));
    // Paths are case sensitive.
    assert_eq!(one("/ID"), Ok(KeyComponent::Undefined));
    assert_eq!(one("/p"), Ok(KeyComponent::Undefined));
    assert_eq!(one("/l"), Err(KeyError::Unsupported { value: "[1]".into() }));
    let both = extract(&["/p/n", "/missing"], document).unwrap();
    assert_eq!(both.to_string(), "[2,{}]");
}

#[test]
fn containers_without_a_key() {
    let none = PartitionKeyDefinition::none();
    let key = none.extract(json::parse_raw(b"{\"id\":\"1\"}").unwrap()).unwrap();
    assert!(key.is_none());
    assert_eq!(none.locate(&key), Ok(Epk::MIN));
    assert_eq!(none.prefix_range(&key), Ok(EpkRange::full()));
    assert!(none.locate(&PartitionKey::new(["a"])).is_err());
    let undefined = header("[{}]").unwrap();
    assert_eq!(none.meant(&undefined), &key);

    let shown = r#"{"paths":["/_partitionKey"],"kind":"Hash","systemKey":true}"#;
    assert_eq!(none.to_value().to_string(), shown);
    assert_eq!(definition(shown), Ok(none));

    let text = r#"{"paths":["/_partitionKey"],"kind":"Hash","version":2,"systemKey":true}"#;
    let system = definition(text).unwrap();
    let without = system.extract(json::parse_raw(b"{}").unwrap()).unwrap();
    assert_eq!(system.locate(&without).unwrap(), Epk::MIN);
    assert_eq!(system.meant(&undefined), &without);
    assert_eq!(hash(&["/a"]).meant(&undefined), &undefined);
    // Those without a value are one key among others here, not all.
    assert_eq!(system.prefix_range(&without), Ok(EpkRange::of(Epk::MIN)));
    let with = system.extract(json::parse_raw(b"{\"_partitionKey\":\"a\"}").unwrap()).unwrap();
    assert_eq!(with, PartitionKey::new(["a"]));
    assert_ne!(system.locate(&with).unwrap(), Epk::MIN);
}

#[test]
fn only_complete_keys_have_a_position() {
    let deep = hash(&["/a", "/b", "/c"]);
    let prefix = PartitionKey::new(["x", "y"]);
    assert_eq!(deep.locate(&prefix), Err(KeyError::Mismatch { expected: 3, given: 2 }));
    assert!(deep.prefix_range(&prefix).is_ok());
    let flat = hash(&["/a"]);
    assert_eq!(flat.locate(&prefix), Err(KeyError::Mismatch { expected: 1, given: 2 }));
    assert!(flat.prefix_range(&prefix).is_err());
    assert_eq!(flat.locate(&PartitionKey::NONE), Err(KeyError::Mismatch { expected: 1, given: 0 }));
}
