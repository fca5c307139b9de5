//! Who may ask, below every protocol: the keys of the account.

pub(crate) mod keys;
