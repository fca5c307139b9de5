//! Numbers that are assigned once and never reused.

use cluster::SystemWrite;
use model::json::{Object, Raw, Value};
use model::rid::{
    ChildKind, ChildRid, ContainerRid, DatabaseRid, OfferRid, PermissionRid, UserRid,
};
use partition::ContainerNumber;

use crate::catalogue::kind::Kind;
use crate::error::ServiceError;

/// The id of the item that holds them.
pub(crate) const COUNTERS: &str = "counters";

/// The next number of each kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Counters {
    databases: u64,
    containers: u64,
    children: u64,
    offers: u64,
    numbers: u64,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters { databases: 1, containers: 1, children: 1, offers: 1, numbers: 1 }
    }
}

impl Counters {
    pub(crate) fn parse(raw: Raw<'_>) -> Result<Counters, ServiceError> {
        let number = |name: &str| {
            let number = raw.get(name).and_then(|value| value.text().parse().ok());
            number.ok_or_else(|| ServiceError::internal(format!("counter '{name}' is malformed")))
        };
        Ok(Counters {
            databases: number("databases")?,
            containers: number("containers")?,
            children: number("children")?,
            offers: number("offers")?,
            numbers: number("numbers")?,
        })
    }

    /// Part of every transaction that used a number.
    pub(crate) fn write(&self) -> SystemWrite {
        let number = |value: u64| Value::from(i64::try_from(value).expect("counted up one by one"));
        let body = Object::from_iter([
            ("databases", number(self.databases)),
            ("containers", number(self.containers)),
            ("children", number(self.children)),
            ("offers", number(self.offers)),
            ("numbers", number(self.numbers)),
        ]);
        SystemWrite::Put { id: COUNTERS.to_owned(), body }
    }

    /// The most resources of a kind that there can be: as many as were ever created, of those
    /// that share its numbers.
    pub(crate) fn created(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Database => self.databases - 1,
            Kind::Container | Kind::User | Kind::ClientEncryptionKey => self.containers - 1,
            Kind::Permission
            | Kind::StoredProcedure
            | Kind::Trigger
            | Kind::UserDefinedFunction => self.children - 1,
            Kind::Offer => self.offers - 1,
        }
    }

    pub(crate) fn database(&mut self) -> Result<DatabaseRid, ServiceError> {
        small(take(&mut self.databases)).and_then(DatabaseRid::new).ok_or_else(exhausted)
    }

    pub(crate) fn container(
        &mut self,
        database: DatabaseRid,
    ) -> Result<ContainerRid, ServiceError> {
        let number = small(take(&mut self.containers));
        number.and_then(|number| ContainerRid::new(database, number)).ok_or_else(exhausted)
    }

    pub(crate) fn user(&mut self, database: DatabaseRid) -> Result<UserRid, ServiceError> {
        let number = small(take(&mut self.containers));
        number.and_then(|number| UserRid::new(database, number)).ok_or_else(exhausted)
    }

    pub(crate) fn permission(&mut self, user: UserRid) -> PermissionRid {
        PermissionRid::new(user, take(&mut self.children))
    }

    pub(crate) fn script(
        &mut self,
        container: ContainerRid,
        kind: ChildKind,
    ) -> Result<ChildRid, ServiceError> {
        ChildRid::new(container, kind, take(&mut self.children)).ok_or_else(exhausted)
    }

    pub(crate) fn offer(&mut self) -> Result<OfferRid, ServiceError> {
        small(take(&mut self.offers)).and_then(OfferRid::new).ok_or_else(exhausted)
    }

    pub(crate) fn number(&mut self) -> Result<ContainerNumber, ServiceError> {
        small(take(&mut self.numbers)).map(ContainerNumber).ok_or_else(exhausted)
    }
}

fn take(counter: &mut u64) -> u64 {
    let number = *counter;
    *counter += 1;
    number
}

fn small(number: u64) -> Option<u32> {
    u32::try_from(number).ok()
}

fn exhausted() -> ServiceError {
    ServiceError::Quota { message: "All resource ids of this kind have been used.".to_owned() }
}
