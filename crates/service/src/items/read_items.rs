//! Multi-read: many items by name in one call, for protocols and programs that make many
//! reads.
//!
//! The container is resolved once, and each item is a point read in its partition, admitted
//! and charged there. The answer is as long as a page may be: for more, ask again.

use bytes::Bytes;
use model::name::ItemId;
use model::partition_key::PartitionKey;
use model::session::SessionToken;

use crate::error::ServiceError;
use crate::identity::roles::DataAction;
use crate::items::ItemRead;
use crate::pipeline::limits::PAGE_ITEMS_MAX;
use crate::pipeline::meta::ResponseMeta;
use crate::pipeline::resolve::ResolvedContainer;
use crate::response::ItemResult;
use crate::service::Service;
use crate::verb::{ContainerVerb, ItemFacts, Reach};

/// Items that are read before the worker yields.
const STRETCH: usize = 16;

/// Reads items by key and id.
#[derive(Clone, Debug)]
pub struct ReadItems {
    pub items: Vec<(PartitionKey, ItemId)>,
    /// What the client has seen already: an answer may not be older.
    pub session: Option<SessionToken>,
}

impl ContainerVerb for ReadItems {
    /// One for each item in the order of the request, `None` for one that does not exist.
    /// Shorter than the request if a page is full, or throughput used up: the others have
    /// to be asked for again.
    type Reply = Vec<Option<ItemResult>>;

    fn facts(&self) -> ItemFacts<'_> {
        let keys = self.items.iter().map(|(key, _)| key).collect();
        ItemFacts::reading(Reach::Keys(keys)).allowed_by(DataAction::ReadItem)
    }

    async fn perform(
        self,
        service: &Service,
        container: &ResolvedContainer,
        meta: &mut ResponseMeta,
    ) -> Result<Vec<Option<ItemResult>>, ServiceError> {
        let mut found: Vec<Option<ItemResult>> = Vec::new();
        let mut bytes_left = service.limits.response_bytes_max;
        for (key, id) in self.items.iter().take(PAGE_ITEMS_MAX) {
            if !found.is_empty() && found.len().is_multiple_of(STRETCH) {
                runtime::yield_now().await;
            }
            let read = ItemRead { key: Some(key), id, if_none_match: None };
            let item = match service.read_item(container, read, self.session.as_ref(), meta).await {
                Ok(item) => Some(item),
                Err(ServiceError::NotFound) => None,
                // What was read so far is an answer as well.
                Err(ServiceError::Throttled { .. }) if !found.is_empty() => break,
                Err(error) => return Err(error),
            };
            let bytes = item.as_ref().and_then(|item| item.text.as_ref()).map_or(0, Bytes::len);
            match bytes_left.checked_sub(bytes as u64) {
                Some(left) => bytes_left = left,
                None if found.is_empty() => bytes_left = 0,
                None => break,
            }
            found.push(item);
        }
        Ok(found)
    }
}
