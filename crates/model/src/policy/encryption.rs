//! Which properties clients encrypt before they send them.
//!
//! The database never sees the plain values. It keeps the policy so that every
//! client encrypts alike, and refuses one that would make items unreachable.

use super::PolicyError;
use super::fields::{Fields, named, spelling, unknown_name};
use super::path::PropertyPath;
use crate::json::{Object, Value};

/// The only algorithm that the SDKs know.
const ALGORITHM: &str = "AEAD_AES_256_CBC_HMAC_SHA256";
const FORMAT_VERSIONS: std::ops::RangeInclusive<i64> = 1..=2;
/// The first version in which ids and partition keys may be encrypted.
const KEY_FORMAT_VERSION: i64 = 2;

/// The encrypted properties of a container, fixed when it is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientEncryptionPolicy {
    paths: Vec<EncryptedPath>,
    format_version: i64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncryptedPath {
    pub path: PropertyPath,
    pub key_id: String,
    pub encryption: EncryptionType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncryptionType {
    /// Equal values have equal bytes, so that queries can test for equality.
    Deterministic,
    Randomized,
}

const TYPES: [(&str, EncryptionType); 2] =
    [("Deterministic", EncryptionType::Deterministic), ("Randomized", EncryptionType::Randomized)];

const ALGORITHMS: [(&str, ()); 1] = [(ALGORITHM, ())];

impl ClientEncryptionPolicy {
    /// Reads the value of `clientEncryptionPolicy`.
    pub fn parse(value: &Value) -> Result<ClientEncryptionPolicy, PolicyError> {
        let fields = Fields::of("clientEncryptionPolicy".to_owned(), value)?;
        let version = fields.integer("policyFormatVersion")?;
        let format_version = version.unwrap_or(*FORMAT_VERSIONS.start());
        if !FORMAT_VERSIONS.contains(&format_version) {
            return Err(PolicyError::OutOfRange {
                field: fields.name_of("policyFormatVersion"),
                value: format_version.to_string(),
                expected: "1 or 2",
            });
        }
        let mut paths: Vec<EncryptedPath> = Vec::new();
        for path in fields.objects("includedPaths")? {
            let next = EncryptedPath::read(&path)?;
            if paths.iter().any(|earlier| earlier.path == next.path) {
                let field = fields.name_of("includedPaths");
                return Err(PolicyError::Repeated { field, path: next.path.to_string() });
            }
            paths.push(next);
        }
        let policy = ClientEncryptionPolicy { paths, format_version };
        policy.check_key("id")?;
        Ok(policy)
    }

    #[must_use]
    pub fn paths(&self) -> &[EncryptedPath] {
        &self.paths
    }

    /// Refuses an encryption of `property` under which items could not be found
    /// again: ids and partition keys are looked up by their bytes.
    pub(super) fn check_key(&self, property: &str) -> Result<(), PolicyError> {
        let name = |encrypted: &&EncryptedPath| encrypted.path.names() == [property];
        let Some(encrypted) = self.paths.iter().find(name) else { return Ok(()) };
        let refused =
            |problem| Err(PolicyError::EncryptedKey { path: encrypted.path.to_string(), problem });
        if self.format_version < KEY_FORMAT_VERSION {
            return refused("ids and partition keys need policyFormatVersion 2");
        }
        if encrypted.encryption != EncryptionType::Deterministic {
            return refused("ids and partition keys need deterministic encryption");
        }
        Ok(())
    }

    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut object = Object::new();
        object.insert(
            "includedPaths",
            self.paths.iter().map(EncryptedPath::to_value).collect::<Value>(),
        );
        object.insert("policyFormatVersion", self.format_version);
        object.into()
    }
}

impl EncryptedPath {
    fn read(fields: &Fields<'_>) -> Result<EncryptedPath, PolicyError> {
        let text = |name: &str| fields.required(name, fields.string(name)?);
        let (path, kind) = (text("path")?, text("encryptionType")?);
        let algorithm = text("encryptionAlgorithm")?;
        named(&ALGORITHMS, algorithm).ok_or_else(|| {
            unknown_name(fields.name_of("encryptionAlgorithm"), algorithm, &ALGORITHMS)
        })?;
        let top_level = |path: &PropertyPath| path.names().len() == 1;
        Ok(EncryptedPath {
            path: PropertyPath::read(path)
                .filter(top_level)
                .ok_or_else(|| PolicyError::EncryptedPath { path: path.to_owned() })?,
            key_id: text("clientEncryptionKeyId")?.to_owned(),
            encryption: named(&TYPES, kind)
                .ok_or_else(|| unknown_name(fields.name_of("encryptionType"), kind, &TYPES))?,
        })
    }

    fn to_value(&self) -> Value {
        let members = [
            ("path", self.path.as_str()),
            ("clientEncryptionKeyId", self.key_id.as_str()),
            ("encryptionType", spelling(&TYPES, self.encryption)),
            ("encryptionAlgorithm", ALGORITHM),
        ];
        Object::from_iter(members).into()
    }
}
