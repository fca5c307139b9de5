//! Limits are parameters: small ones show quickly what the published ones would.

use std::time::Duration;

use crate::fixture::Fixture;
use model::json::Value;
use model::limits::Limits;
use service::{
    Feed, Kind, Link, ListResources, Principal, QueryResources, Remedy, ResourceRest, ServiceError,
    Throughput,
};
use testkit::wait::block_on;

fn small() -> Fixture {
    Fixture::with_limits(Limits {
        databases_and_containers_max: 3,
        stored_procedures_max: 2,
        users_max: 2,
        permissions_max: 2,
        item_bytes_max: 200,
        request_bytes_max: 500,
        batch_operations_max: 4,
        ..Limits::default()
    })
}

#[test]
fn an_account_holds_so_many_databases_and_containers() {
    let fixture = small();
    fixture.create_container("a", 2, Throughput::Manual(400));
    fixture.create_container("b", 2, Throughput::Manual(400));
    for (parent, kind, body) in [
        ("dbs/d", Kind::Container, r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#),
        ("", Kind::Database, r#"{"id":"e"}"#),
    ] {
        let error = fixture.create(parent, kind, body).unwrap_err();
        assert!(matches!(error, ServiceError::Quota { .. }), "{error:?}");
        assert_eq!(error.remedy(), Remedy::Correct);
    }
    fixture.delete("dbs/d/colls/a");
    fixture.create_container("c", 2, Throughput::Manual(400));
}

#[test]
fn a_container_holds_so_many_scripts_of_each_kind() {
    let fixture = small();
    fixture.create_container("c", 2, Throughput::Manual(400));
    let create = |kind, id: &str| {
        let body = format!(r#"{{"id":"{id}","body":"function () {{}}"}}"#);
        fixture.create("dbs/d/colls/c", kind, &body)
    };
    create(Kind::StoredProcedure, "1").unwrap();
    create(Kind::StoredProcedure, "2").unwrap();
    let error = create(Kind::StoredProcedure, "3").unwrap_err();
    assert!(matches!(error, ServiceError::Quota { .. }), "{error:?}");
    create(Kind::UserDefinedFunction, "3").unwrap();
    fixture.delete("dbs/d/colls/c/sprocs/1");
    create(Kind::StoredProcedure, "3").unwrap();
}

#[test]
fn an_account_has_so_many_users_and_permissions() {
    let fixture = small();
    fixture.create_container("c", 2, Throughput::Manual(400));
    let user = |id: &str| fixture.create("dbs/d", Kind::User, &format!(r#"{{"id":"{id}"}}"#));
    let permission = |user: &str, id: &str| {
        let body = format!(r#"{{"id":"{id}","permissionMode":"Read","resource":"dbs/d/colls/c"}}"#);
        fixture.create(&format!("dbs/d/users/{user}"), Kind::Permission, &body)
    };
    let is_refused = |refused: Result<_, ServiceError>| {
        let error = refused.map(|_| ()).unwrap_err();
        assert!(matches!(error, ServiceError::Quota { .. }), "{error:?}");
    };
    user("1").unwrap();
    user("2").unwrap();
    is_refused(user("3"));
    permission("1", "a").unwrap();
    permission("2", "a").unwrap();
    is_refused(permission("1", "b"));
    // What goes away makes room, and so do the permissions of a user, once they are swept.
    fixture.delete("dbs/d/users/1/permissions/a");
    permission("2", "b").unwrap();
    fixture.delete("dbs/d/users/2");
    user("3").unwrap();
    block_on(fixture.service.maintenance().sweep()).unwrap();
    permission("3", "a").unwrap();
    permission("3", "b").unwrap();
    is_refused(permission("1", "c"));
}

#[test]
fn items_and_requests_have_a_size() {
    let fixture = small();
    fixture.create_container("c", 2, Throughput::Manual(400));
    let item = |id: usize, bytes: usize| {
        let body = format!(r#"{{"id":"{id}","pk":"x","padding":""}}"#);
        let padding = "x".repeat(bytes - body.len());
        body.replace(r#""padding":"""#, &format!(r#""padding":"{padding}""#))
    };
    fixture.create_item("c", item(1, 200)).unwrap();
    let error = fixture.create_item("c", item(2, 201)).unwrap_err();
    assert!(matches!(error, ServiceError::TooLarge { .. }), "{error:?}");
    fixture.batch("c", vec![item(3, 200), item(4, 200)]).unwrap();
    let error = fixture.batch("c", vec![item(5, 200), item(6, 200), item(7, 200)]).unwrap_err();
    assert!(matches!(error, ServiceError::TooLarge { .. }), "{error:?}");
    let many = (10..15).map(|id| item(id, 60)).collect();
    let error = fixture.batch("c", many).unwrap_err();
    assert!(matches!(error, ServiceError::Invalid { .. }), "{error:?}");
    // A patch may not grow an item beyond the limit either.
    let set = format!(r#"{{"op":"set","path":"/more","value":"{}"}}"#, "x".repeat(100));
    let error = fixture.patch("c", "1", &format!(r#"{{"operations":[{set}]}}"#)).unwrap_err();
    assert!(matches!(error, ServiceError::TooLarge { .. }), "{error:?}");
}

#[test]
fn one_of_many_who_create_the_same_thing_succeeds() {
    let fixture = Fixture::new();
    let attempts = |parent: &str, kind, body: &str| {
        let results = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..8).map(|_| scope.spawn(|| fixture.create(parent, kind, body))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        let done = results.iter().filter(|result| result.is_ok()).count();
        let taken = |error: &ServiceError| matches!(error, ServiceError::Conflict { .. });
        let refused = results.iter().filter(|result| result.as_ref().is_err_and(taken)).count();
        (done, refused)
    };
    assert_eq!(attempts("", Kind::Database, r#"{"id":"e"}"#), (1, 7));
    let container = r#"{"id":"c","partitionKey":{"paths":["/pk"]}}"#;
    assert_eq!(attempts("dbs/e", Kind::Container, container), (1, 7));
    assert_eq!(attempts("dbs/e", Kind::User, r#"{"id":"u"}"#), (1, 7));
}

/// A hundredth of a GB for each RU/s of an autoscale maximum: it rises when more is stored.
#[test]
fn an_autoscale_maximum_grows_with_what_is_stored() {
    // Stored bytes count a million times: 100 KB for 100 GB.
    let fixture = Fixture::with_limits(Limits::default().scaled(1_000_000));
    let autoscale = Throughput::Autoscale { max: 1_000, increment_percent: None };
    fixture.create_container("c", 2, autoscale);
    let offer = || {
        let link = Link::parse("dbs/d/colls/c").unwrap();
        block_on(fixture.service.operator(Principal::Account).throughput(&link, None))
            .unwrap()
            .throughput
    };
    for id in 0..11 {
        let padding = "x".repeat(10_000);
        let body = format!(r#"{{"id":"{id}","pk":"{id}","padding":"{padding}"}}"#);
        fixture.create_item("c", body).unwrap();
        block_on(fixture.service.maintenance().scale()).unwrap();
        let expected = if id < 10 { 1_000 } else { 2_000 };
        assert_eq!(offer().rate(), expected, "{id}");
    }
}

#[test]
fn a_page_of_a_feed_ends_before_four_megabytes() {
    const ITEMS: usize = 60;
    let fixture = Fixture::new();
    fixture.create_container("c", 2, Throughput::Manual(10_000));
    // Few, which are sorted, and in all more than a query may keep.
    let text = "x".repeat(1_200_000);
    for n in 0..ITEMS {
        fixture.create_item("c", format!(r#"{{"id":"{n}","pk":"{n}","text":"{text}"}}"#)).unwrap();
    }
    let (mut after, mut items) = (None, 0);
    loop {
        let Feed { bodies, rest, .. } = fixture.page("c", after, 1_000);
        let bytes: usize = bodies.iter().map(|body| body.len()).sum();
        assert!(bytes <= 4 << 20, "{bytes} bytes");
        items += bodies.len();
        match rest {
            Some(position) => after = Some(position),
            None => break,
        }
    }
    assert_eq!(items, ITEMS);
}

/// A page scans a bounded number of items, whether or not they are in it: expired ones are
/// skipped on a thread that others wait for.
#[test]
fn a_page_does_not_look_at_all_that_has_expired() {
    const ITEMS: usize = 10_100;
    let fixture = Fixture::new();
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":2},"defaultTtl":10}"#;
    fixture.create("dbs/d", Kind::Container, body).unwrap();
    let item = |id: usize| format!(r#"{{"id":"{id}","pk":"x"}}"#);
    for first in (0..ITEMS).step_by(100) {
        fixture.batch("c", (first..first + 100).map(item).collect()).unwrap();
    }
    fixture.advance(Duration::from_secs(60));
    fixture.create_item("c", r#"{"id":"last","pk":"x"}"#.to_owned()).unwrap();
    let Feed { bodies, rest, .. } = fixture.page("c", None, 100);
    assert!(bodies.is_empty());
    assert!(rest.is_some(), "there is more");
    let Feed { bodies, rest, .. } = fixture.page("c", rest, 100);
    assert_eq!((bodies.len(), rest), (1, None));
}

/// A feed of scripts comes in pages as well, and a query has to hold them all in memory.
#[test]
fn large_resources_come_in_several_pages() {
    let fixture = Fixture::with_limits(Limits { response_bytes_max: 5_000, ..Limits::default() });
    fixture.create_container("c", 2, Throughput::Manual(400));
    let script = |id: usize| format!(r#"{{"id":"{id:02}","body":"{}"}}"#, "x".repeat(2_000));
    let scripts = || (Link::parse("dbs/d/colls/c").unwrap(), Kind::StoredProcedure);
    let query = || {
        let (parent, kind) = scripts();
        let (text, parameters) = ("SELECT * FROM c".to_owned(), Value::Null);
        let (after, items_max) = (None, 1_000);
        let shown = |body| body;
        fixture.execute(QueryResources { parent, kind, text, parameters, after, items_max, shown })
    };
    for id in 0..10 {
        query().unwrap();
        fixture.create("dbs/d/colls/c", Kind::StoredProcedure, &script(id)).unwrap();
    }
    let error = query().unwrap_err();
    assert!(matches!(error, ServiceError::Quota { .. }), "{error:?}");
    let (mut after, mut counts) = (None, Vec::new());
    loop {
        let (parent, kind) = scripts();
        let list = ListResources { parent, kind, after, items_max: 1_000 };
        let Feed { bodies, rest, .. } = fixture.execute(list).unwrap().reply;
        counts.push(bodies.len());
        let Some(ResourceRest::AfterName(name)) = rest else { break };
        after = Some(name);
    }
    assert_eq!(counts, [2, 2, 2, 2, 2]);
}
