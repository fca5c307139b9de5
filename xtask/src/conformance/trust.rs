//! The server's certificate, given to a client as the README describes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use super::Sdk;
use super::prepare::quiet;

/// Java's own word for a password that protects nothing.
const STORE_PASSWORD: &str = "changeit";

/// What makes a program trust a certificate.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    pub options: Vec<OsString>,
    pub variable: Option<(&'static str, PathBuf)>,
}

impl Trust {
    /// Trusts the certificate in a file.
    pub fn new(sdk: Sdk, certificate: &Path) -> Result<Trust> {
        let variable = match sdk {
            // The SDK checks none on local addresses; the program compares it by itself.
            Sdk::Python => "ORRERY_CERTIFICATE",
            Sdk::Node => "NODE_EXTRA_CA_CERTS",
            Sdk::Go | Sdk::Dotnet => "SSL_CERT_FILE",
            Sdk::Java => return trust_store(certificate),
            // It is configured to check none.
            Sdk::Rust => return Ok(Trust::default()),
        };
        Ok(Trust { variable: Some((variable, certificate.to_owned())), ..Trust::default() })
    }
}

/// Java trusts what its own kind of file holds; this one holds nothing else.
fn trust_store(certificate: &Path) -> Result<Trust> {
    let store = certificate.with_extension("jks");
    if store.is_file() {
        std::fs::remove_file(&store)?;
    }
    let mut keytool = Command::new("keytool");
    keytool.args(["-importcert", "-noprompt", "-alias", "orrery", "-file"]).arg(certificate);
    quiet(keytool.arg("-keystore").arg(&store).args(["-storepass", STORE_PASSWORD]))?;
    let mut option = OsString::from("-Djavax.net.ssl.trustStore=");
    option.push(store);
    let password = format!("-Djavax.net.ssl.trustStorePassword={STORE_PASSWORD}");
    Ok(Trust { options: vec![option, password.into()], ..Trust::default() })
}
