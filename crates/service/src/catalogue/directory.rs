//! Databases and containers by name, in memory.
//!
//! Every request on an item begins with a container's name; looking it up must
//! not touch the disk. The account's limit on databases and containers keeps
//! this small. All other resources are read from the system container.

use std::collections::BTreeMap;
use std::sync::Arc;

use cluster::{Container, Pool};
use model::rid::{ContainerRid, DatabaseRid};

use crate::pipeline::meta::Owner;

#[derive(Debug, Default)]
pub(crate) struct Directory {
    databases: BTreeMap<String, DatabaseEntry>,
}

#[derive(Debug)]
pub(crate) struct DatabaseEntry {
    pub(crate) rid: DatabaseRid,
    /// Throughput that its containers share, unless they have their own.
    pub(crate) pool: Option<Arc<Pool>>,
    pub(crate) containers: BTreeMap<String, ContainerEntry>,
}

#[derive(Clone, Debug)]
pub(crate) struct ContainerEntry {
    pub(crate) rid: ContainerRid,
    /// Its names, as the owner of what it contains.
    pub(crate) names: Owner,
    pub(crate) container: Arc<Container>,
    /// Whether it uses its database's throughput.
    pub(crate) shares_throughput: bool,
}

impl Directory {
    pub(crate) fn insert_database(
        &mut self,
        name: &str,
        rid: DatabaseRid,
        pool: Option<Arc<Pool>>,
    ) {
        let entry = DatabaseEntry { rid, pool, containers: BTreeMap::new() };
        self.databases.insert(name.to_owned(), entry);
    }

    pub(crate) fn remove_database(&mut self, name: &str) {
        self.databases.remove(name);
    }

    pub(crate) fn insert_container(
        &mut self,
        name: &str,
        rid: ContainerRid,
        container: Arc<Container>,
        shares_throughput: bool,
    ) {
        let owner = self.databases.iter_mut().find(|(_, entry)| entry.rid == rid.database());
        if let Some((database, entry)) = owner {
            let link = format!("dbs/{database}/colls/{name}").into();
            let names = Owner { rid: rid.to_string().into(), link };
            let new = ContainerEntry { rid, names, container, shares_throughput };
            entry.containers.insert(name.to_owned(), new);
        }
    }

    pub(crate) fn remove_container(&mut self, rid: ContainerRid) {
        for database in self.databases.values_mut() {
            database.containers.retain(|_, entry| entry.rid != rid);
        }
    }

    /// By name, or else by resource id: a name may look like an id.
    pub(crate) fn database(&self, name_or_rid: &str) -> Option<(&str, &DatabaseEntry)> {
        let by_name = self.databases.get_key_value(name_or_rid);
        let found = by_name.or_else(|| {
            let rid = DatabaseRid::parse(name_or_rid).ok()?;
            self.databases.iter().find(|(_, entry)| entry.rid == rid)
        });
        found.map(|(name, entry)| (name.as_str(), entry))
    }

    /// The database with that resource id.
    pub(crate) fn database_of_rid(&self, rid: &str) -> Option<&DatabaseEntry> {
        self.databases.values().find(|entry| entry.rid.to_string() == rid)
    }

    /// The container with that resource id.
    pub(crate) fn container_of_rid(&self, rid: &str) -> Option<&ContainerEntry> {
        let rid = ContainerRid::parse(rid).ok()?;
        self.containers().find(|entry| entry.rid == rid)
    }

    /// All containers.
    pub(crate) fn containers(&self) -> impl Iterator<Item = &ContainerEntry> {
        self.databases.values().flat_map(|entry| entry.containers.values())
    }

    /// Databases and containers together.
    pub(crate) fn len(&self) -> usize {
        self.databases.values().map(|database| 1 + database.containers.len()).sum()
    }
}

impl DatabaseEntry {
    /// By name, or else by resource id.
    pub(crate) fn container(&self, name_or_rid: &str) -> Option<(&str, &ContainerEntry)> {
        let by_name = self.containers.get_key_value(name_or_rid);
        let found = by_name.or_else(|| {
            let rid = ContainerRid::parse(name_or_rid).ok()?;
            self.containers.iter().find(|(_, entry)| entry.rid == rid)
        });
        found.map(|(name, entry)| (name.as_str(), entry))
    }
}
