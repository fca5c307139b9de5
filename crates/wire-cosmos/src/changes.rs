//! The change feed: `GET docs` with an `A-IM` header.
//!
//! The etag of an answer is the position after it, and clients send it back as
//! `If-None-Match`. They poll; only 304 tells them that they have seen everything, so an
//! answer that is empty because the page ended early is a 200.

use bytes::Bytes;
use model::position::Timestamp;
use service::{Change, ChangeFeed, ChangeList, ChangeStart, Link};

use crate::gateway::Call;
use crate::headers::PAGE_ITEMS_DEFAULT;
use crate::items::scope;
use crate::page;
use crate::reply::Answer;
use crate::system_properties;
use protocol::changes;
use protocol::error::WireError;
use protocol::page::Envelope;

/// The header that makes a list a list of changes.
pub(crate) const KIND: &str = "a-im";
const START: &str = "if-none-match";
const SINCE: &str = "if-modified-since";
const FORM: &str = "x-ms-cosmos-changefeed-wire-format-version";

pub(crate) async fn list(call: &Call<'_>, container: Link) -> Result<Answer, WireError> {
    check_kind(call)?;
    let list = ChangeList {
        scope: scope(call)?,
        session: call.headers.session()?,
        start: start(call)?,
        since: since(call)?,
        items_max: call.headers.items_max(PAGE_ITEMS_DEFAULT)?,
    };
    let form = form(call)?;
    let response = call.container(container, list).await?;
    let ChangeFeed { owner_rid, changes: rows, through, complete } = response.reply;
    let mut answer = if rows.is_empty() && complete {
        Answer::unchanged()
    } else {
        let view = system_properties::view(call);
        let page = Envelope { owner_rid, name: "Documents", rows };
        page::answer(page, call, move |change| view(form(&change))).await?
    };
    answer.set("etag", &format!("\"{through}\""));
    Ok(answer.with_meta(&response.meta))
}

fn check_kind(call: &Call<'_>) -> Result<(), WireError> {
    let kind = call.headers.text(KIND).unwrap_or_default();
    changes::check_kind(kind).unwrap_or_else(|| Err(call.headers.invalid(KIND)))
}

/// The format of a change.
fn form(call: &Call<'_>) -> Result<fn(&Change) -> Bytes, WireError> {
    let name = call.headers.text(FORM).unwrap_or_default();
    changes::form(name).ok_or_else(|| call.headers.invalid(FORM))
}

fn start(call: &Call<'_>) -> Result<ChangeStart, WireError> {
    let etag = call.headers.text(START).unwrap_or_default();
    changes::start(etag).ok_or_else(|| call.headers.invalid(START))
}

fn since(call: &Call<'_>) -> Result<Option<Timestamp>, WireError> {
    let text = call.headers.text(SINCE).filter(|text| !text.is_empty());
    let read = |text| changes::since(text).ok_or_else(|| call.headers.invalid(SINCE));
    text.map(read).transpose()
}
