//! Computed properties: names for expressions that queries and the index use
//! like stored properties.
//!
//! Only the shape is checked here. Whether the text is a query of the allowed kind is
//! checked by a layer that can parse queries; this crate cannot.

use super::PolicyError;
use super::fields::{Fields, at_most};
use crate::json::{Object, Value};

const PROPERTIES_MAX: usize = 20;

/// Properties that every item has; a computed one of that name would hide it.
const RESERVED: [&str; 6] = ["id", "_rid", "_self", "_etag", "_attachments", "_ts"];

/// The computed properties of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComputedProperties {
    properties: Vec<ComputedProperty>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComputedProperty {
    pub name: String,
    /// `SELECT VALUE … FROM c`, unchecked.
    pub query: String,
}

impl ComputedProperties {
    pub(super) fn read(container: &Fields<'_>) -> Result<ComputedProperties, PolicyError> {
        let objects = container.objects("computedProperties")?;
        at_most("computed properties", objects.len(), PROPERTIES_MAX)?;
        let mut properties: Vec<ComputedProperty> = Vec::with_capacity(objects.len());
        for fields in objects {
            let next = ComputedProperty::read(&fields)?;
            if properties.iter().any(|earlier| earlier.name == next.name) {
                return Err(PolicyError::ComputedTwice { name: next.name });
            }
            properties.push(next);
        }
        Ok(ComputedProperties { properties })
    }

    #[must_use]
    pub fn properties(&self) -> &[ComputedProperty] {
        &self.properties
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.properties.is_empty()
    }

    #[must_use]
    pub fn to_value(&self) -> Value {
        self.properties.iter().map(ComputedProperty::to_value).collect()
    }
}

impl ComputedProperty {
    fn read(fields: &Fields<'_>) -> Result<ComputedProperty, PolicyError> {
        let text = |field: &'static str| match fields.string(field)? {
            None => Err(PolicyError::ComputedIncomplete),
            Some("") => Err(PolicyError::ComputedEmpty { field }),
            Some(text) => Ok(text.to_owned()),
        };
        let (name, query) = (text("name")?, text("query")?);
        if RESERVED.contains(&name.as_str()) {
            return Err(PolicyError::ComputedName { name });
        }
        Ok(ComputedProperty { name, query })
    }

    fn to_value(&self) -> Value {
        Object::from_iter([("name", self.name.as_str()), ("query", self.query.as_str())]).into()
    }
}
