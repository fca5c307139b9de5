//! Roles: what the bearer of an identity provider's token may do, and where.
//!
//! A role is a set of data actions, an assignment gives one to a principal for a scope: the
//! account, a database or a container, by name. There are two built-in roles, and operators
//! define others. Roles are about data alone: there is no action for creating a container, for users, permissions, scripts or
//! throughput, so no token does that, whatever was assigned.

mod action;
mod scope;
mod stored;

use std::collections::BTreeMap;
use std::str::FromStr;

pub(crate) use action::Actions;
pub use action::DataAction;
pub(crate) use scope::Place;
pub use scope::{InvalidScope, RoleScope};

use DataAction::{ExecuteQuery, ReadChangeFeed, ReadItem, ReadMetadata};

/// Limits of the service.
const DEFINITIONS_MAX: usize = 100;
const ASSIGNMENTS_MAX: usize = 2_000;
/// Scopes that one definition can be assigned at: a role for more is one for the account.
const SCOPES_MAX: usize = 20;
const NAME_CHARS_MAX: usize = 512;
/// Longest id of a principal: those of Entra have 36 bytes, subjects of others at most 255.
const PRINCIPAL_BYTES_MAX: usize = 255;

/// The id of a role or an assignment: a GUID in small letters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoleId(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a GUID")]
pub struct InvalidRoleId(String);

impl RoleId {
    /// One that does not exist yet.
    #[must_use]
    pub fn generate(random: &dyn runtime::Random) -> RoleId {
        let (high, low) = (random.next_u64(), random.next_u64());
        RoleId(format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            high >> 16 & 0xFFFF,
            high & 0xFFF,
            low >> 48 & 0x3FFF | 0x8000,
            low & 0xFFFF_FFFF_FFFF
        ))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for RoleId {
    type Err = InvalidRoleId;

    fn from_str(text: &str) -> Result<RoleId, InvalidRoleId> {
        let is_guid = text.len() == 36
            && text.bytes().enumerate().all(|(at, byte)| match at {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => byte.is_ascii_hexdigit(),
            });
        if is_guid {
            Ok(RoleId(text.to_ascii_lowercase()))
        } else {
            Err(InvalidRoleId(text.chars().take(PRINCIPAL_BYTES_MAX).collect()))
        }
    }
}

/// A role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleDefinition {
    pub id: RoleId,
    pub name: String,
    /// As they were given, with stars.
    pub data_actions: Vec<String>,
    pub assignable_scopes: Vec<RoleScope>,
}

/// A role that a principal has, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleAssignment {
    pub id: RoleId,
    /// The `oid` or `sub` of tokens, or one of their `groups`.
    pub principal: String,
    pub role: RoleId,
    pub scope: RoleScope,
}

/// Why roles stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoleRefused {
    #[error("A role needs a name of at most {NAME_CHARS_MAX} characters.")]
    Name,
    #[error("'{0}' is no data action.")]
    Action(String),
    #[error("A role allows one data action at least, and names each once.")]
    Actions,
    #[error("A role has between one and {SCOPES_MAX} scopes that it can be assigned at.")]
    Scopes,
    #[error("Built-in roles stay as they are.")]
    BuiltIn,
    #[error("There is no role {0}.")]
    NoRole(String),
    #[error("There is no assignment {0}.")]
    NoAssignment(String),
    #[error("The role is assigned: remove its assignments first.")]
    Assigned,
    #[error(
        "An assignment at that scope would not be inside the scopes that it can be assigned at."
    )]
    OutOfScope,
    #[error("A principal has an id of at most {PRINCIPAL_BYTES_MAX} bytes.")]
    Principal,
    #[error("The account has {DEFINITIONS_MAX} roles of its own, which is the maximum.")]
    TooManyRoles,
    #[error("The account has {ASSIGNMENTS_MAX} assignments of roles, which is the maximum.")]
    TooManyAssignments,
}

/// Who presents a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBearer {
    pub id: String,
    pub groups: Vec<String>,
    /// Whether the token has a key of the account in it: then its bearer may do what any role can allow.
    pub has_key: bool,
}

/// The roles of the account.
#[derive(Clone, Debug)]
pub(crate) struct Roles {
    /// With those that are built in.
    definitions: BTreeMap<RoleId, RoleDefinition>,
    assignments: BTreeMap<RoleId, RoleAssignment>,
    /// The same once more, as requests ask for it: what each principal may do where.
    by_principal: BTreeMap<String, Vec<(RoleScope, Actions)>>,
}

/// An action that a bearer lacks at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lacking(pub(crate) DataAction);

impl Default for Roles {
    fn default() -> Roles {
        let definitions = built_in().map(|role| (role.id.clone(), role)).into();
        Roles { definitions, assignments: BTreeMap::new(), by_principal: BTreeMap::new() }
    }
}

/// The two roles that always exist.
fn built_in() -> [RoleDefinition; 2] {
    let role = |number: u8, name: &str, data_actions: Vec<String>| RoleDefinition {
        id: RoleId(format!("{BUILT_IN}{number}")),
        name: name.to_owned(),
        data_actions,
        assignable_scopes: vec![RoleScope::ACCOUNT],
    };
    let reads = [ReadMetadata, ReadItem, ExecuteQuery, ReadChangeFeed];
    let containers = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/";
    let all =
        [ReadMetadata.name().to_owned(), format!("{containers}*"), format!("{containers}items/*")];
    [
        role(1, "Cosmos DB Built-in Data Reader", reads.map(|one| one.name().to_owned()).into()),
        role(2, "Cosmos DB Built-in Data Contributor", all.into()),
    ]
}

/// What the ids of built-in roles begin with.
const BUILT_IN: &str = "00000000-0000-0000-0000-00000000000";

impl RoleId {
    /// Whether it is kept for roles that always exist.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        self.0.starts_with(BUILT_IN)
    }
}

impl Roles {
    pub(crate) fn definitions(&self) -> impl Iterator<Item = &RoleDefinition> {
        self.definitions.values()
    }

    pub(crate) fn assignments(&self) -> impl Iterator<Item = &RoleAssignment> {
        self.assignments.values()
    }

    /// Adds a role, or changes it for all who have it.
    pub(crate) fn define(&mut self, role: RoleDefinition) -> Result<(), RoleRefused> {
        role.check()?;
        let is_new = !self.definitions.contains_key(&role.id);
        if is_new && self.definitions.len() >= DEFINITIONS_MAX + built_in().len() {
            return Err(RoleRefused::TooManyRoles);
        }
        self.definitions.insert(role.id.clone(), role);
        self.index();
        Ok(())
    }

    pub(crate) fn undefine(&mut self, id: &RoleId) -> Result<(), RoleRefused> {
        if id.is_built_in() {
            return Err(RoleRefused::BuiltIn);
        }
        if self.assignments.values().any(|one| one.role == *id) {
            return Err(RoleRefused::Assigned);
        }
        let removed = self.definitions.remove(id);
        removed.map(|_| ()).ok_or_else(|| RoleRefused::NoRole(id.0.clone()))
    }

    /// Adds an assignment, or replaces it.
    pub(crate) fn assign(&mut self, assignment: RoleAssignment) -> Result<(), RoleRefused> {
        let role = self.definitions.get(&assignment.role);
        let role = role.ok_or_else(|| RoleRefused::NoRole(assignment.role.0.clone()))?;
        if !role.assignable_scopes.iter().any(|scope| scope.contains(&assignment.scope)) {
            return Err(RoleRefused::OutOfScope);
        }
        if assignment.principal.is_empty() || assignment.principal.len() > PRINCIPAL_BYTES_MAX {
            return Err(RoleRefused::Principal);
        }
        let is_new = !self.assignments.contains_key(&assignment.id);
        if is_new && self.assignments.len() >= ASSIGNMENTS_MAX {
            return Err(RoleRefused::TooManyAssignments);
        }
        self.assignments.insert(assignment.id.clone(), assignment);
        self.index();
        Ok(())
    }

    pub(crate) fn unassign(&mut self, id: &RoleId) -> Result<(), RoleRefused> {
        let removed = self.assignments.remove(id);
        removed.ok_or_else(|| RoleRefused::NoAssignment(id.0.clone()))?;
        self.index();
        Ok(())
    }

    /// Whether a bearer may do all of this at a place.
    pub(crate) fn check(
        &self,
        bearer: &TokenBearer,
        wanted: Actions,
        place: Place<'_>,
    ) -> Result<(), Lacking> {
        self.check_where(bearer, wanted, |scope| scope.covers(place))
    }

    /// Whether a bearer may read metadata anywhere: enough to learn what the account is.
    pub(crate) fn check_account(&self, bearer: &TokenBearer) -> Result<(), Lacking> {
        self.check_where(bearer, Actions::of(&[ReadMetadata]), |_| true)
    }

    fn check_where(
        &self,
        bearer: &TokenBearer,
        wanted: Actions,
        counts: impl Fn(&RoleScope) -> bool,
    ) -> Result<(), Lacking> {
        let by_key = if bearer.has_key { Actions::ALL } else { Actions::NONE };
        let principals = std::iter::once(&bearer.id).chain(&bearer.groups);
        let assigned = principals.filter_map(|one| self.by_principal.get(one)).flatten();
        let allowed = assigned.filter(|(scope, _)| counts(scope));
        let allowed = allowed.fold(by_key, |all, (_, actions)| all.and(*actions));
        wanted.first_beyond(allowed).map_or(Ok(()), |lacking| Err(Lacking(lacking)))
    }

    fn index(&mut self) {
        self.by_principal.clear();
        for one in self.assignments.values() {
            let role = self.definitions.get(&one.role);
            let actions = role.map_or(Actions::NONE, RoleDefinition::actions);
            let own = self.by_principal.entry(one.principal.clone()).or_default();
            own.push((one.scope.clone(), actions));
        }
    }
}

impl RoleDefinition {
    fn actions(&self) -> Actions {
        let each = self.data_actions.iter().map(|pattern| Actions::matching(pattern));
        each.fold(Actions::NONE, Actions::and)
    }

    fn check(&self) -> Result<(), RoleRefused> {
        if self.id.is_built_in() {
            return Err(RoleRefused::BuiltIn);
        }
        let chars = self.name.chars().count();
        if chars == 0 || chars > NAME_CHARS_MAX {
            return Err(RoleRefused::Name);
        }
        if self.data_actions.is_empty() || self.data_actions.len() > DataAction::ALL.len() {
            return Err(RoleRefused::Actions);
        }
        let mut actions = self.data_actions.iter();
        if let Some(wrong) = actions.find(|one| Actions::matching(one) == Actions::NONE) {
            return Err(RoleRefused::Action(wrong.chars().take(NAME_CHARS_MAX).collect()));
        }
        if self.assignable_scopes.is_empty() || self.assignable_scopes.len() > SCOPES_MAX {
            return Err(RoleRefused::Scopes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
