//! Writing through the door until the process dies, and judging what it left.
//!
//! A writing process says on its output what it is about to do and what was
//! answered, one line each. Whoever started it keeps a [`Ledger`] of these lines,
//! kills the process at any moment, opens the folder and demands the truth: every
//! acknowledged write is there, every operation that was under way happened as a
//! whole or not at all, and there is nothing else.
//!
//! Each writer has keys of its own and does one thing at a time, so the ledger
//! knows every item's state exactly, but for the one operation that was under
//! way. Only the hot items are shared, and only counted.

mod ledger;
mod process;
mod restless;
mod verify;
mod workload;

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result};
use model::json;
use model::limits::Limits;
use runtime::Runtime;
use service::{
    ContainerVerb, InContainer, ItemAction, ItemOperation, Kind, Link, Principal, Request,
    ResourceAction, Response, Service, ServiceError, Throughput,
};
use storage::StorageError;
use storage::local::{self, LocalConfig};

use testkit::wait::block_on;

pub use ledger::{Ledger, Line};
pub use process::{Ending, Run};
pub use restless::{Change, Halt, change_layouts};
pub use verify::{Found, Verdict, add_item, judge, verify};
pub use workload::{HOT_ID, HOT_KEY, HOT_PATCH, Writer, hot_increment, item_body, patch_body};

/// Containers that are written to: one physical partition, and five.
pub const CONTAINERS: [(&str, u32); 2] = [("one", 400), ("five", 30_000)];

/// A logical partition.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Which of [`CONTAINERS`].
    pub container: usize,
    pub key: String,
}

/// Something that a writer tries. Versions are never used twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    Create {
        place: Place,
        id: String,
        version: u64,
    },
    Upsert {
        place: Place,
        id: String,
        version: u64,
    },
    Replace {
        place: Place,
        id: String,
        version: u64,
    },
    Patch {
        place: Place,
        id: String,
        version: u64,
    },
    Delete {
        place: Place,
        id: String,
    },
    /// Writes all items of a family of that size with one version.
    Batch {
        place: Place,
        size: usize,
        version: u64,
    },
    /// Adds one to the hot item of a container.
    Increment {
        container: usize,
    },
}

impl Attempt {
    /// The ids of the items that a batch of this size always writes together.
    pub fn family(size: usize) -> impl Iterator<Item = String> {
        (0..size).map(move |member| format!("family-{size}-{member}"))
    }

    pub fn parse(text: &str) -> Option<Attempt> {
        let mut words = text.split(' ');
        let verb = words.next()?;
        let container = words.next()?.parse().ok()?;
        if verb == "increment" {
            return Some(Attempt::Increment { container });
        }
        let place = Place { container, key: words.next()?.to_owned() };
        let what = words.next()?.to_owned();
        let version = words.next().map_or(Some(0), |word| word.parse().ok())?;
        Some(match verb {
            "create" => Attempt::Create { place, id: what, version },
            "upsert" => Attempt::Upsert { place, id: what, version },
            "replace" => Attempt::Replace { place, id: what, version },
            "patch" => Attempt::Patch { place, id: what, version },
            "delete" => Attempt::Delete { place, id: what },
            "batch" => Attempt::Batch { place, size: what.parse().ok()?, version },
            _ => return None,
        })
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, place, what, version): (_, _, &dyn fmt::Display, _) = match self {
            Attempt::Create { place, id, version } => ("create", place, id, Some(version)),
            Attempt::Upsert { place, id, version } => ("upsert", place, id, Some(version)),
            Attempt::Replace { place, id, version } => ("replace", place, id, Some(version)),
            Attempt::Patch { place, id, version } => ("patch", place, id, Some(version)),
            Attempt::Delete { place, id } => ("delete", place, id, None),
            Attempt::Batch { place, size, version } => ("batch", place, size, Some(version)),
            Attempt::Increment { container } => return write!(f, "increment {container}"),
        };
        write!(f, "{verb} {} {} {what}", place.container, place.key)?;
        version.map_or(Ok(()), |version| write!(f, " {version}"))
    }
}

/// Opens the service of a folder, and makes one with all containers where there is none.
pub fn open_or_create(folder: &Path, config: LocalConfig) -> Result<Service> {
    let runtime = Runtime::real();
    let (store, fresh) = match local::open(folder, config.clone(), &runtime) {
        Err(StorageError::NotFound { .. }) => (local::create(folder, config, &runtime)?, true),
        opened => (opened?, false),
    };
    let service = Service::open(store, runtime, Limits::default())?;
    if fresh {
        create_all(&service)?;
    }
    Ok(service)
}

fn create_all(service: &Service) -> Result<()> {
    create(service, Link::default(), Kind::Database, r#"{"id":"d"}"#, None)?;
    for (container, (name, rate)) in CONTAINERS.into_iter().enumerate() {
        let body = format!(r#"{{"id":"{name}","partitionKey":{{"paths":["/pk"],"version":2}}}}"#);
        let database = Link::parse("dbs/d").context("a link")?;
        create(service, database, Kind::Container, &body, Some(Throughput::Manual(rate)))?;
        let body = item_body(HOT_KEY, HOT_ID, 0).into();
        let create = ItemOperation::Create { body };
        execute(service, container, ItemAction::new(None, create))?;
    }
    Ok(())
}

fn create(
    service: &Service,
    parent: Link,
    kind: Kind,
    body: &str,
    throughput: Option<Throughput>,
) -> Result<()> {
    let body = json::parse(body.as_bytes())?;
    let action = ResourceAction::Create { parent, kind, body, throughput, offer_type: None };
    block_on(service.execute(Request::new(Principal::Account, action)))?;
    Ok(())
}

/// Does something in one of [`CONTAINERS`] and waits for the answer.
pub fn execute<V: ContainerVerb>(
    service: &Service,
    container: usize,
    verb: V,
) -> Result<Response<V::Reply>, ServiceError> {
    Ok(block_on(service.execute(request(container, verb)))?)
}

/// The request to do something in one of [`CONTAINERS`].
#[must_use]
pub fn request<V>(container: usize, verb: V) -> Request<InContainer<V>> {
    let (name, _) = CONTAINERS.get(container).expect("writers know the containers");
    let container = Link::parse(&format!("dbs/d/colls/{name}")).expect("a link of a container");
    Request::new(Principal::Account, InContainer::new(container, verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_survive_a_line_of_text() {
        let place = Place { container: 1, key: "w3-1".to_owned() };
        for attempt in [
            Attempt::Create { place: place.clone(), id: "n7".to_owned(), version: 7 },
            Attempt::Replace { place: place.clone(), id: "s1".to_owned(), version: 8 },
            Attempt::Patch { place: place.clone(), id: "s1".to_owned(), version: 1 << 50 },
            Attempt::Delete { place: place.clone(), id: "s1".to_owned() },
            Attempt::Batch { place, size: 5, version: 9 },
            Attempt::Increment { container: 0 },
        ] {
            assert_eq!(Attempt::parse(&attempt.to_string()), Some(attempt));
        }
        assert_eq!(Attempt::parse("jump 0 w1 x 1"), None);
        assert_eq!(Attempt::parse("create 0"), None);
    }
}
