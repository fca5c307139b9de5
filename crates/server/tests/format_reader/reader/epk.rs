//! From the value of a partition key to its position: `docs/formats/epk.md`.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::bytes::{Damage, Result, damage};
use super::murmur;

/// What a container's definition says about its key.
#[derive(Debug)]
pub(crate) struct KeyDefinition {
    paths: Vec<Vec<String>>,
    scheme: Scheme,
    /// Items may have no value.
    system_key: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Keyless,
    Version1,
    Version2,
    MultiHash,
}

/// Components with their type bytes.
enum Component<'a> {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    Text(&'a str),
}

impl KeyDefinition {
    pub(crate) fn of(definition: &Value) -> Result<KeyDefinition> {
        let key = &definition["partitionKey"];
        let paths = key["paths"].as_array().into_iter().flatten();
        let paths = paths.map(|path| names(path.as_str().unwrap_or_default()));
        let paths = paths.collect::<Result<Vec<Vec<String>>>>()?;
        let system_key = key["systemKey"] == true;
        let scheme = match (key["kind"].as_str(), key["version"].as_u64()) {
            (Some("Hash"), Some(1) | None) if system_key && paths == [["_partitionKey"]] => {
                Scheme::Keyless
            }
            (Some("MultiHash"), _) => Scheme::MultiHash,
            (Some("Hash"), Some(2)) => Scheme::Version2,
            (Some("Hash"), Some(1) | None) => Scheme::Version1,
            other => return damage(format!("a key of the kind {other:?}")),
        };
        Ok(KeyDefinition { paths, scheme, system_key })
    }

    /// EPK and position of an item.
    pub(crate) fn place(&self, item: &Value) -> (Vec<u8>, Vec<u8>) {
        let components: Vec<Component<'_>> =
            self.paths.iter().map(|path| Component::at(item, path)).collect();
        let has_value = components.iter().any(|one| !matches!(one, Component::Undefined));
        if self.scheme == Scheme::Keyless || self.system_key && !has_value {
            return (Vec::new(), Vec::new());
        }
        let all: Vec<u8> = components.iter().flat_map(|one| one.input(0xFF)).collect();
        let epk = match self.scheme {
            Scheme::Version1 | Scheme::Keyless => {
                let epk = version_1(&components);
                return (epk.clone(), epk);
            }
            Scheme::Version2 => hash_version_2(&all).to_vec(),
            Scheme::MultiHash => {
                components.iter().flat_map(|one| hash_version_2(&one.input(0xFF))).collect()
            }
        };
        let mut digest: [u8; 32] = Sha256::digest(&all).into();
        digest[0] &= 0x7F;
        let position = epk.iter().chain(digest.iter().take(16)).copied().collect();
        (epk, position)
    }
}

/// The names of a path like `/a/"b c"`.
pub(crate) fn names(path: &str) -> Result<Vec<String>> {
    let (mut names, mut rest) = (Vec::new(), path.chars().peekable());
    while let Some(slash) = rest.next() {
        let wrong = || Damage(format!("the path {path}"));
        if slash != '/' {
            return Err(wrong());
        }
        let mut name = String::new();
        match rest.next_if(|one| matches!(one, '"' | '\'')) {
            Some(quote) => loop {
                match rest.next().ok_or_else(wrong)? {
                    '\\' => name.push(rest.next().ok_or_else(wrong)?),
                    end if end == quote => break,
                    one => name.push(one),
                }
            },
            None => {
                while let Some(one) = rest.next_if(|one| *one != '/') {
                    name.push(one);
                }
            }
        }
        names.push(name);
    }
    Ok(names)
}

pub(crate) fn value_at<'a>(item: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(item, |value, name| value.as_object()?.get(name))
}

impl<'a> Component<'a> {
    fn at(item: &'a Value, path: &[String]) -> Component<'a> {
        match value_at(item, path) {
            None | Some(Value::Object(_) | Value::Array(_)) => Component::Undefined,
            Some(Value::Null) => Component::Null,
            Some(Value::Bool(truth)) => Component::Bool(*truth),
            Some(Value::Number(number)) => Component::Number(number.as_f64().unwrap_or(f64::NAN)),
            Some(Value::String(text)) => Component::Text(text),
        }
    }

    /// Type byte and payload, as they are hashed.
    fn input(&self, text_end: u8) -> Vec<u8> {
        match self {
            Component::Undefined => vec![0x00],
            Component::Null => vec![0x01],
            Component::Bool(false) => vec![0x02],
            Component::Bool(true) => vec![0x03],
            Component::Number(number) => {
                // Adding 0.0 turns -0.0 into 0.0.
                let bits = (number + 0.0).to_le_bytes();
                std::iter::once(0x05).chain(bits).collect()
            }
            Component::Text(text) => {
                std::iter::once(0x08).chain(text.bytes()).chain([text_end]).collect()
            }
        }
    }

    /// The form whose byte order is the order of values.
    fn ordered(&self) -> Vec<u8> {
        match self {
            Component::Number(number) => ordered_number(*number),
            Component::Text(text) => {
                let bytes = text.bytes().take(101).map(|byte| byte.wrapping_add(1));
                let end = (text.len() <= 100).then_some(0);
                std::iter::once(0x08).chain(bytes).chain(end).collect()
            }
            Component::Undefined | Component::Null | Component::Bool(_) => self.input(0),
        }
    }
}

fn version_1(components: &[Component<'_>]) -> Vec<u8> {
    let cut: Vec<Option<String>> = components.iter().map(cut_text).collect();
    let components: Vec<Component<'_>> = components
        .iter()
        .zip(&cut)
        .map(|(one, cut)| match (one, cut) {
            (_, Some(text)) => Component::Text(text),
            (Component::Null, None) => Component::Null,
            (Component::Bool(truth), None) => Component::Bool(*truth),
            (Component::Number(number), None) => Component::Number(*number),
            (Component::Undefined | Component::Text(_), None) => Component::Undefined,
        })
        .collect();
    let input: Vec<u8> = components.iter().flat_map(|one| one.input(0x00)).collect();
    let hash = ordered_number(f64::from(murmur::x86_32(&input)));
    hash.into_iter().chain(components.iter().flat_map(Component::ordered)).collect()
}

/// A text's first 100 UTF-16 code units.
fn cut_text(component: &Component<'_>) -> Option<String> {
    let Component::Text(text) = component else { return None };
    let units: Vec<u16> = text.encode_utf16().take(100).collect();
    Some(String::from_utf16_lossy(&units))
}

fn ordered_number(number: f64) -> Vec<u8> {
    let bits = (number + 0.0).to_bits();
    let mut bits = if bits >> 63 == 0 { bits ^ 1 << 63 } else { bits.wrapping_neg() };
    let mut bytes = vec![0x05];
    let [top, ..] = bits.to_be_bytes();
    bytes.push(top);
    bits <<= 8;
    loop {
        let [group, ..] = bits.to_be_bytes();
        bits <<= 7;
        bytes.push(group & 0xFE | u8::from(bits != 0));
        if bits == 0 {
            return bytes;
        }
    }
}

/// h2 ‖ h1, big-endian, with the two top bits cleared.
fn hash_version_2(input: &[u8]) -> [u8; 16] {
    let (h1, h2) = murmur::x64_128(input, (0, 0));
    let mut hash = (u128::from(h2) << 64 | u128::from(h1)).to_be_bytes();
    hash[0] &= 0x3F;
    hash
}
