//! What roles allow, and what they do not.

use super::DataAction::{
    CreateItem, DeleteItem, ExecuteProcedure, ExecuteQuery, ManageConflicts, ReadChangeFeed,
    ReadItem, ReadMetadata, ReplaceItem, UpsertItem,
};
use super::*;

const ITEMS: &str = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/";
const CONTAINERS: &str = "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/";

fn id(number: u32) -> RoleId {
    format!("11111111-0000-0000-0000-{number:012}").parse().unwrap()
}

fn built_in_id(number: u32) -> RoleId {
    format!("{BUILT_IN}{number}").parse().unwrap()
}

fn role(number: u32, actions: &[&str], scopes: &[&str]) -> RoleDefinition {
    RoleDefinition {
        id: id(number),
        name: format!("role {number}"),
        data_actions: actions.iter().map(|one| (*one).to_owned()).collect(),
        assignable_scopes: scopes.iter().map(|one| one.parse().unwrap()).collect(),
    }
}

fn assignment(number: u32, principal: &str, role: RoleId, scope: &str) -> RoleAssignment {
    RoleAssignment {
        id: id(number),
        principal: principal.to_owned(),
        role,
        scope: scope.parse().unwrap(),
    }
}

fn bearer(id: &str, groups: &[&str]) -> TokenBearer {
    let groups = groups.iter().map(|one| (*one).to_owned()).collect();
    TokenBearer { id: id.to_owned(), groups, has_key: false }
}

fn place(text: &'static str) -> Place<'static> {
    let mut names = text.split('/');
    Place { database: names.next().filter(|name| !name.is_empty()), container: names.next() }
}

/// All of it, as it is stored.
fn text(roles: &Roles) -> String {
    model::json::Value::Object(roles.to_record()).to_string()
}

/// The actions that somebody has at a place.
fn has(roles: &Roles, bearer: &TokenBearer, at: &'static str) -> Vec<DataAction> {
    let may = |action: &DataAction| roles.check(bearer, Actions::of(&[*action]), place(at)).is_ok();
    DataAction::ALL.into_iter().filter(may).collect()
}

#[test]
fn the_built_in_roles_are_those_of_the_service() {
    let mut roles = Roles::default();
    roles.assign(assignment(1, "reader", built_in_id(1), "/")).unwrap();
    roles.assign(assignment(2, "writer", built_in_id(2), "/dbs/d")).unwrap();
    let reader = [ReadMetadata, ReadItem, ExecuteQuery, ReadChangeFeed];
    assert_eq!(has(&roles, &bearer("reader", &[]), "d/c"), reader);
    assert_eq!(has(&roles, &bearer("writer", &[]), "d/c"), DataAction::ALL);
    for at in ["", "e", "e/c"] {
        assert_eq!(has(&roles, &bearer("writer", &[]), at), [], "{at}");
    }
    assert_eq!(has(&roles, &bearer("nobody", &[]), "d/c"), []);
    assert_eq!(has(&roles, &bearer("nobody", &["x", "reader"]), "d/c"), reader);
}

#[test]
fn actions_add_up_where_their_scopes_meet() {
    let mut roles = Roles::default();
    let reads = format!("{ITEMS}read");
    roles.define(role(1, &[&reads], &["/dbs/d"])).unwrap();
    roles.define(role(2, &[&format!("{ITEMS}create")], &["/dbs/d/colls/c", "/dbs/e"])).unwrap();
    roles.assign(assignment(1, "ada", id(1), "/dbs/d")).unwrap();
    roles.assign(assignment(2, "ada", id(2), "/dbs/d/colls/c")).unwrap();
    let ada = bearer("ada", &[]);
    assert_eq!(has(&roles, &ada, "d/c"), [CreateItem, ReadItem]);
    assert_eq!(has(&roles, &ada, "d/other"), [ReadItem]);
    assert_eq!(has(&roles, &ada, "e/c"), []);
    let both = Actions::of(&[CreateItem, ReadItem]);
    assert_eq!(roles.check(&ada, both, place("d/c")), Ok(()));
    assert_eq!(roles.check(&ada, both, place("d/other")), Err(Lacking(CreateItem)));
    // A role that changes does so for all who have it.
    roles.define(role(1, &[&format!("{ITEMS}DELETE")], &["/dbs/d"])).unwrap();
    assert_eq!(has(&roles, &ada, "d/c"), [CreateItem, DeleteItem]);
    roles.unassign(&id(2)).unwrap();
    assert_eq!(has(&roles, &ada, "d/c"), [DeleteItem]);
    assert_eq!(roles.check_account(&ada), Err(Lacking(ReadMetadata)));
}

#[test]
fn stars_stand_for_what_items_or_containers_have() {
    let matching = |pattern: &str| {
        let set = Actions::matching(pattern);
        let lacks = |action: &DataAction| Actions::of(&[*action]).first_beyond(set).is_some();
        DataAction::ALL.into_iter().filter(|one| !lacks(one)).collect::<Vec<_>>()
    };
    let items = [CreateItem, ReadItem, ReplaceItem, UpsertItem, DeleteItem];
    assert_eq!(matching(&format!("{ITEMS}*")), items);
    let containers = [ExecuteQuery, ReadChangeFeed, ExecuteProcedure, ManageConflicts];
    assert_eq!(matching(&format!("{CONTAINERS}*")), containers);
    for nothing in [
        "",
        "*",
        "/*",
        "Microsoft.DocumentDB/*",
        "Microsoft.DocumentDB/databaseAccounts/*",
        "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/*",
        "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/write",
        "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/re*",
        "x/containers/*",
        "/containers/",
    ] {
        assert_eq!(matching(nothing), [], "{nothing}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let mut roles = Roles::default();
    let read = format!("{ITEMS}read");
    let before = text(&roles);
    let nameless = RoleDefinition { name: String::new(), ..role(1, &[&read], &["/"]) };
    let many: Vec<String> = (0..=SCOPES_MAX).map(|n| format!("/dbs/{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (wrong, expected) in [
        (nameless, RoleRefused::Name),
        (role(1, &[], &["/"]), RoleRefused::Actions),
        (role(1, &[&read, "sqlDatabases/write"], &["/"]), {
            RoleRefused::Action("sqlDatabases/write".to_owned())
        }),
        (role(1, &[&read], &[]), RoleRefused::Scopes),
        (role(1, &[&read], &many), RoleRefused::Scopes),
        (RoleDefinition { id: built_in_id(2), ..role(1, &[&read], &["/"]) }, RoleRefused::BuiltIn),
        (RoleDefinition { id: built_in_id(7), ..role(1, &[&read], &["/"]) }, RoleRefused::BuiltIn),
    ] {
        assert_eq!(roles.define(wrong), Err(expected));
    }
    let unknown = RoleRefused::NoRole(id(9).as_str().to_owned());
    assert_eq!(roles.assign(assignment(1, "ada", id(9), "/")), Err(unknown));
    let nobody = assignment(1, "", built_in_id(1), "/");
    assert_eq!(roles.assign(nobody), Err(RoleRefused::Principal));
    assert_eq!(roles.undefine(&built_in_id(1)), Err(RoleRefused::BuiltIn));
    assert_eq!(text(&roles), before);
    roles.define(role(1, &[&read], &["/dbs/d"])).unwrap();
    for outside in ["/", "/dbs/e", "/dbs/e/colls/c"] {
        let wider = assignment(1, "ada", id(1), outside);
        assert_eq!(roles.assign(wider), Err(RoleRefused::OutOfScope), "{outside}");
    }
    roles.assign(assignment(1, "ada", id(1), "/dbs/d/colls/c")).unwrap();
    assert_eq!(roles.undefine(&id(1)), Err(RoleRefused::Assigned));
}

#[test]
fn there_are_as_many_as_the_service_allows() {
    let mut roles = Roles::default();
    for number in 0..100 {
        roles.define(role(number, &[&format!("{ITEMS}read")], &["/"])).unwrap();
    }
    let one_more = role(100, &[&format!("{ITEMS}read")], &["/"]);
    assert_eq!(roles.define(one_more), Err(RoleRefused::TooManyRoles));
    roles.define(role(99, &[&format!("{ITEMS}create")], &["/"])).unwrap();
    for number in 0..2_000 {
        let (id, scope) = (id(number), RoleScope::ACCOUNT);
        let one = RoleAssignment { id, principal: "ada".to_owned(), role: built_in_id(1), scope };
        // Without the index, which would be built again each time.
        roles.assignments.insert(one.id.clone(), one);
    }
    let one_more = assignment(2_000, "ada", built_in_id(1), "/");
    assert_eq!(roles.assign(one_more), Err(RoleRefused::TooManyAssignments));
}

#[test]
fn scopes_have_one_spelling() {
    for text in ["/", "/dbs/d", "/dbs/d/colls/c", "/dbs/a b/colls/dbs"] {
        assert_eq!(text.parse::<RoleScope>().unwrap().to_string(), text);
    }
    let long = format!("/dbs/{}", "x".repeat(600));
    for text in [
        "",
        "//",
        "dbs/d",
        "/dbs",
        "/dbs/",
        "/dbs/d/",
        "/dbs//colls/c",
        "/dbs/d/colls",
        "/dbs/d/colls/c/docs/1",
        "/dbs/d/users/u",
        "/offers/AAAB",
        "/colls/c",
        "/DBS/d",
        &long,
    ] {
        assert!(text.parse::<RoleScope>().is_err(), "{text}");
    }
}

#[test]
fn what_is_stored_is_what_is_read() {
    let mut roles = Roles::default();
    roles.define(role(1, &[&format!("{ITEMS}*")], &["/dbs/d", "/dbs/e/colls/c"])).unwrap();
    roles.assign(assignment(1, "ada", id(1), "/dbs/e/colls/c")).unwrap();
    roles.assign(assignment(2, "bob", built_in_id(1), "/")).unwrap();
    let record = model::json::parse(text(&roles).as_bytes()).unwrap();
    let again = Roles::from_record(&record).unwrap();
    assert_eq!(text(&again), text(&roles));
    assert_eq!(has(&again, &bearer("ada", &[]), "e/c"), has(&roles, &bearer("ada", &[]), "e/c"));
    for damaged in ["{}", r#"{"version":2,"definitions":[],"assignments":[]}"#] {
        let damaged = model::json::parse(damaged.as_bytes()).unwrap();
        assert!(Roles::from_record(&damaged).is_err());
    }
}
