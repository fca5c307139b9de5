//! The host names that this server answers to.
//!
//! With the well-known key, any request is authorised, and every web page that a developer
//! opens can send one: it lets its own name resolve to 127.0.0.1 (DNS rebinding), and the
//! browser takes our answers for the page's. But the browser sends the name it called, and
//! the page cannot change that. So only names that cannot belong to others are answered,
//! and those that the settings allow. Any IP address is fine: an address cannot be made to
//! resolve to something else.

use std::net::{Ipv4Addr, Ipv6Addr};

use http::Request;
use http::header::HOST;

use crate::settings::{HostName, Settings};

/// The names that are answered.
#[derive(Debug)]
pub(crate) enum Hosts {
    /// With a secret key, a page can do nothing.
    All,
    Local {
        also: Vec<HostName>,
    },
}

/// A name that is not answered.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "This server has the emulators' well-known key and is not known as '{0}', so a web page could be asking. \
     If '{0}' is right, start it with --host-name {0} (or ORRERY_HOST_NAME={0}), or with a key of its own."
)]
pub(crate) struct UnknownHost(String);

/// Bytes of a wrong name that an error message repeats.
const SHOWN_BYTES_MAX: usize = 100;

impl Hosts {
    pub(crate) fn new(settings: &Settings) -> Hosts {
        let also = &settings.host_names;
        if !settings.has_well_known_key() || also.iter().any(|name| name.as_str() == HostName::ANY)
        {
            return Hosts::All;
        }
        Hosts::Local { also: also.clone() }
    }

    /// Every name in the request must be allowed. A request without a name is not from a
    /// browser.
    pub(crate) fn check<B>(&self, request: &Request<B>) -> Result<(), UnknownHost> {
        let Hosts::Local { also } = self else { return Ok(()) };
        if let Some(authority) = request.uri().authority() {
            check(authority.as_str(), also)?;
        }
        for value in request.headers().get_all(HOST) {
            check(&String::from_utf8_lossy(value.as_bytes()), also)?;
        }
        Ok(())
    }
}

fn check(authority: &str, also: &[HostName]) -> Result<(), UnknownHost> {
    let host = host(authority).unwrap_or(authority);
    let name = host.strip_suffix('.').unwrap_or(host);
    let is_same = |known: &HostName| known.as_str().eq_ignore_ascii_case(name);
    if is_localhost(name) || is_address(name) || also.iter().any(is_same) {
        return Ok(());
    }
    let shown = name.chars().filter(|c| !c.is_control()).take(SHOWN_BYTES_MAX).collect();
    Err(UnknownHost(shown))
}

/// What precedes the port, if there is one and it is a number.
fn host(authority: &str) -> Option<&str> {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => Some(host),
        Some(_) | None => None,
    }
}

/// `localhost` or a name below it.
fn is_localhost(name: &str) -> bool {
    let (before, last) = name.rsplit_once('.').unwrap_or(("here", name));
    !before.is_empty() && last.eq_ignore_ascii_case("localhost")
}

fn is_address(host: &str) -> bool {
    let v6 = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    v6.is_some_and(|host| host.parse::<Ipv6Addr>().is_ok()) || host.parse::<Ipv4Addr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(authority: &str) -> Option<String> {
        let also = ["cosmosdb".parse().unwrap()];
        check(authority, &also).err().map(|error| error.0)
    }

    #[test]
    fn local_names_and_addresses_are_answered() {
        for host in [
            "localhost",
            "localhost:8081",
            "LOCALHOST:1",
            "localhost.",
            "db.localhost:8081",
            "127.0.0.1",
            "127.9.9.9:8081",
            "[::1]:8081",
            "[::1]",
            "172.17.0.2:8081",
            "cosmosdb:8081",
            "CosmosDB",
        ] {
            assert_eq!(refusal(host), None, "{host}");
        }
    }

    #[test]
    fn other_names_are_refused() {
        for host in [
            "example.org",
            "example.org:8081",
            "localhost.example.org",
            "notlocalhost",
            "127.0.0.1.example.org",
            "127.0.0.1:80.example.org",
            "cosmosdb.example.org",
            "user@example.org",
            "localhost@example.org",
            "localhost:8081@example.org",
            "2130706433",
            "0x7f.1",
            "",
            " localhost",
            "localhost, example.org",
            "[::1].example.org",
        ] {
            assert!(refusal(host).is_some(), "{host}");
        }
        assert_eq!(refusal("a\u{1b}b").as_deref(), Some("ab"));
        assert_eq!(refusal(&"x".repeat(10_000)).unwrap().len(), SHOWN_BYTES_MAX);
    }
}
