//! How long a container keeps every version of its items for the change feed.

use super::PolicyError;
use super::fields::Fields;
use crate::json::{Object, Value};

/// Retention of versions and deletes, for the all-versions change feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeFeedPolicy {
    retention_minutes: u32,
}

impl ChangeFeedPolicy {
    /// Reads the value of `changeFeedPolicy`.
    pub fn parse(value: &Value) -> Result<ChangeFeedPolicy, PolicyError> {
        let fields = Fields::of("changeFeedPolicy".to_owned(), value)?;
        let minutes = fields.integer("retentionDuration")?.unwrap_or_default();
        let retention_minutes = u32::try_from(minutes).ok();
        let retention_minutes = retention_minutes.ok_or_else(|| PolicyError::OutOfRange {
            field: fields.name_of("retentionDuration"),
            value: minutes.to_string(),
            expected: "a number of minutes from 0",
        })?;
        Ok(ChangeFeedPolicy { retention_minutes })
    }

    /// Minutes for which versions are kept; 0 keeps none.
    #[must_use]
    pub fn retention_minutes(self) -> u32 {
        self.retention_minutes
    }

    #[must_use]
    pub fn to_value(self) -> Value {
        Object::from_iter([("retentionDuration", self.retention_minutes)]).into()
    }
}
