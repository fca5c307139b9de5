//! The system properties of items, for clients that want them and those that do not.

use bytes::Bytes;
use model::system_properties::ItemStamp;
use protocol::system_properties::without;
pub(crate) use protocol::system_properties::{of_items, with};

use crate::gateway::Call;

const EXCLUDE: &str = "x-ms-exclude-system-properties";

/// An item as the client wants to see it.
pub(crate) fn shown(call: &Call<'_>, text: Bytes, stamp: &ItemStamp) -> Bytes {
    if call.headers.flag(EXCLUDE) {
        return text;
    }
    with(std::str::from_utf8(&text).expect("items are UTF-8"), stamp).into()
}

/// How the client wants to see items, or rows.
pub(crate) fn view(call: &Call<'_>) -> fn(Bytes) -> Bytes {
    if call.headers.flag(EXCLUDE) { without } else { |body| body }
}
