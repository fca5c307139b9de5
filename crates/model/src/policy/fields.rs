//! Reading an object field by field, so that a wrong type is always reported
//! with the field's full name, the type it should have and the type it has.
//!
//! A field that is null counts as absent: several SDKs write unset options that way.

use super::PolicyError;
use crate::json::{Object, Value};

/// One object of a policy, with the name that messages call it by.
pub(super) struct Fields<'a> {
    name: String,
    object: &'a Object,
}

impl<'a> Fields<'a> {
    /// The outermost object; its fields are named without a prefix.
    pub(super) fn root(value: &'a Value) -> Result<Fields<'a>, PolicyError> {
        Fields::of(String::new(), value)
    }

    pub(super) fn of(name: String, value: &'a Value) -> Result<Fields<'a>, PolicyError> {
        if let Value::Object(object) = value {
            return Ok(Fields { name, object });
        }
        let field = if name.is_empty() { "body".to_owned() } else { name };
        Err(wrong_type(field, "an object", value))
    }

    /// The full name of a field.
    pub(super) fn name_of(&self, field: &str) -> String {
        if self.name.is_empty() { field.to_owned() } else { format!("{}.{field}", self.name) }
    }

    pub(super) fn value(&self, field: &str) -> Option<&'a Value> {
        self.object.get(field).filter(|value| !value.is_null())
    }

    pub(super) fn string(&self, field: &str) -> Result<Option<&'a str>, PolicyError> {
        self.typed(field, "a string", Value::as_str)
    }

    pub(super) fn boolean(&self, field: &str) -> Result<Option<bool>, PolicyError> {
        self.typed(field, "a boolean", Value::as_bool)
    }

    pub(super) fn integer(&self, field: &str) -> Result<Option<i64>, PolicyError> {
        self.typed(field, "an integer", |value| value.as_number()?.as_i64())
    }

    pub(super) fn number(&self, field: &str) -> Result<Option<f64>, PolicyError> {
        self.typed(field, "a number", |value| value.as_number().map(|number| number.as_f64()))
    }

    pub(super) fn array(&self, field: &str) -> Result<Option<&'a [Value]>, PolicyError> {
        self.typed(field, "an array", Value::as_array)
    }

    pub(super) fn object(&self, field: &str) -> Result<Option<Fields<'a>>, PolicyError> {
        self.value(field).map(|value| Fields::of(self.name_of(field), value)).transpose()
    }

    /// An array of objects; absent is empty.
    pub(super) fn objects(&self, field: &str) -> Result<Vec<Fields<'a>>, PolicyError> {
        self.named_elements(field)?.map(|(name, value)| Fields::of(name, value)).collect()
    }

    /// An array of strings; absent is empty.
    pub(super) fn strings(&self, field: &str) -> Result<Vec<&'a str>, PolicyError> {
        self.named_elements(field)?
            .map(|(name, value)| value.as_str().ok_or_else(|| wrong_type(name, "a string", value)))
            .collect()
    }

    /// The elements of an array with their full names; absent is empty.
    pub(super) fn named_elements(
        &self,
        field: &str,
    ) -> Result<impl Iterator<Item = (String, &'a Value)>, PolicyError> {
        let name = self.name_of(field);
        let elements = self.array(field)?.unwrap_or_default();
        Ok(elements.iter().enumerate().map(move |(at, value)| (format!("{name}[{at}]"), value)))
    }

    /// Turns "absent" into the error that names the field.
    pub(super) fn required<T>(&self, field: &str, found: Option<T>) -> Result<T, PolicyError> {
        found.ok_or_else(|| PolicyError::Missing { field: self.name_of(field) })
    }

    fn typed<T>(
        &self,
        field: &str,
        expected: &'static str,
        cast: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<Option<T>, PolicyError> {
        let Some(value) = self.value(field) else { return Ok(None) };
        match cast(value) {
            Some(typed) => Ok(Some(typed)),
            None => Err(wrong_type(self.name_of(field), expected, value)),
        }
    }
}

pub(super) fn wrong_type(field: String, expected: &'static str, value: &Value) -> PolicyError {
    let found = if expected == "an integer" && value.as_number().is_some() {
        "a number that is not one"
    } else {
        value.type_name()
    };
    PolicyError::WrongType { field, expected, found }
}

/// Finds a name in a table of (spelling, meaning); case does not matter, as in
/// the service.
pub(super) fn named<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(spelling, _)| spelling.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
}

/// The name of a value in its table: the inverse of [`named`].
pub(super) fn spelling<T: PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    let row = table.iter().find(|(_, meaning)| *meaning == value);
    row.map(|(spelling, _)| *spelling).expect("every value is in its table")
}

/// The error for a name that is not in its table.
pub(super) fn unknown_name<T>(field: String, value: &str, table: &[(&str, T)]) -> PolicyError {
    let allowed = table.iter().map(|(spelling, _)| *spelling).collect::<Vec<_>>().join(", ");
    PolicyError::UnknownName { field, value: value.to_owned(), allowed }
}

/// Refuses more than `max` of something.
pub(super) fn at_most(what: &'static str, count: usize, max: usize) -> Result<(), PolicyError> {
    if count > max { Err(PolicyError::TooMany { what, count, max }) } else { Ok(()) }
}
