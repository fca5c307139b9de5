//! The change feed: `GET docs` with an `A-IM` header.
//!
//! The etag of an answer is the position after it, and clients send it back as
//! `If-None-Match`. They poll; only 304 tells them that they have seen everything, so an
//! answer that is empty because the page ended early is a 200.

mod versions;

use bytes::Bytes;
use model::position::{Lsn, Timestamp};
use service::{Change, ChangeFeed, ChangeList, ChangeStart, Link};

use crate::gateway::Call;
use crate::headers::PAGE_ITEMS_DEFAULT;
use crate::items::scope;
use crate::page;
use crate::reply::Answer;
use crate::system_properties;
use protocol::changes::{self, FeedMode};
use protocol::error::WireError;
use protocol::page::{Envelope, EnvelopeRow};

/// The header that makes a list a list of changes.
pub(crate) const KIND: &str = "a-im";
const START: &str = "if-none-match";
const SINCE: &str = "if-modified-since";
const FORM: &str = "x-ms-cosmos-changefeed-wire-format-version";

pub(crate) async fn list(call: &Call<'_>, container: Link) -> Result<Answer, WireError> {
    match mode(call)? {
        FeedMode::LatestVersions => list_latest(call, container).await,
        FeedMode::AllVersions => versions::list(call, container).await,
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
    let ChangeFeed { owner_rid, changes: rows, through, complete } = response.reply;
    let view = system_properties::view(call);
    let page = Envelope { owner_rid, name: "Documents", rows };
    let answer = feed(call, (page, complete), through, move |change| view(form(&change))).await?;
    Ok(answer.with_meta(&response.meta))
}

/// A page of either mode.
async fn feed<R: EnvelopeRow>(
    call: &Call<'_>,
    (page, complete): (Envelope<R>, bool),
    through: Lsn,
    show: impl Fn(R) -> Bytes + Send + 'static,
) -> Result<Answer, WireError> {
    let mut answer = if page.rows.is_empty() && complete {
        Answer::unchanged()
    } else {
        page::answer(page, call, show).await?
    };
    answer.set("etag", &format!("\"{through}\""));
    Ok(answer)
}

fn mode(call: &Call<'_>) -> Result<FeedMode, WireError> {
    let kind = call.headers.text(KIND).unwrap_or_default();
    changes::mode(kind).ok_or_else(|| call.headers.invalid(KIND))
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
