//! Bad input that a script cannot express: wrong types in every field of every policy,
//! bytes that are no text, duplicate headers.
//!
//! Everything else is in the scripts whose names begin with `hostile`.

use http::{HeaderValue, Method, StatusCode};
use serde_json::{Value, json};

use crate::authorisation::furnished;

/// A container that uses every policy there is.
fn everything() -> Value {
    json!({
        "id": "x",
        "partitionKey": {"paths": ["/pk"], "kind": "Hash", "version": 2, "systemKey": false},
        "indexingPolicy": {
            "indexingMode": "consistent",
            "automatic": true,
            "includedPaths": [{"path": "/*"}],
            "excludedPaths": [{"path": "/secret/?"}],
            "compositeIndexes": [[
                {"path": "/a", "order": "ascending"},
                {"path": "/b", "order": "descending"}
            ]],
            "spatialIndexes": [{"path": "/place/?", "types": ["Point"]}],
            "vectorIndexes": [{"path": "/vector", "type": "quantizedFlat", "quantizationByteSize": 4}],
            "fullTextIndexes": [{"path": "/text"}]
        },
        "uniqueKeyPolicy": {"uniqueKeys": [{"paths": ["/u"]}]},
        "conflictResolutionPolicy": {
            "mode": "LastWriterWins",
            "conflictResolutionPath": "/_ts"
        },
        "defaultTtl": 60,
        "analyticalStorageTtl": 60,
        "geospatialConfig": {"type": "Geography"},
        "computedProperties": [{"name": "lower", "query": "SELECT VALUE LOWER(c.name) FROM c"}],
        "vectorEmbeddingPolicy": {"vectorEmbeddings": [{
            "path": "/vector", "dataType": "float32", "dimensions": 8, "distanceFunction": "cosine"
        }]},
        "fullTextPolicy": {
            "defaultLanguage": "en-US",
            "fullTextPaths": [{"path": "/text", "language": "en-US"}]
        },
        "changeFeedPolicy": {"retentionDuration": 10},
        "clientEncryptionPolicy": {
            "policyFormatVersion": 1,
            "includedPaths": [{
                "path": "/secret",
                "clientEncryptionKeyId": "key",
                "encryptionType": "Deterministic",
                "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256"
            }]
        }
    })
}

/// The pointers of all values inside a value, its own included.
fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                pointers(value, &format!("{at}/{name}"), out);
            }
        }
        Value::Array(array) => {
            for (index, value) in array.iter().enumerate() {
                pointers(value, &format!("{at}/{index}"), out);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn kind(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    }
}

/// Tries every wrong type in every field with one verb; returns their number.
fn try_wrong_types(method: &Method, path: &str) -> usize {
    let world = furnished();
    if *method == Method::PUT {
        let created = world.send(Method::POST, "/dbs/d/colls", everything().to_string(), &[]);
        assert_eq!(created.status(), StatusCode::CREATED);
    }
    let send = |body: &Value| world.send(method.clone(), path, body.to_string(), &[]);
    let before = world.dump();
    let mut fields = Vec::new();
    pointers(&everything(), "", &mut fields);
    let wrong = [
        json!(true),
        json!(1),
        json!(-7.5),
        json!("text"),
        json!([]),
        json!([1]),
        json!({}),
        json!({"a": [null]}),
    ];
    let mut tried = 0;
    for field in &fields {
        // Elements of arrays are named by number.
        let named = |part: &&str| part.parse::<usize>().is_err();
        let name = field.rsplit('/').find(named).filter(|name| !name.is_empty()).unwrap_or("id");
        for value in &wrong {
            let mut body = everything();
            let place = body.pointer_mut(field).unwrap();
            if kind(place) == kind(value) {
                continue;
            }
            *place = value.clone();
            let answer = send(&body);
            let text = String::from_utf8_lossy(answer.body());
            assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{field} = {value}: {text}");
            assert!(text.contains(name), "{field} = {value} is not named: {text}");
            tried += 1;
        }
    }
    assert_eq!(world.dump(), before);
    assert!(send(&everything()).status().is_success());
    tried
}

#[test]
fn no_field_of_a_new_container_takes_a_value_of_another_type() {
    let tried = try_wrong_types(&Method::POST, "/dbs/d/colls");
    println!("{tried} wrong values, 0 accepted");
}

#[test]
fn no_field_of_a_replaced_container_takes_a_value_of_another_type() {
    let tried = try_wrong_types(&Method::PUT, "/dbs/d/colls/x");
    println!("{tried} wrong values, 0 accepted");
}

#[test]
fn bytes_that_are_no_text_are_no_item() {
    let world = furnished();
    let before = world.dump();
    let bodies: [&[u8]; 10] = [
        b"\xff\xfe{\0}\0",
        b"\xef\xbb\xbf{\"id\":\"9\",\"pk\":\"a\"}",
        b"{\"id\":\"9\",\"pk\":\"\xff\"}",
        b"{\"id\":\"9\",\"pk\":\"\xed\xa0\x80\"}",
        b"{\"id\":\"9\0\",\"pk\":\"a\"}",
        b"\0",
        // What begins like binary JSON, and like a batch in another encoding.
        b"\x80",
        b"\x80\xed\xff\xff\xff",
        b"\x80\xcb\x01",
        b"\x81\x00",
    ];
    for body in bodies {
        let answer = world.send(Method::POST, "/dbs/d/colls/c/docs", body, &[]);
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{body:?}: {:?}", answer.body());
        assert!(answer.headers().contains_key("x-ms-activity-id"));
    }
    assert_eq!(world.dump(), before);
}

#[test]
fn a_header_that_says_two_things_is_refused() {
    let world = furnished();
    let before = world.dump();
    let path = "/dbs/d/colls/c/docs/1";
    for (name, values) in [
        ("if-match", ["\"a\"", "*"]),
        ("x-ms-documentdb-partitionkey", ["[\"a\"]", "[\"b\"]"]),
        ("authorization", ["x", "y"]),
        ("x-ms-session-token", ["0:-1#1", "0:-1#9"]),
    ] {
        let (mut head, body) =
            world.request(Method::DELETE, path, "", &[("x-ms-documentdb-partitionkey", "[\"a\"]")]);
        if name != "authorization" {
            head.headers.remove(name);
            head.headers.append(name, HeaderValue::from_str(values[0]).unwrap());
        }
        head.headers.append(name, HeaderValue::from_str(values[1]).unwrap());
        let answer = world.ask(head, body);
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{name}: {:?}", answer.body());
    }
    assert_eq!(world.dump(), before);
    // A repeated header with the same value does no harm.
    let (mut head, body) =
        world.request(Method::GET, path, "", &[("x-ms-documentdb-partitionkey", "[\"a\"]")]);
    head.headers.append("x-ms-documentdb-partitionkey", HeaderValue::from_static("[\"a\"]"));
    let answer = world.ask(head, body);
    assert_eq!(answer.status(), StatusCode::OK);
}
