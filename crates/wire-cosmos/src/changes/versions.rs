//! All versions and deletes: the same feed with `A-IM: Full-Fidelity Feed`.
//!
//! Each operation is an object of the item after it, the item before it where that is known,
//! and what happened. Clients start now or from an etag; there is no beginning to start from,
//! as what is older than the retention is gone.

use std::fmt::Write as _;

use bytes::Bytes;
use model::json::write_string;
use service::{ChangeStart, HistoryKind, ItemVersion, Link, RemovedItem, VersionFeed, VersionList};

use super::{FORM, SINCE, START, feed, start};
use crate::gateway::Call;
use crate::headers::PAGE_ITEMS_DEFAULT;
use crate::items::scope;
use crate::reply::Answer;
use crate::system_properties;
use protocol::changes::ENVELOPES;
use protocol::error::WireError;
use protocol::page::Envelope;
use protocol::system_properties::with;

const NO_BEGINNING: &str = "The change feed of all versions and deletes starts from now \
    (If-None-Match: *) or from an etag that it returned; neither from the beginning nor from a time.";

pub(super) async fn list(call: &Call<'_>, container: Link) -> Result<Answer, WireError> {
    check_form(call)?;
    let list = VersionList {
        scope: scope(call)?,
        session: call.headers.session()?,
        start: position(call)?,
        items_max: call.headers.items_max(PAGE_ITEMS_DEFAULT)?,
    };
    let response = call.container(container, list).await?;
    let VersionFeed { owner_rid, versions, through, complete } = response.reply;
    let view = system_properties::view(call);
    let page = Envelope { owner_rid, name: "Documents", rows: versions };
    let show = move |version: ItemVersion| shown(&version, view);
    let answer = feed(call, (page, complete), through, show).await?;
    Ok(answer.with_meta(&response.meta))
}

/// There is one format, which clients name.
fn check_form(call: &Call<'_>) -> Result<(), WireError> {
    match call.headers.text(FORM) {
        None | Some("" | ENVELOPES) => Ok(()),
        Some(_) => Err(call.headers.invalid(FORM)),
    }
}

/// Clients that resume send the time at which they started as well, if there was one.
fn position(call: &Call<'_>) -> Result<ChangeStart, WireError> {
    let given = |name| call.headers.text(name).is_some_and(|text| !text.trim().is_empty());
    let start = start(call)?;
    let is_time = given(SINCE) && start == ChangeStart::Now;
    if !given(START) || is_time {
        return Err(WireError::bad_request(NO_BEGINNING));
    }
    Ok(start)
}

fn shown(version: &ItemVersion, view: fn(Bytes) -> Bytes) -> Bytes {
    let image = version.image.as_ref().map(|text| {
        let text = std::str::from_utf8(text).expect("items are UTF-8");
        view(with(text, &version.stamp).into())
    });
    let image = image.as_deref().map(|text| std::str::from_utf8(text).expect("items are UTF-8"));
    let mut out = match (version.kind.is_removal(), image) {
        (false, image) => format!("{{\"current\":{}", image.unwrap_or("{}")),
        (true, Some(image)) => format!("{{\"current\":{{}},\"previous\":{image}"),
        (true, None) => "{\"current\":{}".to_owned(),
    };
    out.push_str(",\"metadata\":");
    write_metadata(version, &mut out);
    out.push('}');
    out.into()
}

fn write_metadata(version: &ItemVersion, out: &mut String) {
    let operation = match version.kind {
        HistoryKind::Create => "create",
        HistoryKind::Replace => "replace",
        HistoryKind::Delete | HistoryKind::Expiry => "delete",
    };
    let (lsn, crts) = (version.lsn, version.ts.secs());
    write_to(
        out,
        format_args!("{{\"operationType\":\"{operation}\",\"lsn\":{lsn},\"crts\":{crts}"),
    );
    if let Some(previous) = version.previous {
        write_to(out, format_args!(",\"previousImageLSN\":{previous}"));
    }
    if let Some(RemovedItem { id, key }) = &version.removed {
        let expired = version.kind == HistoryKind::Expiry;
        write_to(
            out,
            format_args!(",\"timeToLiveExpired\":{expired},\"id\":{id},\"partitionKey\":{{"),
        );
        for (at, (name, value)) in key.iter().enumerate() {
            out.push_str(if at == 0 { "" } else { "," });
            write_string(out, name);
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
    }
    out.push('}');
}

fn write_to(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string succeeds");
}
