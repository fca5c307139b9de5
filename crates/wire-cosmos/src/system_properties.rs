//! The system properties of items, for clients that want them and those that do not.

use bytes::Bytes;
use model::system_properties::ItemStamp;
pub(crate) use protocol::system_properties::of_items;
use protocol::system_properties::without;

use crate::gateway::Call;

const EXCLUDE: &str = "x-ms-exclude-system-properties";

pub(crate) fn are_excluded(call: &Call<'_>) -> bool {
    call.headers.flag(EXCLUDE)
}

/// An item as the client wants to see it.
pub(crate) fn shown(call: &Call<'_>, text: Bytes, stamp: &ItemStamp) -> Bytes {
    protocol::system_properties::shown(text, stamp, are_excluded(call))
}

/// How the client wants to see items, or rows.
pub(crate) fn view(call: &Call<'_>) -> fn(Bytes) -> Bytes {
    if are_excluded(call) { without } else { |body| body }
}
