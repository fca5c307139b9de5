//! The paths of replicas: in the addresses that the gateway gives out, and in every request on one.

use std::fmt;

use model::rid::ContainerRid;
use service::PartitionId;

/// Addresses of a partition: a primary, and three secondaries for quorums of two.
pub const REPLICAS: [&str; 4] = ["1p", "2s", "3s", "4s"];

/// What the partition of databases and containers is called, and its range.
const MASTER: (&str, &str) = ("master", "M");

/// What an address leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addressed {
    /// Databases and containers.
    Master,
    /// Items of a container.
    Range(ContainerRid, PartitionId),
}

impl Addressed {
    /// The id of the range, as clients know it.
    #[must_use]
    pub fn range(&self) -> String {
        match self {
            Addressed::Master => MASTER.1.to_owned(),
            Addressed::Range(_, range) => range.to_string(),
        }
    }
}

/// The path of one replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaPath {
    pub of: Addressed,
    /// One of [`REPLICAS`].
    pub replica: &'static str,
}

impl ReplicaPath {
    /// The paths of all replicas, that of the primary first.
    pub fn all(of: Addressed) -> impl Iterator<Item = ReplicaPath> {
        REPLICAS.into_iter().map(move |replica| ReplicaPath { of, replica })
    }

    #[must_use]
    pub fn is_primary(&self) -> bool {
        Some(&self.replica) == REPLICAS.first()
    }

    /// Reads a path, with or without a slash at its end: clients remove it.
    #[must_use]
    pub fn parse(text: &str) -> Option<ReplicaPath> {
        let text = text.strip_suffix('/').unwrap_or(text);
        let (service, rest) = text.strip_prefix("/apps/orrery/services/")?.split_once('/')?;
        let (range, replica) = rest.strip_prefix("partitions/")?.split_once("/replicas/")?;
        let replica = REPLICAS.into_iter().find(|known| *known == replica)?;
        if (service, range) == MASTER {
            return Some(ReplicaPath { of: Addressed::Master, replica });
        }
        let rid = ContainerRid::parse(&format!("{service}=")).ok()?;
        let range = range.parse().ok().map(PartitionId)?;
        Some(ReplicaPath { of: Addressed::Range(rid, range), replica })
    }
}

impl fmt::Display for ReplicaPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rid = if let Addressed::Range(rid, _) = self.of { Some(rid.to_string()) } else { None };
        // Without what fills up base 64: some programs escape it in a path.
        let service = rid.as_deref().map_or(MASTER.0, |rid| rid.trim_end_matches('='));
        let (range, replica) = (self.of.range(), self.replica);
        write!(f, "/apps/orrery/services/{service}/partitions/{range}/replicas/{replica}/")
    }
}

#[cfg(test)]
mod tests {
    use model::rid::DatabaseRid;

    use super::*;

    #[test]
    fn paths_lead_back() {
        let rid = ContainerRid::new(DatabaseRid::new(1).unwrap(), 2).unwrap();
        for of in [Addressed::Master, Addressed::Range(rid, PartitionId(17))] {
            for path in ReplicaPath::all(of) {
                let text = path.to_string();
                assert_eq!(ReplicaPath::parse(&text), Some(path), "{text}");
                assert_eq!(ReplicaPath::parse(text.trim_end_matches('/')), Some(path), "{text}");
            }
        }
    }

    #[test]
    fn other_paths_are_none() {
        for text in [
            "",
            "/",
            "/apps/orrery/services/master/partitions/M/replicas/5s",
            "/apps/orrery/services/master/partitions/0/replicas/1p",
            "/apps/orrery/services/AAAAAYAAAAE/partitions/M/replicas/1p",
            "/apps/orrery/services/AAAAAYAAAAE=/partitions/0/replicas/1p",
            "/apps/other/services/AAAAAYAAAAE/partitions/0/replicas/1p",
            "/apps/orrery/services/AAAAAYAAAAE/partitions/0/replicas/1p/x",
        ] {
            assert_eq!(ReplicaPath::parse(text), None, "{text}");
        }
    }
}
