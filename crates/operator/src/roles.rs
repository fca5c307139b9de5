//! Roles of the bearers of tokens: `/_orrery/roles`.
//!
//! A GET lists all roles and who has them. A POST defines or removes a role, assigns one or takes
//! an assignment back: one of these at a time.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use service::identity::{RoleAssignment, RoleDefinition, RoleId, RoleScope};
use service::{Operator, Service};

use crate::error::OperatorError;
use crate::request::parse;

const EXAMPLE: &str = r#"{"assign":{"principalId":"96313034-4739-43cb-93cd-74193adbe5b6","roleDefinitionId":"00000000-0000-0000-0000-000000000002","scope":"/dbs/D"}}, {"define":{"roleName":"reader","dataActions":["Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/read"],"assignableScopes":["/"]}}, {"unassign":"ID"} or {"undefine":"ID"}"#;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Wanted {
    Define(Definition),
    Undefine(String),
    Assign(Assignment),
    Unassign(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Definition {
    id: Option<String>,
    role_name: String,
    data_actions: Vec<String>,
    assignable_scopes: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Assignment {
    id: Option<String>,
    principal_id: String,
    role_definition_id: String,
    scope: String,
}

pub(crate) fn list(operator: &Operator<'_>) -> Result<Value, OperatorError> {
    let (definitions, assignments) = operator.roles()?;
    Ok(json!({
        "definitions": definitions.iter().map(definition).collect::<Vec<_>>(),
        "assignments": assignments.iter().map(assignment).collect::<Vec<_>>(),
    }))
}

pub(crate) async fn change(
    operator: Operator<'_>,
    service: &Service,
    body: &Bytes,
) -> Result<Value, OperatorError> {
    match parse(body, EXAMPLE)? {
        Wanted::Define(wanted) => {
            let role = wanted.parse(service)?;
            let shown = definition(&role);
            operator.define_role(role).await?;
            Ok(shown)
        }
        Wanted::Assign(wanted) => {
            let new = wanted.parse(service)?;
            let shown = assignment(&new);
            operator.assign_role(new).await?;
            Ok(shown)
        }
        Wanted::Undefine(id) => {
            operator.remove_role(&role_id(&id)?).await?;
            Ok(json!({ "removed": id }))
        }
        Wanted::Unassign(id) => {
            operator.unassign_role(&role_id(&id)?).await?;
            Ok(json!({ "removed": id }))
        }
    }
}

impl Definition {
    fn parse(self, service: &Service) -> Result<RoleDefinition, OperatorError> {
        let scopes = self.assignable_scopes.iter().map(|text| scope(text));
        Ok(RoleDefinition {
            id: given_or_new(self.id.as_deref(), service)?,
            name: self.role_name,
            data_actions: self.data_actions,
            assignable_scopes: scopes.collect::<Result<_, _>>()?,
        })
    }
}

impl Assignment {
    fn parse(self, service: &Service) -> Result<RoleAssignment, OperatorError> {
        Ok(RoleAssignment {
            id: given_or_new(self.id.as_deref(), service)?,
            principal: self.principal_id,
            role: role_id(&self.role_definition_id)?,
            scope: scope(&self.scope)?,
        })
    }
}

fn given_or_new(id: Option<&str>, service: &Service) -> Result<RoleId, OperatorError> {
    id.map_or_else(|| Ok(service.new_role_id()), role_id)
}

fn role_id(text: &str) -> Result<RoleId, OperatorError> {
    text.parse().map_err(|error| OperatorError::malformed(format!("{error}")))
}

fn scope(text: &str) -> Result<RoleScope, OperatorError> {
    text.parse().map_err(|error| OperatorError::malformed(format!("{error}")))
}

fn definition(role: &RoleDefinition) -> Value {
    let scopes: Vec<String> = role.assignable_scopes.iter().map(ToString::to_string).collect();
    json!({
        "id": role.id.as_str(),
        "roleName": role.name,
        "type": if role.id.is_built_in() { "BuiltInRole" } else { "CustomRole" },
        "dataActions": role.data_actions,
        "assignableScopes": scopes,
    })
}

fn assignment(one: &RoleAssignment) -> Value {
    json!({
        "id": one.id.as_str(),
        "principalId": one.principal,
        "roleDefinitionId": one.role.as_str(),
        "scope": one.scope.to_string(),
    })
}
