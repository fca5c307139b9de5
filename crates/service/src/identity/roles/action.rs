//! What roles are made of: the data actions of the service.

/// Something that a role can allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DataAction {
    ReadMetadata,
    CreateItem,
    ReadItem,
    ReplaceItem,
    UpsertItem,
    DeleteItem,
    ExecuteQuery,
    ReadChangeFeed,
    ExecuteProcedure,
    ManageConflicts,
}

use DataAction::{
    CreateItem, DeleteItem, ExecuteProcedure, ExecuteQuery, ManageConflicts, ReadChangeFeed,
    ReadItem, ReadMetadata, ReplaceItem, UpsertItem,
};

impl DataAction {
    pub(crate) const ALL: [DataAction; 10] = [
        ReadMetadata,
        CreateItem,
        ReadItem,
        ReplaceItem,
        UpsertItem,
        DeleteItem,
        ExecuteQuery,
        ReadChangeFeed,
        ExecuteProcedure,
        ManageConflicts,
    ];

    /// As role definitions name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ReadMetadata => "Microsoft.DocumentDB/databaseAccounts/readMetadata",
            CreateItem => {
                "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/create"
            }
            ReadItem => "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/read",
            ReplaceItem => {
                "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/replace"
            }
            UpsertItem => {
                "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/upsert"
            }
            DeleteItem => {
                "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/delete"
            }
            ExecuteQuery => {
                "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeQuery"
            }
            ReadChangeFeed => {
                "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/readChangeFeed"
            }
            ExecuteProcedure => {
                "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeStoredProcedure"
            }
            ManageConflicts => {
                "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/manageConflicts"
            }
        }
    }

    /// Whether a pattern of a definition allows it: its name, or `*` for the last part of it.
    fn is_named_by(self, pattern: &str) -> bool {
        let name = self.name();
        let inside = |text: &str| text.rfind('/').map_or(0, |slash| slash + 1);
        match pattern.strip_suffix('*') {
            // A star is for what items or containers have, and not for the whole account.
            Some(front) if front.ends_with("/containers/") || front.ends_with("/items/") => {
                name.get(..inside(name)).is_some_and(|own| own.eq_ignore_ascii_case(front))
            }
            _ => name.eq_ignore_ascii_case(pattern),
        }
    }
}

/// Several actions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Actions(u16);

impl Actions {
    pub(crate) const NONE: Actions = Actions(0);
    /// What a role can allow at most.
    pub(crate) const ALL: Actions = Actions::of(&DataAction::ALL);

    pub(crate) const fn of(actions: &[DataAction]) -> Actions {
        let (mut set, mut at) = (0, 0);
        while at < actions.len() {
            set |= 1 << actions[at] as u16;
            at += 1;
        }
        Actions(set)
    }

    pub(crate) fn and(self, others: Actions) -> Actions {
        Actions(self.0 | others.0)
    }

    /// What a pattern of a definition allows.
    pub(crate) fn matching(pattern: &str) -> Actions {
        let named = DataAction::ALL.into_iter().filter(|action| action.is_named_by(pattern));
        named.fold(Actions::NONE, |set, action| set.and(Actions::of(&[action])))
    }

    /// The first that is not among those that are allowed.
    pub(crate) fn first_beyond(self, allowed: Actions) -> Option<DataAction> {
        let beyond = Actions(self.0 & !allowed.0);
        DataAction::ALL.into_iter().find(|action| beyond.0 & Actions::of(&[*action]).0 != 0)
    }
}
