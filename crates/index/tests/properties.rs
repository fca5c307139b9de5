//! What must hold for all values, items and policies, against oracles that are
//! simpler than the code: the order of JSON values, and a list of paths that is
//! searched from end to end.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::Bound;

use index::{Decoded, EntryRange, IndexPlan, IndexValue, IndexedPath, Next};
use model::json::{self, DistinctHash, JsonKind, Number, Object, Value};
use model::policy::{IndexPath, IndexingPolicy, PathEnd, PolicyPathStep};
use proptest::prelude::*;

const SEED: u64 = 0x5EED;
/// Bytes of text that an entry keeps.
const KEPT: usize = 128;

fn policy(text: &str) -> IndexingPolicy {
    let value = json::parse(text.as_bytes()).expect("test policy is JSON");
    IndexingPolicy::parse(&value).expect("test policy is valid")
}

fn plan(text: &str) -> IndexPlan {
    IndexPlan::compile(&policy(text), SEED)
}

fn property(name: &str) -> PolicyPathStep {
    PolicyPathStep::Property(name.to_owned())
}

fn path_a() -> IndexedPath {
    plan("{}").path(&[property("a")]).expect("the default policy indexes all")
}

fn entries(plan: &IndexPlan, item: &Value) -> Vec<Vec<u8>> {
    let text = item.to_string();
    let mut entries = Vec::new();
    let item = json::parse_raw(text.as_bytes()).expect("written values are JSON");
    plan.entries(&[item], &mut |entry| entries.push(entry.to_vec()));
    entries
}

fn item(members: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    members.into_iter().collect::<Object>().into()
}

fn number() -> impl Strategy<Value = Value> {
    let edges = ["0", "-0", "-0.0", "1.0", "1e0", "5e-324", "-5e-324", "1e308", "-1e308"];
    let edge = prop::sample::select(edges.to_vec())
        .prop_map(|text| json::parse(text.as_bytes()).expect("a number"));
    let computed = prop_oneof![
        (-20_i32..20).prop_map(f64::from),
        any::<f64>().prop_filter("JSON numbers are finite", |number| number.is_finite()),
    ];
    let computed = computed.prop_map(|number| Number::from_f64(number).expect("finite"));
    prop_oneof![edge, computed.prop_map(Value::Number)]
}

/// Short strings over few characters, and long ones around the cut.
fn string() -> impl Strategy<Value = Value> {
    let short = "[\u{0}ab\u{7f}é\u{ffff}\u{10ffff}]{0,4}";
    let long = ("[ab]", KEPT - 3..KEPT + 3, "[ab\u{0}é😀]{0,3}")
        .prop_map(|(head, length, tail)| head + &"x".repeat(length) + &tail);
    prop_oneof![3 => short, 2 => long].prop_map(Value::String)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::Bool),
        3 => number(),
        4 => string(),
    ]
}

/// Scalars, arrays and objects, integers beyond doubles among them.
fn any_value() -> impl Strategy<Value = Value> {
    let wide = (9_007_199_254_740_990_i64..9_007_199_254_740_996).prop_map(Value::from);
    let tree = prop_oneof![6 => scalar(), 1 => wide].prop_recursive(3, 8, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![list.prop_map(Value::Array), members(inner).prop_map(Value::Object)]
    });
    prop_oneof![2 => scalar(), 1 => tree]
}

/// The order of the language: arrays, and objects, among themselves by their hashes.
fn in_order(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => {
            DistinctHash::of(a).cmp(&DistinctHash::of(b))
        }
        _ => a.cmp(b),
    }
}

fn is_cut(value: &Value, kept: usize) -> bool {
    value.as_str().is_some_and(|text| text.len() > kept)
}

fn contains(range: &EntryRange, entry: &[u8]) -> bool {
    range.start.as_slice() <= entry && entry < range.end.as_slice()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// Byte order is value order, whatever follows the value in the key.
    #[test]
    fn bytes_order_as_values(
        a in any_value(),
        b in any_value(),
        tail_a in any::<[u8; 8]>(),
        tail_b in any::<[u8; 8]>(),
    ) {
        let key = |value: &Value, tail: [u8; 8]| {
            [path_a().equal(value).start.as_slice(), tail.as_slice()].concat()
        };
        let (key_a, key_b) = (key(&a, tail_a), key(&b, tail_b));
        if in_order(&a, &b) == Ordering::Equal {
            prop_assert_eq!(key_a.cmp(&key_b), tail_a.cmp(&tail_b));
        } else if is_cut(&a, KEPT) && is_cut(&b, KEPT) {
            // Two truncated strings may share their bytes; never vice versa.
            let (key_a, key_b) = (key(&a, [0; 8]), key(&b, [0; 8]));
            prop_assert!(key_a == key_b || key_a.cmp(&key_b) == a.cmp(&b));
        } else {
            prop_assert_eq!(key_a.cmp(&key_b), in_order(&a, &b));
        }
    }

    #[test]
    fn values_can_be_read_back(value in any_value(), tail in any::<[u8; 8]>()) {
        let key = [path_a().equal(&value).start.as_slice(), tail.as_slice()].concat();
        let mut rest = &key[8..];
        let read = Decoded::read(&mut rest).expect("just written");
        prop_assert_eq!(rest, tail);
        match value.as_str() {
            Some(text) if text.len() > KEPT => {
                prop_assert_eq!(read, Decoded::Cut(text.as_bytes()[..KEPT].to_vec()));
            }
            _ => prop_assert_eq!(&read, &Decoded::Whole(owned(&value))),
        }
    }

    /// Untrusted bytes are refused or read, without a panic.
    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = Decoded::read(&mut bytes.as_slice());
        let empty = json::parse_raw(b"{}").expect("an object");
        let _ = plan("{}").explain(empty, &bytes);
    }

    /// A composite entry orders like the tuple of its values, each in its direction.
    #[test]
    fn composites_order_as_tuples(
        descending in any::<[bool; 3]>(),
        a in prop::array::uniform3(prop::option::of(any_value())),
        b in prop::array::uniform3(prop::option::of(any_value())),
        common in 0_usize..3,
    ) {
        let order = |n: usize| if descending[n] { "descending" } else { "ascending" };
        let plan = plan(&format!(
            r#"{{"excludedPaths":[{{"path":"/*"}}],"compositeIndexes":[[
                {{"path":"/a","order":"{}"}},{{"path":"/b","order":"{}"}},{{"path":"/c","order":"{}"}}]]}}"#,
            order(0), order(1), order(2),
        ));
        // Equal first values, so that the later ones often decide.
        let b: Vec<_> = a.iter().take(common).chain(b.iter().skip(common)).cloned().collect();
        let entry = |values: &[Option<Value>]| {
            let members = ["a", "b", "c"].into_iter().zip(values.iter().cloned());
            let members = members.filter_map(|(name, value)| Some((name, value?)));
            entries(&plan, &item(members)).pop().expect("a composite entry")
        };
        // An absent value is `None`, which is below all others.
        let mut expected = Ordering::Equal;
        for n in 0..3 {
            let direction = |order: Ordering| if descending[n] { order.reverse() } else { order };
            let own = match (&a[n], &b[n]) {
                (Some(a), Some(b)) => in_order(a, b),
                (a, b) => a.is_some().cmp(&b.is_some()),
            };
            expected = expected.then(direction(own));
            let cut = |side: &Option<Value>| side.as_ref().is_some_and(|value| is_cut(value, KEPT));
            if expected != Ordering::Equal && cut(&a[n]) && cut(&b[n]) {
                return Ok(());
            }
        }
        // One that begins descending is read backwards.
        let wanted: Vec<_> =
            ["a", "b", "c"].into_iter().zip(descending).map(|(name, down)| (vec![name], down)).collect();
        let index = plan.composite_index(&wanted).expect("the policy has it");
        prop_assert_eq!(index.backwards, descending[0]);
        let order = entry(&a).cmp(&entry(&b));
        prop_assert_eq!(if index.backwards { order.reverse() } else { order }, expected);
        let all = plan.composite_range(index, &[]);
        prop_assert!([&a[..], &b[..]].iter().all(|side| contains(&all, &entry(side))));
        if let Some(first) = a[0].as_ref().filter(|first| index::has_one_entry(first)) {
            // Entries with that first value, and where strings are truncated a few more.
            let range = plan.composite_range(index, &[first]);
            prop_assert!(contains(&range, &entry(&a)));
            let (same, found) = (b[0] == a[0], contains(&range, &entry(&b)));
            let right = if range.exact { found == same } else { found || !same };
            prop_assert!(right);
        }
    }

    /// Entries with a first value and a second one in a range, in both directions.
    #[test]
    fn composites_hold_a_value_and_a_range(
        descending in any::<[bool; 2]>(),
        given in any_value().prop_filter("one entry", index::has_one_entry),
        other in prop::option::of(any_value()),
        value in prop::option::of(any_value()),
        (first, second) in (scalar(), scalar()),
        (lower, upper) in (0..3, 0..3),
    ) {
        let order = |n: usize| if descending[n] { "descending" } else { "ascending" };
        let plan = plan(&format!(
            r#"{{"excludedPaths":[{{"path":"/*"}}],"compositeIndexes":[[
                {{"path":"/a","order":"{}"}},{{"path":"/b","order":"{}"}}]]}}"#,
            order(0), order(1),
        ));
        let index = plan.composite_index(&[(vec!["a"], descending[0]), (vec!["b"], descending[1])]);
        let index = index.expect("the policy has it");
        let entry = |a: &Value| {
            let b = value.clone().map(|value| ("b", value));
            let item = item([("a", a.clone())].into_iter().chain(b));
            entries(&plan, &item).pop().expect("a composite entry")
        };
        let holds = |range: Option<EntryRange>, a: &Value, truth: bool| match range {
            None => !truth,
            Some(range) => {
                let found = contains(&range, &entry(a));
                if range.exact { found == truth } else { found || !truth }
            }
        };
        let other = other.unwrap_or_else(|| given.clone());
        let (lower, upper) = (bound(lower, &first), bound(upper, &second));
        let fits = value.as_ref().is_some_and(|value| between(value, lower, upper));
        let next = |next| plan.composite_next(index, &[&given], next);
        for a in [&given, &other] {
            prop_assert!(holds(next(Next::Between(lower, upper)), a, *a == given && fits));
            prop_assert!(holds(next(Next::Defined), a, *a == given && value.is_some()));
        }
        prop_assert_eq!(plan.composite_next(index, &[&given, &given], Next::Defined), None);
    }

    #[test]
    fn ranges_hold_what_the_predicate_accepts(
        value in any_value(),
        first in any_value().prop_filter("one entry", index::has_one_entry),
        second in any_value().prop_filter("one entry", index::has_one_entry),
        is_same in any::<bool>(),
        lower in 0..3,
        upper in 0..3,
    ) {
        // Equal values, however their integers are spelled.
        let value = if is_same { first.clone() } else { value };
        let entry = &path_a().equal(&value).start;
        let holds = |range: &EntryRange, truth: bool| {
            let found = contains(range, entry);
            if range.exact { found == truth } else { found || !truth }
        };
        prop_assert!(holds(&path_a().equal(&first), value == first));
        let either = path_a().any_of([&first, &second, &first]);
        prop_assert!(either.len() <= 2 && either.is_sorted_by(|a, b| a.start < b.start));
        let found = either.iter().any(|range| contains(range, entry));
        prop_assert!(found || (value != first && value != second));

        let (lower, upper) = (bound(lower, &first), bound(upper, &second));
        let truth = between(&value, lower, upper);
        match path_a().between(lower, upper) {
            Some(range) => prop_assert!(holds(&range, truth)),
            None => prop_assert!(!truth),
        }
        if let (Some(text), Some(prefix)) = (value.as_str(), first.as_str()) {
            let range = path_a().starts_with(prefix);
            prop_assert!(holds(&range, text.starts_with(prefix)));
            // A prefix longer than what is kept cannot begin a string that was kept whole.
            prop_assert!(range.exact || text.len() > KEPT || !contains(&range, entry));
        }
        if let (None, Some(prefix)) = (value.as_str(), first.as_str()) {
            prop_assert!(!contains(&path_a().starts_with(prefix), entry));
        }
    }

    #[test]
    fn ranges_of_types(value in any_value()) {
        let entry = &path_a().equal(&value).start;
        let kinds = [JsonKind::Null, JsonKind::Bool, JsonKind::Number, JsonKind::String, JsonKind::Array, JsonKind::Object];
        for kind in kinds {
            prop_assert_eq!(contains(&path_a().of_type(kind), entry), kind_of(&value) == kind);
        }
        prop_assert!(contains(&path_a().is_defined(), entry));
        prop_assert!(contains(&path_a().all(), entry));
    }
}

fn bound(kind: i32, value: &Value) -> Bound<&Value> {
    match kind {
        0 => Bound::Unbounded,
        1 => Bound::Included(value),
        _ => Bound::Excluded(value),
    }
}

/// SQL's idea of a value between two bounds: only within one type, and no array or object.
fn between(value: &Value, lower: Bound<&Value>, upper: Bound<&Value>) -> bool {
    let is_scalar = !matches!(value, Value::Array(_) | Value::Object(_));
    let same = |bound: &Value| is_scalar && kind_of(bound) == kind_of(value);
    let above = match lower {
        Bound::Unbounded => true,
        Bound::Included(bound) => same(bound) && value >= bound,
        Bound::Excluded(bound) => same(bound) && value > bound,
    };
    let below = match upper {
        Bound::Unbounded => true,
        Bound::Included(bound) => same(bound) && value <= bound,
        Bound::Excluded(bound) => same(bound) && value < bound,
    };
    let bounded = (lower, upper) != (Bound::Unbounded, Bound::Unbounded);
    bounded && is_scalar && above && below
}

fn kind_of(value: &Value) -> JsonKind {
    match value {
        Value::Null => JsonKind::Null,
        Value::Bool(_) => JsonKind::Bool,
        Value::Number(_) => JsonKind::Number,
        Value::String(_) => JsonKind::String,
        Value::Array(_) => JsonKind::Array,
        Value::Object(_) => JsonKind::Object,
    }
}

fn owned(value: &Value) -> IndexValue<'static> {
    match IndexValue::from(value) {
        IndexValue::Undefined => IndexValue::Undefined,
        IndexValue::Null => IndexValue::Null,
        IndexValue::Bool(truth) => IndexValue::Bool(truth),
        IndexValue::Number(number) => IndexValue::Number(number),
        IndexValue::String(text) => IndexValue::String(text.into_owned().into()),
        IndexValue::Array(hash) => IndexValue::Array(hash),
        IndexValue::Object(hash) => IndexValue::Object(hash),
    }
}

/// Items with few names, so that policies match them.
fn any_item() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![(0_i64..3).prop_map(Value::from), Just(Value::Null)];
    let tree = leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::Array),
            members(inner).prop_map(Value::Object),
        ]
    });
    members(tree).prop_map(Value::Object)
}

fn members(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Object> {
    let name = prop::sample::select(vec!["a", "b", "_rid", "id"]);
    prop::collection::vec((name, inner), 0..4).prop_map(Object::from_iter)
}

/// Paths below the root, each included or excluded, and what becomes of `/*`.
fn any_policy() -> impl Strategy<Value = IndexingPolicy> {
    let step = prop::sample::select(vec!["/a", "/b", "/[]", "/_rid"]);
    let end = prop::sample::select(vec!["/?", "/*"]);
    let path = (prop::collection::vec(step, 1..4), end)
        .prop_map(|(steps, end)| format!("{}{end}", steps.concat()));
    let paths = prop::collection::btree_map(path, any::<bool>(), 0..6);
    (paths, any::<bool>()).prop_map(|(paths, root)| {
        let list = |wanted: bool| {
            let rest = paths.iter().filter(|(_, included)| **included == wanted);
            let rest = rest.map(|(path, _)| path.as_str());
            let all = rest.chain((root == wanted).then_some("/*"));
            all.map(|path| format!(r#"{{"path":"{path}"}}"#)).collect::<Vec<_>>().join(",")
        };
        policy(&format!(
            r#"{{"includedPaths":[{}],"excludedPaths":[{}]}}"#,
            list(true),
            list(false)
        ))
    })
}

/// Whether a path is indexed: the longest path of the policy that covers it decides, and
/// `/?` before `/*` of the same length.
fn oracle_indexes(policy: &IndexingPolicy, steps: &[PolicyPathStep]) -> bool {
    if steps == [property("id")] {
        return true;
    }
    let included = policy.included().iter().map(|included| (&included.path, true));
    let excluded = policy.excluded().iter().map(|path| (path, false));
    // The database's own exclusion is as precise as any path that names it.
    let builtin = IndexPath::parse("/_rid/*").expect("a path");
    let best = included
        .chain(excluded)
        .filter(|(path, _)| covers(path, steps))
        .max_by_key(|(path, _)| (path.steps().len(), *path.end() == PathEnd::Scalar));
    match best {
        Some((path, _)) if covers(&builtin, steps) && path.steps().is_empty() => false,
        Some((_, indexed)) => indexed,
        None => false,
    }
}

fn covers(path: &IndexPath, steps: &[PolicyPathStep]) -> bool {
    match path.end() {
        PathEnd::Scalar => path.steps() == steps,
        PathEnd::Subtree => steps.starts_with(path.steps()),
        PathEnd::Tuple(_) => false,
    }
}

fn all_paths(
    value: &Value,
    steps: &[PolicyPathStep],
    visit: &mut dyn FnMut(&[PolicyPathStep], &Value),
) {
    let mut below = |step, value| {
        let steps = [steps, &[step]].concat();
        visit(&steps, value);
        all_paths(value, &steps, visit);
    };
    match value {
        Value::Object(object) => {
            object.iter().for_each(|(name, value)| below(property(name), value));
        }
        Value::Array(items) => {
            items.iter().for_each(|value| below(PolicyPathStep::Elements, value));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// An item has exactly the entries that the oracle finds, each once, in order.
    #[test]
    fn entries_are_those_of_the_policy(policy in any_policy(), item in any_item()) {
        let plan = IndexPlan::compile(&policy, SEED);
        let mut expected = BTreeSet::new();
        let mut present = BTreeSet::new();
        all_paths(&item, &[], &mut |steps, value| {
            present.insert(steps.to_vec());
            let indexed = oracle_indexes(&policy, steps);
            assert_eq!(plan.path(steps).is_some(), indexed, "{steps:?}");
            if let Some(path) = plan.path(steps) {
                expected.insert(path.equal(value).start);
            }
        });
        for included in policy.included() {
            let steps = included.path.steps();
            let named = !steps.is_empty() && !steps.contains(&PolicyPathStep::Elements);
            if let Some(path) = plan.path(steps).filter(|_| named) {
                prop_assert!(path.has_undefined());
                if !present.contains(steps) {
                    let undefined = [&path.all().start[..8], &[0x10]].concat();
                    prop_assert!(!contains(&path.is_defined(), &undefined));
                    expected.insert(undefined);
                }
            }
        }
        let expected: Vec<_> = expected.into_iter().collect();
        let mut found = entries(&plan, &item);
        found.retain(|entry| !index::is_of_members(entry));
        prop_assert_eq!(found, expected);
    }

    /// An item without a value at a path has exactly one entry that shows it, and one with
    /// a value has none.
    #[test]
    fn what_is_absent_is_found(policy in any_policy(), item in any_item(), path in any_names()) {
        let plan = IndexPlan::compile(&policy, SEED);
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        let steps: Vec<PolicyPathStep> = names.iter().map(|name| property(name)).collect();
        let absence = plan.absence(&names);
        let Some(absence) = absence.filter(|_| !plan.path(&steps).unwrap().has_undefined()) else {
            return Ok(());
        };
        let value = |names: &[String]| {
            names.iter().try_fold(&item, |value, name| value.get(name)).is_some()
        };
        let lacks = |names: &[String]| !value(names) && value(&names[..names.len() - 1]);
        let mut telling = 0;
        for entry in entries(&plan, &item) {
            let ranges = absence.runs.iter().chain(&absence.others);
            telling += ranges.filter(|range| contains(range, &entry)).count();
            let objects = absence.objects.iter().filter(|own| contains(&own.range, &entry));
            telling += objects.filter(|own| lacks(&own.names)).count();
        }
        prop_assert_eq!(telling, usize::from(!value(&path)), "{:?}", absence);
    }
}

fn any_names() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "id"]), 1..4)
        .prop_map(|names| names.into_iter().map(str::to_owned).collect())
}

/// The lengths at which a string is just kept completely, and just not.
#[test]
fn prefixes_around_the_cut() {
    let text = |length: usize| Value::String("x".repeat(length));
    let holds = |prefix: usize, value: usize| {
        let range = path_a().starts_with(&"x".repeat(prefix));
        (contains(&range, &path_a().equal(&text(value)).start), range.exact)
    };
    assert_eq!(holds(KEPT, KEPT - 1), (false, true));
    assert_eq!(holds(KEPT, KEPT), (true, true));
    assert_eq!(holds(KEPT, KEPT + 1), (true, true));
    // The entry no longer distinguishes 129 from 130, but it does 128.
    assert_eq!(holds(KEPT + 1, KEPT), (false, false));
    assert_eq!(holds(KEPT + 2, KEPT + 1), (true, false));
    assert!(!path_a().equal(&text(KEPT + 1)).exact);
    assert!(path_a().equal(&text(KEPT)).exact);
}
