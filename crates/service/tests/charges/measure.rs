//! How each published charge is asked of our service.
//!
//! Where the source does not show its item we make one up from its description, and the
//! table says which. Nothing here is tuned to the result.

use model::charge::{Charge, Tariff};

use crate::anchors::Anchor;
use crate::lab::{Lab, item, item_with};
use crate::queries::{self, Entry, Labs};

pub(crate) const KB: usize = 1024;
const UNINDEXED: &str = r#","indexingPolicy":{"indexingMode":"none","automatic":false}"#;

pub(crate) enum Measured {
    Charge { published: f64, ours: f64, of: String },
    Not(&'static str),
}

/// A row by its parts: most have one.
pub(crate) fn measure(anchor: &Anchor, labs: &Labs) -> Vec<Measured> {
    if anchor.is_query() {
        return queries::measure(anchor, labs);
    }
    vec![measure_operation(anchor)]
}

fn measure_operation(anchor: &Anchor) -> Measured {
    let Some((charge, of)) = charge_of(anchor) else {
        return Measured::Not(reason(&anchor.id));
    };
    // The one rule that is no number: a replace costs two creates.
    let published = anchor.published().unwrap_or_else(|| {
        assert_eq!(anchor.charge, "x2 of create");
        2.0 * Lab::with_definition(1, "/pk", UNINDEXED).create(&item(KB)).request_units()
    });
    Measured::Charge { published, ours: charge.request_units(), of }
}

fn charge_of(anchor: &Anchor) -> Option<(Charge, String)> {
    match (anchor.operation.as_str(), anchor.bytes()) {
        ("point read", Some(bytes)) => Some((read(bytes), format!("read {} KB", bytes / KB))),
        ("create", Some(bytes)) if anchor.calibrates_2026() => {
            Some((create(bytes), format!("create {} KB", bytes / KB)))
        }
        _ => special(&anchor.id).map(|(charge, of)| (charge, of.to_owned())),
    }
}

fn special(id: &str) -> Option<(Charge, &'static str)> {
    Some(match id {
        "W13" => (Lab::new(1).create(&ten_terms()), "create 1 KB, 10 terms"),
        "W14" => (replace_two_terms(), "replace 1 KB, 2 terms changed"),
        "W15" => (patch_two_terms(), "patch 1 KB, 2 terms changed"),
        "W16" => (delete(&ten_terms()), "delete 1 KB, 10 terms"),
        "W17" | "W19" => (create_unindexed(KB), "create 1 KB, not indexed"),
        "W18" => (replace_unindexed(), "replace 1 KB, not indexed"),
        "W20" => (create_unindexed(100 * KB), "create 100 KB, not indexed"),
        "W21" => (create(KB), "create 1 KB, 3 properties"),
        "W22" => (replace_one_term(), "replace 1 KB, its string changed"),
        "W23" => (delete(&item(KB)), "delete 1 KB, 3 properties"),
        "W24" => (create_unindexed(4 * KB), "create 4 KB, not indexed"),
        "W25" => (create_unindexed(64 * KB), "create 64 KB, not indexed"),
        "W26" => (Lab::new(1).create(&food()), "create a food, 28 terms, made up"),
        "W27" => (user(), "create {id, username}, keyed by id"),
        "W28" => (post("post", Entry::CONTENT_BYTES), "create a post, made up"),
        "W29" => (post("comment", Entry::CONTENT_BYTES), "create a comment, made up"),
        "W30" => (post("like", 0), "create a like, made up"),
        "W33" => (one_of_batch(), "one of two creates, made up"),
        "T1" => (Tariff::default().rejection(), "the tariff alone: nothing is rejected yet"),
        "T2" => (
            Tariff::default().by_quorum(Tariff::default().rejection()),
            "the tariff alone: nothing is rejected yet",
        ),
        "T3" => (refused(), "a refused create (409)"),
        _ => return None,
    })
}

/// Why a row cannot be measured.
fn reason(id: &str) -> &'static str {
    match id {
        "R14" => "not yet measured: consistency levels",
        "W31" | "W32" => "not yet measured: stored procedures",
        "W34" | "W35" | "W36" => "cannot be measured: the source does not show its item",
        "W37" | "S1" => "cannot be measured: a figure for planning",
        "W38" | "W39" | "W40" => "not offered: keys of the customer's own",
        "W41" => "not offered: copying containers",
        other => panic!("{other} is new and has neither a measurement nor a reason"),
    }
}

fn read(bytes: usize) -> Charge {
    let lab = Lab::new(1);
    lab.create(&item(bytes));
    lab.read("item")
}

fn create(bytes: usize) -> Charge {
    Lab::new(1).create(&item(bytes))
}

fn create_unindexed(bytes: usize) -> Charge {
    Lab::with_definition(1, "/pk", UNINDEXED).create(&item(bytes))
}

fn delete(body: &str) -> Charge {
    let lab = Lab::new(1);
    lab.create(body);
    lab.delete("item")
}

/// Nine numbers and the string.
fn ten_terms() -> String {
    let members: String = (0..9).map(|number| format!(r#""p{number}":{number},"#)).collect();
    item_with(&members, KB)
}

fn replace_unindexed() -> Charge {
    let lab = Lab::with_definition(1, "/pk", UNINDEXED);
    lab.create(&item(KB));
    lab.replace("item", &item(KB))
}

fn replace_one_term() -> Charge {
    let lab = Lab::new(1);
    lab.create(&item(KB));
    lab.replace("item", &item(KB).replace("ttt", "uuu"))
}

fn replace_two_terms() -> Charge {
    let lab = Lab::new(1);
    lab.create(&item_with(r#""a":1,"b":1,"#, KB));
    lab.replace("item", &item_with(r#""a":2,"b":2,"#, KB))
}

fn patch_two_terms() -> Charge {
    let lab = Lab::new(1);
    lab.create(&item_with(r#""a":1,"b":1,"#, KB));
    let set = |path| format!(r#"{{"op":"set","path":"{path}","value":2}}"#);
    lab.patch("item", &format!("[{},{}]", set("/a"), set("/b")))
}

fn refused() -> Charge {
    let lab = Lab::new(1);
    lab.create(&item(KB));
    lab.create(&item(KB))
}

fn user() -> Charge {
    let lab = Lab::with_definition(1, "/id", "");
    lab.create(r#"{"id":"4c0a7d1e-8d63-4f4a-a2f8-3a1b6f0e9c21","username":"ada.lovelace"}"#)
}

/// An entry of a blog, as a public modelling example describes it.
fn post(kind: &'static str, content: usize) -> Charge {
    let entry = Entry { kind, number: 0, post: 0, user: 0, named: false, content };
    Lab::with_definition(1, "/postId", "").create(&entry.body())
}

fn one_of_batch() -> Charge {
    let body = |id| format!(r#"{{"id":"{id}","pk":"key","name":"thing","value":1}}"#);
    let (_, parts) = Lab::new(1).batch(&[&body("a"), &body("b")]);
    *parts.first().expect("a batch of two has a first")
}

/// About a kilobyte with three tags, three nutrients and a serving.
fn food() -> String {
    let tag = |name: &str| format!(r#"{{"name":"{name}"}}"#);
    let nutrient = |id: u32, name: &str, value: f64| {
        format!(r#"{{"id":"{id}","description":"{name}","nutritionValue":{value},"units":"g"}}"#)
    };
    let tags = [tag("cereals"), tag("breakfast"), tag("ready to eat")].join(",");
    let nutrients =
        [nutrient(203, "protein", 6.5), nutrient(204, "fat", 0.8), nutrient(291, "fibre", 0.5)];
    let members = format!(
        r#""description":"cereals, crisp","foodGroup":"breakfast cereals","version":1,"manufacturer":"a maker","isFromSurvey":false,"tags":[{tags}],"nutrients":[{}],"servings":[{{"amount":1,"description":"cup","weightInGrams":29}}],"#,
        nutrients.join(",")
    );
    item_with(&members, KB)
}
