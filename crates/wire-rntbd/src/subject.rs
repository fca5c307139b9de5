//! What a request is about, as its client names and signs it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use protocol::error::WireError;
use service::{Kind, Link};

use crate::codec::{Key, Known, OperationType, ResourceType, request, value_type};

/// A level of a link: its kind, the token with its name, and the bytes of a resource id that
/// ends there.
type Level = (&'static str, Key<value_type::String>, usize);

const DATABASE: Level = ("dbs", request::DATABASE_NAME, 4);
const CONTAINER: Level = ("colls", request::COLLECTION_NAME, 8);

/// A resource, or all resources of a kind inside another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// Kinds and names in turn; ends with a kind for a feed.
    segments: Vec<String>,
}

impl Subject {
    /// By names, or by a resource id if there are none. With names, a resource id is only the
    /// container's as the client knows it.
    pub(crate) fn of(
        resource: ResourceType,
        operation: OperationType,
        tokens: &Known<'_>,
    ) -> Result<Subject, WireError> {
        let levels = levels(resource).ok_or_else(|| unsupported(resource, operation))?;
        let by_rid = tokens.get(request::DATABASE_NAME).is_none();
        let rid = tokens.get(request::RESOURCE_ID).filter(|_| by_rid);
        let name = |(_, key, bytes): &Level| match rid {
            Some(rid) => rid.get(..*bytes).map(text_of_rid),
            None => tokens.get(*key).map(str::to_owned),
        };
        let mut segments = Vec::new();
        let mut rest = levels.iter().peekable();
        while let Some(level) = rest.next() {
            segments.push(level.0.to_owned());
            if rest.peek().is_none() && is_on_feed(operation) {
                break;
            }
            let lacks = || WireError::bad_request("The request does not name its resource.");
            segments.push(name(level).filter(|name| !name.is_empty()).ok_or_else(lacks)?);
        }
        Ok(Subject { segments })
    }

    pub(crate) fn segments(&self) -> &[String] {
        &self.segments
    }

    /// The container that the request is about, or whose items it is about.
    pub(crate) fn container(&self) -> Result<Link, WireError> {
        self.link_of(&["dbs", "colls"])
    }

    /// The resource itself, or the parent of a feed.
    pub(crate) fn link(&self) -> Result<Link, WireError> {
        let kinds: Vec<&str> = self.pairs().map(|(kind, _)| kind).collect();
        self.link_of(&kinds)
    }

    /// The name of the resource itself.
    pub(crate) fn name(&self) -> Option<&str> {
        self.pairs().last().map(|(_, name)| name)
    }

    fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.segments.chunks_exact(2).filter_map(|pair| match pair {
            [kind, name] => Some((kind.as_str(), name.as_str())),
            _ => None,
        })
    }

    fn link_of(&self, kinds: &[&str]) -> Result<Link, WireError> {
        let mut link = Link::default();
        for ((kind, name), expected) in self.pairs().zip(kinds) {
            let child = Kind::from_segment(kind).filter(|_| kind == *expected);
            let child = child.and_then(|kind| link.clone().child(kind, name));
            link = child.ok_or_else(WireError::not_found)?;
        }
        Ok(link)
    }
}

fn levels(resource: ResourceType) -> Option<Vec<Level>> {
    let in_container = |segment, key| Some(vec![DATABASE, CONTAINER, (segment, key, 16)]);
    use ResourceType::{
        Attachment, ClientEncryptionKey, Collection, Conflict, Connection, Database,
        DatabaseAccount, DistributedTransaction, Document, MasterPartition, Offer, PartitionKey,
        PartitionKeyRange, Permission, Schema, ServerPartition, Snapshot, StoredProcedure,
        Topology, Trigger, User, UserDefinedFunction, UserDefinedType,
    };
    match resource {
        Database => Some(vec![DATABASE]),
        Collection => Some(vec![DATABASE, CONTAINER]),
        Document => in_container("docs", request::DOCUMENT_NAME),
        StoredProcedure => in_container("sprocs", request::STORED_PROCEDURE_NAME),
        Trigger => in_container("triggers", request::TRIGGER_NAME),
        UserDefinedFunction => in_container("udfs", request::USER_DEFINED_FUNCTION_NAME),
        Conflict => in_container("conflicts", request::CONFLICT_NAME),
        User => Some(vec![DATABASE, ("users", request::USER_NAME, 8)]),
        Permission => Some(vec![
            DATABASE,
            ("users", request::USER_NAME, 8),
            ("permissions", request::PERMISSION_NAME, 16),
        ]),
        Connection
        | Attachment
        | Offer
        | MasterPartition
        | ServerPartition
        | DatabaseAccount
        | Topology
        | PartitionKeyRange
        | Schema
        | UserDefinedType
        | PartitionKey
        | Snapshot
        | ClientEncryptionKey
        | DistributedTransaction => None,
    }
}

/// Whether an operation is about all resources of a kind; their parent is signed.
fn is_on_feed(operation: OperationType) -> bool {
    use OperationType::{
        Batch, Connection, Create, Delete, ExecuteJavaScript, Head, HeadFeed, Patch, Query,
        QueryPlan, Read, ReadFeed, Replace, SqlQuery, Upsert,
    };
    match operation {
        Create | Upsert | ReadFeed | Query | SqlQuery | QueryPlan | Batch | HeadFeed => true,
        Read | Replace | Delete | Patch | ExecuteJavaScript | Head | Connection => false,
    }
}

/// The verb that is signed for an operation.
pub(crate) fn verb(operation: OperationType) -> &'static str {
    use OperationType::{
        Batch, Connection, Create, Delete, ExecuteJavaScript, Head, HeadFeed, Patch, Query,
        QueryPlan, Read, ReadFeed, Replace, SqlQuery, Upsert,
    };
    match operation {
        Create | Upsert | ExecuteJavaScript | Query | SqlQuery | QueryPlan | Batch => "post",
        Read | ReadFeed | Connection => "get",
        Replace => "put",
        Delete => "delete",
        Patch => "patch",
        Head | HeadFeed => "head",
    }
}

/// What nothing here answers.
pub(crate) fn unsupported(resource: ResourceType, operation: OperationType) -> WireError {
    WireError::later(&format!("{operation:?} on {resource:?} in direct mode"))
}

/// A resource id as it is in links.
fn text_of_rid(bytes: &[u8]) -> String {
    STANDARD.encode(bytes).replace('/', "-")
}
