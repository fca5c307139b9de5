//! Partial updates: up to ten operations on one item, all or nothing.

mod pointer;

use model::json::{Number, Object, Value};
use model::limits::Limits;
use model::partition_key::PartitionKeyDefinition;
use model::system_properties::SYSTEM_PROPERTIES;
use query::Condition;

use pointer::{Obstacle, Pointer};

/// A checked patch: its operations, and its condition.
#[derive(Clone, Debug)]
pub struct Patch {
    /// Boxed: rare, and large beside the rest of a command.
    pub(crate) condition: Option<Box<Condition>>,
    operations: Vec<Operation>,
}

#[derive(Clone, Debug)]
enum Operation {
    Add { path: Pointer, value: Value },
    Set { path: Pointer, value: Value },
    Replace { path: Pointer, value: Value },
    Remove { path: Pointer },
    Increment { path: Pointer, by: Number },
    Move { from: Pointer, path: Pointer },
}

/// Why a patch cannot be executed. All of these are the client's to correct.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    #[error("The patch request must be an object with an 'operations' array, or such an array")]
    Shape,
    #[error("The patch request has {count} operations; between 1 and {max} are allowed")]
    Count { count: usize, max: usize },
    #[error("Operation {at} of the patch request: {problem}")]
    Operation { at: usize, problem: String },
    /// Uses the service's wording, which clients' tests look for.
    #[error("{0}")]
    NoParent(String),
    #[error("The patched item could not be stored: {0}")]
    Result(String),
    #[error("The condition of the patch request is invalid: {0}")]
    Condition(String),
}

impl PatchError {
    /// The service counts operations from one.
    fn no_parent(at: usize, operation: &str, segment: &str) -> PatchError {
        PatchError::NoParent(format!(
            "For Operation({}): {operation} Operation can only create a child object of an existing node(array or \
             object) and cannot create path recursively, no path found beyond: '{segment}'. Learn more: \
             https://aka.ms/cosmosdbpatchdocs",
            at + 1
        ))
    }
}

impl Patch {
    /// Reads a patch request.
    pub fn parse(body: &Value, limits: &Limits) -> Result<Patch, PatchError> {
        let (operations, condition) = match body {
            Value::Array(operations) => (operations.as_slice(), None),
            Value::Object(object) => {
                let operations =
                    object.get("operations").and_then(Value::as_array).ok_or(PatchError::Shape)?;
                (operations, parse_condition(object)?)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                return Err(PatchError::Shape);
            }
        };
        let (count, max) = (operations.len(), limits.patch_operations_max);
        if count == 0 || count > max {
            return Err(PatchError::Count { count, max });
        }
        let operations = operations
            .iter()
            .enumerate()
            .map(|(at, operation)| {
                parse_operation(operation).map_err(|problem| PatchError::Operation { at, problem })
            })
            .collect::<Result<_, _>>()?;
        Ok(Patch { condition: condition.map(Box::new), operations })
    }

    /// The number of its operations.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.operations.len()).expect("limits are far below")
    }

    /// Refuses to change what identifies an item or belongs to the database.
    pub(crate) fn check_targets(
        &self,
        definition: &PartitionKeyDefinition,
    ) -> Result<(), PatchError> {
        for (at, operation) in self.operations.iter().enumerate() {
            for pointer in operation.pointers() {
                if let Some(problem) = forbidden(pointer, definition) {
                    return Err(PatchError::Operation { at, problem });
                }
            }
        }
        Ok(())
    }

    /// Executes all operations in order on a document.
    pub(crate) fn perform(&self, document: &mut Value) -> Result<(), PatchError> {
        for (at, operation) in self.operations.iter().enumerate() {
            operation.perform(document).map_err(|obstacle| match obstacle {
                Obstacle::NoParent { segment } => {
                    PatchError::no_parent(at, operation.name(), &segment)
                }
                Obstacle::Other(problem) => PatchError::Operation { at, problem },
            })?;
        }
        Ok(())
    }
}

impl Operation {
    fn pointers(&self) -> Vec<&Pointer> {
        match self {
            Operation::Add { path, .. }
            | Operation::Set { path, .. }
            | Operation::Replace { path, .. }
            | Operation::Remove { path }
            | Operation::Increment { path, .. } => vec![path],
            Operation::Move { from, path } => vec![from, path],
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Operation::Add { .. } => "Add",
            Operation::Set { .. } => "Set",
            Operation::Replace { .. } => "Replace",
            Operation::Remove { .. } => "Remove",
            Operation::Increment { .. } => "Increment",
            Operation::Move { .. } => "Move",
        }
    }

    fn perform(&self, document: &mut Value) -> Result<(), Obstacle> {
        match self {
            Operation::Add { path, value } => Ok(path.target(document)?.add(value.clone())?),
            Operation::Set { path, value } => Ok(path.target(document)?.set(value.clone())?),
            Operation::Replace { path, value } => {
                *path.existing(document)? = value.clone();
                Ok(())
            }
            Operation::Remove { path } => Ok(path.target(document)?.remove().map(drop)?),
            Operation::Increment { path, by } => increment(path, *by, document),
            Operation::Move { from, path } => {
                // The value must exist before anything changes, and `path` is resolved
                // after the removal, as in RFC 6902.
                let value = from.target(document)?.remove()?;
                Ok(path.target(document)?.set(value)?)
            }
        }
    }
}

fn increment(path: &Pointer, by: Number, document: &mut Value) -> Result<(), Obstacle> {
    let target = path.target(document)?;
    let incremented = match target.get() {
        None => by,
        Some(Value::Number(number)) => sum(*number, by)?,
        Some(other) => {
            return Err(format!("cannot increment {} at '{path}'", other.type_name()).into());
        }
    };
    Ok(target.set(Value::Number(incremented))?)
}

/// Integers add exactly while they fit; everything else as doubles.
fn sum(a: Number, b: Number) -> Result<Number, String> {
    let exact = a.as_i64().zip(b.as_i64()).and_then(|(a, b)| a.checked_add(b));
    match exact {
        Some(sum) => Ok(sum.into()),
        None => Number::from_f64(a.as_f64() + b.as_f64())
            .ok_or_else(|| "the sum is out of range".to_owned()),
    }
}

fn parse_condition(object: &Object) -> Result<Option<Condition>, PatchError> {
    match object.get("condition") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => {
            let condition =
                Condition::parse(text).map_err(|error| PatchError::Condition(error.to_string()))?;
            Ok(Some(condition))
        }
        Some(other) => {
            Err(PatchError::Condition(format!("it is {}, not a string", other.type_name())))
        }
    }
}

fn parse_operation(operation: &Value) -> Result<Operation, String> {
    let text = |name: &str| {
        let value = operation.get(name).and_then(Value::as_str);
        value.ok_or_else(|| format!("'{name}' is missing or not a string"))
    };
    let path = Pointer::parse(text("path")?)?;
    let value = || operation.get("value").cloned().ok_or_else(|| "'value' is missing".to_owned());
    match text("op")? {
        "add" => Ok(Operation::Add { path, value: value()? }),
        "set" => Ok(Operation::Set { path, value: value()? }),
        "replace" => Ok(Operation::Replace { path, value: value()? }),
        "remove" => Ok(Operation::Remove { path }),
        "incr" | "increment" => {
            let value = value()?;
            let by = value
                .as_number()
                .ok_or_else(|| format!("cannot increment by {}", value.type_name()))?;
            Ok(Operation::Increment { path, by })
        }
        "move" => {
            let from = Pointer::parse(text("from")?)?;
            if path.is_inside(&from) {
                return Err(format!("'{from}' cannot be moved into itself"));
            }
            Ok(Operation::Move { from, path })
        }
        other => Err(format!("'{other}' is not one of add, set, replace, remove, incr, move")),
    }
}

fn forbidden(pointer: &Pointer, definition: &PartitionKeyDefinition) -> Option<String> {
    let first = pointer.first();
    if first == "id" || SYSTEM_PROPERTIES.contains(&first) {
        return Some(format!("'{pointer}' cannot be patched"));
    }
    // Changing a node above or below the key path changes the key, too.
    let of_key = definition.paths().iter().any(|path| pointer.touches(path.names()));
    of_key.then(|| format!("'{pointer}' is part of the partition key and cannot be patched"))
}

#[cfg(test)]
mod tests;
