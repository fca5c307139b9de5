//! Unique keys: combinations of values that may occur once per logical partition.

use super::PolicyError;
use super::fields::{Fields, at_most};
use super::path::PropertyPath;
use crate::json::{Object, Value};

const KEYS_MAX: usize = 10;
const KEY_PATHS_MAX: usize = 16;

/// The unique keys of a container, fixed when it is created.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UniqueKeyPolicy {
    keys: Vec<UniqueKey>,
}

/// Paths whose values together must be unique within a logical partition. A
/// missing value counts as null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UniqueKey {
    paths: Vec<PropertyPath>,
}

impl UniqueKeyPolicy {
    /// Reads the value of `uniqueKeyPolicy`.
    pub fn parse(value: &Value) -> Result<UniqueKeyPolicy, PolicyError> {
        let fields = Fields::of("uniqueKeyPolicy".to_owned(), value)?;
        let objects = fields.objects("uniqueKeys")?;
        at_most("unique keys", objects.len(), KEYS_MAX)?;
        let keys = objects.iter().map(UniqueKey::read).collect::<Result<_, _>>()?;
        Ok(UniqueKeyPolicy { keys })
    }

    #[must_use]
    pub fn keys(&self) -> &[UniqueKey] {
        &self.keys
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    #[must_use]
    pub fn to_value(&self) -> Value {
        let keys: Value = self.keys.iter().map(UniqueKey::to_value).collect();
        Object::from_iter([("uniqueKeys", keys)]).into()
    }
}

impl UniqueKey {
    fn read(fields: &Fields<'_>) -> Result<UniqueKey, PolicyError> {
        let texts = fields.strings("paths")?;
        at_most("paths of a unique key", texts.len(), KEY_PATHS_MAX)?;
        if texts.is_empty() {
            return Err(PolicyError::EmptyUniqueKey);
        }
        let field = fields.name_of("paths");
        let mut paths = Vec::with_capacity(texts.len());
        for text in texts {
            let path = PropertyPath::parse(&field, text)?;
            if paths.contains(&path) {
                return Err(PolicyError::Repeated { field, path: path.to_string() });
            }
            paths.push(path);
        }
        Ok(UniqueKey { paths })
    }

    /// The paths, in the order in which their values form the key; never empty.
    #[must_use]
    pub fn paths(&self) -> &[PropertyPath] {
        &self.paths
    }

    fn to_value(&self) -> Value {
        let paths: Value = self.paths.iter().map(PropertyPath::as_str).collect();
        Object::from_iter([("paths", paths)]).into()
    }
}
