//! Where a role holds: in the account, a database or a container.

use std::fmt;
use std::str::FromStr;

use crate::catalogue::kind::{Kind, Link};

/// Longest scope: two names of the greatest length, and the words between them.
const SCOPE_CHARS_MAX: usize = 2 * model::limits::NAME_CHARS_MAX + "/dbs//colls/".len();

/// A scope by names: `/`, `/dbs/D` or `/dbs/D/colls/C`. What has the name later is inside it,
/// too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleScope {
    database: Option<String>,
    container: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is none of /, /dbs/DATABASE and /dbs/DATABASE/colls/CONTAINER")]
pub struct InvalidScope(String);

/// Where something is done, by names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) database: Option<&'a str>,
    pub(crate) container: Option<&'a str>,
}

impl RoleScope {
    pub const ACCOUNT: RoleScope = RoleScope { database: None, container: None };

    /// Whether another scope is inside this one, or the same.
    pub(crate) fn contains(&self, other: &RoleScope) -> bool {
        self.covers(Place {
            database: other.database.as_deref(),
            container: other.container.as_deref(),
        })
    }

    pub(crate) fn covers(&self, place: Place<'_>) -> bool {
        let is_within = |own: &Option<String>, there: Option<&str>| {
            own.as_deref().is_none_or(|own| there == Some(own))
        };
        is_within(&self.database, place.database) && is_within(&self.container, place.container)
    }
}

impl FromStr for RoleScope {
    type Err = InvalidScope;

    fn from_str(text: &str) -> Result<RoleScope, InvalidScope> {
        let invalid = || InvalidScope(text.chars().take(SCOPE_CHARS_MAX).collect());
        if !text.starts_with('/') || text.chars().count() > SCOPE_CHARS_MAX {
            return Err(invalid());
        }
        let link = Link::parse(text).ok_or_else(invalid)?;
        let name = |name: &String| Some(name.clone()).filter(|name| !name.is_empty());
        let scope = match link.segments() {
            [] => RoleScope::ACCOUNT,
            [(Kind::Database, database)] => RoleScope { database: name(database), container: None },
            [(Kind::Database, database), (Kind::Container, container)] => {
                RoleScope { database: name(database), container: name(container) }
            }
            _ => return Err(invalid()),
        };
        // Another spelling of a scope, such as one with empty names, is not one.
        if scope.to_string() == text { Ok(scope) } else { Err(invalid()) }
    }
}

impl fmt::Display for RoleScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.database, &self.container) {
            (Some(database), Some(container)) => write!(f, "/dbs/{database}/colls/{container}"),
            (Some(database), None) => write!(f, "/dbs/{database}"),
            (None, _) => f.write_str("/"),
        }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.database, self.container) {
            (Some(database), Some(container)) => write!(f, "dbs/{database}/colls/{container}"),
            (Some(database), None) => write!(f, "dbs/{database}"),
            (None, _) => f.write_str("/"),
        }
    }
}
