//! The keys of the account, and replacing them.
//!
//! The holder of a full key may do everything, the holder of a read-only key may read. There
//! are two of each, so that clients can be moved to one while the other is replaced. Every
//! request of every protocol asks here, so a key that was replaced is dead with the next
//! request, on every connection.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use runtime::Random;
use subtle::ConstantTimeEq as _;

/// Fewest bytes of a key: what cannot be guessed.
const KEY_BYTES_MIN: usize = 16;
/// Bytes of the keys that are made here, as many as those of the service have.
const KEY_BYTES: usize = 64;

/// Which of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccountKeyKind {
    Primary,
    Secondary,
    PrimaryReadOnly,
    SecondaryReadOnly,
}

impl AccountKeyKind {
    pub const ALL: [AccountKeyKind; 4] = [
        AccountKeyKind::Primary,
        AccountKeyKind::Secondary,
        AccountKeyKind::PrimaryReadOnly,
        AccountKeyKind::SecondaryReadOnly,
    ];

    /// As the service's own tools call it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            AccountKeyKind::Primary => "primary",
            AccountKeyKind::Secondary => "secondary",
            AccountKeyKind::PrimaryReadOnly => "primaryReadonly",
            AccountKeyKind::SecondaryReadOnly => "secondaryReadonly",
        }
    }

    #[must_use]
    pub fn from_name(name: &str) -> Option<AccountKeyKind> {
        AccountKeyKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    const fn is_full(self) -> bool {
        matches!(self, AccountKeyKind::Primary | AccountKeyKind::Secondary)
    }
}

/// One key, as its text and as the bytes that sign. Never shown.
#[derive(Clone)]
pub struct AccountKey {
    text: String,
    bytes: Vec<u8>,
}

/// A key that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the account key must be base64 of at least {KEY_BYTES_MIN} bytes")]
pub struct InvalidKey;

impl AccountKey {
    /// Takes the base64 text that users configure.
    pub fn parse(text: &str) -> Result<AccountKey, InvalidKey> {
        let text = text.trim();
        let bytes = STANDARD.decode(text).map_err(|_| InvalidKey)?;
        if bytes.len() < KEY_BYTES_MIN {
            return Err(InvalidKey);
        }
        Ok(AccountKey { text: text.to_owned(), bytes })
    }

    /// A new key.
    #[must_use]
    pub fn generate(random: &dyn Random) -> AccountKey {
        let mut bytes = vec![0; KEY_BYTES];
        random.fill(&mut bytes);
        AccountKey { text: STANDARD.encode(&bytes), bytes }
    }

    /// The text that clients are given.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// The bytes that sign.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl std::fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccountKey")
    }
}

/// The keys that are valid at a moment; there is a primary one at least.
#[derive(Debug)]
pub struct AccountKeys {
    keys: RwLock<[Option<AccountKey>; AccountKeyKind::ALL.len()]>,
}

impl AccountKeys {
    #[must_use]
    pub fn new(primary: AccountKey) -> AccountKeys {
        AccountKeys { keys: RwLock::new([Some(primary), None, None, None]) }
    }

    /// The same keys with one more, or another in its place.
    #[must_use]
    pub fn with(self, kind: AccountKeyKind, key: AccountKey) -> AccountKeys {
        self.replace(kind, key);
        self
    }

    /// From now on this is the key of its kind, and the one before is none.
    pub fn replace(&self, kind: AccountKeyKind, key: AccountKey) {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        keys[kind as usize] = Some(key);
    }

    #[must_use]
    pub fn get(&self, kind: AccountKeyKind) -> Option<AccountKey> {
        self.read()[kind as usize].clone()
    }

    /// Whether one of the full keys is such a one.
    pub fn any_full(&self, is_right: impl Fn(&[u8]) -> bool) -> bool {
        self.any(AccountKeyKind::is_full, |key| is_right(&key.bytes))
    }

    /// The same for read-only keys.
    pub fn any_read_only(&self, is_right: impl Fn(&[u8]) -> bool) -> bool {
        self.any(|kind| !kind.is_full(), |key| is_right(&key.bytes))
    }

    /// Whether a text is that of a full key, compared in constant time.
    #[must_use]
    pub fn is_full_key(&self, text: &[u8]) -> bool {
        self.any(AccountKeyKind::is_full, |key| text.ct_eq(key.text.as_bytes()).into())
    }

    /// The same for the text, or for the bytes that it stands for.
    #[must_use]
    pub fn is_full_key_in_any_form(&self, key: &[u8]) -> bool {
        self.is_full_key(key) || self.any_full(|own| key.ct_eq(own).into())
    }

    /// The key that new tokens are signed with: replacing it ends them.
    #[must_use]
    pub fn signing(&self) -> Vec<u8> {
        self.read()[AccountKeyKind::Primary as usize]
            .as_ref()
            .map(|key| key.bytes.clone())
            .unwrap_or_default()
    }

    fn any(
        &self,
        wanted: impl Fn(AccountKeyKind) -> bool,
        is_right: impl Fn(&AccountKey) -> bool,
    ) -> bool {
        let keys = self.read();
        let mut keys = AccountKeyKind::ALL.into_iter().zip(keys.iter());
        keys.any(|(kind, key)| wanted(kind) && key.as_ref().is_some_and(&is_right))
    }

    fn read(&self) -> RwLockReadGuard<'_, [Option<AccountKey>; AccountKeyKind::ALL.len()]> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use runtime::SeededRandom;

    use super::*;

    #[test]
    fn a_replaced_key_is_none_from_then_on() {
        let random = SeededRandom::new(1);
        let [one, two, read] = [(); 3].map(|()| AccountKey::generate(&random));
        let keys =
            AccountKeys::new(one.clone()).with(AccountKeyKind::PrimaryReadOnly, read.clone());
        let is = |key: &AccountKey| {
            let same = |bytes: &[u8]| bytes == key.bytes();
            (keys.any_full(same), keys.any_read_only(same), keys.is_full_key(key.text.as_bytes()))
        };
        assert_eq!((is(&one), is(&two)), ((true, false, true), (false, false, false)));
        assert_eq!(is(&read), (false, true, false));
        keys.replace(AccountKeyKind::Secondary, two.clone());
        assert_eq!((is(&one), is(&two)), ((true, false, true), (true, false, true)));
        assert_eq!(keys.signing(), one.bytes());
        keys.replace(AccountKeyKind::Primary, AccountKey::generate(&random));
        assert_eq!((is(&one), is(&two)), ((false, false, false), (true, false, true)));
        assert_ne!(keys.signing(), one.bytes());
    }

    #[test]
    fn keys_are_long_enough_and_never_shown() {
        for text in ["", "c2hvcnQ=", "not base64!", "AAAAAAAAAAAAAAAAAAAA"] {
            assert_eq!(AccountKey::parse(text).map(|_| ()), Err(InvalidKey), "{text}");
        }
        let key = AccountKey::parse(" AAAAAAAAAAAAAAAAAAAAAA== ").unwrap();
        assert_eq!((key.bytes().len(), format!("{key:?}").as_str()), (16, "AccountKey"));
        for kind in AccountKeyKind::ALL {
            assert_eq!(AccountKeyKind::from_name(kind.name()), Some(kind));
        }
    }
}
