//! Identity providers, as settings name them.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};
use service::identity::IssuerRules;

/// More than anyone has; each is asked for its keys every minute.
const ISSUERS_MAX: usize = 16;

/// A provider, and where its keys are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IssuerSetting {
    pub(crate) rules: IssuerRules,
    pub(crate) keys: KeySource,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeySource {
    File(PathBuf),
    /// On this machine: what comes from elsewhere over plain HTTP could be anyone's.
    Http {
        address: SocketAddr,
        path: String,
    },
}

/// Several of one variable are separated by semicolons.
pub(crate) fn parse(settings: &[String]) -> anyhow::Result<Vec<IssuerSetting>> {
    let texts = settings.iter().flat_map(|text| text.split(';')).filter(|text| !text.is_empty());
    let issuers = texts.map(parse_one).collect::<anyhow::Result<Vec<_>>>()?;
    ensure!(issuers.len() <= ISSUERS_MAX, "there are more than {ISSUERS_MAX} issuers");
    for (at, one) in issuers.iter().enumerate() {
        let mut others = issuers.iter().skip(at + 1);
        let name = &one.rules.issuer;
        ensure!(others.all(|other| other.rules.issuer != *name), "issuer '{name}' is named twice");
    }
    Ok(issuers)
}

fn parse_one(text: &str) -> anyhow::Result<IssuerSetting> {
    let (mut issuer, mut audience, mut tenant, mut keys) = (None, None, None, None);
    for part in text.split(',') {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let slot = match name.trim() {
            "iss" => &mut issuer,
            "audience" => &mut audience,
            "tenant" => &mut tenant,
            "keys" => &mut keys,
            _ => {
                bail!("'{part}' is no part of an issuer: those are iss, audience, keys and tenant")
            }
        };
        let value = value.trim();
        ensure!(!value.is_empty() && slot.is_none(), "'{name}' of an issuer has one value");
        *slot = Some(value.to_owned());
    }
    let needed = |part: Option<String>, name: &str| {
        part.with_context(|| format!("the issuer '{text}' lacks {name}="))
    };
    let rules = IssuerRules {
        issuer: needed(issuer, "iss")?,
        audience: needed(audience, "audience")?,
        tenant,
    };
    Ok(IssuerSetting { rules, keys: source(&needed(keys, "keys")?)? })
}

fn source(text: &str) -> anyhow::Result<KeySource> {
    if text.starts_with("https://") {
        bail!("'{text}' is not read by this server: put the keys into a file");
    }
    let Some(rest) = text.strip_prefix("http://") else {
        return Ok(KeySource::File(PathBuf::from(text)));
    };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let authority = authority.replace("localhost", "127.0.0.1");
    let with_port = authority.parse::<SocketAddr>();
    let address = with_port.or_else(|_| {
        let host = authority.trim_start_matches('[').trim_end_matches(']');
        host.parse::<IpAddr>().map(|host| SocketAddr::new(host, 80))
    });
    match address {
        Ok(address) if address.ip().is_loopback() => {
            let path = if path.is_empty() { "/" } else { path };
            Ok(KeySource::Http { address, path: path.to_owned() })
        }
        Ok(_) | Err(_) => bail!("'{text}' is not on this machine: put the keys into a file"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> anyhow::Result<IssuerSetting> {
        parse(&[text.to_owned()]).map(|mut issuers| issuers.remove(0))
    }

    #[test]
    fn an_issuer_has_a_name_an_audience_and_keys() {
        let setting = one("iss=https://i/,audience=api://a,keys=/etc/keys.json,tenant=t").unwrap();
        assert_eq!(setting.rules.issuer, "https://i/");
        assert_eq!(setting.rules.tenant.as_deref(), Some("t"));
        assert_eq!(setting.keys, KeySource::File(PathBuf::from("/etc/keys.json")));
        for wrong in [
            "iss=i",
            "iss=i,audience=a",
            "iss=i,keys=k",
            "audience=a,keys=k",
            "iss=i,iss=j,audience=a,keys=k",
            "iss=,audience=a,keys=k",
            "iss=i,audience=a,keys=k,alg=none",
            "iss=i,audience=a,keys=k;iss=i,audience=b,keys=k",
        ] {
            assert!(one(wrong).is_err(), "{wrong}");
        }
        let two = "iss=i,audience=a,keys=k;iss=j,audience=a,keys=k".to_owned();
        assert_eq!(parse(&[two]).unwrap().len(), 2);
    }

    #[test]
    fn keys_come_from_this_machine() {
        let source = |keys: &str| one(&format!("iss=i,audience=a,keys={keys}")).map(|it| it.keys);
        let http = |address: &str, path: &str| KeySource::Http {
            address: address.parse().unwrap(),
            path: path.to_owned(),
        };
        for (text, expected) in [
            ("http://localhost:8080/keys?v=2", http("127.0.0.1:8080", "/keys?v=2")),
            ("http://127.0.0.1", http("127.0.0.1:80", "/")),
            ("http://[::1]:99/x", http("[::1]:99", "/x")),
            ("http://[::1]/x", http("[::1]:80", "/x")),
        ] {
            assert_eq!(source(text).unwrap(), expected, "{text}");
        }
        for elsewhere in [
            "https://login.example.org/keys",
            "http://login.example.org/keys",
            "http://10.0.0.1/keys",
            "http://localhost.example.org/",
            "http://user@127.0.0.1/",
            "http://",
        ] {
            assert!(source(elsewhere).is_err(), "{elsewhere}");
        }
    }
}
