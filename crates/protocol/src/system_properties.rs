//! The system properties of an item, as clients of this protocol see them.
//!
//! A client may ask to leave them out, wherever an item is in an answer: alone,
//! in a feed or in the output of a query. An object with all of them is an item; one that a
//! query selected by its name stays.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use model::json::{JsonKind, Raw, write_string};
use model::system_properties::{
    ItemStamp, SYSTEM_PROPERTIES, SystemProperties, SystemProperty, SystemValue,
};

static ITEM: LazyLock<Arc<SystemProperties>> = LazyLock::new(|| {
    let named = |name: &str, value| SystemProperty { name: name.to_owned(), value };
    let segments = ["dbs", "colls", "docs"].map(str::to_owned);
    Arc::new(SystemProperties::new(vec![
        named("_rid", SystemValue::Rid),
        named("_self", SystemValue::Link { segments }),
        named("_etag", SystemValue::Etag),
        named("_attachments", SystemValue::Text("attachments/".to_owned())),
        named("_ts", SystemValue::Seconds),
    ]))
});

/// Those that items are shown with.
pub fn of_items() -> Arc<SystemProperties> {
    Arc::clone(&ITEM)
}

/// The text of an item with them.
pub fn with(text: &str, stamp: &ItemStamp) -> String {
    ITEM.shown(text, stamp)
}

/// An item as its client wants to see it: with them, or as it was written.
#[must_use]
pub fn shown(text: Bytes, stamp: &ItemStamp, bare: bool) -> Bytes {
    if bare {
        return text;
    }
    with(std::str::from_utf8(&text).expect("items are UTF-8"), stamp).into()
}

/// The text of an item, or of the output of a query, without them.
#[must_use]
pub fn without(body: Bytes) -> Bytes {
    let Ok(text) = std::str::from_utf8(&body) else { return body };
    let mut out = String::with_capacity(text.len());
    write(Raw::trusted(text), &mut out);
    out.into()
}

fn write(value: Raw<'_>, out: &mut String) {
    match value.kind() {
        JsonKind::Object if SYSTEM_PROPERTIES.iter().all(|name| value.get(name).is_some()) => {
            let is_own = |name: &str| !SYSTEM_PROPERTIES.contains(&name);
            let own = value.members().filter(|(name, _)| is_own(name));
            // What is inside belongs to the client, even if it is a copy of an item.
            write_object(own, out, |value, out| out.push_str(value.text()));
        }
        JsonKind::Object => write_object(value.members(), out, write),
        JsonKind::Array => {
            out.push('[');
            for (at, element) in value.elements().enumerate() {
                out.push_str(if at == 0 { "" } else { "," });
                write(element, out);
            }
            out.push(']');
        }
        JsonKind::Null | JsonKind::Bool | JsonKind::Number | JsonKind::String => {
            out.push_str(value.text())
        }
    }
}

fn write_object<'a>(
    members: impl Iterator<Item = (Cow<'a, str>, Raw<'a>)>,
    out: &mut String,
    write: impl Fn(Raw<'a>, &mut String),
) {
    out.push('{');
    for (at, (name, value)) in members.enumerate() {
        out.push_str(if at == 0 { "" } else { "," });
        write_string(out, &name);
        out.push(':');
        write(value, out);
    }
    out.push('}');
}
