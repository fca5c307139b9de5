//! Who wins when two regions change the same item.

use super::PolicyError;
use super::fields::{Fields, named, unknown_name};
use super::path::PropertyPath;
use crate::json::{Object, Value};

/// The path that decides the last writer by default.
const TIMESTAMP: &str = "/_ts";

/// How a conflict between regions is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConflictResolutionPolicy {
    /// The item with the largest number at the path wins.
    LastWriterWins { path: PropertyPath },
    /// A stored procedure decides; without one, conflicts wait in the feed.
    Custom { procedure: Option<String> },
}

#[derive(Clone, Copy)]
enum Mode {
    LastWriterWins,
    Custom,
}

const MODES: [(&str, Mode); 2] =
    [("LastWriterWins", Mode::LastWriterWins), ("Custom", Mode::Custom)];

impl Default for ConflictResolutionPolicy {
    fn default() -> ConflictResolutionPolicy {
        let path = PropertyPath::read(TIMESTAMP).expect("the default path is valid");
        ConflictResolutionPolicy::LastWriterWins { path }
    }
}

impl ConflictResolutionPolicy {
    /// Reads the value of `conflictResolutionPolicy`. Empty strings count as
    /// absent: that is how clients read the field that the mode does not use.
    pub fn parse(value: &Value) -> Result<ConflictResolutionPolicy, PolicyError> {
        let fields = Fields::of("conflictResolutionPolicy".to_owned(), value)?;
        let path = text(&fields, "conflictResolutionPath")?;
        let procedure = text(&fields, "conflictResolutionProcedure")?;
        let mode = match fields.string("mode")? {
            None => Mode::LastWriterWins,
            Some(name) => named(&MODES, name)
                .ok_or_else(|| unknown_name(fields.name_of("mode"), name, &MODES))?,
        };
        let unused = |mode, field| Err(PolicyError::ConflictField { mode, field });
        match (mode, path, procedure) {
            (Mode::LastWriterWins, _, Some(_)) => unused("LastWriterWins", "procedure"),
            (Mode::Custom, Some(_), _) => unused("Custom", "path"),
            (Mode::LastWriterWins, path, None) => {
                let text = path.unwrap_or(TIMESTAMP);
                let invalid = || PolicyError::ConflictPath { path: text.to_owned() };
                let path = PropertyPath::read(text).ok_or_else(invalid)?;
                Ok(ConflictResolutionPolicy::LastWriterWins { path })
            }
            (Mode::Custom, None, procedure) => {
                Ok(ConflictResolutionPolicy::Custom { procedure: procedure.map(str::to_owned) })
            }
        }
    }

    /// What is required of a new policy besides: that the path is one property at the top of
    /// the item. Containers from before that rule keep what they have.
    pub fn check_new(&self) -> Result<(), PolicyError> {
        match self {
            ConflictResolutionPolicy::LastWriterWins { path } if path.names().len() != 1 => {
                Err(PolicyError::ConflictPath { path: path.as_str().to_owned() })
            }
            ConflictResolutionPolicy::LastWriterWins { .. }
            | ConflictResolutionPolicy::Custom { .. } => Ok(()),
        }
    }

    #[must_use]
    pub fn to_value(&self) -> Value {
        let (mode, path, procedure) = match self {
            ConflictResolutionPolicy::LastWriterWins { path } => {
                ("LastWriterWins", path.as_str(), "")
            }
            ConflictResolutionPolicy::Custom { procedure } => {
                ("Custom", "", procedure.as_deref().unwrap_or_default())
            }
        };
        let members = [
            ("mode", mode),
            ("conflictResolutionPath", path),
            ("conflictResolutionProcedure", procedure),
        ];
        Object::from_iter(members).into()
    }
}

fn text<'a>(fields: &Fields<'a>, name: &str) -> Result<Option<&'a str>, PolicyError> {
    Ok(fields.string(name)?.filter(|text| !text.is_empty()))
}
