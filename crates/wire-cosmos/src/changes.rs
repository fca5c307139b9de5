//! The change feed: `GET docs` with an `A-IM` header.
//!
//! The etag of an answer is the position after it, and clients send it back as
//! `If-None-Match`. They poll; only 304 tells them that they have seen everything, so an
//! answer that is empty because the page ended early is a 200.

mod versions;

use std::borrow::Cow;

use bytes::Bytes;
use model::json::{self, Raw};
use model::position::{Lsn, Timestamp};
use service::{Change, ChangeFeed, ChangeList, ChangeStart, Link};

use crate::auth::parse_rfc1123;
use crate::error::WireError;
use crate::gateway::Call;
use crate::headers::PAGE_ITEMS_DEFAULT;
use crate::items::scope;
use crate::page::{Page, Row};
use crate::reply::Answer;
use crate::system_properties::{self, with};

/// The header that makes a list a list of changes.
pub(crate) const KIND: &str = "a-im";
const START: &str = "if-none-match";
const SINCE: &str = "if-modified-since";
const FORM: &str = "x-ms-cosmos-changefeed-wire-format-version";
/// The one format that has a name.
const ENVELOPES: &str = "2021-09-15";
/// The property of a change that holds its position.
const POSITION: &str = "_lsn";

pub(crate) async fn list(call: &Call<'_>, container: Link) -> Result<Answer, WireError> {
    match mode(call)? {
        Mode::LatestVersions => list_latest(call, container).await,
        Mode::AllVersions => versions::list(call, container).await,
    }
}

async fn list_latest(call: &Call<'_>, container: Link) -> Result<Answer, WireError> {
    let list = ChangeList {
        scope: scope(call)?,
        session: call.headers.session()?,
        start: start(call)?,
        since: since(call)?,
        items_max: call.headers.items_max(PAGE_ITEMS_DEFAULT)?,
    };
    let form = form(call)?;
    let response = call.container(container, list).await?;
    let ChangeFeed { owner_rid, changes, through, complete } = response.reply;
    let view = system_properties::view(call);
    let page = Page { owner_rid, name: "Documents", rows: changes };
    let answer = feed(call, (page, complete), through, move |change| view(form(&change))).await?;
    Ok(answer.with_meta(&response.meta))
}

/// A page of either mode.
async fn feed<R: Row + Send + 'static>(
    call: &Call<'_>,
    (page, complete): (Page<R>, bool),
    through: Lsn,
    show: impl Fn(R) -> Bytes + Send + 'static,
) -> Result<Answer, WireError> {
    let mut answer = if page.rows.is_empty() && complete {
        Answer::unchanged()
    } else {
        page.answer(call, show).await?
    };
    answer.set("etag", &format!("\"{through}\""));
    Ok(answer)
}

impl Row for Change {
    fn bytes(&self) -> usize {
        self.text.len()
    }
}

/// What a feed tells.
enum Mode {
    LatestVersions,
    AllVersions,
}

fn mode(call: &Call<'_>) -> Result<Mode, WireError> {
    let kind = call.headers.text(KIND).unwrap_or_default();
    if kind.eq_ignore_ascii_case("incremental feed") {
        Ok(Mode::LatestVersions)
    } else if kind.eq_ignore_ascii_case("full-fidelity feed") {
        Ok(Mode::AllVersions)
    } else {
        Err(call.headers.invalid(KIND))
    }
}

/// The format of a change.
fn form(call: &Call<'_>) -> Result<fn(&Change) -> Bytes, WireError> {
    match call.headers.text(FORM) {
        None | Some("") => Ok(with_lsn),
        Some(ENVELOPES) => Ok(enveloped),
        Some(_) => Err(call.headers.invalid(FORM)),
    }
}

/// No etag is the beginning, `*` is now.
fn start(call: &Call<'_>) -> Result<ChangeStart, WireError> {
    let Some(text) = call.headers.text(START).map(str::trim).filter(|text| !text.is_empty()) else {
        return Ok(ChangeStart::After(Lsn::ZERO));
    };
    if text == "*" {
        return Ok(ChangeStart::Now);
    }
    let digits = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
    let lsn = digits.parse().map_err(|_| call.headers.invalid(START))?;
    Ok(ChangeStart::After(Lsn::from_u64(lsn)))
}

/// The Go SDK spells the time zone differently.
fn in_gmt(text: &str) -> Cow<'_, str> {
    match text.strip_suffix(" UTC") {
        Some(time) => format!("{time} GMT").into(),
        None => text.into(),
    }
}

fn since(call: &Call<'_>) -> Result<Option<Timestamp>, WireError> {
    let Some(text) = call.headers.text(SINCE).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let text = &in_gmt(text);
    let time = parse_rfc1123(text).or_else(|| before_all(text));
    Ok(Some(time.ok_or_else(|| call.headers.invalid(SINCE))?))
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
