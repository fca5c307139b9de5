//! Writing through the door until the process dies, and checking what it left.
//!
//! A writing process prints what it is about to do and what was answered, one line each.
//! The parent keeps a [`Ledger`] of these lines, kills the process at any moment, opens the
//! folder and checks it: every acknowledged write is there, every operation in flight
//! happened completely or not at all, and there is nothing else.
//!
//! Each writer has keys of its own and does one thing at a time, so the ledger knows every
//! item's state exactly, except for the one operation in flight. Only the hot items are
//! shared, and only counted.

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
pub struct LogicalPartition {
    /// Which of [`CONTAINERS`].
    pub container: usize,
    pub key: String,
}

/// An operation that a writer tries. Versions are never used twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    Create {
        partition: LogicalPartition,
        id: String,
        version: u64,
    },
    Upsert {
        partition: LogicalPartition,
        id: String,
        version: u64,
    },
    Replace {
        partition: LogicalPartition,
        id: String,
        version: u64,
    },
    Patch {
        partition: LogicalPartition,
        id: String,
        version: u64,
    },
    Delete {
        partition: LogicalPartition,
        id: String,
    },
    /// Writes all items of a family of that size with one version.
    Batch {
        partition: LogicalPartition,
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
        let partition = LogicalPartition { container, key: words.next()?.to_owned() };
        let what = words.next()?.to_owned();
        let version = words.next().map_or(Some(0), |word| word.parse().ok())?;
        Some(match verb {
            "create" => Attempt::Create { partition, id: what, version },
            "upsert" => Attempt::Upsert { partition, id: what, version },
            "replace" => Attempt::Replace { partition, id: what, version },
            "patch" => Attempt::Patch { partition, id: what, version },
            "delete" => Attempt::Delete { partition, id: what },
            "batch" => Attempt::Batch { partition, size: what.parse().ok()?, version },
            _ => return None,
        })
    }
}

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, partition, what, version): (_, _, &dyn fmt::Display, _) = match self {
            Attempt::Create { partition, id, version } => ("create", partition, id, Some(version)),
            Attempt::Upsert { partition, id, version } => ("upsert", partition, id, Some(version)),
            Attempt::Replace { partition, id, version } => {
                ("replace", partition, id, Some(version))
            }
            Attempt::Patch { partition, id, version } => ("patch", partition, id, Some(version)),
            Attempt::Delete { partition, id } => ("delete", partition, id, None),
            Attempt::Batch { partition, size, version } => {
                ("batch", partition, size, Some(version))
            }
            Attempt::Increment { container } => return write!(f, "increment {container}"),
        };
        write!(f, "{verb} {} {} {what}", partition.container, partition.key)?;
        version.map_or(Ok(()), |version| write!(f, " {version}"))
    }
}

/// Opens the service of a folder, and creates one with all containers where there is none.
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

/// Executes a verb in one of [`CONTAINERS`] and waits for the answer.
pub fn execute<V: ContainerVerb>(
    service: &Service,
    container: usize,
    verb: V,
) -> Result<Response<V::Reply>, ServiceError> {
    Ok(block_on(service.execute(request(container, verb)))?)
}

/// The request for a verb in one of [`CONTAINERS`].
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
        let partition = LogicalPartition { container: 1, key: "w3-1".to_owned() };
        for attempt in [
            Attempt::Create { partition: partition.clone(), id: "n7".to_owned(), version: 7 },
            Attempt::Replace { partition: partition.clone(), id: "s1".to_owned(), version: 8 },
            Attempt::Patch { partition: partition.clone(), id: "s1".to_owned(), version: 1 << 50 },
            Attempt::Delete { partition: partition.clone(), id: "s1".to_owned() },
            Attempt::Batch { partition, size: 5, version: 9 },
            Attempt::Increment { container: 0 },
        ] {
            assert_eq!(Attempt::parse(&attempt.to_string()), Some(attempt));
        }
        assert_eq!(Attempt::parse("jump 0 w1 x 1"), None);
        assert_eq!(Attempt::parse("create 0"), None);
    }
}
