use expect_test::expect;
use model::json;
use model::limits::Limits;

use super::*;

fn patched(document: &str, operations: &str) -> String {
    let mut document = json::parse(document.as_bytes()).unwrap();
    let body = json::parse(operations.as_bytes()).unwrap();
    match Patch::parse(&body, &Limits::default()).and_then(|patch| patch.perform(&mut document)) {
        Ok(()) => document.to_string(),
        Err(error) => format!("{error}"),
    }
}

fn check(cases: &[(&str, &str)], expected: expect_test::Expect) {
    let lines: String =
        cases.iter().map(|(doc, ops)| format!("{doc} {ops}\n  {}\n", patched(doc, ops))).collect();
    expected.assert_eq(&lines);
}

#[test]
fn each_operation_does_its_work() {
    check(
        &[
            (r#"{"a":1}"#, r#"[{"op":"add","path":"/b","value":2}]"#),
            (r#"{"a":1}"#, r#"[{"op":"add","path":"/a","value":2.50}]"#),
            (r#"{"a":[1,3]}"#, r#"[{"op":"add","path":"/a/1","value":2}]"#),
            (r#"{"a":[1,3]}"#, r#"[{"op":"add","path":"/a/-","value":4}]"#),
            (r#"{"a":[1,3]}"#, r#"[{"op":"set","path":"/a/1","value":2}]"#),
            (r#"{"a":[1,3]}"#, r#"[{"op":"set","path":"/a/2","value":5}]"#),
            (r#"{"a":{"b":1}}"#, r#"[{"op":"replace","path":"/a/b","value":[]}]"#),
            (r#"{"a":{"b":1,"c":2}}"#, r#"[{"op":"remove","path":"/a/b"}]"#),
            (r#"{"a":[1,2,3]}"#, r#"[{"op":"remove","path":"/a/0"}]"#),
            (r#"{"a":1}"#, r#"[{"op":"incr","path":"/a","value":-3}]"#),
            (r#"{"a":9007199254740993}"#, r#"[{"op":"incr","path":"/a","value":1}]"#),
            (r#"{"a":1}"#, r#"[{"op":"incr","path":"/b","value":0.5}]"#),
            (r#"{"a":{"x":1}}"#, r#"[{"op":"move","from":"/a/x","path":"/y"}]"#),
            (r#"{"a":1,"b":2}"#, r#"[{"op":"move","from":"/a","path":"/b"}]"#),
            (r#"{"a":[1,2,3],"b":4}"#, r#"[{"op":"move","from":"/b","path":"/a/1"}]"#),
            (r#"{"a":[1,2,3]}"#, r#"[{"op":"move","from":"/a/0","path":"/a/-"}]"#),
            (r#"{"a/b":{"~":1}}"#, r#"[{"op":"set","path":"/a~1b/~0","value":2}]"#),
        ],
        expect![[r#"
            {"a":1} [{"op":"add","path":"/b","value":2}]
              {"a":1,"b":2}
            {"a":1} [{"op":"add","path":"/a","value":2.50}]
              {"a":2.5}
            {"a":[1,3]} [{"op":"add","path":"/a/1","value":2}]
              {"a":[1,2,3]}
            {"a":[1,3]} [{"op":"add","path":"/a/-","value":4}]
              {"a":[1,3,4]}
            {"a":[1,3]} [{"op":"set","path":"/a/1","value":2}]
              {"a":[1,2]}
            {"a":[1,3]} [{"op":"set","path":"/a/2","value":5}]
              {"a":[1,3,5]}
            {"a":{"b":1}} [{"op":"replace","path":"/a/b","value":[]}]
              {"a":{"b":[]}}
            {"a":{"b":1,"c":2}} [{"op":"remove","path":"/a/b"}]
              {"a":{"c":2}}
            {"a":[1,2,3]} [{"op":"remove","path":"/a/0"}]
              {"a":[2,3]}
            {"a":1} [{"op":"incr","path":"/a","value":-3}]
              {"a":-2}
            {"a":9007199254740993} [{"op":"incr","path":"/a","value":1}]
              {"a":9007199254740994}
            {"a":1} [{"op":"incr","path":"/b","value":0.5}]
              {"a":1,"b":0.5}
            {"a":{"x":1}} [{"op":"move","from":"/a/x","path":"/y"}]
              {"a":{},"y":1}
            {"a":1,"b":2} [{"op":"move","from":"/a","path":"/b"}]
              {"b":1}
            {"a":[1,2,3],"b":4} [{"op":"move","from":"/b","path":"/a/1"}]
              {"a":[1,4,3]}
            {"a":[1,2,3]} [{"op":"move","from":"/a/0","path":"/a/-"}]
              {"a":[2,3,1]}
            {"a/b":{"~":1}} [{"op":"set","path":"/a~1b/~0","value":2}]
              {"a/b":{"~":2}}
        "#]],
    );
}

#[test]
fn what_cannot_be_done_is_explained() {
    check(
        &[
            (r#"{"a":1}"#, r#"[]"#),
            (r#"{"a":1}"#, r#"{"ops":[]}"#),
            (r#"{"a":1}"#, r#"[{"op":"test","path":"/a","value":1}]"#),
            (r#"{"a":1}"#, r#"[{"op":"add","path":"a","value":1}]"#),
            (r#"{"a":1}"#, r#"[{"op":"add","path":"/","value":1}]"#),
            (r#"{"a":1}"#, r#"[{"op":"add","path":"/a"}]"#),
            (r#"{"a":1}"#, r#"[{"op":"add","path":"/a/b","value":1}]"#),
            (r#"{"a":1}"#, r#"[{"op":"set","path":"/b/c","value":1}]"#),
            (r#"{"a":[]}"#, r#"[{"op":"add","path":"/a/1","value":1}]"#),
            (r#"{"a":[]}"#, r#"[{"op":"add","path":"/a/01","value":1}]"#),
            (r#"{"a":1}"#, r#"[{"op":"replace","path":"/b","value":1}]"#),
            (r#"{"a":1}"#, r#"[{"op":"remove","path":"/b"}]"#),
            (r#"{"a":[]}"#, r#"[{"op":"remove","path":"/a/-"}]"#),
            (r#"{"a":"x"}"#, r#"[{"op":"incr","path":"/a","value":1}]"#),
            (r#"{"a":1}"#, r#"[{"op":"incr","path":"/a","value":"1"}]"#),
            (r#"{"a":1e308}"#, r#"[{"op":"incr","path":"/a","value":1e308}]"#),
            (r#"{"a":{"b":{}}}"#, r#"[{"op":"move","from":"/a","path":"/a/b"}]"#),
            (r#"{"a":1}"#, r#"[{"op":"move","from":"/b","path":"/c"}]"#),
            (
                r#"{"a":1}"#,
                r#"{"condition":"from c where","operations":[{"op":"remove","path":"/a"}]}"#,
            ),
        ],
        expect![[r#"
            {"a":1} []
              The patch request has 0 operations; between 1 and 10 are allowed
            {"a":1} {"ops":[]}
              The patch request must be an object with an 'operations' array, or such an array
            {"a":1} [{"op":"test","path":"/a","value":1}]
              Operation 0 of the patch request: 'test' is not one of add, set, replace, remove, incr, move
            {"a":1} [{"op":"add","path":"a","value":1}]
              Operation 0 of the patch request: path 'a' must start with '/'
            {"a":1} [{"op":"add","path":"/","value":1}]
              Operation 0 of the patch request: path '/' has an empty segment
            {"a":1} [{"op":"add","path":"/a"}]
              Operation 0 of the patch request: 'value' is missing
            {"a":1} [{"op":"add","path":"/a/b","value":1}]
              Operation 0 of the patch request: path '/a/b': its parent is a number
            {"a":1} [{"op":"set","path":"/b/c","value":1}]
              For Operation(1): Set Operation can only create a child object of an existing node(array or object) and cannot create path recursively, no path found beyond: 'b'. Learn more: https://aka.ms/cosmosdbpatchdocs
            {"a":[]} [{"op":"add","path":"/a/1","value":1}]
              Operation 0 of the patch request: path '/a/1': '1' is not an index of the array
            {"a":[]} [{"op":"add","path":"/a/01","value":1}]
              Operation 0 of the patch request: path '/a/01': '01' is not an index of the array
            {"a":1} [{"op":"replace","path":"/b","value":1}]
              Operation 0 of the patch request: there is nothing at path '/b'
            {"a":1} [{"op":"remove","path":"/b"}]
              Operation 0 of the patch request: there is no property 'b' to remove
            {"a":[]} [{"op":"remove","path":"/a/-"}]
              Operation 0 of the patch request: there is no element '-' to remove
            {"a":"x"} [{"op":"incr","path":"/a","value":1}]
              Operation 0 of the patch request: cannot increment a string at '/a'
            {"a":1} [{"op":"incr","path":"/a","value":"1"}]
              Operation 0 of the patch request: cannot increment by a string
            {"a":1e308} [{"op":"incr","path":"/a","value":1e308}]
              Operation 0 of the patch request: the sum is out of range
            {"a":{"b":{}}} [{"op":"move","from":"/a","path":"/a/b"}]
              Operation 0 of the patch request: '/a' cannot be moved into itself
            {"a":1} [{"op":"move","from":"/b","path":"/c"}]
              Operation 0 of the patch request: there is no property 'b' to remove
            {"a":1} {"condition":"from c where","operations":[{"op":"remove","path":"/a"}]}
              The condition of the patch request is invalid: SC1002 at 12..12: Syntax error, unexpected end-of-file.
        "#]],
    );
}

#[test]
fn identity_and_key_are_out_of_reach() {
    let definition = PartitionKeyDefinition::hash(["/tenant/id"]).unwrap();
    let refused = |path: &str| {
        let operation = format!(r#"[{{"op":"set","path":"{path}","value":1}}]"#);
        let patch =
            Patch::parse(&json::parse(operation.as_bytes()).unwrap(), &Limits::default()).unwrap();
        patch.check_targets(&definition).is_err()
    };
    assert!(
        ["/id", "/_ts", "/_etag", "/tenant", "/tenant/id", "/tenant/id/x"].into_iter().all(refused)
    );
    assert!(!["/ident", "/tenant/name", "/ids/id"].into_iter().any(refused));
}
