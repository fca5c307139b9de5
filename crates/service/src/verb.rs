//! Verbs as types: what the steps of a request need to know of one.
//!
//! A verb's fields are its arguments, [`Verb::Reply`] is its result. The steps in
//! `Service::execute` know no single verb; what they have to know is returned by one
//! function, `facts`, and another, `perform`, executes it. So a new verb is one type with
//! its two functions, in one file.

use std::future::Future;

use bytes::Bytes;
use model::name::ItemId;
use model::partition_key::PartitionKey;

use crate::catalogue::kind::{Kind, Link};
use crate::error::ServiceError;
use crate::identity::roles::{Actions, DataAction};
use crate::pipeline::meta::ResponseMeta;
use crate::pipeline::resolve::ResolvedContainer;
use crate::request::InContainer;
use crate::service::Service;

/// An operation of the service.
pub trait Verb: Sized + Send {
    type Reply: Send;
    /// What its names resolve to.
    type Target: Send;

    /// What has to be known before it is performed.
    fn facts(&self) -> Facts<'_>;

    /// Resolves its names.
    fn resolve(
        &mut self,
        service: &Service,
        meta: &mut ResponseMeta,
    ) -> impl Future<Output = Result<Self::Target, ServiceError>> + Send;

    /// Executes it.
    fn perform(
        self,
        service: &Service,
        target: Self::Target,
        meta: &mut ResponseMeta,
    ) -> impl Future<Output = Result<Self::Reply, ServiceError>> + Send;
}

/// An operation on the items or partitions of one container. Together with the container,
/// [`InContainer`], it is a [`Verb`].
pub trait ContainerVerb: Sized + Send {
    type Reply: Send;

    /// What has to be known before it is performed.
    fn facts(&self) -> ItemFacts<'_>;

    /// The one item that it names, if it does: in links by resource ids the item's is one,
    /// too, and is replaced by its id.
    fn item_mut(&mut self) -> Option<(Option<&PartitionKey>, &mut ItemId)> {
        None
    }

    /// Executes it.
    fn perform(
        self,
        service: &Service,
        container: &ResolvedContainer,
        meta: &mut ResponseMeta,
    ) -> impl Future<Output = Result<Self::Reply, ServiceError>> + Send;
}

/// What the steps before performing need to know of a verb.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// Whether it changes something.
    pub(crate) writes: bool,
    pub(crate) subject: Subject<'a>,
}

/// What a verb is about.
#[derive(Clone, Debug)]
pub(crate) enum Subject<'a> {
    /// A resource of the catalogue.
    Resource(&'a Link),
    /// Resources of a kind inside another.
    Inside(&'a Link, Kind),
    /// Items or partitions of a container.
    Items(&'a Link, ItemFacts<'a>),
}

/// The facts of a verb on the items or partitions of a container.
#[derive(Clone, Debug)]
pub struct ItemFacts<'a> {
    /// Whether it changes something.
    pub(crate) writes: bool,
    pub(crate) reach: Reach<'a>,
    /// The one item that it is about, if it is about one by name.
    pub(crate) item: Option<NamedItem<'a>>,
    /// The stored procedure that it runs, by name or resource id.
    pub(crate) procedure: Option<&'a str>,
    /// Whether it is only meaningful to clients that know the physical partitions.
    pub(crate) names_partitions: bool,
    /// The operations that it consists of, if there are several.
    pub(crate) operations: Option<Operations>,
    /// What a role has to allow; `None` if no role allows it, as for what is not said to be
    /// work on data.
    pub(crate) actions: Option<Actions>,
}

/// How much of a container a verb can reach.
#[derive(Clone, Debug)]
pub(crate) enum Reach<'a> {
    /// Only how the container is divided into partitions, which may be known to anyone with
    /// access to anything in it.
    Layout,
    /// Nothing that is stored.
    Nothing,
    /// Items of this key, or of keys with this prefix. Others are out of reach: items are
    /// found by the key itself, not by its hash, and no document may have another key than
    /// its request.
    Key(&'a PartitionKey),
    /// The same for several.
    Keys(Vec<&'a PartitionKey>),
    /// Any item.
    Everything,
}

/// An item by name, for permissions that are about one.
#[derive(Clone, Debug)]
pub(crate) struct NamedItem<'a> {
    pub(crate) key: Option<&'a PartitionKey>,
    pub(crate) id: &'a ItemId,
    /// Its replacement, perhaps under another id.
    pub(crate) replacement: Option<&'a Bytes>,
}

/// How many operations there are, and the bytes of their bodies.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Operations {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
}

impl<'a> Reach<'a> {
    /// For a verb that names one key, or none.
    pub(crate) fn of(key: Option<&'a PartitionKey>) -> Reach<'a> {
        key.map_or(Reach::Everything, Reach::Key)
    }

    /// Whether it names keys for everything that it can reach, and all satisfy `these`.
    pub(crate) fn is_within(&self, these: impl Fn(&PartitionKey) -> bool) -> bool {
        match self {
            Reach::Layout | Reach::Nothing => true,
            Reach::Key(key) => these(key),
            Reach::Keys(keys) => keys.iter().all(|key| these(key)),
            Reach::Everything => false,
        }
    }
}

impl<'a> ItemFacts<'a> {
    pub(crate) fn reading(reach: Reach<'a>) -> ItemFacts<'a> {
        ItemFacts {
            writes: false,
            reach,
            item: None,
            procedure: None,
            names_partitions: false,
            operations: None,
            actions: None,
        }
    }

    /// The same for one action of roles.
    pub(crate) fn allowed_by(self, action: DataAction) -> ItemFacts<'a> {
        ItemFacts { actions: Some(Actions::of(&[action])), ..self }
    }

    pub(crate) fn writing(reach: Reach<'a>) -> ItemFacts<'a> {
        ItemFacts { writes: true, ..ItemFacts::reading(reach) }
    }
}

impl Facts<'_> {
    /// Whether permissions are shown, with tokens that may grant more than their reader
    /// has.
    pub(crate) fn shows_permissions(&self) -> bool {
        match &self.subject {
            Subject::Resource(link) => link.kind() == Some(Kind::Permission),
            Subject::Inside(_, kind) => *kind == Kind::Permission,
            Subject::Items(..) => false,
        }
    }

    /// What a role has to allow, if one can: of the catalogue, that databases and containers
    /// are read.
    pub(crate) fn actions(&self) -> Option<Actions> {
        let kind = match &self.subject {
            Subject::Items(_, facts) => return facts.actions,
            Subject::Resource(link) => link.kind()?,
            Subject::Inside(_, kind) => *kind,
        };
        let is_metadata = !self.writes && matches!(kind, Kind::Database | Kind::Container);
        is_metadata.then_some(Actions::of(&[DataAction::ReadMetadata]))
    }

    pub(crate) fn operations(&self) -> Option<Operations> {
        match &self.subject {
            Subject::Items(_, facts) => facts.operations,
            Subject::Resource(_) | Subject::Inside(..) => None,
        }
    }
}

impl<V: ContainerVerb> Verb for InContainer<V> {
    type Reply = V::Reply;
    type Target = ResolvedContainer;

    fn facts(&self) -> Facts<'_> {
        let facts = self.verb.facts();
        Facts { writes: facts.writes, subject: Subject::Items(&self.container, facts) }
    }

    async fn resolve(
        &mut self,
        service: &Service,
        meta: &mut ResponseMeta,
    ) -> Result<ResolvedContainer, ServiceError> {
        service.resolve_container(self, meta).await
    }

    async fn perform(
        self,
        service: &Service,
        target: ResolvedContainer,
        meta: &mut ResponseMeta,
    ) -> Result<V::Reply, ServiceError> {
        self.verb.perform(service, &target, meta).await
    }
}
