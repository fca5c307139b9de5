//! The change feed: how clients ask where it begins, and how a change looks.

use std::borrow::Cow;

use bytes::Bytes;
use model::json::{self, Raw};
use model::position::{Lsn, Timestamp};
use service::{Change, ChangeStart};

use crate::auth::parse_rfc1123;
use crate::system_properties::with;

/// The one format that has a name.
pub const ENVELOPES: &str = "2021-09-15";
/// The property of a change that holds its position.
const POSITION: &str = "_lsn";

/// What a feed tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedMode {
    LatestVersions,
    AllVersions,
}

/// The mode that a client names. `None` if there is no such mode.
#[must_use]
pub fn mode(name: &str) -> Option<FeedMode> {
    if name.eq_ignore_ascii_case("incremental feed") {
        Some(FeedMode::LatestVersions)
    } else if name.eq_ignore_ascii_case("full-fidelity feed") {
        Some(FeedMode::AllVersions)
    } else {
        None
    }
}

/// The format of a change, by its name. `None` if it is not known.
#[must_use]
pub fn form(name: &str) -> Option<fn(&Change) -> Bytes> {
    match name {
        "" => Some(with_lsn),
        ENVELOPES => Some(enveloped),
        _ => None,
    }
}

/// No etag is the beginning, `*` is now. `None` if it is neither of these nor a position.
#[must_use]
pub fn start(etag: &str) -> Option<ChangeStart> {
    match etag.trim() {
        "" => Some(ChangeStart::After(Lsn::ZERO)),
        "*" => Some(ChangeStart::Now),
        text => {
            let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            let lsn = inner.unwrap_or(text).parse().ok()?;
            Some(ChangeStart::After(Lsn::from_u64(lsn)))
        }
    }
}

/// The time that a client begins at. `None` if it is none.
#[must_use]
pub fn since(text: &str) -> Option<Timestamp> {
    let text = &in_gmt(text);
    parse_rfc1123(text).or_else(|| before_all(text))
}

/// The Go SDK spells the time zone differently.
fn in_gmt(text: &str) -> Cow<'_, str> {
    match text.strip_suffix(" UTC") {
        Some(time) => format!("{time} GMT").into(),
        None => text.into(),
    }
}

/// Clients express "from the beginning" by the first date of their language, which is
/// before the first one that can be stored.
fn before_all(text: &str) -> Option<Timestamp> {
    const FIRST_YEAR: &str = "1970";
    let [_day, date, month, year, time, zone] = *text.split(' ').collect::<Vec<_>>() else {
        return None;
    };
    let is_year = year.len() == FIRST_YEAR.len() && year.bytes().all(|b| b.is_ascii_digit());
    let in_it = parse_rfc1123(&format!("Thu, {date} {month} {FIRST_YEAR} {time} {zone}"));
    in_it.filter(|_| is_year && year < FIRST_YEAR).map(|_| Timestamp::from_millis(0))
}

/// An item inside an envelope with what is known of its change.
fn enveloped(change: &Change) -> Bytes {
    let (lsn, secs) = (change.lsn, change.stamp.ts.secs());
    let current = with(text(change), &change.stamp);
    format!("{{\"current\":{current},\"metadata\":{{\"lsn\":{lsn},\"crts\":{secs}}}}}").into()
}

/// An item as a change: with the position of its commit. Programs that copy changes into
/// another container store such a position, too, which is not that of the copy.
fn with_lsn(change: &Change) -> Bytes {
    let json = Raw::trusted(text(change));
    let own = match json.get(POSITION) {
        Some(_) => Cow::Owned(without_position(json)),
        None => Cow::Borrowed(json.text()),
    };
    // The system properties come before it.
    let mut text = with(&own, &change.stamp);
    text.truncate(text.len().saturating_sub(1));
    text.push_str(&format!(",\"{POSITION}\":{}}}", change.lsn));
    text.into()
}

fn text(change: &Change) -> &str {
    std::str::from_utf8(&change.text).expect("items are UTF-8")
}

/// The text of an object without a stored position.
fn without_position(object: Raw<'_>) -> String {
    let mut text = String::with_capacity(object.text().len());
    for (name, value) in object.members().filter(|(name, _)| name != POSITION) {
        text.push(if text.is_empty() { '{' } else { ',' });
        json::write_string(&mut text, &name);
        text.push(':');
        text.push_str(value.text());
    }
    text.push('}');
    text
}
