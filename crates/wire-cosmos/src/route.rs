//! From a path to what it names. One table, for every method.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use service::{Kind, Link};

use crate::addresses::{AddressFilter, AddressProtocol, AddressesOf};

/// Longest path that is parsed: the deepest link with names of maximal length.
const PATH_BYTES_MAX: usize = 8 << 10;

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Account,
    /// Where replicas are, for clients in direct mode.
    Addresses {
        of: AddressesOf,
        filter: AddressFilter,
    },
    /// All resources of a kind inside a parent.
    Feed {
        parent: Link,
        kind: Kind,
    },
    Resource {
        link: Link,
    },
    /// All items of a container.
    Items {
        container: Link,
    },
    Item {
        container: Link,
        id: String,
    },
    /// The physical partitions of a container.
    Ranges {
        container: Link,
    },
    /// Writes that lost against others in another region.
    Conflicts {
        container: Link,
    },
    Conflict {
        container: Link,
    },
    /// Deletion of a whole logical partition.
    KeyDelete {
        container: Link,
    },
    /// Part of the protocol, but not implemented yet, by its name.
    Later {
        what: &'static str,
    },
}

impl Route {
    /// The container that a request is about.
    pub(crate) fn container(&self) -> Option<&Link> {
        match self {
            Route::Items { container }
            | Route::Item { container, .. }
            | Route::Ranges { container }
            | Route::Conflicts { container }
            | Route::Conflict { container }
            | Route::KeyDelete { container }
            | Route::Addresses { of: AddressesOf::Container(container), .. } => Some(container),
            Route::Feed { parent: link, .. } | Route::Resource { link } => {
                Some(link).filter(|link| link.kind() == Some(Kind::Container))
            }
            Route::Account
            | Route::Addresses { of: AddressesOf::Master, .. }
            | Route::Later { .. } => None,
        }
    }
}

/// A path with its segments decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// For a request for addresses, the segments of their subject: that is what its client
    /// has signed.
    segments: Vec<String>,
    addresses: Option<AddressFilter>,
}

/// A path that cannot name anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    #[error("The path is too long.")]
    TooLong,
    #[error("The path is not valid percent-encoded UTF-8.")]
    Encoding,
    #[error("The path has an empty segment.")]
    Empty,
    #[error("There is no resource at this path.")]
    Unknown,
    #[error("The value of the parameter {FILTER} is invalid.")]
    Filter,
    /// A client in direct mode asks for the addresses of replicas, and there are none.
    #[error(
        "This server speaks gateway mode only, and the client asks for direct mode. In Java, call gatewayMode() on \
         CosmosClientBuilder; in .NET, set ConnectionMode = ConnectionMode.Gateway in CosmosClientOptions."
    )]
    DirectMode,
}

/// First segments of paths that may have a second slash in front: clients that add one to
/// an endpoint without it (Python SDKs up to 4.7 and those based on them; .NET for
/// addresses).
const DOUBLED: [&str; 2] = ["dbs", "addresses"];

/// Only clients in direct mode ask for these.
const ADDRESSES: &str = "addresses";
/// And for what resource.
const RESOLVE_FOR: &str = "$resolvefor";

/// And for which protocol, of which ranges.
const FILTER: &str = "$filter";
const RANGES: &str = "$partitionkeyrangeids";

/// Parameters of the protocol. Others, after an item, are a part of its id.
const PARAMETERS: [&str; 4] = [RESOLVE_FOR, FILTER, RANGES, "api-version"];

/// Segments in the path of an item.
const ITEM_SEGMENTS: usize = 6;

impl Path {
    /// Takes a path as it is in the request line, with its query.
    ///
    /// Splits first and decodes afterwards, so that an encoded slash stays part of a name.
    pub(crate) fn parse(raw: &str, query: Option<&str>) -> Result<Path, PathError> {
        if raw.len().saturating_add(query.map_or(0, str::len)) > PATH_BYTES_MAX {
            return Err(PathError::TooLong);
        }
        let Some(query) = query else { return Path::of(raw) };
        let path = Path::of(raw)?;
        if path.asks_addresses() {
            let resource = parameter(query, RESOLVE_FOR)?.unwrap_or_default();
            let addresses = Some(address_filter(query)?);
            return Ok(Path { addresses, ..Path::of(&resource)? });
        }
        if path.is_item() && !is_parameters(query)? {
            // Some clients send the question mark of an id unencoded.
            return Path::of(&format!("{raw}%3F{}", query.replace('/', "%2F")));
        }
        Ok(path)
    }

    fn of(raw: &str) -> Result<Path, PathError> {
        let inner = raw.strip_prefix('/').unwrap_or(raw);
        let inner = inner.strip_prefix('/').filter(|rest| is_doubled(rest)).unwrap_or(inner);
        // Some clients end every path with a slash.
        let inner = inner.strip_suffix('/').unwrap_or(inner);
        let addresses = (inner == ADDRESSES).then(AddressFilter::default);
        if inner.is_empty() {
            return Ok(Path { segments: Vec::new(), addresses });
        }
        let segments = inner.split('/').map(decode).collect::<Result<Vec<_>, _>>()?;
        if segments.iter().any(String::is_empty) {
            return Err(PathError::Empty);
        }
        Ok(Path { segments, addresses })
    }

    pub(crate) fn asks_addresses(&self) -> bool {
        self.addresses.is_some()
    }

    fn is_item(&self) -> bool {
        matches!(self.route(), Ok(Route::Item { .. }))
    }

    pub(crate) fn segments(&self) -> &[String] {
        &self.segments
    }

    /// The links that a client may have signed for an item whose id has unencoded slashes,
    /// or backslashes, which the libraries of Rust and .NET send as slashes. The path
    /// itself matches no route.
    pub(crate) fn links_with_slashes(&self) -> Vec<String> {
        let words = self.segments.iter().step_by(2).map(String::as_str);
        let Some((owner, id)) = self.segments.split_at_checked(ITEM_SEGMENTS - 1) else {
            return Vec::new();
        };
        if id.len() < 2 || !words.take(3).eq(["dbs", "colls", "docs"]) {
            return Vec::new();
        }
        let owner = owner.join("/");
        ["/", "\\"].map(|slash| format!("{owner}/{}", id.join(slash))).into()
    }

    pub(crate) fn route(&self) -> Result<Route, PathError> {
        let segments: Vec<&str> = self.segments.iter().map(String::as_str).collect();
        if let Some(filter) = &self.addresses {
            let of = addressed(&segments).ok_or(PathError::Unknown)?;
            return Ok(Route::Addresses { of, filter: filter.clone() });
        }
        if segments.is_empty() {
            return Ok(Route::Account);
        }
        let (owner, rest) = split_owner(&segments);
        let container = owner.kind() == Some(Kind::Container);
        match rest {
            [] => Ok(Route::Resource { link: owner }),
            [feed] if feed_kind(feed, &owner).is_some() => {
                let kind = feed_kind(feed, &owner).ok_or(PathError::Unknown)?;
                Ok(Route::Feed { parent: owner, kind })
            }
            ["docs"] if container => Ok(Route::Items { container: owner }),
            ["docs", id] if container => Ok(Route::Item { container: owner, id: (*id).to_owned() }),
            ["pkranges"] if container => Ok(Route::Ranges { container: owner }),
            ["operations", "partitionkeydelete"] if container => {
                Ok(Route::KeyDelete { container: owner })
            }
            ["conflicts"] if container => Ok(Route::Conflicts { container: owner }),
            ["conflicts", _] if container => Ok(Route::Conflict { container: owner }),
            ["docs", _, "attachments", ..] if container => Ok(Route::Later { what: "Attachments" }),
            _ => Err(PathError::Unknown),
        }
    }
}

/// What the subject of a request for addresses is part of: items of a container, or databases.
fn addressed(subject: &[&str]) -> Option<AddressesOf> {
    if subject == ["dbs"] {
        return Some(AddressesOf::Master);
    }
    let (owner, rest) = split_owner(subject);
    let is_items = owner.kind() == Some(Kind::Container) && rest == ["docs"];
    is_items.then_some(AddressesOf::Container(owner))
}

fn address_filter(query: &str) -> Result<AddressFilter, PathError> {
    let protocol = match parameter(query, FILTER)? {
        Some(filter) => AddressProtocol::of_filter(&filter).ok_or(PathError::Filter)?,
        None => AddressProtocol::default(),
    };
    let ranges = parameter(query, RANGES)?.map(|list| AddressFilter::ranges_of(&list));
    Ok(AddressFilter { protocol, ranges })
}

/// The value of a parameter, decoded.
fn parameter(query: &str, name: &str) -> Result<Option<String>, PathError> {
    for pair in query.split('&') {
        let (found, value) = pair.split_once('=').unwrap_or((pair, ""));
        if decode(found)?.eq_ignore_ascii_case(name) {
            return decode(value).map(Some);
        }
    }
    Ok(None)
}

/// Whether all of a query is parameters of the protocol.
fn is_parameters(query: &str) -> Result<bool, PathError> {
    for pair in query.split('&') {
        let name = decode(pair.split('=').next().unwrap_or_default())?.to_ascii_lowercase();
        if !PARAMETERS.contains(&name.as_str()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether what follows two slashes is what some clients put there.
fn is_doubled(rest: &str) -> bool {
    let first = rest.split('/').next().unwrap_or_default();
    DOUBLED.contains(&first)
}

/// The longest beginning that is a link, and what follows it.
fn split_owner<'a>(segments: &'a [&'a str]) -> (Link, &'a [&'a str]) {
    let mut link = Link::default();
    let mut rest = segments;
    while let [kind, name, tail @ ..] = rest {
        let child = feed_kind(kind, &link).and_then(|kind| link.clone().child(kind, name));
        let Some(child) = child else { break };
        (link, rest) = (child, tail);
    }
    (link, rest)
}

/// The kind that a word stands for inside an owner.
fn feed_kind(word: &str, owner: &Link) -> Option<Kind> {
    Kind::from_segment(word).filter(|kind| kind.parent() == owner.kind())
}

/// Decodes `%XX` and nothing else: a plus sign is a plus sign.
fn decode(segment: &str) -> Result<String, PathError> {
    let is_code = |after: &str| {
        let digits = after.as_bytes().first_chunk::<2>();
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !segment.split('%').skip(1).all(is_code) {
        return Err(PathError::Encoding);
    }
    let decoded = percent_decode_str(segment).decode_utf8();
    decoded.map(Cow::into_owned).map_err(|_| PathError::Encoding)
}

#[cfg(test)]
mod tests {
    use service::PartitionId;

    use super::*;

    fn route(target: &str) -> Result<Route, PathError> {
        let (path, query) = target.split_once('?').map_or((target, None), |(p, q)| (p, Some(q)));
        Path::parse(path, query)?.route()
    }

    fn link(text: &str) -> Link {
        Link::parse(text).unwrap()
    }

    #[test]
    fn paths_name_what_they_name_with_or_without_a_final_slash() {
        let container = || link("dbs/d/colls/c");
        let cases = [
            ("/", Route::Account),
            ("/dbs", Route::Feed { parent: Link::default(), kind: Kind::Database }),
            ("/dbs/d", Route::Resource { link: link("dbs/d") }),
            ("/dbs/d/colls", Route::Feed { parent: link("dbs/d"), kind: Kind::Container }),
            ("/dbs/d/colls/c", Route::Resource { link: container() }),
            ("/dbs/d/colls/c/docs", Route::Items { container: container() }),
            (
                "/dbs/d/colls/c/docs/a%2Fb%20+",
                Route::Item { container: container(), id: "a/b +".to_owned() },
            ),
            ("/dbs/d/colls/c/pkranges", Route::Ranges { container: container() }),
            ("/dbs/d/colls/c/sprocs/s", Route::Resource { link: link("dbs/d/colls/c/sprocs/s") }),
            (
                "/dbs/d/users/u/permissions",
                Route::Feed { parent: link("dbs/d/users/u"), kind: Kind::Permission },
            ),
            ("/offers/abcD", Route::Resource { link: link("offers/abcD") }),
            ("/dbs/d/colls/c/conflicts", Route::Conflicts { container: container() }),
            ("/dbs/d/colls/c/conflicts/x", Route::Conflict { container: container() }),
            (
                "/dbs/d/colls/c/operations/partitionkeydelete",
                Route::KeyDelete { container: container() },
            ),
        ];
        for (path, expected) in cases {
            assert_eq!(route(path).as_ref(), Ok(&expected), "{path}");
            if path != "/" {
                assert_eq!(route(&format!("{path}/")).as_ref(), Ok(&expected), "{path}/");
            }
            if path.starts_with("/dbs") {
                assert_eq!(route(&format!("/{path}")), Ok(expected), "/{path}");
            }
        }
    }

    #[test]
    fn a_question_mark_may_be_part_of_an_id() {
        let ids = [
            ("a?b", "a?b"),
            ("a?b=c&d/e", "a?b=c&d/e"),
            ("a%20b?c%3Fd?", "a b?c?d?"),
            ("a?api-version=1", "a"),
            ("a?$filter=x", "a"),
            ("a?%24filter=x", "a"),
            ("a?$filter=x&y", "a?$filter=x&y"),
        ];
        for (raw, id) in ids {
            let expected = Route::Item { container: link("dbs/d/colls/c"), id: id.to_owned() };
            assert_eq!(route(&format!("/dbs/d/colls/c/docs/{raw}")), Ok(expected), "{raw}");
        }
        let feed = Route::Feed { parent: Link::default(), kind: Kind::Database };
        assert_eq!(route("/dbs?b"), Ok(feed));
        assert_eq!(route("/dbs/d/colls/c/docs/a?%zz"), Err(PathError::Encoding));
    }

    #[test]
    fn addresses_are_signed_as_what_they_are_of() {
        let parse = |query| Path::parse("//addresses/", Some(query)).unwrap();
        let path = parse(
            "%24resolveFor=dbs%2fAQAAAA%3d%3d%2fcolls%2fx%2fdocs%2f&$filter=protocol eq rntbd",
        );
        assert_eq!(path.segments(), ["dbs", "AQAAAA==", "colls", "x", "docs"]);
        let of = AddressesOf::Container(link("dbs/AQAAAA==/colls/x"));
        let filter = AddressFilter::default();
        assert_eq!(path.route(), Ok(Route::Addresses { of, filter }));
        assert_eq!(parse("$resolveFor=dbs").segments(), ["dbs"]);
        assert!(parse("").segments().is_empty());
        let some = parse("$resolveFor=dbs&$filter=protocol%20eq%20https&$partitionKeyRangeIds=1,2");
        let ranges = Some(vec![PartitionId(1), PartitionId(2)]);
        let filter = AddressFilter { protocol: AddressProtocol::Https, ranges };
        assert_eq!(some.route(), Ok(Route::Addresses { of: AddressesOf::Master, filter }));
        for query in ["$filter=protocol eq tcp&$resolveFor=dbs", "$filter=&$resolveFor=dbs"] {
            assert_eq!(Path::parse("/addresses/", Some(query)), Err(PathError::Filter));
        }
        assert!(Path::parse("/addresses/", Some("$resolveFor=dbs//x")).is_err());
    }

    #[test]
    fn what_names_nothing_is_refused() {
        let cases = [
            ("/colls/c", PathError::Unknown),
            ("/dbs/d/docs/x", PathError::Unknown),
            ("/dbs//colls/c", PathError::Empty),
            ("///dbs/d", PathError::Empty),
            ("//offers", PathError::Empty),
            ("//%64bs/d", PathError::Empty),
            ("//dbs//d", PathError::Empty),
            ("/addresses/", PathError::Unknown),
            ("//addresses/", PathError::Unknown),
            ("//addresses/?$resolveFor=dbs%2fx", PathError::Unknown),
            ("//addresses/?$resolveFor=dbs%2fx%2fcolls%2fy%2fdocs%2fz", PathError::Unknown),
            ("//addresses/?$resolveFor=dbs%2fx%2fcolls%2fy%2fsprocs", PathError::Unknown),
            ("/addresses/x", PathError::Unknown),
            ("/dbs/d//", PathError::Empty),
            ("/dbs/%zz", PathError::Encoding),
            ("/dbs/%ff", PathError::Encoding),
            ("/dbs/%4", PathError::Encoding),
            ("/dbs/d/colls/c/docs/x/y", PathError::Unknown),
        ];
        for (path, expected) in cases {
            assert_eq!(route(path), Err(expected), "{path}");
        }
        assert_eq!(route(&format!("/dbs/{}", "x".repeat(PATH_BYTES_MAX))), Err(PathError::TooLong));
    }
}
