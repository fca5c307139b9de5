//! The scripts that append to lists and read them.

use serde_json::{Value, json};

/// Does the steps that it is given, one after another, and returns the lists that it read.
const PROCEDURE: &str = r#"
function transact(steps, fails) {
    var found = [];
    function link(id) { return __.getAltLink() + "/docs/" + id; }
    function read(id, then) {
        var accepted = __.readDocument(link(id), function (error, item) {
            if (error && error.number !== 404) throw error;
            then(error ? undefined : item);
        });
        if (!accepted) throw new Error("not accepted");
    }
    function write(item, step, at) {
        function written(error) { if (error) throw error; next(at + 1); }
        if (item) {
            item.list.push(step.append);
            __.replaceDocument(link(step.id), item, written);
        } else {
            __.createDocument(__.getSelfLink(), { id: step.id, pk: step.pk, list: [step.append] }, written);
        }
    }
    function readAll(step, at) {
        __.queryDocuments(__.getSelfLink(), "SELECT c.id, c.list FROM c", function (error, items) {
            if (error) throw error;
            step.all.forEach(function (id) {
                var item = items.filter(function (item) { return item.id === id; })[0];
                found.push(item ? item.list : []);
            });
            next(at + 1);
        });
    }
    function next(at) {
        if (at === steps.length) {
            if (fails) throw new Error("on purpose");
            __.response.setBody(found);
            return;
        }
        var step = steps[at];
        if (step.all) { readAll(step, at); return; }
        read(step.id, function (item) {
            if ("append" in step) { write(item, step, at); return; }
            found.push(item ? item.list : []);
            next(at + 1);
        });
    }
    next(0);
}"#;

/// Appends to the list that is written.
const BEFORE: &str = r#"
function before() {
    var request = getContext().getRequest(), item = request.getBody();
    __.readDocument(__.getAltLink() + "/docs/" + item.id, function (error, old) {
        if (error && error.number !== 404) throw error;
        item.list = (error ? [] : old.list).concat(item.append);
        request.setBody(item);
    });
}"#;

/// Appends to a second list, and answers with both.
const AFTER: &str = r#"
function after() {
    var response = getContext().getResponse(), item = response.getBody(), second = item.second;
    __.readDocument(__.getAltLink() + "/docs/" + second.id, function (error, other) {
        if (error && error.number !== 404) throw error;
        other = other || { id: second.id, pk: item.pk, list: [] };
        other.list.push(second.append);
        __.upsertDocument(__.getSelfLink(), other, function (error) {
            if (error) throw error;
            if (second.fails) throw new Error("on purpose");
            response.setBody([item.list, other.list]);
        });
    });
}"#;

/// Where each is created, and its definition.
pub(crate) fn all() -> [(&'static str, Value); 3] {
    let trigger = |id, body, kind| json!({"id": id, "body": body, "triggerType": kind, "triggerOperation": "All"});
    [
        ("sprocs", json!({"id": "transact", "body": PROCEDURE})),
        ("triggers", trigger("before", BEFORE, "Pre")),
        ("triggers", trigger("after", AFTER, "Post")),
    ]
}
