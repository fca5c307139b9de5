//! Settings: from flags, the environment, and a file.
//!
//! All three are read into the same [`PartialSettings`] of optional values, so a setting that
//! exists in one source exists in all. The first source that sets a value wins: flags, then
//! `ORRERY_…` variables, then the file, then the defaults.

pub(crate) mod issuers;
pub(crate) mod rules;

use std::ffi::OsString;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use model::limits::Profile;
use runtime::Random;
use serde::Deserialize;
use service::identity::{AccountKey, AccountKeyKind};
use service::{Division, Throttle};
use tracing::level_filters::LevelFilter;
use wire_cosmos::EMULATOR_KEY;

use crate::data_dir::{DEFAULT_FOLDER, DurabilitySetting};
use crate::memory::MemorySize;
use crate::settings::issuers::IssuerSetting;
use crate::settings::rules::{Named, RuleSettings, Rules};

/// Where every Cosmos DB emulator listens, so that samples work unchanged.
const DEFAULT_PORT: u16 = 8081;

/// Threads for requests. Storage and commands have threads of their own, and two
/// cores are the norm.
const DEFAULT_WORKERS: u16 = 2;

/// What counts as slow: far longer than anything that finds its items by an index.
const SLOW_AFTER: Duration = Duration::from_secs(1);

/// TOML file with the same settings, such as `listen = "127.0.0.1:8082"`.
const KEY_BYTES: usize = 64;

/// Settings are declared once, as the fields of the struct: each is a flag by its name, a line
/// of the file, and a variable by its name in capitals after `ORRERY_`.
macro_rules! partial_settings {
    ($(#[$of_struct:meta])* pub(crate) struct PartialSettings {
        $($(#[$of_field:meta])* pub(crate) $field:ident: $type:ty,)*
    }) => {
        $(#[$of_struct])*
        pub(crate) struct PartialSettings {
            $($(#[$of_field])* pub(crate) $field: $type,)*
        }

        impl PartialSettings {
            #[cfg(test)]
            const NAMES: &[&str] = &[$(stringify!($field)),*];

            /// An empty variable counts as absent: compose files pass on what is not set.
            fn from_environment(read: impl Fn(&str) -> Option<OsString>) -> anyhow::Result<PartialSettings> {
                Ok(PartialSettings { $($field: variable(&read, stringify!($field))?,)* })
            }

            /// What `self` does not say is taken from `other`.
            fn or(self, other: PartialSettings) -> PartialSettings {
                PartialSettings { $($field: self.$field.or_from(other.$field),)* }
            }
        }
    };
}

partial_settings! {
    /// Settings as one source gives them.
    #[derive(Debug, Default, PartialEq, Eq, Deserialize, clap::Args)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
    pub(crate) struct PartialSettings {
        /// Address and port to listen on; port 0 takes any free one [default: 127.0.0.1:8081].
        ///
        /// Plain HTTP and TLS share the port. Any address but a loopback one needs --key. A bare port or
        /// localhost:PORT is 127.0.0.1 and, where there is IPv6, ::1; so is the default.
        #[arg(long, value_name = "ADDR")]
        pub(crate) listen: Option<Listen>,

        /// A name, besides localhost, by which clients call this server, such as cosmosdb; may be repeated.
        ///
        /// With the well-known key, requests for any other name are refused, so that no web page can reach the server
        /// under a name of its own. The name is also put into the certificate. `*` allows every name.
        #[arg(long, value_name = "NAME", value_delimiter = ',')]
        pub(crate) host_name: Option<Vec<HostName>>,

        /// The Azure region that the account says it is in, as clients may name it [default: South Central US].
        ///
        /// SDKs know the regions of Azure, and some refuse to prefer another.
        #[arg(long, value_name = "NAME")]
        pub(crate) region: Option<RegionName>,

        /// Let Java's and .NET's SDKs use direct mode, their default, on the same port: https only. Stored procedures,
        /// conflicts, users and permissions are not served in it yet.
        #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub(crate) direct: Option<bool>,

        /// Folder that holds the data, created when missing [default: ./orrery-data].
        #[arg(long, value_name = "DIR")]
        pub(crate) data: Option<PathBuf>,

        /// Keep everything in memory; it is gone when the server stops.
        #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub(crate) in_memory: Option<bool>,

        /// Account key, in base64 [default: the emulators' well-known key, on loopback only].
        ///
        /// Other users of the machine can see flags: prefer ORRERY_KEY or the file.
        #[arg(long, value_name = "KEY")]
        pub(crate) key: Option<Secret>,

        /// Accept the emulators' well-known key from other machines, too: anyone who reaches the port can read and
        /// change all data.
        #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub(crate) allow_well_known_key: Option<bool>,

        /// A second account key, in base64: clients can be moved to it before the first one is replaced.
        #[arg(long, value_name = "KEY")]
        pub(crate) secondary_key: Option<Secret>,

        /// A key, in base64, that only reads.
        #[arg(long, value_name = "KEY")]
        pub(crate) read_only_key: Option<Secret>,

        /// A second one of those.
        #[arg(long, value_name = "KEY")]
        pub(crate) secondary_read_only_key: Option<Secret>,

        /// An identity provider whose tokens are accepted, as
        /// iss=ISSUER,audience=AUDIENCE,keys=SOURCE[,tenant=TENANT]; may be repeated.
        ///
        /// SOURCE has the provider's keys, a JSON Web Key Set: a file, or an http:// address of this machine. It is read
        /// again every minute. What a bearer may do is assigned by POST /_orrery/roles.
        #[arg(long, value_name = "PARTS")]
        pub(crate) issuer: Vec<String>,

        /// When a write is answered: after an fsync, or once the operating system has it [default: full].
        #[arg(long, value_enum)]
        pub(crate) durability: Option<DurabilitySetting>,

        /// Open the data although acknowledged writes are known to be missing, or although that cannot be determined.
        /// Prints what is lost.
        #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub(crate) accept_lost_writes: Option<bool>,

        /// Let POST /_orrery/clock set the clock of the whole server ahead, for tests of what takes long.
        ///
        /// A data folder in which that was done is served with this flag only. To undo it: `orrery check --reset-time`.
        #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub(crate) virtual_clock: Option<bool>,

        /// The year whose rules hold: 2016, 2018 or 2026 [default: 2026].
        ///
        /// Until 2019 containers were fixed or unlimited (2016: single-partition or partitioned), with other minima and
        /// maxima, and a partition held 10 GB.
        #[arg(long, value_name = "YEAR")]
        pub(crate) profile: Option<Named<Profile>>,

        /// A limit to change, such as physical_partition_bytes_max=64MiB; may be given often. A wrong name lists them all.
        #[arg(long, value_name = "NAME=VALUE")]
        pub(crate) limits: Vec<String>,

        /// Make a scale model: storage limits are this many times smaller and throughput refills this many times
        /// slower, while everything that clients send and see stays as it is [default: 1].
        #[arg(long, value_name = "FACTOR")]
        pub(crate) scale: Option<u32>,

        /// Whose throughput is enforced: explicit (what was asked for), always or never [default: explicit].
        #[arg(long, value_name = "WHOSE")]
        pub(crate) throttle: Option<Named<Throttle>>,

        /// Let small partitions save unused throughput for bursts.
        #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub(crate) burst: Option<bool>,

        /// Be a serverless account: no provisioned throughput, 5,000 RU/s for each physical partition.
        #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub(crate) serverless: Option<bool>,

        /// Who gets the throughput of a partition that is split for its storage: even (everyone an equal part, as it is
        /// documented) or inherited (its children, as users have reported it) [default: even].
        #[arg(long, value_name = "WHO")]
        pub(crate) storage_splits: Option<Named<Division>>,

        /// Merge small, unused neighbouring partitions that the throughput does not need, when a container's layout has
        /// not changed for this many seconds [default: never].
        #[arg(long, value_name = "SECONDS")]
        pub(crate) merge_after: Option<u32>,

        /// Memory that the server may take, such as 512MiB or 2GiB; at least 128MiB [default: 512MiB].
        ///
        /// Bodies, answers and what queries keep have a part of it each: requests that find none left wait or get a
        /// 503. The data of --in-memory is not counted.
        #[arg(long, value_name = "SIZE")]
        pub(crate) memory: Option<MemorySize>,

        /// Log to stderr: off, error, warn, info, debug or trace [default: warn].
        #[arg(long, value_name = "LEVEL")]
        pub(crate) log: Option<LogLevel>,

        /// Log a warning about each request that takes at least this many milliseconds, with its activity id,
        /// container, charge and, for a query, its access path; 0 logs all requests [default: 1000].
        #[arg(long, value_name = "MILLISECONDS")]
        pub(crate) slow_after: Option<u32>,

        /// Threads that handle requests [default: 2].
        #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=256))]
        pub(crate) workers: Option<u16>,

        /// Print one line of JSON when ready, instead of words.
        #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        pub(crate) json: Option<bool>,
    }
}

/// Where the data is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StorageLocation {
    Memory,
    Folder(PathBuf),
}

/// Everything decided.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) listen: Listen,
    pub(crate) host_names: Vec<HostName>,
    pub(crate) region: RegionName,
    pub(crate) direct: bool,
    pub(crate) location: StorageLocation,
    pub(crate) key: Secret,
    pub(crate) secondary_key: Option<Secret>,
    pub(crate) read_only_key: Option<Secret>,
    pub(crate) secondary_read_only_key: Option<Secret>,
    pub(crate) issuers: Vec<IssuerSetting>,
    pub(crate) durability: DurabilitySetting,
    pub(crate) accept_lost_writes: bool,
    pub(crate) virtual_clock: bool,
    pub(crate) rules: Rules,
    pub(crate) memory: MemorySize,
    pub(crate) log: LogLevel,
    pub(crate) slow_after: Duration,
    pub(crate) workers: usize,
    pub(crate) json: bool,
}

impl Settings {
    /// Reads the environment and the file, and decides.
    pub(crate) fn load(
        flags: PartialSettings,
        config: Option<&Path>,
        random: &dyn Random,
    ) -> anyhow::Result<Settings> {
        let environment = PartialSettings::from_environment(|name| std::env::var_os(name))?;
        let named = std::env::var_os("ORRERY_CONFIG").filter(|name| !name.is_empty());
        let config = config.map(Path::to_owned).or_else(|| named.map(PathBuf::from));
        let file = config
            .as_deref()
            .map_or_else(|| Ok(PartialSettings::default()), PartialSettings::from_file)?;
        Settings::decide([flags, environment, file], random)
    }

    /// The first source that sets a value wins.
    fn decide(sources: [PartialSettings; 3], random: &dyn Random) -> anyhow::Result<Settings> {
        let location = location(&sources)?;
        let [one, two, three] = sources;
        let merged = one.or(two).or(three);
        let listen = merged.listen.unwrap_or(Listen::ThisMachine { port: DEFAULT_PORT });
        let key = merged.key.unwrap_or_else(|| Secret(EMULATOR_KEY.to_owned()));
        let reachable = !listen.address().ip().is_loopback();
        let others =
            [&merged.secondary_key, &merged.read_only_key, &merged.secondary_read_only_key];
        let others = others.into_iter().flatten();
        let has_well_known = std::iter::once(&key).chain(others).any(Secret::is_well_known);
        if reachable && has_well_known && !merged.allow_well_known_key.unwrap_or_default() {
            bail!(key_needed(listen.address(), random));
        }
        let rules = Rules::decide(RuleSettings {
            profile: merged.profile,
            limits: merged.limits,
            scale: merged.scale,
            throttle: merged.throttle,
            burst: merged.burst,
            serverless: merged.serverless,
            storage_splits: merged.storage_splits,
            merge_after: merged.merge_after,
        })?;
        let settings = Settings {
            listen,
            host_names: merged.host_name.unwrap_or_default(),
            region: merged.region.unwrap_or_default(),
            direct: merged.direct.unwrap_or_default(),
            location,
            key,
            secondary_key: merged.secondary_key,
            read_only_key: merged.read_only_key,
            secondary_read_only_key: merged.secondary_read_only_key,
            issuers: issuers::parse(&merged.issuer)?,
            durability: merged.durability.unwrap_or_default(),
            accept_lost_writes: merged.accept_lost_writes.unwrap_or_default(),
            virtual_clock: merged.virtual_clock.unwrap_or_default(),
            rules,
            memory: merged.memory.unwrap_or_default(),
            log: merged.log.unwrap_or_default(),
            slow_after: merged.slow_after.map_or(SLOW_AFTER, millis),
            workers: usize::from(merged.workers.unwrap_or(DEFAULT_WORKERS).max(1)),
            json: merged.json.unwrap_or_default(),
        };
        settings.account_keys()?;
        Ok(settings)
    }

    /// The key of each kind, the primary one first.
    pub(crate) fn account_keys(&self) -> anyhow::Result<[(AccountKeyKind, Option<AccountKey>); 4]> {
        let given = self.keys().map(Option::into_iter).into_iter().flatten();
        let mut texts: Vec<&str> = given.map(Secret::reveal).collect();
        texts.sort_unstable();
        ensure!(
            texts.windows(2).all(|pair| pair.first() != pair.last()),
            "two keys are the same: choose others"
        );
        let parse = |secret: Option<&Secret>| {
            secret.map(|secret| AccountKey::parse(secret.reveal())).transpose()
        };
        let [primary, secondary, read_only, secondary_read_only] = self.keys().map(parse);
        Ok([
            (AccountKeyKind::Primary, primary?),
            (AccountKeyKind::Secondary, secondary?),
            (AccountKeyKind::PrimaryReadOnly, read_only?),
            (AccountKeyKind::SecondaryReadOnly, secondary_read_only?),
        ])
    }

    fn keys(&self) -> [Option<&Secret>; 4] {
        let Settings { key, secondary_key, read_only_key, secondary_read_only_key, .. } = self;
        let others = [secondary_key, read_only_key, secondary_read_only_key].map(Option::as_ref);
        let [secondary, read_only, secondary_read_only] = others;
        [Some(key), secondary, read_only, secondary_read_only]
    }

    /// Whether one of the keys is the one that everybody knows.
    pub(crate) fn has_well_known_key(&self) -> bool {
        self.keys().into_iter().flatten().any(Secret::is_well_known)
    }
}

/// A folder and "in memory" exclude each other in one source; between sources, the
/// first that sets either wins.
fn location(sources: &[PartialSettings]) -> anyhow::Result<StorageLocation> {
    let mut memory_ruled_out = false;
    for source in sources {
        match (source.in_memory, &source.data) {
            (Some(true), Some(_)) => {
                bail!("a data folder and in-memory exclude each other: give one of them")
            }
            (Some(true), None) if !memory_ruled_out => return Ok(StorageLocation::Memory),
            (_, Some(folder)) => return Ok(StorageLocation::Folder(folder.clone())),
            (Some(false), None) => memory_ruled_out = true,
            (Some(true) | None, None) => {}
        }
    }
    Ok(StorageLocation::Folder(PathBuf::from(DEFAULT_FOLDER)))
}

fn millis(millis: u32) -> Duration {
    Duration::from_millis(u64::from(millis))
}

fn key_needed(listen: SocketAddr, random: &dyn Random) -> String {
    let mut bytes = [0; KEY_BYTES];
    random.fill(&mut bytes);
    format!(
        "{listen} can be reached from other machines, and the key is the one that everybody knows. Give one of your \
         own with ORRERY_KEY, --key or the file; a fresh one, made just now:\n\n  ORRERY_KEY={}\n\nOr listen on \
         127.0.0.1 only. In a network where everybody may have all the data: --allow-well-known-key.",
        STANDARD.encode(bytes)
    )
}

impl PartialSettings {
    fn from_file(path: &Path) -> anyhow::Result<PartialSettings> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("the settings file {} cannot be read", path.display()))?;
        toml::from_str(&text)
            .with_context(|| format!("the settings file {} is not valid", path.display()))
    }
}

/// A setting as a variable gives it, if there is one.
fn variable<T: Setting>(read: impl Fn(&str) -> Option<OsString>, field: &str) -> anyhow::Result<T> {
    let name = format!("ORRERY_{}", field.to_ascii_uppercase());
    let Some(value) = read(&name).filter(|value| !value.is_empty()) else {
        return Ok(T::default());
    };
    T::from_variable(value).map_err(|error| match error {
        Unreadable::NoText => anyhow!("{name} is not text"),
        Unreadable::Invalid(error) => anyhow!("{name} is not valid: {error}"),
    })
}

/// Why a variable does not give a setting.
enum Unreadable {
    NoText,
    Invalid(String),
}

/// The type of a field of [`PartialSettings`]: a value that may be absent.
trait Setting: Default {
    fn from_variable(value: OsString) -> Result<Self, Unreadable>;

    /// What was said here, or else what was said there.
    fn or_from(self, other: Self) -> Self;
}

/// What is written as one word.
trait Word: FromStr<Err: fmt::Display> {}

impl Word for Listen {}
impl Word for RegionName {}
impl Word for Secret {}
impl Word for DurabilitySetting {}
impl Word for MemorySize {}
impl Word for LogLevel {}
impl Word for bool {}
impl Word for u16 {}
impl Word for u32 {}
impl<T: FromStr<Err: fmt::Display>> Word for Named<T> {}

fn text(value: OsString) -> Result<String, Unreadable> {
    value.into_string().map_err(|_| Unreadable::NoText)
}

fn parse<T: FromStr<Err: fmt::Display>>(value: OsString) -> Result<T, Unreadable> {
    text(value)?.parse().map_err(|error: T::Err| Unreadable::Invalid(error.to_string()))
}

impl<T: Word> Setting for Option<T> {
    fn from_variable(value: OsString) -> Result<Option<T>, Unreadable> {
        parse(value).map(Some)
    }

    fn or_from(self, other: Option<T>) -> Option<T> {
        self.or(other)
    }
}

/// A path need not be text.
impl Setting for Option<PathBuf> {
    fn from_variable(value: OsString) -> Result<Option<PathBuf>, Unreadable> {
        Ok(Some(PathBuf::from(value)))
    }

    fn or_from(self, other: Option<PathBuf>) -> Option<PathBuf> {
        self.or(other)
    }
}

impl Setting for Option<Vec<HostName>> {
    fn from_variable(value: OsString) -> Result<Option<Vec<HostName>>, Unreadable> {
        parse(value).map(|HostNames(names)| Some(names))
    }

    fn or_from(self, other: Option<Vec<HostName>>) -> Option<Vec<HostName>> {
        self.or(other)
    }
}

/// These add up; the later one wins.
impl Setting for Vec<String> {
    fn from_variable(value: OsString) -> Result<Vec<String>, Unreadable> {
        Ok(vec![text(value)?])
    }

    fn or_from(self, other: Vec<String>) -> Vec<String> {
        [other, self].concat()
    }
}

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Listen {
    /// Both loopback addresses, as far as there are two: many clients look up
    /// `localhost` and try `::1` first.
    ThisMachine { port: u16 },
    /// This address alone.
    Address(SocketAddr),
}

impl Listen {
    /// The address that must be free.
    pub(crate) fn address(self) -> SocketAddr {
        match self {
            Listen::ThisMachine { port } => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
            Listen::Address(address) => address,
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("'{0}' is not an address like 127.0.0.1:8081, [::1]:8081, localhost:8081 or 8081")]
pub(crate) struct InvalidAddress(String);

impl FromStr for Listen {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Listen, InvalidAddress> {
        let port = text.strip_prefix("localhost:").unwrap_or(text);
        if let Ok(port) = port.parse() {
            return Ok(Listen::ThisMachine { port });
        }
        text.parse().map(Listen::Address).map_err(|_| InvalidAddress(text.to_owned()))
    }
}

impl TryFrom<String> for Listen {
    type Error = InvalidAddress;

    fn try_from(text: String) -> Result<Listen, InvalidAddress> {
        text.parse()
    }
}

/// A name by which clients call this server, in small letters and without a port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct HostName(String);

/// The name of a region of Azure. It goes into the account, not into any address.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct RegionName(String);

#[derive(Debug, thiserror::Error)]
#[error("'{0}' is not the name of a region like South Central US")]
pub(crate) struct InvalidRegionName(String);

impl RegionName {
    /// The longest that a region is called is half of this.
    const BYTES_MAX: usize = 64;

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for RegionName {
    fn default() -> RegionName {
        RegionName("South Central US".to_owned())
    }
}

impl FromStr for RegionName {
    type Err = InvalidRegionName;

    fn from_str(text: &str) -> Result<RegionName, InvalidRegionName> {
        let name = text.trim();
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '_');
        if name.is_empty() || name.len() > RegionName::BYTES_MAX || !name.chars().all(allowed) {
            return Err(InvalidRegionName(text.to_owned()));
        }
        Ok(RegionName(name.to_owned()))
    }
}

impl TryFrom<String> for RegionName {
    type Error = InvalidRegionName;

    fn try_from(text: String) -> Result<RegionName, InvalidRegionName> {
        text.parse()
    }
}

/// Several names in one variable.
struct HostNames(Vec<HostName>);

#[derive(Debug, thiserror::Error)]
#[error("'{0}' is not a host name like cosmosdb or db.example.org, without scheme and port, or *")]
pub(crate) struct InvalidHostName(String);

impl HostName {
    pub(crate) const ANY: &str = "*";

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a certificate can be made out to it.
    pub(crate) fn is_certifiable(&self) -> bool {
        self.0 != HostName::ANY
    }
}

impl FromStr for HostName {
    type Err = InvalidHostName;

    fn from_str(text: &str) -> Result<HostName, InvalidHostName> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let name = text.trim().trim_end_matches('.').to_ascii_lowercase();
        if name != HostName::ANY && (name.is_empty() || !name.chars().all(allowed)) {
            return Err(InvalidHostName(text.to_owned()));
        }
        Ok(HostName(name))
    }
}

impl TryFrom<String> for HostName {
    type Error = InvalidHostName;

    fn try_from(text: String) -> Result<HostName, InvalidHostName> {
        text.parse()
    }
}

impl FromStr for HostNames {
    type Err = InvalidHostName;

    fn from_str(text: &str) -> Result<HostNames, InvalidHostName> {
        Ok(HostNames(text.split(',').map(str::parse).collect::<Result<_, _>>()?))
    }
}

/// A text that must not reach a log.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn reveal(&self) -> &str {
        self.0.trim()
    }

    /// Whether it is the key that every emulator has.
    fn is_well_known(&self) -> bool {
        self.reveal() == EMULATOR_KEY
    }
}

impl FromStr for Secret {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Secret, std::convert::Infallible> {
        Ok(Secret(text.to_owned()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// How much is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct LogLevel(pub(crate) LevelFilter);

#[derive(Debug, thiserror::Error)]
#[error("'{0}' is none of off, error, warn, info, debug, trace")]
pub(crate) struct InvalidLevel(String);

impl Default for LogLevel {
    fn default() -> LogLevel {
        LogLevel(LevelFilter::WARN)
    }
}

impl FromStr for LogLevel {
    type Err = InvalidLevel;

    fn from_str(text: &str) -> Result<LogLevel, InvalidLevel> {
        text.parse().map(LogLevel).map_err(|_| InvalidLevel(text.to_owned()))
    }
}

impl TryFrom<String> for LogLevel {
    type Error = InvalidLevel;

    fn try_from(text: String) -> Result<LogLevel, InvalidLevel> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use runtime::SeededRandom;

    use super::*;

    const OWN_KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

    fn decide(sources: [PartialSettings; 3]) -> anyhow::Result<Settings> {
        Settings::decide(sources, &SeededRandom::new(1))
    }

    fn listen(text: &str) -> Option<Listen> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn the_first_source_that_sets_a_value_wins() {
        let none = PartialSettings::default;
        let at =
            |port: &str| PartialSettings { listen: listen(port), ..PartialSettings::default() };
        let port = |sources| decide(sources).unwrap().listen.address().port();
        assert_eq!(port([none(), none(), none()]), 8081);
        assert_eq!(port([none(), none(), at("3")]), 3);
        assert_eq!(port([none(), at("2"), at("3")]), 2);
        assert_eq!(port([at("1"), at("2"), at("3")]), 1);
    }

    #[test]
    fn every_setting_has_its_variable_and_its_line() {
        let file = r#"
            listen = "[::1]:9"
            host-name = ["one", "two.test"]
            region = "West Europe"
            data = "d"
            in-memory = false
            key = "k"
            allow-well-known-key = true
            secondary-key = "s"
            read-only-key = "r"
            secondary-read-only-key = "t"
            issuer = ["iss=i,audience=a,keys=k"]
            durability = "os"
            accept-lost-writes = true
            virtual-clock = true
            profile = "2018"
            limits = ["throughput_min=200,throughput_step=50"]
            scale = 7
            throttle = "never"
            burst = true
            serverless = true
            storage-splits = "inherited"
            direct = true
            merge-after = 60
            memory = "256MiB"
            log = "trace"
            slow-after = 250
            workers = 3
            json = true
        "#;
        let variable = |name: &str| {
            let value = match name {
                "ORRERY_LISTEN" => "[::1]:9",
                "ORRERY_HOST_NAME" => "one, Two.test.",
                "ORRERY_REGION" => "West Europe",
                "ORRERY_DATA" => "d",
                "ORRERY_IN_MEMORY" => "false",
                "ORRERY_KEY" => "k",
                "ORRERY_SECONDARY_KEY" => "s",
                "ORRERY_READ_ONLY_KEY" => "r",
                "ORRERY_SECONDARY_READ_ONLY_KEY" => "t",
                "ORRERY_ISSUER" => "iss=i,audience=a,keys=k",
                "ORRERY_DURABILITY" => "os",
                "ORRERY_PROFILE" => "2018",
                "ORRERY_LIMITS" => "throughput_min=200,throughput_step=50",
                "ORRERY_SCALE" => "7",
                "ORRERY_THROTTLE" => "never",
                "ORRERY_STORAGE_SPLITS" => "inherited",
                "ORRERY_MERGE_AFTER" => "60",
                "ORRERY_BURST"
                | "ORRERY_SERVERLESS"
                | "ORRERY_ALLOW_WELL_KNOWN_KEY"
                | "ORRERY_ACCEPT_LOST_WRITES"
                | "ORRERY_DIRECT"
                | "ORRERY_VIRTUAL_CLOCK" => "true",
                "ORRERY_MEMORY" => "256MiB",
                "ORRERY_LOG" => "trace",
                "ORRERY_SLOW_AFTER" => "250",
                "ORRERY_WORKERS" => "3",
                "ORRERY_JSON" => "true",
                _ => return None,
            };
            Some(OsString::from(value))
        };
        for name in PartialSettings::NAMES {
            assert!(
                file.contains(&format!("\n            {} = ", name.replace('_', "-"))),
                "{name}"
            );
            assert!(variable(&format!("ORRERY_{}", name.to_uppercase())).is_some(), "{name}");
        }
        let source = || toml::from_str::<PartialSettings>(file).unwrap();
        assert_eq!(PartialSettings::from_environment(variable).unwrap(), source());
        assert_eq!(source().or(PartialSettings::default()), source());
        assert_eq!(PartialSettings::default().or(source()), source());
    }

    #[test]
    fn an_empty_variable_is_absent_and_a_bad_one_is_named() {
        assert_eq!(
            PartialSettings::from_environment(|_| Some("".into())).unwrap(),
            PartialSettings::default()
        );
        let bad = |name: &str| (name == "ORRERY_LISTEN").then(|| "nowhere".into());
        let error = PartialSettings::from_environment(bad).unwrap_err().to_string();
        assert!(error.starts_with("ORRERY_LISTEN is not valid: 'nowhere' is not an address"));
    }

    #[test]
    fn a_bare_port_means_this_machine() {
        let this = |port| Listen::ThisMachine { port };
        assert_eq!("9".parse::<Listen>().unwrap(), this(9));
        assert_eq!("localhost:9".parse::<Listen>().unwrap(), this(9));
        let one = "127.0.0.1:9".parse::<Listen>().unwrap();
        assert_eq!(one, Listen::Address("127.0.0.1:9".parse().unwrap()));
        let none = PartialSettings::default;
        assert_eq!(decide([none(), none(), none()]).unwrap().listen, this(8081));
    }

    #[test]
    fn regions_are_words() {
        for name in ["South Central US", " West Europe ", "Local"] {
            assert_eq!(name.parse::<RegionName>().unwrap().as_str(), name.trim());
        }
        for name in ["", "  ", "a\"b", "Süd", &"x".repeat(65)] {
            assert!(name.parse::<RegionName>().is_err(), "{name}");
        }
    }

    #[test]
    fn host_names_have_no_scheme_and_no_port() {
        for name in ["cosmosdb", "Cosmos_DB.test", "*", "xn--nxasmq6b"] {
            assert!(name.parse::<HostName>().is_ok(), "{name}");
        }
        for name in ["", "http://cosmosdb", "cosmosdb:8081", "a b", "*.test", "[::1]"] {
            assert!(name.parse::<HostName>().is_err(), "{name}");
        }
    }

    #[test]
    fn unknown_lines_are_refused() {
        let error = toml::from_str::<PartialSettings>("prot = 1").unwrap_err().to_string();
        assert!(error.contains("unknown field `prot`"), "{error}");
    }

    #[test]
    fn the_well_known_key_stays_on_loopback() {
        for address in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1", "1"] {
            let source = PartialSettings { listen: listen(address), ..PartialSettings::default() };
            let settings =
                decide([source, PartialSettings::default(), PartialSettings::default()]).unwrap();
            assert!(settings.has_well_known_key(), "{address}");
        }
        for address in ["0.0.0.0:1", "[::]:1", "192.168.1.2:1", "[::ffff:127.0.0.1]:1"] {
            let (own, known) = (Secret(OWN_KEY.to_owned()), Secret(EMULATOR_KEY.to_owned()));
            let open = |key: &Option<&Secret>, read_only: &Option<&Secret>, allow| {
                let source = PartialSettings {
                    listen: listen(address),
                    key: key.cloned(),
                    read_only_key: read_only.cloned(),
                    allow_well_known_key: allow,
                    ..PartialSettings::default()
                };
                decide([source, PartialSettings::default(), PartialSettings::default()])
            };
            for (key, read_only) in [(None, None), (Some(&known), None), (Some(&own), Some(&known))]
            {
                let refused = open(&key, &read_only, None).unwrap_err().to_string();
                assert!(refused.contains("ORRERY_KEY="), "{address}: {refused}");
                assert!(open(&key, &read_only, Some(false)).is_err(), "{address}");
                assert!(open(&key, &read_only, Some(true)).is_ok(), "{address}");
            }
            assert!(open(&Some(&own), &None, None).is_ok(), "{address}");
        }
    }

    #[test]
    fn keys_are_checked_and_never_shown() {
        let with = |key: &str, read_only: Option<&str>| {
            let secret = |text: &str| Secret(text.to_owned());
            let source = PartialSettings {
                key: Some(secret(key)),
                read_only_key: read_only.map(secret),
                ..PartialSettings::default()
            };
            decide([source, PartialSettings::default(), PartialSettings::default()])
        };
        assert!(with("not base64!", None).is_err());
        assert!(with(OWN_KEY, Some("c2hvcnQ=")).is_err());
        assert!(with(OWN_KEY, Some(OWN_KEY)).is_err());
        let settings = with(OWN_KEY, Some(EMULATOR_KEY)).unwrap();
        assert!(!format!("{settings:?}").contains("AAAA"));
    }

    #[test]
    fn a_folder_and_memory_exclude_each_other_within_a_source() {
        let source = |in_memory, data: Option<&str>| PartialSettings {
            in_memory,
            data: data.map(PathBuf::from),
            ..PartialSettings::default()
        };
        let folder = |name: &str| StorageLocation::Folder(PathBuf::from(name));
        assert!(location(&[source(Some(true), Some("a"))]).is_err());
        assert_eq!(location(&[]).unwrap(), folder(DEFAULT_FOLDER));
        assert_eq!(
            location(&[source(None, Some("a")), source(Some(true), None)]).unwrap(),
            folder("a")
        );
        assert_eq!(
            location(&[source(Some(true), None), source(None, Some("a"))]).unwrap(),
            StorageLocation::Memory
        );
        let undone = [source(Some(false), None), source(Some(true), None), source(None, Some("b"))];
        assert_eq!(location(&undone).unwrap(), folder("b"));
    }
}
