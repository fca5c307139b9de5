//! Roles as the catalogue keeps them: one record, since there are few and every request may
//! need them.

use model::json::{Object, Value};

use super::{RoleAssignment, RoleDefinition, Roles};
use crate::error::ServiceError;

const VERSION: u32 = 1;

impl Roles {
    /// The built-in roles are not stored.
    pub(crate) fn to_record(&self) -> Object {
        let own = self.definitions().filter(|role| !role.id.is_built_in());
        Object::from_iter([
            ("version", Value::from(VERSION)),
            ("definitions", Value::from(own.map(definition).collect::<Vec<_>>())),
            ("assignments", Value::from(self.assignments().map(assignment).collect::<Vec<_>>())),
        ])
    }

    pub(crate) fn from_record(record: &Value) -> Result<Roles, ServiceError> {
        let damaged = || ServiceError::internal("the record of roles is malformed");
        let version = record.get("version").and_then(Value::as_number);
        if version.and_then(|version| version.as_i64()) != Some(i64::from(VERSION)) {
            return Err(damaged());
        }
        let list = |name| record.get(name).and_then(Value::as_array).ok_or_else(damaged);
        let mut roles = Roles::default();
        for one in list("definitions")? {
            let role = parse_definition(one).ok_or_else(damaged)?;
            roles.define(role).map_err(ServiceError::internal)?;
        }
        for one in list("assignments")? {
            let assignment = parse_assignment(one).ok_or_else(damaged)?;
            roles.assign(assignment).map_err(ServiceError::internal)?;
        }
        Ok(roles)
    }
}

fn definition(role: &RoleDefinition) -> Object {
    let scopes: Vec<String> = role.assignable_scopes.iter().map(ToString::to_string).collect();
    Object::from_iter([
        ("id", Value::from(role.id.as_str())),
        ("name", Value::from(role.name.as_str())),
        ("dataActions", Value::from(role.data_actions.clone())),
        ("assignableScopes", Value::from(scopes)),
    ])
}

fn parse_definition(value: &Value) -> Option<RoleDefinition> {
    let text = |name| value.get(name).and_then(Value::as_str);
    let texts = |name| value.get(name).and_then(Value::as_array).unwrap_or_default().iter();
    Some(RoleDefinition {
        id: text("id")?.parse().ok()?,
        name: text("name")?.to_owned(),
        data_actions: texts("dataActions")
            .map(|one| one.as_str().map(str::to_owned))
            .collect::<Option<_>>()?,
        assignable_scopes: texts("assignableScopes")
            .map(|one| one.as_str()?.parse().ok())
            .collect::<Option<_>>()?,
    })
}

fn assignment(one: &RoleAssignment) -> Object {
    Object::from_iter([
        ("id", Value::from(one.id.as_str())),
        ("principal", Value::from(one.principal.as_str())),
        ("role", Value::from(one.role.as_str())),
        ("scope", Value::from(one.scope.to_string())),
    ])
}

fn parse_assignment(value: &Value) -> Option<RoleAssignment> {
    let text = |name| value.get(name).and_then(Value::as_str);
    Some(RoleAssignment {
        id: text("id")?.parse().ok()?,
        principal: text("principal")?.to_owned(),
        role: text("role")?.parse().ok()?,
        scope: text("scope")?.parse().ok()?,
    })
}
