//! Who may ask, below every protocol: the keys of the account, what its permissions grant, the
//! tokens of identity providers, and the roles of those who bear them.

pub mod jwt;
mod keys;
pub(crate) mod roles;

pub use crate::pipeline::grant::{GrantScope, Mode, PermissionGrant};
pub use jwt::{InvalidKeySet, Issuer, IssuerRules, TokenRefused};
pub use keys::{AccountKey, AccountKeyKind, AccountKeys, InvalidKey};
pub use roles::{
    DataAction, InvalidRoleId, InvalidScope, RoleAssignment, RoleDefinition, RoleId, RoleRefused,
    RoleScope, TokenBearer,
};
