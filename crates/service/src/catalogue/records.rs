//! Records of the catalogue, one after the other.
//!
//! Reading one takes microseconds and there may be ten thousands, so code that wants more
//! than a few does it on a query thread, where it takes turns with queries.

use std::vec;

use cluster::{SystemItems, Turn};
use partition::Item;

use crate::catalogue::kind::Kind;
use crate::catalogue::{Stored, item_id, item_prefix};
use crate::error::ServiceError;
use crate::service::{Service, id_of};

/// Records that are read at once: as many as take less time than passes until a query
/// thread offers its core to others.
const CHUNK_RECORDS: usize = 64;

/// The records of one kind and parent in the order of names, as they were at a moment. For a
/// thread that may wait.
#[derive(Debug)]
pub(crate) struct Records {
    items: SystemItems,
    kind: Kind,
    parent_rid: String,
    prefix: String,
    after: Option<String>,
    chunk: vec::IntoIter<Item>,
    /// Whether there are more after the chunk.
    more: bool,
}

impl Records {
    /// Those after a name.
    pub(crate) fn after(self, name: Option<&str>) -> Records {
        let after = name.map(|name| item_id(self.kind, &self.parent_rid, name));
        Records { after, ..self }
    }

    fn read_chunk(&mut self) -> Result<(), ServiceError> {
        self.more = false;
        let (items, more) = self.items.list(&self.prefix, self.after.as_deref(), CHUNK_RECORDS)?;
        self.after = items.last().map(id_of);
        self.more = more;
        self.chunk = items.into_iter();
        Ok(())
    }
}

impl Iterator for Records {
    type Item = Result<Stored, ServiceError>;

    fn next(&mut self) -> Option<Result<Stored, ServiceError>> {
        if self.chunk.len() == 0
            && self.more
            && let Err(error) = self.read_chunk()
        {
            return Some(Err(error));
        }
        let item = self.chunk.next()?;
        Some(Stored::read(self.kind, &self.parent_rid, &item))
    }
}

impl Service {
    /// The records of one kind and parent as they are now.
    pub(crate) fn records(&self, kind: Kind, parent_rid: &str) -> Result<Records, ServiceError> {
        Ok(Records {
            items: self.cluster.system_items()?,
            kind,
            parent_rid: parent_rid.to_owned(),
            prefix: item_prefix(kind, parent_rid),
            after: None,
            chunk: Vec::new().into_iter(),
            more: true,
        })
    }

    /// The first records of one kind and parent, in the order of names.
    pub(crate) async fn first_records(
        &self,
        kind: Kind,
        parent_rid: &str,
        count: usize,
    ) -> Result<Vec<Stored>, ServiceError> {
        let records = self.records(kind, parent_rid)?;
        self.read_records(move |turn| giving_way(records, turn).take(count).collect()).await
    }

    /// What `pick` makes of the records of one kind and parent, in the order of names.
    pub(crate) async fn select_records<T: Send + 'static>(
        &self,
        kind: Kind,
        parent_rid: &str,
        mut pick: impl FnMut(Stored) -> Result<Option<T>, ServiceError> + Send + 'static,
    ) -> Result<Vec<T>, ServiceError> {
        let records = self.records(kind, parent_rid)?;
        let picked = move |turn: &Turn| {
            let picked = giving_way(records, turn).map(|stored| pick(stored?));
            picked.filter_map(Result::transpose).collect()
        };
        self.read_records(picked).await
    }

    /// Reads records on a query thread. Never refused under load, as changes of the
    /// catalogue depend on it.
    pub(crate) async fn read_records<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Turn) -> Result<T, ServiceError> + Send + 'static,
    ) -> Result<T, ServiceError> {
        self.cluster.take_turns_always(move |turn| read(turn)).await?
    }
}

/// Records, and a chance for others after each of them.
pub(crate) fn giving_way(
    records: Records,
    turn: &Turn,
) -> impl Iterator<Item = Result<Stored, ServiceError>> {
    records.map(|stored| {
        turn.give_way()?;
        stored
    })
}
