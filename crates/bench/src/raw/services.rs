//! The door below every protocol.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use model::json;
use model::limits::Limits;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use runtime::Runtime;
use service::{
    InContainer, ItemAction, ItemOperation, Kind, Link, Principal, Request, ResourceAction,
    Service, Verb,
};
use storage::Store;
use testkit::wait::block_on;

use super::Storey;
use super::recorder::Recorded;
use crate::document::Documents;

const CONTAINER: &str = r#"{"id":"c","partitionKey":{"paths":["/pk"],"kind":"Hash","version":2}}"#;

pub(super) struct ServiceStorey {
    service: Service,
    container: Link,
}

impl ServiceStorey {
    pub(super) fn open(store: Arc<dyn Store>) -> Result<ServiceStorey> {
        let service = Service::open(store, Runtime::real(), Limits::default())?;
        let container = Link::parse("dbs/d/colls/c").context("a link")?;
        let storey = ServiceStorey { service, container };
        storey.create_resource("", Kind::Database, r#"{"id":"d"}"#)?;
        storey.create_resource("dbs/d", Kind::Container, CONTAINER)?;
        Ok(storey)
    }

    /// Without throughput, so that none is enforced.
    fn create_resource(&self, parent: &str, kind: Kind, body: &str) -> Result<()> {
        let parent = Link::parse(parent).context("a link")?;
        let body = json::parse(body.as_bytes())?;
        let (throughput, offer_type) = (None, None);
        self.execute(ResourceAction::Create { parent, kind, body, throughput, offer_type })?;
        Ok(())
    }

    fn execute<V: Verb>(&self, verb: V) -> Result<V::Reply> {
        let answer = block_on(self.service.execute(Request::new(Principal::Account, verb)));
        answer.map(|answer| answer.reply).map_err(|failure| anyhow::anyhow!("{failure:?}"))
    }
}

impl Storey for ServiceStorey {
    fn create(&self, documents: Documents, number: u64, _: &Recorded) -> Result<()> {
        let body = documents.text(number, 0).into();
        let action = ItemAction::new(None, ItemOperation::Create { body });
        self.execute(InContainer::new(self.container.clone(), action))?;
        Ok(())
    }

    fn read(&self, documents: Documents, number: u64, _: &Recorded) -> Result<usize> {
        let key = Some(PartitionKey::new([documents.key(number).as_str()]));
        let id = ItemId::parse(&format!("i{number}"))?;
        let action = ItemAction::new(key, ItemOperation::Read { id, if_none_match: None });
        let item = self.execute(InContainer::new(self.container.clone(), action))?;
        Ok(item.text.context("the document is there")?.len())
    }
}
