//! The certificate for TLS.
//!
//! Made once and kept in the data folder, since people make their machines
//! trust it. One file holds certificate and key, so it is there whole or not at
//! all. A file that we did not make (say, from a local certificate authority) is
//! used as it is.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use rcgen::{CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair};
use runtime::Clock;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::data_dir::sync_folder;
use crate::settings::HostName;

/// The names that a client on this machine may use.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

const FILE: &str = "localhost.pem";

/// Marks a file that we generated, with the time from which on it is replaced.
const RENEW_MARK: &str = "orrery-renew-after-unix-seconds: ";

/// The names besides [`NAMES`] in a file that we generated. If they differ it is replaced.
const MORE_NAMES_MARK: &str = "orrery-more-names: ";

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Apple's systems refuse certificates that are valid for more than 825 days.
const VALID: Duration = DAY.saturating_mul(820);
/// Time before expiry in which a start generates a new one.
const RENEW_BEFORE: Duration = DAY.saturating_mul(30);
/// It must be valid for clients whose clock is slow, too.
const VALID_BEFORE: Duration = DAY;

const CERTIFICATE_END: &str = "-----END CERTIFICATE-----\n";

/// A certificate with its key, ready to serve.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    /// What clients have to trust: no key in it.
    pub(crate) pem: String,
    pub(crate) config: Arc<ServerConfig>,
}

impl Certificate {
    /// One that lives as long as the process.
    pub(crate) fn ephemeral(more: &[HostName], clock: &dyn Clock) -> anyhow::Result<Certificate> {
        Certificate::from_bundle(&make(more, clock)?)
    }

    /// The one in a folder, generated when there is none, when it is about to expire, and
    /// when it lacks a name.
    pub(crate) fn kept(
        folder: &Path,
        more: &[HostName],
        clock: &dyn Clock,
    ) -> anyhow::Result<Certificate> {
        let path = folder.join(FILE);
        let bundle = match read(&path)? {
            Some(bundle) if !is_due(&bundle, more, clock) => bundle,
            old @ (Some(_) | None) => {
                let bundle = make(more, clock)?;
                match (write(&path, &bundle), old) {
                    (Ok(()), _) => bundle,
                    // Better an old one than none: the disk may be full.
                    (Err(error), Some(old)) => {
                        tracing::warn!(%error, "the certificate could not be renewed");
                        old
                    }
                    (Err(error), None) => {
                        return Err(error)
                            .with_context(|| format!("{} cannot be written", path.display()));
                    }
                }
            }
        };
        Certificate::from_bundle(&bundle)
            .with_context(|| format!("{} cannot be used; remove it for a new one", path.display()))
    }

    fn from_bundle(bundle: &str) -> anyhow::Result<Certificate> {
        let chain = CertificateDer::pem_slice_iter(bundle.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .context("no certificate")?;
        let key = PrivateKeyDer::from_pem_slice(bundle.as_bytes()).context("no private key")?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Certificate { pem: public_part(bundle), config: Arc::new(config) })
    }
}

/// What clients have to trust, when a folder has it. Changes nothing: a server may be using
/// it.
pub(crate) fn export(folder: &Path) -> anyhow::Result<Option<String>> {
    Ok(read(&folder.join(FILE))?.map(|bundle| public_part(&bundle)))
}

fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

/// Whether we generated this, long enough ago or without one of the names. More names do no
/// harm: a trusted certificate is worth keeping.
fn is_due(bundle: &str, more: &[HostName], clock: &dyn Clock) -> bool {
    let marked = |mark| bundle.lines().find_map(move |line: &str| line.strip_prefix(mark));
    let Some(due) = marked(RENEW_MARK).and_then(|due| due.parse::<u64>().ok()) else {
        return false;
    };
    let known: Vec<&str> = marked(MORE_NAMES_MARK).unwrap_or_default().split(' ').collect();
    let lacks = |name: &HostName| name.is_certifiable() && !known.contains(&name.as_str());
    clock.now().as_unix_seconds() >= due || more.iter().any(lacks)
}

fn make(more: &[HostName], clock: &dyn Clock) -> anyhow::Result<String> {
    let more: Vec<&str> =
        more.iter().filter(|name| name.is_certifiable()).map(HostName::as_str).collect();
    let names: Vec<String> = NAMES.iter().chain(&more).map(ToString::to_string).collect();
    let now = Duration::from_secs(clock.now().as_unix_seconds());
    let date = |at: Duration| rcgen::date_time_ymd(1970, 1, 1) + at;
    let mut params = CertificateParams::new(names)?;
    params.not_before = date(now.saturating_sub(VALID_BEFORE));
    params.not_after = date(now + VALID - VALID_BEFORE);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "localhost");
    params.distinguished_name.push(DnType::OrganizationName, "Orrery on this machine");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    let due = (now + VALID - VALID_BEFORE - RENEW_BEFORE).as_secs();
    let marks = format!("{RENEW_MARK}{due}\n{MORE_NAMES_MARK}{}\n", more.join(" "));
    Ok(format!("{marks}{}{}", certificate.pem(), key.serialize_pem()))
}

/// The certificates of a bundle, without the key and without remarks.
fn public_part(bundle: &str) -> String {
    let text = bundle.replace("\r\n", "\n");
    text.split_inclusive(CERTIFICATE_END)
        .filter_map(|part| Some(part.split_once("-----BEGIN CERTIFICATE-----")?.1))
        .filter(|part| part.ends_with(CERTIFICATE_END))
        .map(|part| format!("-----BEGIN CERTIFICATE-----{part}"))
        .collect()
}

/// Writes a file that only its owner can read, whole or not at all.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let draft = path.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&draft, path)?;
    sync_folder(folder)?;
    folder.parent().map_or(Ok(()), sync_folder)
}

#[cfg(test)]
mod tests {
    use runtime::SimulatedClock;

    use super::*;

    #[test]
    fn it_is_made_once_and_renewed_before_it_expires() {
        let folder = tempfile::tempdir().unwrap();
        let clock = SimulatedClock::new();
        let pem = || Certificate::kept(folder.path(), &[], &clock).unwrap().pem;
        let first = pem();
        assert_eq!(pem(), first);
        clock.advance(DAY * 788);
        assert_eq!(pem(), first);
        clock.advance(DAY * 2);
        assert_ne!(pem(), first);
    }

    #[test]
    fn a_name_that_is_lacking_makes_a_new_one() {
        let folder = tempfile::tempdir().unwrap();
        let clock = SimulatedClock::new();
        let pem = |names: &[&str]| {
            let more: Vec<_> = names.iter().map(|name| name.parse().unwrap()).collect();
            Certificate::kept(folder.path(), &more, &clock).unwrap().pem
        };
        let first = pem(&[]);
        let second = pem(&["cosmosdb", "*"]);
        assert_ne!(second, first);
        for names in [&["cosmosdb"][..], &["*"], &[]] {
            assert_eq!(pem(names), second, "{names:?}");
        }
        assert_ne!(pem(&["other"]), second);
    }

    #[test]
    fn what_others_made_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let clock = SimulatedClock::new();
        let made = make(&[], &clock).unwrap();
        let (_marks, own) = made.split_at(made.find("-----BEGIN").unwrap());
        write(&folder.path().join(FILE), own).unwrap();
        clock.advance(DAY * 10_000);
        let more = ["cosmosdb".parse().unwrap()];
        let kept = Certificate::kept(folder.path(), &more, &clock).unwrap();
        assert!(own.starts_with(&kept.pem));
    }

    #[test]
    fn the_key_is_never_given_away() {
        let made = make(&[], &SimulatedClock::new()).unwrap();
        assert!(made.contains("PRIVATE KEY"));
        for bundle in [made.clone(), made.replace('\n', "\r\n"), format!("{made}{made}")] {
            let public = public_part(&bundle);
            assert!(!public.contains("PRIVATE") && !public.contains("orrery"), "{public}");
            assert!(public.starts_with("-----BEGIN CERTIFICATE-----\n"));
            assert_eq!(
                public.matches("BEGIN CERTIFICATE").count(),
                bundle.matches("BEGIN CERT").count()
            );
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_the_key() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        Certificate::kept(folder.path(), &[], &SimulatedClock::new()).unwrap();
        let mode = std::fs::metadata(folder.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn rubbish_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), "hello").unwrap();
        let error = Certificate::kept(folder.path(), &[], &SimulatedClock::new()).unwrap_err();
        assert!(error.to_string().contains("localhost.pem cannot be used"), "{error}");
    }
}
