//! Colliding keys are two keys, however they were made to collide.

use bytes::Bytes;
use model::json;
use model::name::ItemId;
use model::partition_key::{KeyComponent, PartitionKey};
use model::position::Lsn;
use service::identity::{GrantScope, Mode, PermissionGrant};
use service::{
    Approach, Batch, Bulk, BulkOperation, BulkPace, BulkResult, ChangeList, ChangeStart,
    ContainerVerb, Feed, Halve, InContainer, ItemAction, ItemOperation, ItemQuery, Kind, Link,
    ListItems, PartitionId, Principal, ReadRanges, Request, Scope, ServiceError,
};
use testkit::collide::string_like;
use testkit::wait::block_on;

use crate::fixture::Fixture;

/// A container with the items of two keys that collide, and of others around them.
struct World {
    fixture: Fixture,
    names: Vec<&'static str>,
    victim: PartitionKey,
    attacker: PartitionKey,
}

/// Ids that the victim has, and that the attacker has.
const VICTIMS: [&str; 3] = ["both", "victim-1", "victim-2"];
const ATTACKERS: [&str; 2] = ["attacker", "both"];

/// The catalogue is one logical partition, too.
const SYSTEM: u64 = 1;

fn link() -> Link {
    Link::parse("dbs/d/colls/c").unwrap()
}

fn definition(names: &[&str]) -> String {
    let kind = if names.len() > 1 { "MultiHash" } else { "Hash" };
    let paths: Vec<String> = names.iter().map(|name| format!("\"/{name}\"")).collect();
    format!(
        r#"{{"id":"c","partitionKey":{{"paths":[{}],"kind":"{kind}","version":2}},
            "uniqueKeyPolicy":{{"uniqueKeys":[{{"paths":["/mail"]}}]}}}}"#,
        paths.join(",")
    )
}

/// Keys that agree but for one level, where their hashes agree.
fn colliding(victim: &[KeyComponent], level: usize) -> PartitionKey {
    let mut components = victim.to_vec();
    components[level] = KeyComponent::String(string_like(&victim[level], 7));
    components.into_iter().collect()
}

impl World {
    fn new(names: &[&'static str], victim: &PartitionKey, level: usize) -> World {
        let fixture = Fixture::new();
        fixture.create("dbs/d", Kind::Container, &definition(names)).unwrap();
        let attacker = colliding(victim.components(), level);
        let names = names.to_vec();
        let world = World { fixture, names, victim: victim.clone(), attacker };
        for (key, ids) in [(&world.victim, &VICTIMS[..]), (&world.attacker, &ATTACKERS)] {
            for id in ids {
                world.create(key, id);
            }
        }
        for other in 0..40 {
            let other = KeyComponent::String(format!("other-{other}"));
            world.create(&vec![other; world.names.len()].into_iter().collect(), "both");
        }
        world
    }

    /// One for each number of levels and each level.
    fn all() -> Vec<World> {
        let key = |components: &[&str]| PartitionKey::new(components.iter().copied());
        let mut worlds = vec![
            World::new(&["pk"], &key(&["victim"]), 0),
            World::new(&["pk"], &PartitionKey::new([42.0]), 0),
        ];
        for level in 0..2 {
            worlds.push(World::new(&["tenant", "user"], &key(&["t", "u"]), level));
        }
        for level in 0..3 {
            worlds.push(World::new(&["tenant", "user", "at"], &key(&["t", "u", "s"]), level));
        }
        worlds
    }

    fn body(&self, key: &PartitionKey, id: &str) -> String {
        let mut body = format!(r#"{{"id":"{id}","mail":"{id}@example.com""#);
        for (name, component) in self.names.iter().zip(key.components()) {
            let value = PartitionKey::new([component.clone()]).to_string();
            body.push_str(&format!(r#","{name}":{}"#, &value[1..value.len() - 1]));
        }
        body + "}"
    }

    fn create(&self, key: &PartitionKey, id: &str) {
        let body = self.body(key, id).into();
        self.account(item(key, ItemOperation::Create { body })).unwrap();
    }

    fn account(&self, act: Act) -> Result<Done, ServiceError> {
        ask(&self.fixture, &Principal::Account, act)
    }

    /// With a token for everything of a key, or of a prefix.
    fn holder(&self, key: &PartitionKey, act: Act) -> Result<Done, ServiceError> {
        ask(&self.fixture, &self.token(key), act)
    }

    fn token(&self, key: &PartitionKey) -> Principal {
        let rid = self.fixture.within("c", ReadRanges).unwrap().meta.owner.unwrap().rid;
        let container = model::rid::ContainerRid::parse(rid.as_ref()).unwrap();
        let (scope, mode, key) = (GrantScope::Container, Mode::All, Some(key.clone()));
        let grant = PermissionGrant { container, scope, mode, key };
        Principal::Holder(grant.into())
    }

    /// Ids of what a list, a query, a feed of changes and counts have under a key.
    fn seen(&self, key: &PartitionKey) -> Vec<Vec<String>> {
        let reads = [list(key), query(key, "SELECT * FROM c"), changes(key)];
        let by_index = query(key, "SELECT * FROM c WHERE c.mail > '' ORDER BY c.mail");
        reads.into_iter().chain([by_index]).map(|read| ids(self.holder(key, read))).collect()
    }

    fn counts(&self, key: &PartitionKey) -> [String; 3] {
        [
            "SELECT VALUE COUNT(1) FROM c",
            "SELECT VALUE COUNT(1) FROM c WHERE c.mail > ''",
            "SELECT VALUE COUNT(1) FROM c WHERE IS_DEFINED(c.id)",
        ]
        .map(|text| rows(self.holder(key, query(key, text))).concat())
    }

    /// Neither sees anything of the other, and nothing is lost.
    fn check(&self) {
        for (key, expected) in [(&self.victim, &VICTIMS[..]), (&self.attacker, &ATTACKERS)] {
            for seen in self.seen(key) {
                assert_eq!(seen, expected, "{key}");
            }
            let count = expected.len().to_string();
            assert_eq!(self.counts(key), [&*count, &count, &count], "{key}");
        }
        let everything = query_all("SELECT VALUE COUNT(1) FROM c");
        assert_eq!(rows(self.account(everything)), ["45"]);
        assert_eq!(self.fixture.logical_partitions(), 42 + SYSTEM);
    }
}

/// Any verb.
#[derive(Clone, Debug)]
enum Act {
    Item(ItemAction),
    Batch(Batch),
    Bulk(Bulk),
    List(ListItems),
    Changes(ChangeList),
    Query(Box<ItemQuery>),
}

/// Its result.
#[derive(Debug)]
enum Done {
    Texts(Vec<Bytes>),
    Bulk(Vec<BulkResult>),
}

fn ask(fixture: &Fixture, principal: &Principal, act: Act) -> Result<Done, ServiceError> {
    Ok(match act {
        Act::Item(action) => {
            Done::Texts(send(fixture, principal, action)?.text.into_iter().collect())
        }
        Act::Batch(batch) => {
            let results = send(fixture, principal, batch)?;
            Done::Texts(results.into_iter().filter_map(|result| result.text).collect())
        }
        Act::Bulk(bulk) => Done::Bulk(send(fixture, principal, bulk)?),
        Act::List(list) => Done::Texts(send(fixture, principal, list)?.bodies),
        Act::Changes(list) => {
            let changes = send(fixture, principal, list)?.changes;
            Done::Texts(changes.into_iter().map(|change| change.text).collect())
        }
        Act::Query(query) => Done::Texts(send(fixture, principal, *query)?.rows),
    })
}

fn send<V: ContainerVerb>(
    fixture: &Fixture,
    principal: &Principal,
    verb: V,
) -> Result<V::Reply, ServiceError> {
    let request = Request::new(principal.clone(), InContainer::new(link(), verb));
    Ok(block_on(fixture.service.execute(request))?.reply)
}

fn item(key: &PartitionKey, operation: ItemOperation) -> Act {
    Act::Item(ItemAction::new(Some(key.clone()), operation))
}

fn id_of(id: &str) -> ItemId {
    ItemId::parse(id).unwrap()
}

fn scope(key: &PartitionKey) -> Scope {
    Scope { key: Some(key.clone()), ..Scope::default() }
}

fn list(key: &PartitionKey) -> Act {
    let (scope, session, after) = (scope(key), None, None);
    Act::List(ListItems { scope, session, after, items_max: 100, system: None })
}

fn changes(key: &PartitionKey) -> Act {
    Act::Changes(ChangeList {
        scope: scope(key),
        session: None,
        start: ChangeStart::After(Lsn::ZERO),
        since: None,
        items_max: 100,
    })
}

fn query(key: &PartitionKey, text: &str) -> Act {
    query_in(scope(key), text)
}

fn query_all(text: &str) -> Act {
    query_in(Scope::default(), text)
}

fn query_in(scope: Scope, text: &str) -> Act {
    Act::Query(Box::new(ItemQuery {
        source: text.into(),
        parameters: json::Value::Null,
        scope,
        across_partitions: true,
        merges: true,
        session: None,
        after: None,
        resume: None,
        items_max: 100,
        approach: Approach::default(),
        system: None,
        is_timed: false,
        names_indexes: false,
    }))
}

fn rows(answer: Result<Done, ServiceError>) -> Vec<String> {
    let Done::Texts(texts) = answer.unwrap() else { panic!("rows or items were asked for") };
    texts.iter().map(|text| String::from_utf8(text.to_vec()).unwrap()).collect()
}

/// In order.
fn ids(answer: Result<Done, ServiceError>) -> Vec<String> {
    let id = |text: &String| {
        let value = json::parse(text.as_bytes()).unwrap();
        value.get("id").and_then(json::Value::as_str).unwrap().to_owned()
    };
    let mut ids: Vec<String> = rows(answer).iter().map(id).collect();
    ids.sort();
    ids
}

/// Everything that can be done to one item under a key, with all permissions.
fn touching(world: &World, key: &PartitionKey, id: &str) -> Vec<Act> {
    let (body, id) = (world.body(key, id), || id_of(id));
    let patch = r#"{"operations":[{"op":"set","path":"/stolen","value":true}]}"#;
    let operations = || {
        vec![
            ItemOperation::Read { id: id(), if_none_match: None },
            ItemOperation::Replace { id: id(), body: body.clone().into(), if_match: None },
            ItemOperation::Patch { id: id(), body: patch.into(), if_match: None },
            ItemOperation::Delete { id: id(), if_match: None },
        ]
    };
    let mut acts: Vec<Act> = operations().into_iter().map(|one| item(key, one)).collect();
    for operation in operations() {
        let (key, operations) = (key.clone(), vec![operation]);
        acts.push(Act::Batch(Batch { key, operations, session: None }));
    }
    for operation in operations() {
        let operations = vec![BulkOperation { key: key.clone(), operation }];
        acts.push(Act::Bulk(Bulk { range: None, operations, pace: BulkPace::All }));
    }
    acts
}

fn is_not_found(answer: Result<Done, ServiceError>) -> bool {
    let missing = |error: &ServiceError| matches!(error, ServiceError::NotFound);
    match answer {
        Err(ServiceError::Batch { error, .. }) => missing(&error),
        Err(error) => missing(&error),
        Ok(Done::Bulk(results)) => {
            results.iter().all(|one| one.result.as_ref().is_err_and(missing))
        }
        Ok(Done::Texts(_)) => false,
    }
}

#[test]
fn a_colliding_key_opens_nothing_of_the_other() {
    for world in World::all() {
        world.check();
        for action in touching(&world, &world.attacker, "victim-1") {
            let shown = format!("{action:?}");
            assert!(is_not_found(world.holder(&world.attacker, action)), "{shown}");
        }
        for action in touching(&world, &world.victim, "victim-1") {
            let shown = format!("{action:?}");
            let refused = world.holder(&world.attacker, action).unwrap_err();
            assert!(matches!(refused, ServiceError::NotPermitted), "{refused}: {shown}");
        }
        world.check();
    }
}

/// Both have an item of one id with one unique value: changing one does not affect the
/// other.
#[test]
fn ids_and_unique_keys_of_colliding_keys_are_apart() {
    for world in World::all() {
        let read = |key: &PartitionKey| {
            let read = ItemOperation::Read { id: id_of("both"), if_none_match: None };
            rows(world.account(item(key, read)))
        };
        let before = read(&world.victim);
        for action in touching(&world, &world.attacker, "both").into_iter().take(4) {
            world.holder(&world.attacker, action).unwrap();
            assert_eq!(read(&world.victim), before);
        }
        world.create(&world.attacker, "both");
        world.check();
        let taken = world.body(&world.attacker, "new").replace("new@", "both@").into();
        let create = item(&world.attacker, ItemOperation::Create { body: taken });
        let refused = world.account(create).unwrap_err();
        assert!(refused.to_string().contains("Unique index"), "{refused}");
    }
}

#[test]
fn statistics_tell_colliding_keys_apart() {
    for world in World::all() {
        let statistics =
            block_on(world.fixture.service.operator(Principal::Account).statistics(&link(), 50))
                .unwrap();
        let [partition] = statistics.as_slice() else { panic!("one partition") };
        assert_eq!(partition.keys.keys, 42);
        let items = |key: &PartitionKey| {
            let is_it = |size: &&service::KeySize| size.key.as_ref() == Some(key);
            let size = partition.keys.by_items.iter().find(is_it).unwrap();
            (size.items, size.epk.clone())
        };
        let ((victims, epk), (attackers, same)) = (items(&world.victim), items(&world.attacker));
        assert_eq!((victims, attackers), (3, 2));
        assert_eq!(epk, same, "clients compute one EPK");
        assert_eq!(epk.as_bytes().len(), 16 * world.names.len());
        let charged = |key: &PartitionKey| {
            partition.heaviest.iter().any(|one| one.key.as_ref() == Some(key) && one.epk == epk)
        };
        assert!(charged(&world.victim) && charged(&world.attacker));
    }
}

/// Clients know EPKs only: a bound between two keys of one EPK is impossible.
#[test]
fn colliding_keys_stay_together_and_apart_through_splits_and_restarts() {
    for mut world in World::all() {
        // So much that the middle of all bytes lies between the two.
        for key in [&world.victim, &world.attacker] {
            let mut body = world.body(key, "both");
            body.insert_str(1, &format!(r#""pad":"{}","#, "x".repeat(50_000)));
            let upsert = ItemOperation::Upsert { body: body.into(), if_match: None };
            world.account(item(key, upsert)).unwrap();
        }
        for halve in [Halve::Bytes, Halve::Hashes, Halve::Bytes] {
            for range in world.fixture.ranges("c") {
                // What has one key only cannot be halved.
                let _ = block_on(world.fixture.service.operator(Principal::Account).split(
                    &link(),
                    range.id,
                    halve,
                ));
            }
            let bounds = world.fixture.ranges("c");
            let is_epk = |length: usize| length <= 16 * world.names.len();
            assert!(bounds.iter().all(|one| is_epk(one.range.min.as_bytes().len())), "{bounds:?}");
            world.check();
        }
        assert!(world.fixture.ranges("c").len() > 2);
        world.fixture = world.fixture.restarted();
        world.check();
        let both: Vec<PartitionId> = world.fixture.ranges("c").iter().map(|one| one.id).collect();
        block_on(world.fixture.service.operator(Principal::Account).merge(&link(), &both)).unwrap();
        world.check();
    }
}

/// Keys of one EPK cannot be split.
#[test]
fn colliding_keys_alone_are_not_cut() {
    let world = World::new(&["pk"], &PartitionKey::new(["victim"]), 0);
    for other in 0..40 {
        let key = PartitionKey::new([format!("other-{other}").as_str()]);
        let delete = ItemOperation::Delete { id: id_of("both"), if_match: None };
        world.account(item(&key, delete)).unwrap();
    }
    let refused = block_on(world.fixture.service.operator(Principal::Account).split(
        &link(),
        PartitionId(0),
        Halve::Bytes,
    ));
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(world.fixture.ranges("c").len(), 1);
}

/// The ranges that SDKs make of a key name its EPK and have all that is there.
#[test]
fn a_range_around_an_epk_has_all_keys_with_that_epk() {
    for world in World::all() {
        let statistics =
            block_on(world.fixture.service.operator(Principal::Account).statistics(&link(), 50))
                .unwrap();
        let sizes = &statistics[0].keys.by_items;
        let of = sizes.iter().find(|size| size.key.as_ref() == Some(&world.victim)).unwrap();
        let mut after = of.epk.as_bytes().to_vec();
        *after.last_mut().unwrap() += 1;
        let prefix_end = [of.epk.as_bytes(), &[0xFF]].concat();
        for max in [after, prefix_end] {
            let max = model::epk::Epk::from_bytes(&max).unwrap();
            let within = model::epk::EpkRange::new(of.epk.clone(), max);
            let scope = || Scope { within: within.clone(), ..Scope::default() };
            let count = query_in(scope(), "SELECT VALUE COUNT(1) FROM c");
            assert_eq!(rows(world.account(count)), ["5"]);
            let (session, after) = (None, None);
            let list = ListItems { scope: scope(), session, after, items_max: 100, system: None };
            let list = Act::List(list);
            assert_eq!(ids(world.account(list)).len(), 5);
            // With the key besides, as some SDKs send it, the key counts.
            let keyed = Scope { key: Some(world.victim.clone()), ..scope() };
            assert_eq!(ids(world.account(query_in(keyed, "SELECT * FROM c"))), VICTIMS);
        }
    }
}

/// Below a prefix are the keys with that prefix, not those with the same hashes.
#[test]
fn a_prefix_has_none_of_a_colliding_one() {
    let victim = PartitionKey::new(["t", "u", "s"]);
    for level in 0..2 {
        let mut world = World::new(&["tenant", "user", "at"], &victim, level);
        let prefix = |key: &PartitionKey, levels: usize| -> PartitionKey {
            key.components().iter().take(levels).cloned().collect()
        };
        // More below each of the two, so that their hashes lie among one another.
        for (key, name) in [(&world.victim, "v"), (&world.attacker, "a")] {
            for number in 0..8 {
                let mut components = prefix(key, level + 1).components().to_vec();
                components.resize(3, KeyComponent::String(format!("{name}{number}")));
                world.create(&components.into_iter().collect(), name);
            }
        }
        for round in 0..3 {
            for levels in level + 1..3 {
                for (key, own, other) in [(&world.victim, "v", "a"), (&world.attacker, "a", "v")] {
                    let prefix = prefix(key, levels);
                    let expected = if levels == level + 1 { 8 } else { 0 };
                    let own_items = if own == "v" { VICTIMS.len() } else { ATTACKERS.len() };
                    // Changes of several partitions have no common order.
                    let follow = (round == 0).then(|| changes(&prefix));
                    let reads = [list(&prefix), query(&prefix, "SELECT * FROM c")];
                    let by_index = "SELECT * FROM c WHERE c.mail > '' ORDER BY c.mail";
                    let reads = reads.into_iter().chain([query(&prefix, by_index)]).chain(follow);
                    for read in reads {
                        let shown = format!("{read:?}");
                        let seen = ids(world.holder(&prefix, read));
                        assert_eq!(seen.len(), expected + own_items, "{shown}");
                        assert!(!seen.iter().any(|id| id == other), "{shown}");
                    }
                    let total = (expected + own_items).to_string();
                    assert_eq!(world.counts(&prefix), [&*total, &total, &total]);
                }
            }
            let halve = if round == 0 { Halve::Bytes } else { Halve::Hashes };
            for range in world.fixture.ranges("c") {
                let _ = block_on(world.fixture.service.operator(Principal::Account).split(
                    &link(),
                    range.id,
                    halve,
                ));
            }
        }
        world.fixture = world.fixture.restarted();
        let report = world.fixture.service.operator(Principal::Account).check(|_| {}).unwrap();
        assert!(report.is_clean(), "{report:?}");
    }
}

/// A list of a prefix ends, page by page, though most of what it scans belongs to another.
#[test]
fn pages_of_a_prefix_go_on_past_a_colliding_one() {
    let victim = PartitionKey::new(["t", "u"]);
    let world = World::new(&["tenant", "user"], &victim, 0);
    let prefix: PartitionKey = victim.components().iter().take(1).cloned().collect();
    let (mut after, mut found) = (None, Vec::new());
    let principal = world.token(&prefix);
    for _ in 0..20 {
        let (scope, session) = (scope(&prefix), None);
        let list = ListItems { scope, session, after, items_max: 1, system: None };
        let Feed { bodies, rest, .. } = send(&world.fixture, &principal, list).unwrap();
        found.extend(bodies);
        after = match rest {
            Some(position) => Some(position),
            None => break,
        };
    }
    assert_eq!(found.len(), VICTIMS.len());
}

/// A token for a prefix grants the items below it one by one as well, and no others.
#[test]
fn a_token_for_a_prefix_opens_single_items_below_it() {
    let victim = PartitionKey::new(["t", "u", "s"]);
    for level in 0..2 {
        let world = World::new(&["tenant", "user", "at"], &victim, level);
        for levels in 1..3 {
            let prefix: PartitionKey = victim.components().iter().take(levels).cloned().collect();
            for action in touching(&world, &victim, "victim-1").into_iter().take(8) {
                let shown = format!("{action:?}");
                let done = world.holder(&prefix, action);
                assert!(done.is_ok(), "{shown}: {done:?}");
                // It may have been deleted.
                let body = world.body(&victim, "victim-1").into();
                let restore = ItemOperation::Upsert { body, if_match: None };
                world.holder(&prefix, item(&victim, restore)).unwrap();
            }
            // With another prefix, with one that collides, and with more levels than there
            // are.
            let stranger = PartitionKey::new(["x", "u", "s"]);
            let longer = PartitionKey::new(["t", "x"]);
            let mut refused = vec![stranger];
            refused.extend((levels > level).then(|| world.attacker.clone()));
            refused.extend((levels == 2).then_some(longer));
            for key in refused {
                for action in touching(&world, &key, "both") {
                    let shown = format!("{action:?}");
                    let refused = world.holder(&prefix, action);
                    let refused = matches!(refused, Err(ServiceError::NotPermitted));
                    assert!(refused, "{shown}");
                }
                for action in [list(&key), query(&key, "SELECT * FROM c"), changes(&key)] {
                    let refused = world.holder(&prefix, action);
                    assert!(matches!(refused, Err(ServiceError::NotPermitted)), "{refused:?}");
                }
            }
            // One operation of another key spoils a bulk request.
            let read = |key: &PartitionKey| BulkOperation {
                key: key.clone(),
                operation: ItemOperation::Read {
                    id: ItemId::parse("both").unwrap(),
                    if_none_match: None,
                },
            };
            let operations = vec![read(&victim), read(&PartitionKey::new(["x", "u", "s"]))];
            let refused = world
                .holder(&prefix, Act::Bulk(Bulk { range: None, operations, pace: BulkPace::All }));
            assert!(matches!(refused, Err(ServiceError::NotPermitted)), "{refused:?}");
        }
        world.check();
    }
}

/// The empty key is a prefix of every key, and is none of them.
#[test]
fn a_token_for_the_empty_key_is_no_token_for_all() {
    for world in World::all() {
        let none = PartitionKey::NONE;
        let reads = [list(&none), query(&none, "SELECT * FROM c"), changes(&none)];
        let touches = touching(&world, &world.victim, "both");
        for action in reads.into_iter().chain(touches) {
            let shown = format!("{action:?}");
            let refused = world.holder(&none, action);
            assert!(matches!(refused, Err(ServiceError::NotPermitted)), "{shown}: {refused:?}");
        }
    }
}

/// Of a version 1 key only the beginning counts, as in the service.
#[test]
fn long_keys_of_version_1_are_one() {
    let fixture = Fixture::new();
    let body = r#"{"id":"c","partitionKey":{"paths":["/pk"],"version":1}}"#;
    fixture.create("dbs/d", Kind::Container, body).unwrap();
    let long = |end: &str| format!("{}{end}", "k".repeat(100));
    for (id, key) in [("1", long("one")), ("2", long("two")), ("3", "k".repeat(99))] {
        fixture.create_item("c", format!(r#"{{"id":"{id}","pk":"{key}"}}"#)).unwrap();
    }
    let key = PartitionKey::new([long("one").as_str()]);
    assert_eq!(ids(ask(&fixture, &Principal::Account, list(&key))), ["1", "2"]);
    let count = query(&key, "SELECT VALUE COUNT(1) FROM c");
    assert_eq!(rows(ask(&fixture, &Principal::Account, count)), ["2"]);
    assert_eq!(fixture.logical_partitions(), 2 + SYSTEM);
}
