//! `GET /addresses/`: where clients in direct mode find the replicas of a partition.
//!
//! There is one copy of the data, and four addresses lead to it: on the host and port by which the
//! client has reached us, with paths that name container, range and replica. Clients want a primary
//! and as many secondaries as their quorums need; with fewer addresses they ask for more before
//! every read that needs a quorum. `docs/design/direct.md` says what is true about them and what is not.
//!
//! What was answered is kept by clients for hours, so the path of an address has all that a request
//! on it must be checked against.

use bytes::Bytes;
use http::Method;
use model::json::{Object, Value};
use protocol::address::{Addressed, ReplicaPath};
use service::{Link, PartitionId, RangeInfo, Ranges, ReadRanges};

use crate::gateway::Call;
use crate::page;
use crate::ranges::range_rid;
use crate::reply::Answer;
use protocol::error::WireError;
use protocol::page::{Envelope, EnvelopeRow};

/// The resource id of the master partition. No range of a container has it.
const MASTER_RID: &str = "0";

/// What an address has in an answer, roughly.
const ADDRESS_BYTES: usize = 300;

/// Where a client is sent that gives no host.
const HOST_DEFAULT: &str = "localhost:8081";

/// Of what the addresses are requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AddressesOf {
    Master,
    Container(Link),
}

/// What a request for addresses says besides that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AddressFilter {
    pub(crate) protocol: AddressProtocol,
    /// The ranges that the client wants; all of them if it names none.
    pub(crate) ranges: Option<Vec<PartitionId>>,
}

/// What the client is going to speak to the addresses. Nothing is ever sent to those of `https`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum AddressProtocol {
    #[default]
    Rntbd,
    Https,
}

impl AddressProtocol {
    const ALL: [AddressProtocol; 2] = [AddressProtocol::Rntbd, AddressProtocol::Https];

    fn name(self) -> &'static str {
        match self {
            AddressProtocol::Rntbd => "rntbd",
            AddressProtocol::Https => "https",
        }
    }

    /// The protocol of a filter, `protocol eq rntbd`.
    pub(crate) fn of_filter(filter: &str) -> Option<AddressProtocol> {
        let mut words = filter.split_whitespace();
        let begins = words.next() == Some("protocol") && words.next() == Some("eq");
        let name = words.next().filter(|_| begins && words.next().is_none())?;
        AddressProtocol::ALL.into_iter().find(|known| known.name() == name)
    }
}

impl AddressFilter {
    /// The ranges of a list. What is not a number names none that exists.
    pub(crate) fn ranges_of(list: &str) -> Vec<PartitionId> {
        list.split(',').filter_map(|id| id.trim().parse().ok()).map(PartitionId).collect()
    }
}

/// One address before it is text.
#[derive(Debug)]
struct Address {
    path: ReplicaPath,
    rid: String,
}

impl EnvelopeRow for Address {
    fn bytes(&self) -> usize {
        ADDRESS_BYTES
    }
}

pub(crate) async fn answer(
    call: &Call<'_>,
    of: AddressesOf,
    filter: AddressFilter,
) -> Result<Answer, WireError> {
    if *call.method != Method::GET {
        return Err(call.not_allowed());
    }
    let (rows, meta) = match of {
        AddressesOf::Master => {
            call.require_account()?;
            (replicas(Addressed::Master, MASTER_RID).collect(), None)
        }
        AddressesOf::Container(container) => {
            let response = call.container(container, ReadRanges).await?;
            (of_container(&response.reply, &filter), Some(response.meta))
        }
    };
    let base = format!("{}://{}", filter.protocol.name(), authority(call));
    let page = Envelope { owner_rid: String::new(), name: "Addresss", rows };
    let answer =
        page::answer(page, call, move |address| body(&address, filter.protocol, &base)).await?;
    Ok(match &meta {
        Some(meta) => answer.with_meta(meta),
        None => answer,
    })
}

/// Ranges that do not exist are left out: clients then read the ranges again.
fn of_container(ranges: &Ranges, filter: &AddressFilter) -> Vec<Address> {
    let Ranges { container, ranges, .. } = ranges;
    let is_asked =
        |range: &&RangeInfo| filter.ranges.as_ref().is_none_or(|ids| ids.contains(&range.id));
    let of_range = |range: &RangeInfo| {
        let rid = range_rid(*container, range.id);
        replicas(Addressed::Range(*container, range.id), &rid)
    };
    ranges.iter().filter(is_asked).flat_map(of_range).collect()
}

fn replicas(of: Addressed, rid: &str) -> impl Iterator<Item = Address> + use<> {
    let rid = rid.to_owned();
    ReplicaPath::all(of).map(move |path| Address { path, rid: rid.clone() })
}

/// The host and port that the client has used. Clients pass over an IPv6 address, and this server
/// listens on both.
fn authority(call: &Call<'_>) -> String {
    let host = call.headers.text("host").unwrap_or(HOST_DEFAULT);
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((_, port)) => format!("localhost{port}"),
        None => host.to_owned(),
    }
}

/// The misspelt names are the protocol's.
fn body(address: &Address, protocol: AddressProtocol, base: &str) -> Bytes {
    let Address { path, rid } = address;
    let range = path.of.range();
    let mut object = Object::new();
    object.insert("isPrimary", path.is_primary());
    object.insert("protocol", protocol.name());
    object.insert("logicalUri", "");
    object.insert("physcialUri", format!("{base}{path}"));
    object.insert("partitionKeyRangeId", range.as_str());
    object.insert("partitionIndex", format!("{range}@0"));
    object.insert("_rid", rid.as_str());
    Value::Object(object).to_string().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_name_one_of_two_protocols() {
        for (filter, protocol) in [
            ("protocol eq rntbd", Some(AddressProtocol::Rntbd)),
            ("protocol  eq https", Some(AddressProtocol::Https)),
            ("protocol eq http", None),
            ("protocol eq rntbd or true", None),
            ("rntbd", None),
            ("", None),
        ] {
            assert_eq!(AddressProtocol::of_filter(filter), protocol, "{filter}");
        }
    }

    #[test]
    fn ranges_are_numbers() {
        let ids = |list| AddressFilter::ranges_of(list).iter().map(|id| id.0).collect::<Vec<_>>();
        assert_eq!(ids("0,3"), [0, 3]);
        assert_eq!(ids(" 1 ,M,-1,"), [1]);
    }
}
