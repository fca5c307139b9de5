//! Which containers there are, and where their items are: `docs/formats/catalogue.md` and
//! `docs/formats/map.md`.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::bytes::{Damage, Result, damage, require};
use super::epk::KeyDefinition;
use super::index::Index;
use super::partition::{Bucket, Item};

/// The number of the system container, which has one bucket.
pub(crate) const SYSTEM: (u32, u32) = (0, 0);

/// The whole catalogue.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    /// By database and name.
    pub(crate) containers: BTreeMap<(String, String), Container>,
    maps: BTreeMap<u32, Map>,
    /// Containers whose keys are still to be removed.
    retired_containers: BTreeSet<u32>,
    /// The same for single buckets.
    retired_buckets: BTreeSet<(u32, u32)>,
    pub(crate) counters: Value,
}

#[derive(Debug)]
pub(crate) struct Container {
    pub(crate) number: u32,
    rid: Vec<u8>,
    link: String,
    pub(crate) definition: Value,
    pub(crate) key: KeyDefinition,
    /// By version.
    pub(crate) policies: BTreeMap<u32, Index>,
}

/// Which buckets a container has.
#[derive(Debug)]
pub(crate) struct Map {
    pub(crate) next_number: u64,
    pub(crate) buckets: Vec<Span>,
    pub(crate) ranges: Vec<Span>,
    /// Buckets that others are being moved into.
    targets: Vec<u32>,
}

/// A part of the ring, with the number of its bucket or range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) number: u32,
    pub(crate) min: Vec<u8>,
    pub(crate) max: Vec<u8>,
}

impl Catalogue {
    pub(crate) fn of(system: &Bucket) -> Result<Catalogue> {
        let mut catalogue = Catalogue::default();
        let databases = system.items.iter().filter_map(|item| {
            let name = item.id.strip_prefix("dbs::")?;
            Some(json(item).map(|body| (text(&body["rid"]), name.to_owned())))
        });
        let databases: BTreeMap<String, String> = databases.collect::<Result<_>>()?;
        for item in &system.items {
            catalogue.add(item, &databases)?;
        }
        Ok(catalogue)
    }

    fn add(&mut self, item: &Item, databases: &BTreeMap<String, String>) -> Result<()> {
        let (kind, rest) = item.id.split_once(':').unwrap_or((&item.id, ""));
        let body = json(item)?;
        let wrong = || Damage(format!("the id {} in the catalogue", item.id));
        match kind {
            "colls" => {
                let (database, name) = rest.split_once(':').ok_or_else(wrong)?;
                // A container of a dropped database cannot be reached any more.
                if let Some(database) = databases.get(database) {
                    let names = (database.clone(), name.to_owned());
                    self.containers.insert(names, Container::of(&body)?);
                }
            }
            "map" => drop(self.maps.insert(rest.parse().map_err(|_| wrong())?, Map::of(&body)?)),
            "retired" => match rest.split_once('.') {
                None => drop(self.retired_containers.insert(rest.parse().map_err(|_| wrong())?)),
                Some((container, bucket)) => {
                    let container = container.parse().map_err(|_| wrong())?;
                    self.retired_buckets.insert((container, bucket.parse().map_err(|_| wrong())?));
                }
            },
            "counters" => self.counters = body,
            "dbs"
            | "users"
            | "permissions"
            | "clientencryptionkeys"
            | "sprocs"
            | "triggers"
            | "udfs"
            | "offers" => version_1(&body)?,
            "clock" | "roles" => version_1(&body)?,
            "orphans" => {}
            _ => return Err(wrong()),
        }
        Ok(())
    }

    pub(crate) fn map(&self, container: &Container) -> Result<&Map> {
        let map = self.maps.get(&container.number);
        map.ok_or_else(|| Damage(format!("container {} has no map", container.number)))
    }

    /// Whether a bucket with rows is one of a map, or known to be left over.
    pub(crate) fn knows(&self, (container, bucket): (u32, u32)) -> bool {
        let in_map = |map: &Map| {
            map.buckets.iter().any(|span| span.number == bucket) || map.targets.contains(&bucket)
        };
        (container, bucket) == SYSTEM
            || self.maps.get(&container).is_some_and(in_map)
            || self.retired_containers.contains(&container)
            || self.retired_buckets.contains(&(container, bucket))
    }
}

fn version_1(body: &Value) -> Result<()> {
    require(body["version"] == 1, || format!("version {} in the catalogue", body["version"]))
}

impl Container {
    fn of(body: &Value) -> Result<Container> {
        version_1(body)?;
        let private = &body["private"];
        let seed = u64::from_str_radix(&text(&private["indexSeed"]), 16);
        let seed = seed.map_err(|_| Damage("a seed".to_owned()))?;
        let policies = private["policies"].as_array().into_iter().flatten();
        let policies = policies
            .map(|one| Ok((number(&one["version"])?, Index::of(&one["policy"], seed)?)))
            .collect::<Result<BTreeMap<u32, Index>>>()?;
        let rid = STANDARD.decode(text(&body["rid"]).replace('-', "/"));
        Ok(Container {
            number: number(&private["number"])?,
            rid: rid.map_err(|error| Damage(format!("a resource id: {error}")))?,
            link: text(&body["self"]),
            key: KeyDefinition::of(&body["definition"])?,
            definition: body["definition"].clone(),
            policies,
        })
    }

    /// An item as clients see it.
    pub(crate) fn shown(&self, item: &Item) -> Result<Value> {
        let mut shown = json(item)?;
        let rid = self.item_rid(item);
        shown["_self"] = format!("{}docs/{rid}/", self.link).into();
        shown["_attachments"] = "attachments/".into();
        self.add_system_properties(item, &mut shown);
        Ok(shown)
    }

    /// An item as the index sees it.
    pub(crate) fn indexed(&self, item: &Item) -> Result<Value> {
        let mut indexed = json(item)?;
        self.add_system_properties(item, &mut indexed);
        Ok(indexed)
    }

    fn add_system_properties(&self, item: &Item, to: &mut Value) {
        to["_rid"] = self.item_rid(item).into();
        to["_etag"] = etag(item).into();
        to["_ts"] = (item.ts_millis / 1_000).into();
    }

    fn item_rid(&self, item: &Item) -> String {
        let bytes = [&self.rid[..], &item.ordinal.to_le_bytes()].concat();
        STANDARD.encode(bytes).replace('/', "-")
    }
}

fn etag(item: &Item) -> String {
    let (low, high) = (item.lsn & 0xFFFF_FFFF, item.lsn >> 32 & 0xFFFF);
    let seconds = item.ts_millis / 1_000;
    format!("\"{low:08x}-{high:04x}-{:04x}-0000-{seconds:08x}0000\"", item.step)
}

impl Map {
    fn of(body: &Value) -> Result<Map> {
        version_1(body)?;
        let spans = |list: &Value, name: &str| {
            let list = list.as_array().into_iter().flatten();
            list.map(|one| Span::of(one, name)).collect::<Result<Vec<Span>>>()
        };
        let (buckets, ranges) =
            (spans(&body["buckets"], "bucket")?, spans(&body["ranges"], "range")?);
        check_ring(&buckets)?;
        check_ring(&ranges)?;
        let cuts: BTreeSet<&[u8]> = buckets.iter().map(|span| &span.min[..]).collect();
        let is_cut = ranges.iter().all(|range| cuts.contains(&range.min[..]));
        require(is_cut, || "a range begins inside a bucket".to_owned())?;
        let mut targets = Vec::new();
        for one in body["moves"].as_array().into_iter().flatten() {
            targets.extend(spans(&one["into"], "bucket")?.into_iter().map(|span| span.number));
        }
        let next_number = body["nextNumber"].as_u64().unwrap_or(0);
        Ok(Map { next_number, buckets, ranges, targets })
    }
}

impl Span {
    fn of(body: &Value, name: &str) -> Result<Span> {
        let (min, max) = (hex(&text(&body["min"]))?, hex(&text(&body["max"]))?);
        Ok(Span { number: number(&body[name])?, min, max })
    }
}

/// The whole ring without gap or overlap.
fn check_ring(spans: &[Span]) -> Result<()> {
    let mut at: &[u8] = &[];
    for span in spans {
        require(span.min == at && span.min < span.max, || "a gap in the ring".to_owned())?;
        at = &span.max;
    }
    require(at == [0xFF], || "the ring is not closed".to_owned())
}

fn hex(text: &str) -> Result<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2));
    let Some(digits) = digits else { return damage(format!("the bound {text}")) };
    let (pairs, _) = digits.as_chunks::<2>();
    let byte = |[high, low]: &[u32; 2]| u8::try_from(high << 4 | low);
    pairs.iter().map(byte).collect::<std::result::Result<_, _>>().map_err(|_| Damage("hex".into()))
}

/// The text of an item; its `id` is that of the key.
pub(crate) fn json(item: &Item) -> Result<Value> {
    let body: Value = serde_json::from_str(&item.text)
        .map_err(|error| Damage(format!("item {}: {error}", item.id)))?;
    require(body["id"] == item.id, || format!("item {} has the id {}", item.id, body["id"]))?;
    Ok(body)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value) -> Result<u32> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| Damage(format!("the number {value}")))
}
