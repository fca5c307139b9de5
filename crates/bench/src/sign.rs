//! Signatures with the account's key, as cheap as they get.
//!
//! The text that is signed has a date with seconds. A server accepts it for a quarter of an
//! hour, so one date does for many requests, and the signature of what is written to a
//! container, whose link is always the same, is kept until the date changes.

use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use runtime::{Clock as _, RealClock};
use sha2::Sha256;

/// How long one date is used.
const DATE_LIFE: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub(crate) struct Signer {
    key: Hmac<Sha256>,
    clock: RealClock,
    date: String,
    lower_date: String,
    fresh_until: Duration,
    /// Method, link and signature that were used last.
    last: (&'static str, String, String),
}

impl Signer {
    pub(crate) fn new(key: &str) -> Result<Signer> {
        let key = STANDARD.decode(key).context("the account's key is base64")?;
        let key = Hmac::new_from_slice(&key).ok().context("a key of any length will do")?;
        let (date, lower_date) = (String::new(), String::new());
        let last = ("", String::new(), String::new());
        let clock = RealClock::new();
        Ok(Signer { key, clock, date, lower_date, fresh_until: Duration::ZERO, last })
    }

    /// Appends the headers `authorization` and `x-ms-date`.
    pub(crate) fn write(
        &mut self,
        method: &'static str,
        kind: &str,
        link: &str,
        out: &mut Vec<u8>,
    ) {
        self.refresh();
        if self.last.0 != method || self.last.1 != link {
            let signature = self.signature(method, kind, link);
            self.last = (method, link.to_owned(), signature);
        }
        out.extend_from_slice(b"authorization: type%3Dmaster%26ver%3D1.0%26sig%3D");
        out.extend_from_slice(self.last.2.as_bytes());
        out.extend_from_slice(b"\r\nx-ms-date: ");
        out.extend_from_slice(self.date.as_bytes());
        out.extend_from_slice(b"\r\n");
    }

    fn refresh(&mut self) {
        let elapsed = self.clock.monotonic();
        if elapsed < self.fresh_until {
            return;
        }
        let now = Duration::from_secs(self.clock.now().as_unix_seconds());
        self.date = httpdate::fmt_http_date(std::time::UNIX_EPOCH + now);
        self.lower_date = self.date.to_ascii_lowercase();
        self.fresh_until = elapsed + DATE_LIFE;
        self.last.0 = "";
    }

    fn signature(&self, method: &str, kind: &str, link: &str) -> String {
        let mut mac = self.key.clone();
        for part in [method.to_ascii_lowercase().as_str(), kind, link, &self.lower_date, ""] {
            mac.update(part.as_bytes());
            mac.update(b"\n");
        }
        let signature = STANDARD.encode(mac.finalize().into_bytes());
        signature.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
    }
}
