//! Dropping a database with more containers than one transaction can drop.

use std::sync::Arc;

use model::limits::Limits;
use service::{
    Feed, Kind, Link, ListResources, Principal, Request, ResourceRest, Service, ThroughputRules,
};
use storage::{Store, memory};
use testkit::faulty::{Fault, FaultyStore};
use testkit::wait::block_on;

use crate::fixture::Fixture;

/// More than any single transaction takes.
const CONTAINERS: usize = 1_500;

fn roomy() -> Limits {
    Limits { databases_and_containers_max: 2 * CONTAINERS, ..Limits::default() }
}

fn fill(fixture: &Fixture) {
    for number in 0..CONTAINERS {
        let body = format!(r#"{{"id":"c{number}","partitionKey":{{"paths":["/pk"]}}}}"#);
        fixture.create("dbs/d", Kind::Container, &body).unwrap();
    }
    fixture.create_item("c7", r#"{"id":"1","pk":"x"}"#.to_owned()).unwrap();
}

/// How many offers there are: every container has one of its own.
fn offers(service: &Service) -> usize {
    let (mut after, mut count) = (None, 0);
    loop {
        let (parent, kind) = (Link::default(), Kind::Offer);
        let list = ListResources { parent, kind, after, items_max: 1_000 };
        let request = Request::new(Principal::Account, list);
        let Feed { bodies, rest, .. } = block_on(service.execute(request)).unwrap().reply;
        count += bodies.len();
        match rest {
            Some(ResourceRest::AfterName(name)) => after = Some(name),
            Some(_) | None => return count,
        }
    }
}

#[test]
fn a_database_with_thousands_of_containers_is_dropped() {
    let fixture = Fixture::with_limits(roomy());
    fill(&fixture);
    assert_eq!(offers(&fixture.service), CONTAINERS);
    fixture.delete("dbs/d");
    assert_eq!(offers(&fixture.service), 0);
    let swept = block_on(fixture.service.maintenance().sweep()).unwrap();
    assert_eq!(swept.containers, CONTAINERS as u64);
    assert!(fixture.service.operator(Principal::Account).check(|_| {}).unwrap().is_clean());
    fixture.create("", Kind::Database, r#"{"id":"d"}"#).unwrap();
    assert!(fixture.create_item("c7", r#"{"id":"1","pk":"x"}"#.to_owned()).is_err());
}

/// An interrupted drop is finished by the sweep.
#[test]
fn a_drop_that_was_cut_short_is_finished_by_the_sweep() {
    let store = memory::create();
    let faulty = FaultyStore::new(Arc::clone(&store));
    let fixture =
        Fixture::over(Arc::clone(&faulty) as Arc<dyn Store>, roomy(), ThroughputRules::UNLIMITED);
    fixture.create("", Kind::Database, r#"{"id":"d"}"#).unwrap();
    fill(&fixture);
    faulty.script([Fault::Pass, Fault::Pass, Fault::Refuse]);
    fixture.delete("dbs/d");
    assert_eq!(faulty.log().iter().filter(|fault| **fault == Fault::Refuse).count(), 1);
    drop(fixture);

    let again = Fixture::over(store, roomy(), ThroughputRules::UNLIMITED);
    let left = offers(&again.service);
    assert!((1..CONTAINERS).contains(&left), "{left} of {CONTAINERS} are still to be dropped");
    assert!(
        again.service.operator(Principal::Account).check(|_| {}).unwrap().is_clean(),
        "what is being removed is no stray"
    );
    let swept = block_on(again.service.maintenance().sweep()).unwrap();
    assert_eq!((swept.containers, offers(&again.service)), (CONTAINERS as u64, 0));
    assert!(again.service.operator(Principal::Account).check(|_| {}).unwrap().is_clean());
}
