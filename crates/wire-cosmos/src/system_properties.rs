//! `x-ms-exclude-system-properties`: removes from answers what the database has added to
//! items, wherever an item is in them: alone, in a feed or in the output of a query. An
//! object with all of the properties is an item; one that a query selected by its name
//! stays.

use std::borrow::Cow;

use bytes::Bytes;
use model::json::{JsonKind, Raw, write_string};

use crate::gateway::Call;

const EXCLUDE: &str = "x-ms-exclude-system-properties";
const NAMES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/// An item as the client wants to see it.
pub(crate) fn shown(call: &Call<'_>, body: Bytes) -> Bytes {
    if call.headers.flag(EXCLUDE) { without(body) } else { body }
}

/// Items, or rows, as the client wants to see them.
pub(crate) fn all_shown(call: &Call<'_>, bodies: Vec<Bytes>) -> Vec<Bytes> {
    if !call.headers.flag(EXCLUDE) {
        return bodies;
    }
    bodies.into_iter().map(without).collect()
}

fn without(body: Bytes) -> Bytes {
    let Ok(text) = std::str::from_utf8(&body) else { return body };
    let mut out = String::with_capacity(text.len());
    write(Raw::trusted(text), &mut out);
    out.into()
}

fn write(value: Raw<'_>, out: &mut String) {
    match value.kind() {
        JsonKind::Object if NAMES.iter().all(|name| value.get(name).is_some()) => {
            let own = value.members().filter(|(name, _)| !NAMES.contains(&name.as_ref()));
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
