//! Published hashes, boundaries and scaling examples, against ours.
//!
//! The files live outside the repository. Without them each test reports in one line what
//! it skipped; in CI it fails instead.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop at the first surprise too")]

use model::epk::Epk;
use model::json::{self, Value};
use model::limits::{Limits, Provisioned};
use model::partition_key::{
    HashVersion, KeyComponent, KeyKind, KeyPath, PartitionKey, PartitionKeyDefinition,
};

const FOLDER: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/conformance/partitioning");

/// The text of a shared file; `None` if it is absent and need not be there.
fn shared(name: &str) -> Option<String> {
    let path = format!("{FOLDER}/{name}");
    let text = std::fs::read_to_string(&path).ok();
    let required = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(text.is_some() || !required, "{path} is required in CI");
    text
}

fn shared_json(name: &str) -> Option<Value> {
    shared(name).map(|text| json::parse(text.as_bytes()).expect("shared files are JSON"))
}

fn definition(kind: KeyKind, version: HashVersion, levels: usize) -> PartitionKeyDefinition {
    let paths = (0..levels).map(|level| KeyPath::parse(&format!("/level{level}")).unwrap());
    PartitionKeyDefinition::new(paths.collect(), kind, version).unwrap()
}

fn field<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).unwrap_or_else(|| panic!("{value} has no {name}"))
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    field(value, name).as_str().unwrap_or_else(|| panic!("{name} of {value} is not a string"))
}

fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    field(value, name).as_array().unwrap_or_else(|| panic!("{name} of {value} is not an array"))
}

/// A component as `epk_vectors.json` writes it.
fn component(input: &Value) -> KeyComponent {
    match text(input, "t") {
        "undefined" => KeyComponent::Undefined,
        "null" => KeyComponent::Null,
        "bool" => KeyComponent::Bool(field(input, "v").as_bool().unwrap()),
        "number" => KeyComponent::Number(field(input, "v").as_number().unwrap().as_f64()),
        "string" => KeyComponent::String(text(input, "v").to_owned()),
        other => panic!("unknown type {other}"),
    }
}

fn epk(definition: &PartitionKeyDefinition, key: &PartitionKey) -> String {
    definition.epk(key).unwrap().to_string()
}

#[test]
fn hash_vectors() {
    let Some(vectors) = shared_json("epk_vectors.json") else {
        println!("left out: epk_vectors.json is not there");
        return;
    };
    for (name, version) in [("hash_v2", HashVersion::V2), ("hash_v1", HashVersion::V1)] {
        let hash = definition(KeyKind::Hash, version, 1);
        let range = definition(KeyKind::Range, version, 1);
        let (mut agreed, mut disputed) = (0, 0);
        for vector in items(&vectors, name) {
            let key: PartitionKey = [component(field(vector, "input"))].into_iter().collect();
            assert_eq!(epk(&hash, &key), text(vector, "epk"), "{vector}");
            assert_eq!(epk(&range, &key), text(vector, "epk"), "{vector}");
            if vector.get("disagree").is_some() { disputed += 1 } else { agreed += 1 }
        }
        println!("{name}: {agreed} of {agreed} undisputed vectors hold");
        println!("{name}: {disputed} disputed ones apart, of which we give the reference's value");
        assert!(agreed > 250, "the file has lost its vectors");
    }
}

/// Where clients dispute a version 1 hash, we side with the reference; this pins
/// which client agrees how often, so that a change of sides is noticed.
#[test]
fn disputed_vectors() {
    let Some(vectors) = shared_json("epk_vectors.json") else {
        println!("left out: the disputed part of epk_vectors.json");
        return;
    };
    let hash = definition(KeyKind::Hash, HashVersion::V1, 1);
    let disputed: Vec<_> =
        items(&vectors, "hash_v1").iter().filter_map(|v| Some((v, v.get("disagree")?))).collect();
    let with = |client: &str| {
        let agrees = |(vector, sides): &&(&Value, &Value)| {
            let key: PartitionKey = [component(field(vector, "input"))].into_iter().collect();
            sides.get(client).and_then(Value::as_str) == Some(epk(&hash, &key).as_str())
        };
        disputed.iter().filter(agrees).count()
    };
    let (python, javascript) = (with("python"), with("js"));
    println!(
        "{} disputed: we agree with Python in {python}, with JavaScript in {javascript}",
        disputed.len()
    );
    assert_eq!((disputed.len(), python, javascript), (43, 13, 28));
}

#[test]
fn hierarchical_vectors() {
    let Some(vectors) = shared_json("epk_vectors.json") else {
        println!("left out: the hierarchical part of epk_vectors.json");
        return;
    };
    let (mut full, mut prefixes) = (0, 0);
    for vector in items(&vectors, "multihash") {
        let key: PartitionKey = items(vector, "input").iter().map(component).collect();
        let exact = definition(KeyKind::MultiHash, HashVersion::V2, key.components().len());
        assert_eq!(epk(&exact, &key), text(vector, "epk"), "{vector}");
        full += 1;
        if let Some(expected) = vector.get("prefix_range_for_3_paths") {
            let three = definition(KeyKind::MultiHash, HashVersion::V2, 3);
            let range = three.prefix_range(&key).unwrap();
            assert_eq!(range.min.to_string(), text(expected, "min"), "{vector}");
            assert_eq!(range.max.to_string(), text(expected, "max"), "{vector}");
            prefixes += 1;
        }
    }
    println!("hierarchical: {full} keys and {prefixes} prefix ranges hold");
    assert!(full > 100 && prefixes > 40, "the file has lost its vectors");
}

/// A component as the Rust client's conformance file writes it.
fn typed_component(value: &Value) -> KeyComponent {
    match text(value, "type") {
        "undefined" => KeyComponent::Undefined,
        "null" => KeyComponent::Null,
        "bool" => KeyComponent::Bool(field(value, "value").as_bool().unwrap()),
        "number" => KeyComponent::Number(text(value, "value").parse().unwrap()),
        "string" => KeyComponent::String(text(value, "value").to_owned()),
        "repeated_string" => {
            let count = field(value, "count").as_number().and_then(|n| n.as_i64()).unwrap();
            KeyComponent::String(text(value, "value").repeat(usize::try_from(count).unwrap()))
        }
        other => panic!("unknown type {other}"),
    }
}

#[test]
fn production_values() {
    let Some(file) = shared_json("EffectivePartitionKeyConformance.json") else {
        println!("left out: EffectivePartitionKeyConformance.json is not there");
        return;
    };
    let cases = items(&file, "cases");
    for case in cases {
        let kind = if text(case, "kind") == "hash" { KeyKind::Hash } else { KeyKind::MultiHash };
        let version = match field(case, "version").as_number().and_then(|n| n.as_i64()) {
            Some(1) => HashVersion::V1,
            _ => HashVersion::V2,
        };
        let key: PartitionKey = items(case, "values").iter().map(typed_component).collect();
        let definition = definition(kind, version, key.components().len());
        assert_eq!(epk(&definition, &key), text(case, "expected_epk"), "{}", text(case, "id"));
    }
    println!("{} production values hold", cases.len());
    assert_eq!(cases.len(), 42);
}

#[test]
fn published_boundaries() {
    let Some(file) = shared_json("boundaries.json") else {
        println!("left out: boundaries.json is not there");
        return;
    };
    let mut checked = 0;
    for (name, version) in [("v1", HashVersion::V1), ("v2", HashVersion::V2)] {
        let definition = definition(KeyKind::Hash, version, 1);
        for (ranges, bounds) in field(&file, name).as_object().unwrap().iter() {
            let ranges = definition.boundaries(ranges.parse().unwrap());
            let ours: Vec<String> = ranges.iter().skip(1).map(|r| r.min.to_string()).collect();
            let theirs: Vec<&str> =
                bounds.as_array().unwrap().iter().map(|bound| bound.as_str().unwrap()).collect();
            assert_eq!(ours, theirs, "{name}, {} ranges", ranges.len());
            checked += theirs.len();
        }
        for observed in items(&file, &format!("{name}_publicly_observed")) {
            let observed = Epk::from_hex(observed.as_str().unwrap()).unwrap();
            let found = (2..=5).any(|n| definition.boundaries(n).iter().any(|r| r.min == observed));
            assert!(found, "{observed} was seen in the wild");
        }
    }
    for (value, hashes) in field(&file, "article_keys").as_object().unwrap().iter() {
        for (name, expected) in hashes.as_object().unwrap().iter() {
            let version = if name == "v1" { HashVersion::V1 } else { HashVersion::V2 };
            let key = PartitionKey::new([value]);
            let ours = epk(&definition(KeyKind::Hash, version, 1), &key);
            assert_eq!(Some(ours.as_str()), expected.as_str(), "{value}");
            checked += 1;
        }
    }
    println!("{checked} boundaries and article keys hold");
}

/// Splits a line of CSV whose quoted fields contain no quotes.
fn csv_fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

/// The first number in a text.
fn leading_number(text: &str) -> Option<u32> {
    let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    digits[..end].parse().ok()
}

#[test]
fn scaling_cases() {
    let Some(file) = shared("scaling_cases.csv") else {
        println!("left out: scaling_cases.csv is not there");
        return;
    };
    let limits = Limits::default();
    let limits_2018 = Limits { partition_throughput_at_creation: 10_000, ..Limits::default() };
    let mut checked = Vec::new();
    for line in file.lines().skip(1) {
        let fields = csv_fields(line);
        let [case, _, _, action, expected, ..] = fields.as_slice() else { panic!("{line}") };
        let rate = leading_number(action);
        let ours = match (action.split_once(' '), rate) {
            (Some(("create", rest)), Some(rate)) if rest.starts_with("manual") => {
                limits.ranges_at_creation(Provisioned::Manual(rate))
            }
            (Some(("create", rest)), Some(rate)) if rest.starts_with("autoscale") => {
                limits.ranges_at_creation(Provisioned::Autoscale(rate))
            }
            (Some(("create", rest)), Some(rate)) if rest.starts_with(char::is_numeric) => {
                limits_2018.ranges_at_creation(Provisioned::Manual(rate))
            }
            (Some(("scale", _)), Some(rate)) => limits.ranges_for_scaling(rate),
            // Redistribution, merges and refusals are not covered by this formula.
            _ => continue,
        };
        assert_eq!(Some(ours), leading_number(expected), "{line}");
        checked.push(case.clone());
    }
    println!("scaling cases that hold: {}", checked.join(" "));
    assert_eq!(checked.len(), 10, "{checked:?}");
}
