//! What clients remember survives when partitions split and merge.

use model::name::ItemId;
use model::partition_key::{PartitionKey, PartitionKeyDefinition};
use model::session::SessionToken;
use service::{
    Bulk, BulkOperation, BulkPace, Halve, ItemAction, ItemOperation, ItemResult, Link, ListItems,
    PartitionId, Principal, Response, Scope, ServiceError, Throughput,
};
use testkit::wait::block_on;

use crate::fixture::Fixture;

fn link() -> Link {
    Link::parse("dbs/d/colls/c").unwrap()
}

fn split(fixture: &Fixture, range: u32) {
    block_on(fixture.service.operator(Principal::Account).split(
        &link(),
        PartitionId(range),
        Halve::Hashes,
    ))
    .unwrap();
}

fn filled() -> Fixture {
    let fixture = Fixture::new();
    fixture.create_container("c", 2, Throughput::Manual(400));
    for item in 0..30 {
        fixture.create_item("c", format!(r#"{{"id":"{item}","pk":"k{}"}}"#, item % 10)).unwrap();
    }
    fixture
}

fn read(fixture: &Fixture, token: &str) -> Result<Response<ItemResult>, ServiceError> {
    let key = Some(PartitionKey::new(["k0"]));
    let session = Some(SessionToken::parse(token).unwrap());
    let operation = ItemOperation::Read { id: ItemId::parse("0").unwrap(), if_none_match: None };
    fixture.within("c", ItemAction { key, operation, session })
}

/// Tokens of a range are honoured by its descendants, and refused if they are ahead of
/// them; tokens of unrelated ranges do not matter.
#[test]
fn session_tokens_are_honoured_through_the_whole_ancestry() {
    let fixture = filled();
    split(&fixture, 0);
    split(&fixture, 1);
    block_on(
        fixture
            .service
            .operator(Principal::Account)
            .merge(&link(), &[PartitionId(3), PartitionId(4)]),
    )
    .unwrap();
    let (range, lsn) = read(&fixture, "").unwrap().meta.served_by().unwrap();
    let ranges = fixture.ranges("c");
    let ours = ranges.iter().find(|one| one.id == range).unwrap();
    assert!(ours.parents.contains(&PartitionId(0)));
    for ancestor in ours.parents.iter().chain([&range]) {
        read(&fixture, &format!("{ancestor}:-1#{lsn}")).unwrap();
        read(&fixture, &format!("{ancestor}:-2#999999")).expect("of an older version");
        for ahead in [format!("{ancestor}:-1#{}", lsn.next()), format!("{ancestor}:0#1")] {
            let refused = read(&fixture, &ahead).unwrap_err();
            assert!(matches!(refused, ServiceError::SessionNotAvailable), "{ahead}: {refused}");
        }
    }
    let stranger = ranges.iter().find(|one| one.id != range).unwrap().id;
    read(&fixture, &format!("{stranger}:-1#999999,77:-1#999999")).unwrap();
}

fn list(fixture: &Fixture, range: Option<PartitionId>) -> Result<usize, ServiceError> {
    let scope = Scope { range, ..Scope::default() };
    let list = ListItems { scope, session: None, after: None, items_max: 100, system: None };
    Ok(fixture.within("c", list)?.reply.bodies.len())
}

/// A range that is gone says so; its children have everything it had.
#[test]
fn feeds_by_range_know_old_ranges() {
    let fixture = filled();
    let owner = read(&fixture, "").unwrap().meta.owner.unwrap();
    split(&fixture, 0);
    let gone = list(&fixture, Some(PartitionId(0))).unwrap_err().to_string();
    let rid = owner.rid;
    assert_eq!(gone, format!("PartitionKeyRange with id '0' in collection '{rid}' doesn't exist."));
    let [left, right] = [1, 2].map(|id| list(&fixture, Some(PartitionId(id))).unwrap());
    assert_eq!((left + right, left > 0, right > 0), (30, true, true));
    assert_eq!(list(&fixture, None).unwrap(), 30);
}

#[test]
fn bulk_by_range_knows_old_ranges_and_foreign_keys() {
    let fixture = filled();
    split(&fixture, 0);
    let definition = PartitionKeyDefinition::hash(["/pk"]).unwrap();
    let first = fixture.ranges("c")[0].clone();
    let inside = |key: &str| {
        let position = definition.locate(&PartitionKey::new([key])).unwrap();
        first.range.contains(&position)
    };
    let key = (0..).map(|at| format!("b{at}")).find(|key| inside(key)).unwrap();
    let bulk = |range: u32| {
        let body = format!(r#"{{"id":"bulk-{range}","pk":"{key}"}}"#).into();
        let operation = ItemOperation::Create { body };
        let operation = BulkOperation { key: PartitionKey::new([key.as_str()]), operation };
        let (range, operations) = (Some(PartitionId(range)), vec![operation]);
        let mut results =
            fixture.within("c", Bulk { range, operations, pace: BulkPace::All })?.reply;
        results.remove(0).result.map(|_| ())
    };
    assert!(matches!(bulk(0), Err(ServiceError::RangeGone { range: 0, .. })));
    assert!(bulk(first.id.0).is_ok());
    let foreign = bulk(2);
    assert!(matches!(foreign, Err(ServiceError::RangeGone { range: 2, .. })), "{foreign:?}");
}
