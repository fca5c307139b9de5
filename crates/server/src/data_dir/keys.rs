//! Keys of the account that were replaced while the server ran: the file `KEYS`.
//!
//! It is not in the store, so that no backup has keys, and restoring an old one brings no
//! dead key back. Besides the keys it has fingerprints of those that were replaced: a
//! setting that still names one of them does not revive it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use service::identity::{AccountKey, AccountKeyKind};
use sha2::{Digest as _, Sha256};

use super::sync_folder;

const KEYS: &str = "KEYS";
const KEYS_NEW: &str = "KEYS.new";
const VERSION: u32 = 1;

/// Fingerprints that are kept, the latest: one for each week of ten years.
const RETIRED_MAX: usize = 520;

/// What was replaced, by what. Never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotatedKeys {
    version: u32,
    /// By the names of their kinds.
    keys: BTreeMap<String, String>,
    /// SHA-256 of the bytes of keys that are valid no more, in hexadecimal digits.
    retired: Vec<String>,
}

impl std::fmt::Debug for RotatedKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RotatedKeys")
    }
}

impl RotatedKeys {
    pub(crate) fn none() -> RotatedKeys {
        RotatedKeys { version: VERSION, keys: BTreeMap::new(), retired: Vec::new() }
    }

    pub(crate) fn read(root: &Path) -> anyhow::Result<RotatedKeys> {
        let path = root.join(KEYS);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(RotatedKeys::none()),
            Err(error) => return Err(error).context(format!("{} cannot be read", path.display())),
        };
        RotatedKeys::parse(&text).with_context(|| format!("{} is damaged", path.display()))
    }

    /// Makes it durable before anything relies on it.
    pub(crate) fn write(&self, root: &Path) -> anyhow::Result<()> {
        let (path, new) = (root.join(KEYS), root.join(KEYS_NEW));
        let mut file = File::create(&new)?;
        file.write_all(self.print()?.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        Ok(sync_folder(root)?)
    }

    /// The key that is valid, of the one that a setting gives and the one that took its place.
    pub(crate) fn choose(
        &self,
        kind: AccountKeyKind,
        given: Option<AccountKey>,
    ) -> anyhow::Result<Option<AccountKey>> {
        let given = given.filter(|key| !self.retired.contains(&fingerprint(key)));
        let kept = || self.keys.get(kind.name()).map(|text| AccountKey::parse(text)).transpose();
        Ok(match given {
            Some(key) => Some(key),
            None => kept()?,
        })
    }

    /// With a new key in the place of an old one.
    pub(crate) fn rotated(
        &self,
        kind: AccountKeyKind,
        old: Option<&AccountKey>,
        new: &AccountKey,
    ) -> RotatedKeys {
        let mut rotated = self.clone();
        rotated.keys.insert(kind.name().to_owned(), new.reveal().to_owned());
        rotated.retired.extend(old.map(fingerprint));
        let excess = rotated.retired.len().saturating_sub(RETIRED_MAX);
        rotated.retired.drain(..excess);
        rotated
    }

    fn print(&self) -> anyhow::Result<String> {
        let json = serde_json::to_string(self)?;
        Ok(format!("{json}\n{:08x}\n", crc32fast::hash(json.as_bytes())))
    }

    fn parse(text: &str) -> anyhow::Result<RotatedKeys> {
        let (json, rest) = text.split_once('\n').context("it has no checksum")?;
        let checksum = u32::from_str_radix(rest.trim_end(), 16).context("it has no checksum")?;
        ensure!(checksum == crc32fast::hash(json.as_bytes()), "its checksum is wrong");
        let keys: RotatedKeys = serde_json::from_str(json).context("it is malformed")?;
        ensure!(keys.version == VERSION, "it has version {}, and not {VERSION}", keys.version);
        Ok(keys)
    }
}

fn fingerprint(key: &AccountKey) -> String {
    Sha256::digest(key.bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use runtime::SeededRandom;

    use super::*;

    fn text(key: &Option<AccountKey>) -> Option<&str> {
        key.as_ref().map(AccountKey::reveal)
    }

    #[test]
    fn a_setting_revives_no_retired_key() {
        let random = SeededRandom::new(1);
        let [old, new, other] = [(); 3].map(|()| AccountKey::generate(&random));
        let folder = tempfile::tempdir().unwrap();
        let none = RotatedKeys::read(folder.path()).unwrap();
        let chosen = none.choose(AccountKeyKind::Primary, Some(old.clone())).unwrap();
        assert_eq!(text(&chosen), Some(old.reveal()));
        none.rotated(AccountKeyKind::Primary, Some(&old), &new).write(folder.path()).unwrap();
        let kept = RotatedKeys::read(folder.path()).unwrap();
        for (given, valid) in [(None, &new), (Some(&old), &new), (Some(&other), &other)] {
            let chosen = kept.choose(AccountKeyKind::Primary, given.cloned()).unwrap();
            assert_eq!(text(&chosen), Some(valid.reveal()));
        }
        assert_eq!(text(&kept.choose(AccountKeyKind::Secondary, Some(old)).unwrap()), None);
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let key = AccountKey::generate(&SeededRandom::new(1));
        let keys = RotatedKeys::none();
        let text = keys.rotated(AccountKeyKind::Secondary, Some(&key), &key).print().unwrap();
        assert_eq!(RotatedKeys::parse(&text).unwrap().print().unwrap(), text);
        for at in 0..text.len() - 1 {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            assert!(RotatedKeys::parse(&changed).is_err(), "byte {at}");
            assert!(RotatedKeys::parse(&text[..at]).is_err(), "{at} bytes");
        }
        let other = r#"{"version":2,"keys":{},"retired":[]}"#;
        let other = format!("{other}\n{:08x}\n", crc32fast::hash(other.as_bytes()));
        assert!(RotatedKeys::parse(&other).is_err());
    }

    #[test]
    fn the_oldest_fingerprints_go_first() {
        let random = SeededRandom::new(1);
        let mut keys = RotatedKeys::none();
        let mut old = AccountKey::generate(&random);
        for _ in 0..RETIRED_MAX + 2 {
            let new = AccountKey::generate(&random);
            keys = keys.rotated(AccountKeyKind::Primary, Some(&old), &new);
            old = new;
        }
        assert_eq!(keys.retired.len(), RETIRED_MAX);
    }
}
