//! Which index entries an item has: `docs/formats/index.md`.

use std::collections::BTreeSet;

use serde_json::Value;

use super::bytes::Result;
use super::distinct;
use super::epk::names;

const TEXT_BYTES_MAX: usize = 128;

/// An indexing policy with the seed of its container.
#[derive(Debug)]
pub(crate) struct Index {
    seed: u64,
    /// Nothing is indexed.
    off: bool,
    rules: Vec<Rule>,
    composites: Vec<Vec<(Vec<String>, bool)>>,
}

/// What one path of a policy says.
#[derive(Clone, Debug)]
struct Rule {
    steps: Vec<Step>,
    /// `/*`: also of all below.
    below: bool,
    indexed: bool,
    /// Whether it stands in the policy, rather than being the same for all.
    own: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Property(String),
    Elements,
}

impl Index {
    pub(crate) fn of(policy: &Value, seed: u64) -> Result<Index> {
        let mut index = Index { seed, off: false, rules: Vec::new(), composites: Vec::new() };
        index.off = policy["indexingMode"] == "none";
        let fixed = |name: &str, below, indexed| Rule {
            steps: vec![Step::Property(name.to_owned())],
            below,
            indexed,
            own: false,
        };
        index.rules.push(fixed("_rid", true, false));
        for (list, indexed) in [("excludedPaths", false), ("includedPaths", true)] {
            for path in policy[list].as_array().into_iter().flatten() {
                let path = path["path"].as_str().unwrap_or_default();
                index.rules.push(Rule::of(path, indexed)?);
            }
        }
        index.rules.push(fixed("id", false, true));
        index.rules.push(fixed("_ts", false, true));
        for paths in policy["compositeIndexes"].as_array().into_iter().flatten() {
            let paths = paths.as_array().into_iter().flatten().map(|path| {
                let is_descending = path["order"] == "descending";
                Ok((names(path["path"].as_str().unwrap_or_default())?, is_descending))
            });
            let paths: Vec<(Vec<String>, bool)> = paths.collect::<Result<_>>()?;
            if !paths.iter().any(|(names, _)| names.first().is_some_and(|name| is_shown(name))) {
                index.composites.push(paths);
            }
        }
        Ok(index)
    }

    /// All entries of an item, which has its system properties.
    pub(crate) fn entries(&self, item: &Value) -> BTreeSet<Vec<u8>> {
        let mut entries = BTreeSet::new();
        if self.off {
            return entries;
        }
        self.object(item, self.item_hash(), &mut Vec::new(), &mut entries);
        for rule in self.rules.iter().filter(|rule| rule.own && rule.indexed) {
            entries.extend(self.undefined(rule, item));
        }
        entries.extend(self.composites.iter().map(|paths| self.composite(paths, item)));
        entries
    }

    /// The most precise rule that covers a value decides; of two that are as precise, the
    /// later one.
    fn is_indexed(&self, path: &[Step]) -> bool {
        if matches!(path.first(), Some(Step::Property(name)) if is_shown(name)) {
            return false;
        }
        let covering = self.rules.iter().filter(|rule| rule.covers(path));
        let decisive = covering.max_by_key(|rule| (rule.steps.len(), !rule.below));
        decisive.is_some_and(|rule| rule.indexed)
    }

    /// Whether whatever there is at and below a path is indexed.
    fn is_open(&self, path: &[Step]) -> bool {
        let covering = self.rules.iter().filter(|rule| rule.below && path.starts_with(&rule.steps));
        covering.max_by_key(|rule| rule.steps.len()).is_some_and(|rule| rule.indexed)
    }

    fn value(&self, value: &Value, hash: u64, path: &mut Vec<Step>, out: &mut BTreeSet<Vec<u8>>) {
        if self.is_indexed(path) {
            out.insert(entry(hash, &encoded(Some(value), TEXT_BYTES_MAX)));
        }
        match value {
            Value::Object(_) => self.object(value, hash, path, out),
            Value::Array(elements) => {
                path.push(Step::Elements);
                for element in elements {
                    self.value(element, sip(self.seed, hash, &[0xFF]), path, out);
                }
                path.pop();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// The members of an object, and the entry that stands for their names.
    fn object(&self, object: &Value, hash: u64, path: &mut Vec<Step>, out: &mut BTreeSet<Vec<u8>>) {
        let mut members = 0;
        for (name, member) in object.as_object().into_iter().flatten() {
            let hash = sip(self.seed, hash, name.as_bytes());
            path.push(Step::Property(name.clone()));
            if self.is_indexed(path) {
                members ^= hash;
            }
            self.value(member, hash, path, out);
            path.pop();
        }
        if self.is_open(path) && !path.contains(&Step::Elements) {
            let names = [&[0x80][..], &members.to_be_bytes()].concat();
            out.insert(entry(sip(self.seed, hash, &[0xFC]), &names));
        }
    }

    /// The entry for a value that a rule names and the item does not have.
    fn undefined(&self, rule: &Rule, item: &Value) -> Option<Vec<u8>> {
        let named = rule.steps.iter().map(|step| match step {
            Step::Property(name) => Some(name.clone()),
            Step::Elements => None,
        });
        let names: Vec<String> = named.collect::<Option<_>>()?;
        let is_absent = super::epk::value_at(item, &names).is_none();
        (!names.is_empty() && is_absent && self.is_indexed(&rule.steps))
            .then(|| entry(self.hash_of(&names), &encoded(None, 0)))
    }

    fn composite(&self, paths: &[(Vec<String>, bool)], item: &Value) -> Vec<u8> {
        let is_turned = paths.first().is_some_and(|(_, descending)| *descending);
        let text_max = (504 / paths.len() - 2).min(TEXT_BYTES_MAX);
        let (mut message, mut values) = (vec![0xFE], Vec::new());
        for (names, descending) in paths {
            let is_descending = *descending != is_turned;
            message.extend(self.hash_of(names).to_be_bytes());
            message.push(is_descending.into());
            let value = encoded(super::epk::value_at(item, names), text_max);
            values.extend(value.iter().map(|byte| if is_descending { !byte } else { *byte }));
        }
        entry(sip(self.seed, self.item_hash(), &message), &values)
    }

    fn item_hash(&self) -> u64 {
        sip(self.seed, 0, &[0xFD])
    }

    fn hash_of(&self, names: &[String]) -> u64 {
        names.iter().fold(self.item_hash(), |hash, name| sip(self.seed, hash, name.as_bytes()))
    }
}

impl Rule {
    fn of(path: &str, indexed: bool) -> Result<Rule> {
        let below = path.ends_with("/*");
        let path = path.strip_suffix("/*").or(path.strip_suffix("/?")).unwrap_or(path);
        let step = |name: String| match name.as_str() {
            "[]" => Step::Elements,
            _ => Step::Property(name),
        };
        let steps = names(path)?.into_iter().map(step).collect();
        Ok(Rule { steps, below, indexed, own: true })
    }

    fn covers(&self, path: &[Step]) -> bool {
        if self.below { path.starts_with(&self.steps) } else { path == self.steps }
    }
}

/// Properties that a protocol shows and no item has.
fn is_shown(name: &str) -> bool {
    matches!(name, "_self" | "_attachments")
}

fn entry(hash: u64, value: &[u8]) -> Vec<u8> {
    [&hash.to_be_bytes()[..], value].concat()
}

/// Tag and payload; `None` is undefined.
fn encoded(value: Option<&Value>, text_max: usize) -> Vec<u8> {
    match value {
        None => vec![0x10],
        Some(Value::Null) => vec![0x20],
        Some(Value::Bool(false)) => vec![0x30],
        Some(Value::Bool(true)) => vec![0x31],
        Some(Value::Number(number)) => {
            // Adding 0.0 turns -0.0 into 0.0.
            let bits = (number.as_f64().unwrap_or(f64::NAN) + 0.0).to_bits();
            let bits = if bits >> 63 == 0 { bits ^ 1 << 63 } else { !bits };
            [&[0x40][..], &bits.to_be_bytes()].concat()
        }
        Some(Value::String(text)) => {
            let kept = text.bytes().take(text_max).map(|byte| byte.wrapping_add(1));
            let end = if text.len() > text_max { 0xFF } else { 0x00 };
            std::iter::once(0x50).chain(kept).chain([end]).collect()
        }
        Some(array @ Value::Array(_)) => [&[0x60][..], &distinct::payload(array)].concat(),
        Some(object @ Value::Object(_)) => [&[0x70][..], &distinct::payload(object)].concat(),
    }
}

/// SipHash-2-4.
pub(crate) fn sip(k0: u64, k1: u64, message: &[u8]) -> u64 {
    let mut v = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let (words, tail) = message.as_chunks::<8>();
    let mut last = [0; 8];
    last.iter_mut().zip(tail).for_each(|(to, from)| *to = *from);
    let len = (message.len() as u64) << 56;
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    for word in words.chain([u64::from_le_bytes(last) | len]) {
        v[3] ^= word;
        sip_rounds(&mut v, 2);
        v[0] ^= word;
    }
    v[2] ^= 0xFF;
    sip_rounds(&mut v, 4);
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

fn sip_rounds(v: &mut [u64; 4], rounds: usize) {
    for _ in 0..rounds {
        v[0] = v[0].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(13) ^ v[0];
        v[0] = v[0].rotate_left(32);
        v[2] = v[2].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(16) ^ v[2];
        v[0] = v[0].wrapping_add(v[3]);
        v[3] = v[3].rotate_left(21) ^ v[0];
        v[2] = v[2].wrapping_add(v[1]);
        v[1] = v[1].rotate_left(17) ^ v[2];
        v[2] = v[2].rotate_left(32);
    }
}
