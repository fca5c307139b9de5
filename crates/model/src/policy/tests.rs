use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::json::{self, Value};

fn value(text: &str) -> Value {
    json::parse(text.as_bytes()).expect("test text is JSON")
}

/// A container body with further fields: `"defaultTtl":1`.
fn body(fields: &str) -> Value {
    let comma = if fields.is_empty() { "" } else { "," };
    value(&format!(r#"{{"id":"c","partitionKey":{{"paths":["/pk"]}}{comma}{fields}}}"#))
}

fn container(fields: &str) -> ContainerDefinition {
    ContainerDefinition::parse(&body(fields)).expect("test definition is valid")
}

/// What clients read back of one field, or why the definition is refused.
fn outcome(fields: &str) -> String {
    match ContainerDefinition::parse(&body(fields)) {
        Err(error) => error.to_string(),
        Ok(definition) => {
            let echo = definition.to_value();
            // What is read back must be accepted, and mean the same.
            assert_eq!(ContainerDefinition::parse(&echo), Ok(definition), "{echo}");
            let name = fields.split('"').nth(1).expect("test field has a name");
            echo.get(name).map_or("left out".to_owned(), Value::to_string)
        }
    }
}

fn check(cases: &[&str], expect: &Expect) {
    let all: Vec<_> = cases.iter().map(|fields| outcome(fields)).collect();
    expect.assert_eq(&(all.join("\n") + "\n"));
}

/// Cases that only differ inside one policy.
fn check_policy(policy: &str, cases: &[&str], expect: &Expect) {
    let cases: Vec<_> = cases.iter().map(|case| format!(r#""{policy}":{case}"#)).collect();
    check(&cases.iter().map(String::as_str).collect::<Vec<_>>(), expect);
}

#[test]
fn completes_a_bare_definition() {
    expect![[r#"{"id":"c","indexingPolicy":{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]},"partitionKey":{"paths":["/pk"],"kind":"Hash"},"conflictResolutionPolicy":{"mode":"LastWriterWins","conflictResolutionPath":"/_ts","conflictResolutionProcedure":""},"geospatialConfig":{"type":"Geography"}}"#]]
    .assert_eq(&container("").to_value().to_string());
}

#[test]
fn names_the_field_that_is_wrong() {
    let bodies = [
        "[]",
        "{}",
        r#"{"id":7}"#,
        r#"{"id":""}"#,
        r#"{"id":"a/b"}"#,
        r#"{"id":"c","partitionKey":{"paths":[]}}"#,
        r#"{"id":"c","partitionKey":{"paths":["/a"]},"globalSecondaryIndexDefinition":{}}"#,
        // Without a key the container is of the old kind.
        r#"{"id":"c"}"#,
    ];
    let all: Vec<_> = bodies
        .iter()
        .map(|body| match ContainerDefinition::parse(&value(body)) {
            Ok(definition) => {
                format!("accepted, {} paths", definition.partition_key().paths().len())
            }
            Err(error) => error.to_string(),
        })
        .collect();
    expect![[r#"
        One of the specified inputs is invalid: 'body' must be an object, but is an array.
        The input content is invalid because the required properties - 'id; ' - are missing.
        One of the specified inputs is invalid: 'id' must be a string, but is a number.
        The id must not be empty.
        The id contains the character '/', which is not allowed.
        The partition key must specify at least one path.
        'globalSecondaryIndexDefinition' is not supported.
        accepted, 0 paths"#]]
    .assert_eq(&all.join("\n"));
}

#[test]
fn indexing_paths() {
    check_policy(
        "indexingPolicy",
        &[
            "{}",
            r#"{"automatic":true,"indexingMode":"Consistent"}"#,
            r#"{"includedPaths":[],"excludedPaths":[]}"#,
            r#"{"includedPaths":[{"path":"/"}],"excludedPaths":[{"path":"/\"systemMetadata\"/*"}]}"#,
            r#"{"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"}]}"#,
            r#"{"excludedPaths":[{"path":"/*"}]}"#,
            r#"{"includedPaths":[{"path":"/_etag/?"},{"path":"/*"}]}"#,
            r#"{"includedPaths":[{"path":"/*"},{"path":"/events/[]/{name, place/'zip code'}/?"}]}"#,
            r#"{"includedPaths":[{"path":"/a/?"}]}"#,
            r#"{"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"a\"/?"},{"path":"/b/*"},{"path":"/*"}]}"#,
            r#"{"includedPaths":[{"path":"/*"},{"path":"/a/?"}],"excludedPaths":[{"path":"/'a'/?"}]}"#,
            r#"{"excludedPaths":[{"path":"/e/[]/{a, b}/?"}]}"#,
            r#"{"indexingMode":"lazy"}"#,
            r#"{"automatic":false}"#,
            r#"{"indexingMode":"eager"}"#,
            r#"{"indexingMode":1}"#,
            r#"{"automatic":"yes"}"#,
            r#"{"includedPaths":{"path":"/*"}}"#,
            r#"{"includedPaths":["/*"]}"#,
            r#"{"includedPaths":[{}]}"#,
            r#"{"includedPaths":[{"path":7}]}"#,
            "7",
        ],
        &expect![[r#"
            {"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]}
            {"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]}
            {"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]}
            {"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"systemMetadata\"/*"},{"path":"/\"_etag\"/?"}]}
            {"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/a/?"}],"excludedPaths":[{"path":"/*"},{"path":"/\"_etag\"/?"}]}
            {"indexingMode":"consistent","automatic":true,"includedPaths":[],"excludedPaths":[{"path":"/*"},{"path":"/\"_etag\"/?"}]}
            {"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/_etag/?"},{"path":"/*"}],"excludedPaths":[]}
            {"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"},{"path":"/events/[]/{name, place/'zip code'}/?"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]}
            The special mandatory indexing path "/*" is not provided in any of the path type sets. Please provide this path in one of the sets.
            The path '/*' cannot be both included in and excluded from the index.
            The path '/'a'/?' cannot be both included in and excluded from the index.
            The path '/e/[]/{a, b}/?' names several properties together, which only an included path may do.
            {"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]}
            {"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]}
            One of the specified inputs is invalid: 'eager' is not a value of 'indexingPolicy.indexingMode'; the values are consistent, lazy, none.
            One of the specified inputs is invalid: 'indexingPolicy.indexingMode' must be a string, but is a number.
            One of the specified inputs is invalid: 'indexingPolicy.automatic' must be a boolean, but is a string.
            One of the specified inputs is invalid: 'indexingPolicy.includedPaths' must be an array, but is an object.
            One of the specified inputs is invalid: 'indexingPolicy.includedPaths[0]' must be an object, but is a string.
            The input content is invalid because the required properties - 'indexingPolicy.includedPaths[0].path; ' - are missing.
            One of the specified inputs is invalid: 'indexingPolicy.includedPaths[0].path' must be a string, but is a number.
            One of the specified inputs is invalid: 'indexingPolicy' must be an object, but is a number.
        "#]],
    );
}

#[test]
fn indexing_path_syntax() {
    let paths = [
        "/*",
        "/?",
        "/a/?",
        "/a/*",
        "/a/[]/?",
        "/a/[]/b/*",
        "/\"a b\"/?",
        "/\"q\\\"\"/?",
        "/ä1_/?",
        "",
        "a/?",
        "/expiration",
        "/a//?",
        "/a/",
        "/a-b/?",
        "/a/*/b/?",
        "/a/?/b",
        "/a/[0]/?",
        "/\"a/?",
        "/\"\"/?",
        "/{a}/?",
        "/{a,}/?",
        "/{a}/*",
    ];
    let show = |path: &&str| match IndexPath::parse(path) {
        Ok(read) => format!("{path}  {:?} {:?}\n", read.steps(), read.end()),
        Err(PolicyError::IndexPath { path, position }) => format!("{path}  fails at {position}\n"),
        Err(other) => panic!("{other}"),
    };
    expect![[r#"
        /*  [] Subtree
        /?  [] Scalar
        /a/?  [Property("a")] Scalar
        /a/*  [Property("a")] Subtree
        /a/[]/?  [Property("a"), Elements] Scalar
        /a/[]/b/*  [Property("a"), Elements, Property("b")] Subtree
        /"a b"/?  [Property("a b")] Scalar
        /"q\""/?  [Property("q\"")] Scalar
        /ä1_/?  [Property("ä1_")] Scalar
          fails at 0
        a/?  fails at 0
        /expiration  fails at 11
        /a//?  fails at 3
        /a/  fails at 3
        /a-b/?  fails at 2
        /a/*/b/?  fails at 4
        /a/?/b  fails at 4
        /a/[0]/?  fails at 4
        /"a/?  fails at 5
        /""/?  fails at 3
        /{a}/?  [] Tuple([["a"]])
        /{a,}/?  fails at 4
        /{a}/*  fails at 5
    "#]]
    .assert_eq(&paths.iter().map(show).collect::<String>());
}

#[test]
fn indexing_mode_none() {
    check(
        &[
            r#""indexingPolicy":{"indexingMode":"none"}"#,
            r#""indexingPolicy":{"indexingMode":"none","automatic":false,"includedPaths":[{"path":"/a/?"}]}"#,
            r#""indexingPolicy":{"indexingMode":"none","automatic":true}"#,
            r#""indexingPolicy":{"indexingMode":"none"},"defaultTtl":-1"#,
        ],
        &expect![[r#"
            {"indexingMode":"none","automatic":false,"includedPaths":[],"excludedPaths":[]}
            {"indexingMode":"none","automatic":false,"includedPaths":[{"path":"/a/?"}],"excludedPaths":[]}
            Indexing mode value cannot be 'none' when automatic indexing is specified as 'true'.
            Indexing mode value cannot be 'none' when 'defaultTtl' is specified in the collection.
        "#]],
    );
}

/// Old clients still send these; the service shows only the spatial ones.
#[test]
fn old_index_kinds() {
    check_policy(
        "indexingPolicy",
        &[
            r#"{"includedPaths":[{"path":"/*","indexes":[{"kind":"Hash","dataType":"String","precision":3},{"kind":"Range","dataType":"Number"}]}]}"#,
            r#"{"includedPaths":[{"path":"/\"Location\"/?","indexes":[{"kind":"Spatial","dataType":"Point"}]},{"path":"/"}]}"#,
            r#"{"includedPaths":[{"path":"/*","indexes":[{"kind":"Tree","dataType":"String"}]}]}"#,
            r#"{"includedPaths":[{"path":"/*","indexes":[{"kind":"Hash","dataType":"Point"}]}]}"#,
            r#"{"includedPaths":[{"path":"/*","indexes":[{"kind":"Hash","precision":"high"}]}]}"#,
            r#"{"includedPaths":[{"path":"/*","indexes":[{}]}]}"#,
            r#"{"includedPaths":[{"path":"/*","indexes":"Hash"}]}"#,
        ],
        &expect![[r#"
            {"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*","indexes":[{"kind":"Hash","dataType":"String","precision":3},{"kind":"Range","dataType":"Number"}]}],"excludedPaths":[{"path":"/\"_etag\"/?"}]}
            {"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/\"Location\"/?","indexes":[{"kind":"Spatial","dataType":"Point"}]},{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}]}
            One of the specified inputs is invalid: 'Tree' is not a value of 'indexingPolicy.includedPaths[0].indexes[0].kind'; the values are Hash, Range, Spatial.
            One of the specified inputs is invalid: 'Point' is not a value of 'indexingPolicy.includedPaths[0].indexes[0].dataType'; the values are String, Number.
            One of the specified inputs is invalid: 'indexingPolicy.includedPaths[0].indexes[0].precision' must be an integer, but is a string.
            The input content is invalid because the required properties - 'indexingPolicy.includedPaths[0].indexes[0].kind; ' - are missing.
            One of the specified inputs is invalid: 'indexingPolicy.includedPaths[0].indexes' must be an array, but is a string.
        "#]],
    );
}

#[test]
fn composite_indexes() {
    let long = |paths: usize| {
        let paths: Vec<_> = (0..paths).map(|n| format!(r#"{{"path":"/p{n}"}}"#)).collect();
        format!(r#"{{"compositeIndexes":[[{}]]}}"#, paths.join(","))
    };
    let many = vec![r#"[{"path":"/a"},{"path":"/b"}]"#; 101].join(",");
    check_policy(
        "indexingPolicy",
        &[
            r#"{"compositeIndexes":[[{"path":"/a","order":"ascending"},{"path":"/b/c","order":"Descending"}]]}"#,
            r#"{"compositeIndexes":[[{"path":"/a"},{"path":"/b"}]]}"#,
            r#"{"compositeIndexes":[[{"path":"/a"}]]}"#,
            &long(9),
            &format!(r#"{{"compositeIndexes":[{many}]}}"#),
            r#"{"compositeIndexes":[[{"path":"/a"},{"path":"/\"a\""}]]}"#,
            r#"{"compositeIndexes":[[{"path":"/a/?"},{"path":"/b"}]]}"#,
            r#"{"compositeIndexes":[[{"path":"/a","order":"up"},{"path":"/b"}]]}"#,
            r#"{"compositeIndexes":[{"path":"/a"}]}"#,
        ],
        &expect![[r#"
            {"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}],"compositeIndexes":[[{"path":"/a","order":"ascending"},{"path":"/b/c","order":"descending"}]]}
            {"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}],"compositeIndexes":[[{"path":"/a","order":"ascending"},{"path":"/b","order":"ascending"}]]}
            A composite index needs between 2 and 8 paths, but one has 1.
            A composite index needs between 2 and 8 paths, but one has 9.
            The number of composite indexes: 101 exceeds the maximum: 100.
            '/"a"' is named more than once in 'indexingPolicy.compositeIndexes[0]'.
            '/a/?' in 'indexingPolicy.compositeIndexes[0][0].path' is not a path to a property, such as /address/city.
            One of the specified inputs is invalid: 'up' is not a value of 'indexingPolicy.compositeIndexes[0][0].order'; the values are ascending, descending.
            One of the specified inputs is invalid: 'indexingPolicy.compositeIndexes[0]' must be an array, but is an object.
        "#]],
    );
    assert!(
        matches!(IndexingPolicy::parse(&value(&long(8))), Ok(policy) if policy.composites()[0].len() == 8)
    );
}

#[test]
fn too_many_paths() {
    let many: Vec<_> = (0..1501).map(|n| format!(r#"{{"path":"/p{n}/?"}}"#)).collect();
    let many = many.join(",");
    check_policy(
        "indexingPolicy",
        &[
            &format!(r#"{{"includedPaths":[{many}],"excludedPaths":[{{"path":"/*"}}]}}"#),
            &format!(r#"{{"excludedPaths":[{many}]}}"#),
        ],
        &expect![[r#"
            The number of included paths: 1501 exceeds the maximum: 1500.
            The number of excluded paths: 1501 exceeds the maximum: 1500.
        "#]],
    );
}

#[test]
fn spatial_indexes() {
    let with = |geometry: &str, index: &str| {
        format!(r#""indexingPolicy":{{"spatialIndexes":[{index}]}},"geospatialConfig":{geometry}"#)
    };
    let globe = r#"{"type":"Geography"}"#;
    let plane = r#"{"type":"Geometry"}"#;
    let bounds = r#""boundingBox":{"xmin":-1.5,"ymin":0,"xmax":10,"ymax":20}"#;
    let cases = [
        with(globe, r#"{"path":"/loc/*","types":["Point","Polygon"]}"#),
        with(globe, r#"{"path":"/loc/?"}"#),
        with(globe, r#"{"path":"/loc/?","types":[]}"#),
        with(plane, &format!(r#"{{"path":"/loc/*","types":["Point"],{bounds}}}"#)),
        with(plane, r#"{"path":"/loc/*","types":["Point"]}"#),
        with(globe, &format!(r#"{{"path":"/loc/*","types":["Point"],{bounds}}}"#)),
        with(plane, r#"{"path":"/loc/*","boundingBox":{"xmin":1,"ymin":0,"xmax":1,"ymax":2}}"#),
        with(plane, r#"{"path":"/loc/*","boundingBox":{"xmin":"1"}}"#),
        with(globe, r#"{"path":"/loc/*","types":["Circle"]}"#),
        with(globe, r#"{"path":"/loc/*","types":[1]}"#),
        with(globe, r#"{"path":"/loc"}"#),
        with(r#"{"type":"Globe"}"#, r#"{"path":"/loc/*","types":["Point"]}"#),
        with("[]", r#"{"path":"/loc/*","types":["Point"]}"#),
    ];
    check(
        &cases.each_ref().map(String::as_str),
        &expect![[r#"
            {"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}],"spatialIndexes":[{"path":"/loc/*","types":["Point","Polygon"]}]}
            The spatial data types array cannot be empty. Assign at least one spatial type for the 'types' array for the path '/loc/?'.
            The spatial data types array cannot be empty. Assign at least one spatial type for the 'types' array for the path '/loc/?'.
            {"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}],"spatialIndexes":[{"path":"/loc/*","types":["Point"],"boundingBox":{"xmin":-1.5,"ymin":0,"xmax":10,"ymax":20}}]}
            A spatial index on '/loc/*' needs a boundingBox, because the container's geospatial type is Geometry.
            A spatial index on '/loc/*' cannot have a boundingBox, because the container's geospatial type is Geography.
            The boundingBox of the spatial index on '/loc/*' is empty: its maxima must be above its minima.
            One of the specified inputs is invalid: 'indexingPolicy.spatialIndexes[0].boundingBox.xmin' must be a number, but is a string.
            One of the specified inputs is invalid: 'Circle' is not a value of 'indexingPolicy.spatialIndexes[0].types'; the values are Point, LineString, Polygon, MultiPolygon.
            One of the specified inputs is invalid: 'indexingPolicy.spatialIndexes[0].types[0]' must be a string, but is a number.
            The indexing path '/loc' could not be accepted, failed near position '4'. Please ensure that the path is a valid path. Common errors include invalid characters or absence of quotes around labels.
            One of the specified inputs is invalid: 'Globe' is not a value of 'geospatialConfig.type'; the values are Geography, Geometry.
            One of the specified inputs is invalid: 'geospatialConfig' must be an object, but is an array.
        "#]],
    );
}

#[test]
fn unique_keys() {
    let keys = [r#"{"paths":["/a"]}"#; 11].join(",");
    let paths: Vec<_> = (0..17).map(|n| format!("\"/p{n}\"")).collect();
    check_policy(
        "uniqueKeyPolicy",
        &[
            r#"{"uniqueKeys":[{"paths":["/a","/b/c"]},{"paths":["/\"d e\""]}]}"#,
            r#"{"uniqueKeys":[]}"#,
            r#"{"uniqueKeys":[{"paths":[]}]}"#,
            r#"{"uniqueKeys":[{"paths":["/a","/a"]}]}"#,
            r#"{"uniqueKeys":[{"paths":["/a/?"]}]}"#,
            r#"{"uniqueKeys":[{"paths":["/a/[]/b"]}]}"#,
            r#"{"uniqueKeys":[{"paths":["a"]}]}"#,
            r#"{"uniqueKeys":[{"paths":[1]}]}"#,
            r#"{"uniqueKeys":[{"paths":"/a"}]}"#,
            r#"{"uniqueKeys":["/a"]}"#,
            &format!(r#"{{"uniqueKeys":[{keys}]}}"#),
            &format!(r#"{{"uniqueKeys":[{{"paths":[{}]}}]}}"#, paths.join(",")),
            "[]",
        ],
        &expect![[r#"
            {"uniqueKeys":[{"paths":["/a","/b/c"]},{"paths":["/\"d e\""]}]}
            left out
            A unique key needs at least one path.
            '/a' is named more than once in 'uniqueKeyPolicy.uniqueKeys[0].paths'.
            '/a/?' in 'uniqueKeyPolicy.uniqueKeys[0].paths' is not a path to a property, such as /address/city.
            '/a/[]/b' in 'uniqueKeyPolicy.uniqueKeys[0].paths' is not a path to a property, such as /address/city.
            'a' in 'uniqueKeyPolicy.uniqueKeys[0].paths' is not a path to a property, such as /address/city.
            One of the specified inputs is invalid: 'uniqueKeyPolicy.uniqueKeys[0].paths[0]' must be a string, but is a number.
            One of the specified inputs is invalid: 'uniqueKeyPolicy.uniqueKeys[0].paths' must be an array, but is a string.
            One of the specified inputs is invalid: 'uniqueKeyPolicy.uniqueKeys[0]' must be an object, but is a string.
            The number of unique keys: 11 exceeds the maximum: 10.
            The number of paths of a unique key: 17 exceeds the maximum: 16.
            One of the specified inputs is invalid: 'uniqueKeyPolicy' must be an object, but is an array.
        "#]],
    );
}

#[test]
fn conflict_resolution() {
    check_policy(
        "conflictResolutionPolicy",
        &[
            "{}",
            r#"{"mode":"lastWriterWins","conflictResolutionPath":"/region/id"}"#,
            r#"{"mode":"Custom","conflictResolutionProcedure":"dbs/d/colls/c/sprocs/s"}"#,
            r#"{"mode":"Custom","conflictResolutionPath":""}"#,
            r#"{"mode":"Custom","conflictResolutionPath":"/a"}"#,
            r#"{"mode":"LastWriterWins","conflictResolutionProcedure":"s"}"#,
            r#"{"conflictResolutionPath":"a"}"#,
            r#"{"mode":"First"}"#,
            r#"{"mode":1}"#,
        ],
        &expect![[r#"
            {"mode":"LastWriterWins","conflictResolutionPath":"/_ts","conflictResolutionProcedure":""}
            {"mode":"LastWriterWins","conflictResolutionPath":"/region/id","conflictResolutionProcedure":""}
            {"mode":"Custom","conflictResolutionPath":"","conflictResolutionProcedure":"dbs/d/colls/c/sprocs/s"}
            {"mode":"Custom","conflictResolutionPath":"","conflictResolutionProcedure":""}
            Custom conflict resolution mode should not have conflict resolution path set.
            LastWriterWins conflict resolution mode should not have conflict resolution procedure set.
            Invalid path 'a' for last writer wins conflict resolution
            One of the specified inputs is invalid: 'First' is not a value of 'conflictResolutionPolicy.mode'; the values are LastWriterWins, Custom.
            One of the specified inputs is invalid: 'conflictResolutionPolicy.mode' must be a string, but is a number.
        "#]],
    );
}

#[test]
fn times_to_live() {
    check(
        &[
            r#""defaultTtl":10"#,
            r#""defaultTtl":-1"#,
            r#""defaultTtl":null"#,
            r#""defaultTtl":2147483647"#,
            r#""defaultTtl":2147483648"#,
            r#""defaultTtl":0"#,
            r#""defaultTtl":-10"#,
            r#""defaultTtl":1.5"#,
            r#""defaultTtl":"10""#,
            r#""analyticalStorageTtl":-1"#,
            r#""analyticalStorageTtl":0"#,
            r#""analyticalStorageTtl":1000"#,
            r#""analyticalStorageTtl":-10"#,
            r#""analyticalStorageTtl":true"#,
        ],
        &expect![[r#"
            10
            -1
            left out
            2147483647
            The input ttl '2147483648' is invalid. Ensure to provide a nonzero positive integer or -1.
            The input ttl '0' is invalid. Ensure to provide a nonzero positive integer or -1.
            The input ttl '-10' is invalid. Ensure to provide a nonzero positive integer or -1.
            One of the specified inputs is invalid: 'defaultTtl' must be an integer, but is a number that is not one.
            One of the specified inputs is invalid: 'defaultTtl' must be an integer, but is a string.
            -1
            0
            1000
            The input ttl '-10' is invalid. Ensure to provide a nonzero positive integer or -1.
            One of the specified inputs is invalid: 'analyticalStorageTtl' must be an integer, but is a boolean.
        "#]],
    );
}

#[test]
fn own_ttls() {
    let items = [
        "{}",
        "10",
        "-1",
        "2147483647",
        "2147483648",
        "0",
        "-10",
        "null",
        "\"10\"",
        "1.5",
        "[1]",
        "{\"a\":1}",
        "true",
    ];
    let show = |ttl: &&str| {
        let text = if *ttl == "{}" { "{}".to_owned() } else { format!(r#"{{"ttl":{ttl}}}"#) };
        match OwnTtl::of_item(json::parse_raw(text.as_bytes()).expect("test item is JSON")) {
            Ok(None) => "none\n".to_owned(),
            Ok(Some(own)) => {
                assert_eq!(OwnTtl::from_seconds(own.as_seconds()), Some(own));
                format!("{own:?}\n")
            }
            Err(error) => format!("{error}\n"),
        }
    };
    expect![[r#"
        none
        After(10)
        Never
        After(2147483647)
        The input ttl '2147483648' is invalid. Ensure to provide a nonzero positive integer or -1.
        The input ttl '0' is invalid. Ensure to provide a nonzero positive integer or -1.
        The input ttl '-10' is invalid. Ensure to provide a nonzero positive integer or -1.
        The input ttl 'null' is invalid. Ensure to provide a nonzero positive integer or -1.
        The input ttl 'a string' is invalid. Ensure to provide a nonzero positive integer or -1.
        The input ttl '1.5' is invalid. Ensure to provide a nonzero positive integer or -1.
        The input ttl '[…]' is invalid. Ensure to provide a nonzero positive integer or -1.
        The input ttl '{…}' is invalid. Ensure to provide a nonzero positive integer or -1.
        The input ttl 'true' is invalid. Ensure to provide a nonzero positive integer or -1.
    "#]]
    .assert_eq(&items.iter().map(show).collect::<String>());
    assert_eq!(OwnTtl::from_seconds(0), None);
    assert_eq!(OwnTtl::from_seconds(-2), None);
}

#[test]
fn expiry() {
    let after = |seconds| OwnTtl::from_seconds(seconds).expect("test ttl is valid");
    let (off, never) = (container("").ttl(), container(r#""defaultTtl":-1"#).ttl());
    let hour = container(r#""defaultTtl":3600"#).ttl();
    for own in [None, Some(OwnTtl::Never), Some(after(5))] {
        assert_eq!(expires_at(100, own, off), None, "an item cannot turn expiry on");
    }
    for default in [never, hour] {
        assert_eq!(expires_at(100, Some(OwnTtl::Never), default), None);
        assert_eq!(expires_at(100, Some(after(5)), default), Some(105));
    }
    assert_eq!(expires_at(100, None, never), None);
    assert_eq!(expires_at(100, None, hour), Some(3700));
    assert_eq!(expires_at(u64::MAX, None, hour), Some(u64::MAX));
}

#[test]
fn computed_properties() {
    let many: Vec<_> = (0..21).map(|n| format!(r#"{{"name":"p{n}","query":"q"}}"#)).collect();
    check_policy(
        "computedProperties",
        &[
            r#"[{"name":"cp_lower","query":"SELECT VALUE LOWER(c.group) FROM c"}]"#,
            "[]",
            r#"{"name":"cp","query":"SELECT VALUE 1 FROM c"}"#,
            r#"[{"name":"cp"}]"#,
            r#"[{"query":"SELECT VALUE 1 FROM c"}]"#,
            r#"[{"name":"","query":"q"}]"#,
            r#"[{"name":"cp","query":""}]"#,
            r#"[{"name":"cp","query":1}]"#,
            r#"[{"name":"_ts","query":"q"}]"#,
            r#"[{"name":"a","query":"q"},{"name":"a","query":"r"}]"#,
            &format!("[{}]", many.join(",")),
        ],
        &expect![[r#"
            [{"name":"cp_lower","query":"SELECT VALUE LOWER(c.group) FROM c"}]
            left out
            One of the specified inputs is invalid: 'computedProperties' must be an array, but is an object.
            One of the specified inputs is invalid
            One of the specified inputs is invalid
            Computed property 'name' is either empty or unspecified.
            Computed property 'query' is either empty or unspecified.
            One of the specified inputs is invalid: 'computedProperties[0].query' must be a string, but is a number.
            The system property name '_ts' cannot be used as a computed property name.
            Computed property name 'a' cannot be used in multiple definitions.
            The number of computed properties: 21 exceeds the maximum: 20.
        "#]],
    );
}

#[test]
fn vector_embeddings() {
    let embedding = |data_type: &str, dimensions: &str, distance: &str| {
        format!(
            r#"{{"vectorEmbeddings":[{{"path":"/v","dataType":{data_type},"dimensions":{dimensions},"distanceFunction":{distance}}}]}}"#
        )
    };
    let sourced = |source: &str| {
        format!(
            r#"{{"vectorEmbeddings":[{{"path":"/v","dataType":"float32","dimensions":3,"distanceFunction":"cosine","embeddingSource":{source}}}]}}"#
        )
    };
    check_policy(
        "vectorEmbeddingPolicy",
        &[
            &embedding("\"float16\"", "256", "\"euclidean\""),
            &embedding("\"float33\"", "256", "\"euclidean\""),
            &embedding("\"int8\"", "4096", "\"dotproduct\""),
            &embedding("\"int8\"", "8000", "\"dotproduct\""),
            &embedding("\"uint8\"", "-1", "\"cosine\""),
            &embedding("\"uint8\"", "0", "\"cosine\""),
            &embedding("\"uint8\"", "1.5", "\"cosine\""),
            &embedding("\"float32\"", "256", "\"handMeasured\""),
            &embedding("1", "256", "\"cosine\""),
            r#"{"vectorEmbeddings":[{"path":"v","dataType":"int8","dimensions":1,"distanceFunction":"cosine"}]}"#,
            r#"{"vectorEmbeddings":[{"path":"/v"}]}"#,
            r#"{"vectorEmbeddings":{}}"#,
            &sourced(
                r#"{"sourcePaths":["/a","/b"],"deploymentName":"d","modelName":"m","endpoint":"https://example.com","authType":"ApiKey"}"#,
            ),
            &sourced(
                r#"{"sourcePaths":["/a"],"deploymentName":"d","endpoint":"https://example.com","authType":"NotAnAuthType"}"#,
            ),
            &sourced(
                r#"{"sourcePaths":[],"deploymentName":"d","endpoint":"https://example.com","authType":"Entra"}"#,
            ),
            &sourced(
                r#"{"sourcePaths":["/a"],"endpoint":"https://example.com","authType":"Entra"}"#,
            ),
            &sourced(r#"{"sourcePaths":["/a"],"deploymentName":"d","authType":"Entra"}"#),
        ],
        &expect![[r#"
            {"vectorEmbeddings":[{"path":"/v","dataType":"float16","dimensions":256,"distanceFunction":"euclidean"}]}
            The Vector Embedding Policy has an invalid DataType:float33.
            {"vectorEmbeddings":[{"path":"/v","dataType":"int8","dimensions":4096,"distanceFunction":"dotproduct"}]}
            The Vector Embedding Policy has Dimensions:8000 which is more than the maximum supported value of 4096.
            The Vector Embedding Policy has Dimensions:-1 which is less than the minimum supported value of 1.
            The Vector Embedding Policy has Dimensions:0 which is less than the minimum supported value of 1.
            One of the specified inputs is invalid: 'vectorEmbeddingPolicy.vectorEmbeddings[0].dimensions' must be an integer, but is a number that is not one.
            The Vector Embedding Policy has an invalid DistanceFunction:handMeasured.
            One of the specified inputs is invalid: 'vectorEmbeddingPolicy.vectorEmbeddings[0].dataType' must be a string, but is a number.
            The Vector Embedding Policy has an invalid Path:v.
            The input content is invalid because the required properties - 'vectorEmbeddingPolicy.vectorEmbeddings[0].dataType; ' - are missing.
            One of the specified inputs is invalid: 'vectorEmbeddingPolicy.vectorEmbeddings' must be an array, but is an object.
            {"vectorEmbeddings":[{"path":"/v","dataType":"float32","dimensions":3,"distanceFunction":"cosine","embeddingSource":{"sourcePaths":["/a","/b"],"deploymentName":"d","modelName":"m","endpoint":"https://example.com","authType":"ApiKey"}}]}
            The auth type provided in the embedding source of vector policy is invalid.
            The input content is invalid because the required properties - 'vectorEmbeddingPolicy.vectorEmbeddings[0].embeddingSource.sourcePaths; ' - are missing.
            The input content is invalid because the required properties - 'vectorEmbeddingPolicy.vectorEmbeddings[0].embeddingSource.deploymentName; ' - are missing.
            The input content is invalid because the required properties - 'vectorEmbeddingPolicy.vectorEmbeddings[0].embeddingSource.endpoint; ' - are missing.
        "#]],
    );
}

#[test]
fn vector_indexes() {
    let embeddings = r#""vectorEmbeddingPolicy":{"vectorEmbeddings":[
        {"path":"/vector1","dataType":"float32","dimensions":256,"distanceFunction":"euclidean"},
        {"path":"/vector2","dataType":"int8","dimensions":550,"distanceFunction":"dotproduct"}]}"#;
    let with =
        |index: &str| format!(r#""indexingPolicy":{{"vectorIndexes":[{index}]}},{embeddings}"#);
    let cases = [
        with(
            r#"{"path":"/vector1","type":"flat"},{"path":"/vector2","type":"diskANN","quantizerType":"product","quantizationByteSize":8,"vectorIndexShardKey":["/country/city"],"indexingSearchListSize":50}"#,
        ),
        r#""indexingPolicy":{"vectorIndexes":[{"path":"/vector1","type":"flat"}]}"#.to_owned(),
        with(r#"{"path":"/vector3","type":"flat"}"#),
        with(r#"{"path":"/vector1","type":"notFlat"}"#),
        with(r#"{"path":"/vector2","type":"flat"}"#),
        with(r#"{"path":"/vector1","type":"quantizedFlat","quantizationByteSize":0}"#),
        with(r#"{"path":"/vector2","type":"quantizedFlat","quantizationByteSize":513}"#),
        with(r#"{"path":"/vector1","type":"diskANN","indexingSearchListSize":5}"#),
        with(r#"{"path":"/vector1","type":"diskANN","quantizerType":"cubic"}"#),
        with(r#"{"path":"/vector2","type":"diskANN","vectorIndexShardKey":["country"]}"#),
        with(
            r#"{"path":"/vector2","type":"diskANN","vectorIndexShardKey":["/country","/city","/zipcode"]}"#,
        ),
        with(r#"{"path":"/vector2","type":"diskANN","vectorIndexShardKey":"/country"}"#),
        with(r#"{"path":"/vector1","type":"flat"},{"path":"/vector1","type":"diskANN"}"#),
        with(r#"{"type":"flat"}"#),
    ];
    check(
        &cases.each_ref().map(String::as_str),
        &expect![[r#"
        {"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}],"vectorIndexes":[{"path":"/vector1","type":"flat"},{"path":"/vector2","type":"diskANN","quantizerType":"product","quantizationByteSize":8,"indexingSearchListSize":50,"vectorIndexShardKey":["/country/city"]}]}
        The Vector Indexing Policy's path::/vector1 not matching in Embedding's path.
        The Vector Indexing Policy's path::/vector3 not matching in Embedding's path.
        The Vector Indexing Policy's Index Type::notFlat is invalid.
        The Vector Indexing Policy has Index Type::flat on path::/vector2, which supports at most 505 dimensions, not 550.
        The Vector Indexing Policy parameter QuantizationByteSize value :: 0 is out of range. The allowed range is between 1 and 256.
        The Vector Indexing Policy parameter QuantizationByteSize value :: 513 is out of range. The allowed range is between 1 and 512.
        The Vector Indexing Policy parameter IndexingSearchListSize value :: 5 is out of range. The allowed range is between 25 and 500.
        One of the specified inputs is invalid: 'cubic' is not a value of 'indexingPolicy.vectorIndexes[0].quantizerType'; the values are product, spherical.
        The Vector Indexing Policy has an invalid Shard Path: country.
        The number of shard paths defined in the Vector Indexing Policy: 3 exceeds the maximum: 1.
        One of the specified inputs is invalid: 'indexingPolicy.vectorIndexes[0].vectorIndexShardKey' must be an array, but is a string.
        '/vector1' is named more than once in 'indexingPolicy.vectorIndexes'.
        The input content is invalid because the required properties - 'indexingPolicy.vectorIndexes[0].path; ' - are missing.
    "#]],
    );
}

#[test]
fn full_text() {
    check(
        &[
            r#""fullTextPolicy":{"defaultLanguage":"en-US","fullTextPaths":[{"path":"/abstract","language":"fr-FR"},{"path":"/title"}]}"#,
            r#""fullTextPolicy":{"defaultLanguage":"en-US"}"#,
            r#""fullTextPolicy":{}"#,
            r#""fullTextPolicy":{"fullTextPaths":[{"path":"abstract","language":"en-US"}]}"#,
            r#""fullTextPolicy":{"defaultLanguage":"spa-SPA"}"#,
            r#""fullTextPolicy":{"fullTextPaths":[{"path":"/abstract","language":"spa-SPA"}]}"#,
            r#""fullTextPolicy":{"fullTextPaths":[{"path":"/a"},{"path":"/a"}]}"#,
            r#""fullTextPolicy":{"fullTextPaths":[{}]}"#,
            r#""fullTextPolicy":{"defaultLanguage":1}"#,
            r#""indexingPolicy":{"fullTextIndexes":[{"path":"/abstract"}]},"fullTextPolicy":{"fullTextPaths":[{"path":"/abstract"}]}"#,
            r#""indexingPolicy":{"fullTextIndexes":[{"path":"/path"}]},"fullTextPolicy":{"fullTextPaths":[{"path":"/abstract"}]}"#,
            r#""indexingPolicy":{"fullTextIndexes":[{"path":"/path"}]}"#,
            r#""indexingPolicy":{"fullTextIndexes":[{"path":"abstract"}]}"#,
            r#""indexingPolicy":{"fullTextIndexes":[{"not_path":"abstract"}]}"#,
        ],
        &expect![[r#"
            {"defaultLanguage":"en-US","fullTextPaths":[{"path":"/abstract","language":"fr-FR"},{"path":"/title"}]}
            {"defaultLanguage":"en-US","fullTextPaths":[]}
            {"defaultLanguage":"en-US","fullTextPaths":[]}
            The Full Text Policy contains an invalid Path: abstract.
            The Full Text Policy contains an unsupported language spa-SPA. Supported languages are: "en-US", "de-DE", "es-ES", "fr-FR", "it-IT", "pt-BR", "pt-PT".
            The Full Text Policy contains an unsupported language spa-SPA. Supported languages are: "en-US", "de-DE", "es-ES", "fr-FR", "it-IT", "pt-BR", "pt-PT".
            '/a' is named more than once in 'fullTextPolicy.fullTextPaths'.
            The input content is invalid because the required properties - 'fullTextPolicy.fullTextPaths[0].path; ' - are missing.
            One of the specified inputs is invalid: 'fullTextPolicy.defaultLanguage' must be a string, but is a number.
            {"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"excludedPaths":[{"path":"/\"_etag\"/?"}],"fullTextIndexes":[{"path":"/abstract"}]}
            The Full Text Indexing Policy's path::/path is not among the paths of the Full Text Policy.
            The Full Text Indexing Policy's path::/path is not among the paths of the Full Text Policy.
            'abstract' in 'indexingPolicy.fullTextIndexes[0].path' is not a path to a property, such as /address/city.
            The input content is invalid because the required properties - 'indexingPolicy.fullTextIndexes[0].path; ' - are missing.
        "#]],
    );
}

#[test]
fn change_feed() {
    check_policy(
        "changeFeedPolicy",
        &[
            r#"{"retentionDuration":10}"#,
            "{}",
            r#"{"retentionDuration":-1}"#,
            r#"{"retentionDuration":"PT10M"}"#,
        ],
        &expect![[r#"
            {"retentionDuration":10}
            {"retentionDuration":0}
            One of the specified inputs is invalid: 'changeFeedPolicy.retentionDuration' is -1, but must be a number of minutes from 0.
            One of the specified inputs is invalid: 'changeFeedPolicy.retentionDuration' must be an integer, but is a string.
        "#]],
    );
}

#[test]
fn client_encryption() {
    let with = |path: &str, kind: &str, version: u32| {
        format!(
            r#"{{"includedPaths":[{{"path":"{path}","clientEncryptionKeyId":"k","encryptionType":"{kind}","encryptionAlgorithm":"AEAD_AES_256_CBC_HMAC_SHA256"}}],"policyFormatVersion":{version}}}"#
        )
    };
    check_policy(
        "clientEncryptionPolicy",
        &[
            &with("/ssn", "Randomized", 1),
            &with("/id", "Deterministic", 2),
            &with("/pk", "Deterministic", 2),
            &with("/id", "Deterministic", 1),
            &with("/pk", "Randomized", 2),
            &with("/a/b", "Randomized", 1),
            &with("ssn", "Randomized", 1),
            &with("/ssn", "Secret", 1),
            &with("/ssn", "Randomized", 3),
            r#"{"includedPaths":[{"path":"/a","clientEncryptionKeyId":"k","encryptionType":"Randomized","encryptionAlgorithm":"ROT13"}]}"#,
            r#"{"includedPaths":[{"path":"/a"}]}"#,
            r#"{"policyFormatVersion":"1"}"#,
        ],
        &expect![[r#"
            {"includedPaths":[{"path":"/ssn","clientEncryptionKeyId":"k","encryptionType":"Randomized","encryptionAlgorithm":"AEAD_AES_256_CBC_HMAC_SHA256"}],"policyFormatVersion":1}
            {"includedPaths":[{"path":"/id","clientEncryptionKeyId":"k","encryptionType":"Deterministic","encryptionAlgorithm":"AEAD_AES_256_CBC_HMAC_SHA256"}],"policyFormatVersion":2}
            {"includedPaths":[{"path":"/pk","clientEncryptionKeyId":"k","encryptionType":"Deterministic","encryptionAlgorithm":"AEAD_AES_256_CBC_HMAC_SHA256"}],"policyFormatVersion":2}
            The client encryption policy cannot encrypt '/id': ids and partition keys need policyFormatVersion 2.
            The client encryption policy cannot encrypt '/pk': ids and partition keys need deterministic encryption.
            The client encryption policy's path '/a/b' must be one property at the top of the item, such as /ssn.
            The client encryption policy's path 'ssn' must be one property at the top of the item, such as /ssn.
            One of the specified inputs is invalid: 'Secret' is not a value of 'clientEncryptionPolicy.includedPaths[0].encryptionType'; the values are Deterministic, Randomized.
            One of the specified inputs is invalid: 'clientEncryptionPolicy.policyFormatVersion' is 3, but must be 1 or 2.
            One of the specified inputs is invalid: 'ROT13' is not a value of 'clientEncryptionPolicy.includedPaths[0].encryptionAlgorithm'; the values are AEAD_AES_256_CBC_HMAC_SHA256.
            The input content is invalid because the required properties - 'clientEncryptionPolicy.includedPaths[0].encryptionType; ' - are missing.
            One of the specified inputs is invalid: 'clientEncryptionPolicy.policyFormatVersion' must be an integer, but is a string.
        "#]],
    );
}

const VECTOR: &str = r#""vectorEmbeddingPolicy":{"vectorEmbeddings":[{"path":"/v","dataType":"float32","dimensions":3,"distanceFunction":"cosine"}]},"indexingPolicy":{"vectorIndexes":[{"path":"/v","type":"flat"}]}"#;

#[test]
fn replacing_a_container() {
    let unique = r#""uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/a"]}]}"#;
    let encryption = r#""clientEncryptionPolicy":{"includedPaths":[]}"#;
    let cases = [
        ("", r#""defaultTtl":5"#),
        ("", r#""indexingPolicy":{"excludedPaths":[{"path":"/a/?"}]}"#),
        ("", r#""computedProperties":[{"name":"p","query":"q"}]"#),
        (r#""conflictResolutionPolicy":{"mode":"Custom"}"#, ""),
        ("", VECTOR),
        (unique, unique),
        (unique, ""),
        ("", unique),
        (encryption, ""),
        (VECTOR, VECTOR),
        (VECTOR, ""),
        (VECTOR, &VECTOR.replace(":3", ":4")),
        (VECTOR, &VECTOR.replace("flat", "diskANN")),
    ];
    let show = |(old, new): &(&str, &str)| match container(old).check_replace(&container(new)) {
        Ok(()) => "accepted\n".to_owned(),
        Err(error) => format!("{error}\n"),
    };
    expect![[r#"
        accepted
        accepted
        accepted
        Updating conflict resolution policy is currently not supported
        accepted
        accepted
        The unique index cannot be modified. To change the unique index, remove the collection and re-create a new one.
        The unique index cannot be modified. To change the unique index, remove the collection and re-create a new one.
        'clientEncryptionPolicy' cannot be changed as part of collection replace operation.
        accepted
        Paths in existing embedding policy cannot be modified in Collection Replace.
        Paths in existing embedding policy cannot be modified in Collection Replace.
        Paths in existing vector indexing policy cannot be modified in Collection Replace.
    "#]].assert_eq(&cases.iter().map(show).collect::<String>());

    let old = container("");
    let renamed = value(r#"{"id":"d","partitionKey":{"paths":["/pk"]}}"#);
    let moved = value(r#"{"id":"c","partitionKey":{"paths":["/other"]}}"#);
    let replaced = |body| old.check_replace(&ContainerDefinition::parse(&body).expect("valid"));
    assert!(matches!(replaced(renamed), Err(ReplaceError::Id { .. })));
    assert_eq!(replaced(moved), Err(ReplaceError::PartitionKey));
}

/// Values of every type, to stand where a policy expects something else.
fn any_value() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "null",
        "true",
        "0",
        "-1",
        "1.5",
        "1e300",
        "\"\"",
        "\"x\"",
        "\"/a/?\"",
        "[]",
        "[1]",
        "{}",
        "[[]]",
        "[{}]",
        "{\"path\":1}",
        "[\"/a\"]",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever a client sends is refused, or what is read back is accepted and means the
    /// same.
    #[test]
    fn any_body_is_refused_or_read_back(
        policy in prop::sample::select(vec![
            "indexingPolicy", "uniqueKeyPolicy", "conflictResolutionPolicy", "geospatialConfig",
            "vectorEmbeddingPolicy", "fullTextPolicy", "changeFeedPolicy",
            "clientEncryptionPolicy", "computedProperties", "defaultTtl", "analyticalStorageTtl",
        ]),
        field in prop::sample::select(vec![
            "indexingMode", "automatic", "includedPaths", "excludedPaths", "compositeIndexes",
            "spatialIndexes", "vectorIndexes", "fullTextIndexes", "uniqueKeys", "mode", "type",
            "conflictResolutionPath", "vectorEmbeddings", "defaultLanguage", "fullTextPaths",
            "retentionDuration", "policyFormatVersion",
        ]),
        inner in any_value(),
        nested in any::<bool>(),
    ) {
        let text = if nested { format!("{{\"{field}\":{inner}}}") } else { inner.to_owned() };
        outcome(&format!("\"{policy}\":{text}"));
    }

    /// Paths are read or refused, never a panic, and what is read is what was written.
    #[test]
    fn any_path_is_refused_or_kept(path in "[/\\[\\]{}a\"'\\\\?*, ]{0,12}") {
        if let Ok(read) = IndexPath::parse(&path) {
            prop_assert_eq!(IndexPath::parse(read.as_str()), Ok(read));
        }
        if let Some(read) = PropertyPath::read(&path) {
            prop_assert_eq!(read.as_str(), path);
        }
    }
}
