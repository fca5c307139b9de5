//! What the server prints when it is ready.

use std::io::IsTerminal as _;
use std::net::SocketAddr;

use serde_json::json;
use service::identity::AccountKey;
use storage::Loss;
use wire_cosmos::EMULATOR_KEY;

use crate::data_dir::DurabilitySetting;
use crate::http::host::Hosts;
use crate::settings::{Settings, StorageLocation};

/// One line for programs.
pub(crate) fn json_line(
    settings: &Settings,
    key: &AccountKey,
    addresses: &[SocketAddr],
    loss: Option<Loss>,
) -> String {
    let authority = authority(addresses);
    let data = match &settings.location {
        StorageLocation::Memory => None,
        StorageLocation::Folder(folder) => Some(folder.display().to_string()),
    };
    json!({
        "event": "ready",
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "port": addresses.first().map(SocketAddr::port),
        "listening": addresses,
        "endpoint": format!("http://{authority}/"),
        "tlsEndpoint": format!("https://{authority}/"),
        "key": key.reveal(),
        "connectionString": connection_string(key, &authority),
        "data": data,
        "lost": loss.map(|loss| loss.to_string()),
        "virtualClock": settings.virtual_clock,
    })
    .to_string()
}

/// Some lines for people.
pub(crate) fn words(
    settings: &Settings,
    key: &AccountKey,
    addresses: &[SocketAddr],
    loss: Option<Loss>,
) -> String {
    let authority = authority(addresses);
    let data = match (&settings.location, settings.durability) {
        (StorageLocation::Memory, _) => "in memory: gone when the server stops".to_owned(),
        (StorageLocation::Folder(folder), DurabilitySetting::Full) => {
            format!("{} (written to disk before it is answered)", folder.display())
        }
        (StorageLocation::Folder(folder), DurabilitySetting::Os) => {
            format!("{} (a power cut can lose the last writes)", folder.display())
        }
    };
    let certificate = match &settings.location {
        StorageLocation::Memory => "new with every start".to_owned(),
        StorageLocation::Folder(folder) => format!("orrery cert --data {}", folder.display()),
    };
    let lost = loss.map_or(String::new(), |loss| format!("\n  Lost         {loss}"));
    let clock = if settings.virtual_clock {
        "\n  Clock        virtual: POST /_orrery/clock sets it ahead"
    } else {
        ""
    };
    // A secret key does not belong into log files.
    let (shown, connection) = if key.reveal() == EMULATOR_KEY {
        (format!("{}  (well known)", key.reveal()), connection_string(key, &authority))
    } else if std::io::stdout().is_terminal() {
        (key.reveal().to_owned(), connection_string(key, &authority))
    } else {
        let hidden = format!("AccountEndpoint=http://{authority}/;AccountKey=<your key>;");
        let whence = if settings.key.reveal() == key.reveal() {
            "the one you gave"
        } else {
            "the one that replaced it, in the file KEYS of the data folder"
        };
        (whence.to_owned(), hidden)
    };
    format!(
        "Orrery {version} is ready.

  Endpoint     http://{authority}/ and https://{authority}/
  Listens on   {listening}
  Key          {shown}
  Connection   {connection}
  Data         {data}{lost}{clock}
  Certificate  {certificate}
               or GET http://{authority}/_explorer/emulator.pem; clients of https:// have to trust it
  Enforced     signatures, sizes, partition keys, unique keys, preconditions
  Throughput   {throughput}
  Direct mode  {direct}
  Not yet      vector and full-text search, spatial indexes

Stop with Ctrl-C.",
        version = env!("CARGO_PKG_VERSION"),
        listening = listening(settings, addresses),
        throughput = settings.rules.words(),
        direct = if settings.direct { "over https, but for scripts, users and permissions" } else { "off: see --direct" },
    )
}

/// Addresses, and the names under which clients may reach them.
fn listening(settings: &Settings, addresses: &[SocketAddr]) -> String {
    let addresses: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    let addresses = addresses.join(" and ");
    match Hosts::new(settings) {
        Hosts::All => addresses,
        Hosts::Local { also } => {
            let also: String = also.iter().map(|name| format!(", {}", name.as_str())).collect();
            format!("{addresses}, as localhost{also}; more names with --host-name")
        }
    }
}

fn connection_string(key: &AccountKey, authority: &str) -> String {
    format!("AccountEndpoint=http://{authority}/;AccountKey={};", key.reveal())
}

/// Host and port as a client on this machine writes them.
fn authority(addresses: &[SocketAddr]) -> String {
    let mut address = *addresses.first().expect("a listener has an address");
    if address.ip().is_unspecified() {
        let loopback: std::net::IpAddr = match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        };
        address.set_ip(loopback);
    }
    address.to_string()
}
