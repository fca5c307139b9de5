//! A multi-read returns what point reads return.

use bytes::Bytes;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use model::rid::ContainerRid;
use model::session::SessionToken;
use service::identity::{GrantScope, Mode, PermissionGrant};
use service::{
    InContainer, ItemAction, ItemOperation, Link, Principal, ReadItems, ReadRanges, Request,
    ServiceError, Throughput,
};
use testkit::wait::block_on;

use crate::fixture::Fixture;

fn filled(items: usize, padding: usize) -> Fixture {
    let fixture = Fixture::new();
    fixture.create_container("c", 2, Throughput::Manual(30_000));
    let text = "x".repeat(padding);
    for item in 0..items {
        let body = format!(r#"{{"id":"{item}","pk":"k{}","text":"{text}"}}"#, item % 7);
        fixture.create_item("c", body).unwrap();
    }
    fixture
}

fn named(item: usize) -> (PartitionKey, ItemId) {
    let key = format!("k{}", item % 7);
    (PartitionKey::new([key.as_str()]), ItemId::parse(&item.to_string()).unwrap())
}

fn bodies(fixture: &Fixture, items: Vec<(PartitionKey, ItemId)>) -> Vec<Option<Bytes>> {
    let found = fixture.within("c", ReadItems { items, session: None }).unwrap().reply;
    found.into_iter().map(|item| item.map(|item| item.text.unwrap())).collect()
}

#[test]
fn items_come_in_the_order_they_were_asked_for() {
    let fixture = filled(50, 0);
    assert!(fixture.ranges("c").len() > 1, "on several partitions");
    let mut items: Vec<_> = (0..50).rev().map(named).collect();
    items.insert(10, named(1_000));
    let (mut charges, mut expected) = (0, Vec::new());
    for (key, id) in &items {
        let read = ItemOperation::Read { id: id.clone(), if_none_match: None };
        let read = fixture.within("c", ItemAction::new(Some(key.clone()), read));
        charges += read.as_ref().map_or(21, |read| read.meta.charge.units());
        expected.push(read.ok().map(|read| read.reply.text.unwrap()));
    }
    assert_eq!(bodies(&fixture, items.clone()), expected);
    let together = fixture.within("c", ReadItems { items, session: None }).unwrap();
    assert_eq!(together.meta.charge.units(), charges, "as much as one by one");
    assert!(bodies(&fixture, Vec::new()).is_empty());
}

#[test]
fn an_answer_is_no_longer_than_a_page() {
    let fixture = filled(5, 1 << 20);
    let found = bodies(&fixture, (0..5).map(named).collect());
    assert_eq!(found.len(), 3, "of a megabyte each in four");
    let many = filled(1, 0);
    assert_eq!(bodies(&many, (0..1_500).map(|_| named(0)).collect()).len(), 1_000);
}

#[test]
fn a_token_for_a_key_opens_no_other() {
    let fixture = filled(8, 0);
    let rid = fixture.within("c", ReadRanges).unwrap().meta.owner.unwrap().rid;
    let key = Some(named(0).0);
    let container = ContainerRid::parse(&rid).unwrap();
    let grant = PermissionGrant { container, scope: GrantScope::Container, mode: Mode::Read, key };
    let link = Link::parse("dbs/d/colls/c").unwrap();
    let read = |items: Vec<_>| {
        let verb = InContainer::new(link.clone(), ReadItems { items, session: None });
        let principal = Principal::Holder(grant.clone().into());
        block_on(fixture.service.execute(Request::new(principal, verb)))
    };
    assert_eq!(read(vec![named(0), named(7)]).unwrap().reply.len(), 2);
    let refused = read(vec![named(0), named(1)]).unwrap_err().error;
    assert!(matches!(refused, ServiceError::NotPermitted), "{refused}");
}

#[test]
fn a_reader_is_not_told_less_than_it_has_seen() {
    let fixture = filled(1, 0);
    let ranges = fixture.ranges("c");
    let texts: Vec<String> = ranges.iter().map(|one| format!("{}:-1#999999", one.id)).collect();
    let session = Some(SessionToken::parse(&texts.join(",")).unwrap());
    let refused = fixture.within("c", ReadItems { items: vec![named(0)], session }).unwrap_err();
    assert!(matches!(refused, ServiceError::SessionNotAvailable), "{refused}");
}
