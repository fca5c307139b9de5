//! The catalogue: every resource but items, as records of the system container.
//! Its stored form is specified in `docs/formats/catalogue.md`.

pub(crate) mod kind;
pub(crate) mod resources;

mod counters;
mod directory;
mod records;

use bytes::Bytes;
use model::etag::Etag;
use model::json::{Object, Value};
use partition::Item;

use crate::catalogue::kind::Kind;
use crate::error::ServiceError;

pub(crate) use counters::{COUNTERS, Counters};
pub(crate) use directory::{ContainerEntry, Directory};
pub(crate) use records::giving_way;

const VERSION: i64 = 1;

/// One resource as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) kind: Kind,
    pub(crate) parent_rid: String,
    pub(crate) rid: String,
    pub(crate) self_link: String,
    /// What clients see, without system properties.
    pub(crate) definition: Object,
    /// What they do not see.
    pub(crate) private: Object,
}

/// A record with the marks of its last write.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) record: Record,
    pub(crate) etag: Etag,
    pub(crate) ts_secs: u64,
}

/// The id of the system item that holds a resource.
pub(crate) fn item_id(kind: Kind, parent_rid: &str, name: &str) -> String {
    format!("{}:{parent_rid}:{name}", kind.segment())
}

/// The common prefix of the ids of all resources of one kind and parent.
pub(crate) fn item_prefix(kind: Kind, parent_rid: &str) -> String {
    item_id(kind, parent_rid, "")
}

/// What the ids of all records of a kind begin with.
pub(crate) fn account_prefix(kind: Kind) -> String {
    format!("{}:", kind.segment())
}

impl Record {
    pub(crate) fn name(&self) -> &str {
        // Offers are named by their resource id; all others have an id.
        self.definition.get("id").and_then(Value::as_str).unwrap_or(&self.rid)
    }

    pub(crate) fn item_id(&self) -> String {
        item_id(self.kind, &self.parent_rid, self.name())
    }

    pub(crate) fn body(&self) -> Object {
        let mut body = Object::new();
        body.insert("version", VERSION);
        body.insert("rid", self.rid.as_str());
        body.insert("self", self.self_link.as_str());
        body.insert("definition", self.definition.clone());
        body.insert("private", self.private.clone());
        body
    }
}

impl Stored {
    /// Reads a record back. `kind` and `parent_rid` are known from its id.
    pub(crate) fn read(kind: Kind, parent_rid: &str, item: &Item) -> Result<Stored, ServiceError> {
        runtime::short_work(1);
        let damaged = || {
            ServiceError::internal(format!(
                "catalogue entry of {} {parent_rid} is malformed",
                kind.segment()
            ))
        };
        let raw = item.json();
        if raw.get("version").and_then(|version| version.as_number()?.as_i64()) != Some(VERSION) {
            return Err(damaged());
        }
        let text = |name| {
            raw.get(name).and_then(|value| value.as_str()).map(String::from).ok_or_else(damaged)
        };
        let object = |name| match raw.get(name).map(|value| value.to_value()) {
            Some(Value::Object(object)) => Ok(object),
            _ => Err(damaged()),
        };
        let record = Record {
            kind,
            parent_rid: parent_rid.to_owned(),
            rid: text("rid")?,
            self_link: text("self")?,
            definition: object("definition")?,
            private: object("private")?,
        };
        Ok(Stored { record, etag: item.etag(), ts_secs: item.ts.secs() })
    }

    /// The resource as clients read it.
    pub(crate) fn render(&self) -> Bytes {
        let mut object = self.record.definition.clone();
        object.insert("_rid", self.record.rid.as_str());
        object.insert("_self", self.record.self_link.as_str());
        object.insert("_etag", self.etag.as_str());
        for (name, feed) in self.record.kind.feeds() {
            object.insert(*name, *feed);
        }
        object.insert("_ts", i64::try_from(self.ts_secs).unwrap_or(i64::MAX));
        Value::Object(object).to_string().into()
    }
}
