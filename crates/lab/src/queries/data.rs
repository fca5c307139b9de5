//! Random containers: few properties with values of every type, so that queries find
//! something, and awkward values.

use model::json::{Object, Value};

use super::dice::Dice;
use super::lab;

/// A container and what is in it.
#[derive(Clone, Debug)]
pub struct DataSet {
    pub definition: Object,
    /// Texts of items; later ones replace earlier ones of the same id and key.
    pub items: Vec<String>,
    pub partitions: usize,
    /// Items after which a page ends.
    pub page_items_max: u64,
}

/// Logical partitions of a container, at most.
const KEYS_MAX: usize = 8;

/// Items of a small container: there are empty ones, too.
const FEW: usize = 100;

/// Numbers that are often handled wrongly. They are never summed, as the result would
/// depend on the order.
const BIG: &[&str] = &[
    "9007199254740992",
    "9007199254740993",
    "-9007199254740993",
    "12345678901234567890",
    "1e300",
    "-1e300",
    "5e-324",
    "-0",
    "0",
    "0.1",
    "1E2",
];

const WORDS: &[&str] =
    &["", "a", "A", "ab", "abc", "ABC", "b", "ba", "é", "éa", "\u{1F600}", "%", "a_b", "\\u0000"];

const COMPOSITES: &[&[(&str, &str)]] = &[
    &[("/a", "ascending"), ("/b", "ascending")],
    &[("/a", "ascending"), ("/b", "descending")],
    &[("/s", "descending"), ("/a", "ascending")],
    &[("/s", "ascending"), ("/num", "ascending"), ("/n/x", "descending")],
    &[("/num", "ascending"), ("/s", "ascending")],
];

impl DataSet {
    /// One with at most `items_max` items.
    #[must_use]
    pub fn random(dice: &Dice, items_max: usize) -> DataSet {
        let mut definition = lab::definition(&key_definition(dice));
        if let Some(policy) = policy(dice) {
            definition.insert("indexingPolicy", policy);
        }
        if dice.once_in(5) {
            let computed = r#"{"name":"low","query":"SELECT VALUE LOWER(c.s) FROM c"}"#;
            definition.insert("computedProperties", vec![Value::from(lab::definition(computed))]);
        }
        let keys = 1 + dice.below(KEYS_MAX);
        let is_large = items_max > FEW;
        let least = if is_large { items_max / 2 } else { 1 };
        let count = least + dice.below(items_max - least + 1);
        let count = if dice.once_in(12) && !is_large { 0 } else { count };
        let items =
            (0..count).map(|_| item(dice, &dice.below(count * 2).to_string(), keys)).collect();
        let partitions = *dice.pick(&[1, 2, 3, 5, 7]);
        let page_items_max = *dice.pick(&[1, 5, 20, 50_000, 50_000, 50_000]);
        DataSet { definition, items, partitions, page_items_max }
    }

    /// Another indexing policy for the same items.
    pub(super) fn change_policy(&mut self, dice: &Dice) {
        let policy = policy(dice).unwrap_or_else(|| lab::definition("{}").into());
        self.definition.insert("indexingPolicy", policy);
    }

    /// Smaller containers, which may show the same: half of the items, one item less, one
    /// property less in each.
    pub(super) fn smaller(&self) -> Vec<DataSet> {
        let with = |items: Vec<String>| DataSet { items, ..self.clone() };
        let mut smaller = Vec::new();
        if self.partitions > 1 {
            smaller.push(DataSet { partitions: 1, ..self.clone() });
        }
        if self.items.len() > 3 {
            let (left, right) = self.items.split_at(self.items.len() / 2);
            smaller.extend([with(left.to_vec()), with(right.to_vec())]);
        }
        for at in 0..self.items.len() {
            let mut items = self.items.clone();
            items.remove(at);
            smaller.push(with(items));
        }
        for name in ["items", "tags", "n", "big", "num", "s", "b", "a"] {
            let items: Vec<String> = self.items.iter().map(|item| without(item, name)).collect();
            if items != self.items {
                smaller.push(with(items));
            }
        }
        smaller
    }
}

fn key_definition(dice: &Dice) -> String {
    let key = match dice.below(4) {
        0 => r#"{"paths":["/pk","/t"],"kind":"MultiHash","version":2}"#,
        1 => r#"{"paths":["/pk"],"kind":"Hash"}"#,
        _ => r#"{"paths":["/pk"],"kind":"Hash","version":2}"#,
    };
    format!(r#"{{"partitionKey":{key}}}"#)
}

/// `None` is the usual one: everything is indexed.
fn policy(dice: &Dice) -> Option<Value> {
    let paths = |paths: &[&str]| -> Value {
        paths.iter().map(|path| Value::from(Object::from_iter([("path", *path)]))).collect()
    };
    let (included, excluded): (&[&str], &[&str]) = match dice.below(6) {
        0 => return None,
        1 => (&["/*"], &["/b/?", "/n/*"]),
        2 => (&["/*", "/a/?", "/n/x/?"], &["/num/?"]),
        3 => (&["/a/?", "/s/?", "/tags/[]/?", "/pk/?"], &["/*"]),
        4 => (&["/n/*", "/items/[]/k/?", "/a/*"], &["/*", "/n/y/?"]),
        _ => (&["/*"], &[]),
    };
    if dice.once_in(12) {
        return Some(lab::definition(r#"{"indexingMode":"none","automatic":false}"#).into());
    }
    let mut policy = Object::new();
    policy.insert("includedPaths", paths(included));
    policy.insert("excludedPaths", paths(excluded));
    let composites: Value = COMPOSITES
        .iter()
        .filter(|_| dice.once_in(2))
        .map(|parts| {
            let part = |(path, order): &(&str, &str)| {
                Value::from(Object::from_iter([("path", *path), ("order", *order)]))
            };
            parts.iter().map(part).collect::<Value>()
        })
        .collect();
    policy.insert("compositeIndexes", composites);
    Some(policy.into())
}

/// An item like the others, under an id of its own.
pub(super) fn new_item(dice: &Dice, id: &str) -> String {
    item(dice, id, KEYS_MAX)
}

/// Some ids and keys repeat, so some items replace others.
fn item(dice: &Dice, id: &str, keys: usize) -> String {
    let mut item = format!(r#"{{"id":"{id}""#);
    let key = match dice.below(keys + 1) {
        0 => dice.pick(&["", "null", "5", "true"]).to_string(),
        number => format!("\"k{number}\""),
    };
    let mut add = |name: &str, value: String| {
        if !value.is_empty() {
            item.push_str(&format!(r#","{name}":{value}"#));
        }
    };
    add("pk", key);
    add("t", format!("\"t{}\"", dice.below(3)));
    let some = |value: String| if dice.below(4) == 0 { String::new() } else { value };
    add("a", some(any(dice, 0)));
    add("b", some(any(dice, 0)));
    add("s", some(text(dice)));
    add("num", some(small(dice)));
    add("big", some((*dice.pick(BIG)).to_owned()));
    add("n", some(format!(r#"{{"x":{},"y":{}}}"#, any(dice, 1), scalar(dice))));
    add("tags", some(list(dice, scalar)));
    let pair = |dice: &Dice| format!(r#"{{"k":{},"v":{}}}"#, scalar(dice), small(dice));
    add("items", some(list(dice, pair)));
    item + "}"
}

fn list(dice: &Dice, element: impl Fn(&Dice) -> String) -> String {
    let elements: Vec<String> = (0..dice.below(4)).map(|_| element(dice)).collect();
    format!("[{}]", elements.join(","))
}

/// Numbers whose sums are exact in any order.
fn small(dice: &Dice) -> String {
    (*dice.pick(&["-3", "-1", "0", "0.5", "1", "1.0", "2", "2.25", "10"])).to_owned()
}

fn text(dice: &Dice) -> String {
    format!("\"{}\"", word(dice))
}

/// Short words, and long ones with a common prefix longer than an index entry, or than a
/// cursor keeps.
pub(super) fn word(dice: &Dice) -> String {
    if dice.below(3) > 0 {
        return (*dice.pick(WORDS)).to_owned();
    }
    let (letter, width) = *dice.pick(&[("p", 1), ("é", 2)]);
    let common = letter.repeat(*dice.pick(&[126, 127, 128, 129, 200, 600]) / width);
    common + *dice.pick(&["", "a", "b", "c", "é"])
}

pub(super) fn scalar(dice: &Dice) -> String {
    match dice.below(8) {
        0 => "null".to_owned(),
        1 => (*dice.pick(&["true", "false"])).to_owned(),
        2..=4 => small(dice),
        _ => text(dice),
    }
}

/// A value of any type.
pub(super) fn any(dice: &Dice, depth: usize) -> String {
    match dice.below(10) {
        0 if depth < 2 => list(dice, |dice| any(dice, depth + 1)),
        1 if depth < 2 => format!(r#"{{"x":{}}}"#, any(dice, depth + 1)),
        2 => (*dice.pick(BIG)).to_owned(),
        _ => scalar(dice),
    }
}

fn without(item: &str, name: &str) -> String {
    let mut object = lab::definition(item);
    match object.remove(name) {
        Some(_) => Value::from(object).to_string(),
        None => item.to_owned(),
    }
}
