//! The properties that the database adds to an item where a client sees it.
//!
//! An item is stored as its client wrote it. What the database knows of a version besides
//! (its resource id, its etag, its time) is part of the record, not of the text, and each
//! protocol shows it under names of its own, or not at all. So the text on the disk belongs
//! to no protocol.

use crate::etag::Etag;
use crate::json::write_string;
use crate::position::Timestamp;
use crate::rid::ItemRid;

/// Names of these properties. What a client sends under them is dropped.
pub const SYSTEM_PROPERTIES: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/// What the database knows of one version of an item besides its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ItemStamp {
    pub rid: ItemRid,
    pub etag: Etag,
    pub ts: Timestamp,
}

/// Which of it is shown, under which names, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemProperties(Vec<SystemProperty>);

/// One property that is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemProperty {
    pub name: String,
    pub value: SystemValue,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SystemValue {
    /// The resource id.
    Rid,
    /// The resource ids of database, container and item, each after its segment.
    Link {
        segments: [String; 3],
    },
    Etag,
    /// The same for all items.
    Text(String),
    /// The time of the last write, in seconds.
    Seconds,
}

impl SystemProperties {
    #[must_use]
    pub fn new(properties: Vec<SystemProperty>) -> SystemProperties {
        SystemProperties(properties)
    }

    /// Those that an index can have entries for: what every version has of its own.
    #[must_use]
    pub fn indexed() -> SystemProperties {
        let named = |name: &str, value| SystemProperty { name: name.to_owned(), value };
        SystemProperties::new(vec![
            named("_rid", SystemValue::Rid),
            named("_etag", SystemValue::Etag),
            named("_ts", SystemValue::Seconds),
        ])
    }

    pub fn iter(&self) -> impl Iterator<Item = &SystemProperty> {
        self.0.iter()
    }

    /// Bytes of an item's own text in what [`SystemProperties::shown`] made of it.
    #[must_use]
    pub fn own_bytes(&self, shown: &[u8]) -> usize {
        let Some(first) = self.0.first() else { return shown.len() };
        let mut mark = String::new();
        write_string(&mut mark, &first.name);
        mark.push(':');
        let own = shown.windows(mark.len()).rposition(|part| part == mark.as_bytes());
        own.unwrap_or(shown.len())
    }

    /// Writes them for a version of an item, as a JSON object.
    pub fn write(&self, stamp: &ItemStamp, out: &mut String) {
        out.push('{');
        for (at, SystemProperty { name, value }) in self.0.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            write_string(out, name);
            out.push(':');
            write_value(value, stamp, out);
        }
        out.push('}');
    }

    /// The text of an item with them at its end.
    #[must_use]
    pub fn shown(&self, item: &str, stamp: &ItemStamp) -> String {
        /// What they take in the REST protocol.
        const TYPICAL_BYTES: usize = 240;
        let mut out = String::with_capacity(item.len() + TYPICAL_BYTES);
        out.push_str(item.strip_suffix('}').unwrap_or(item).trim_end());
        let end = out.len();
        self.write(stamp, &mut out);
        // Every item has an id, so what is added follows a member.
        out.replace_range(end..=end, ",");
        out
    }
}

fn write_value(value: &SystemValue, stamp: &ItemStamp, out: &mut String) {
    use std::fmt::Write as _;
    let rid = stamp.rid;
    let written = match value {
        SystemValue::Rid => write!(out, "\"{rid}\""),
        SystemValue::Link { segments: [databases, containers, items] } => {
            let container = rid.container();
            let database = container.database();
            write!(out, "\"{databases}/{database}/{containers}/{container}/{items}/{rid}/\"")
        }
        SystemValue::Etag => {
            write_string(out, stamp.etag.as_str());
            Ok(())
        }
        SystemValue::Text(text) => {
            write_string(out, text);
            Ok(())
        }
        SystemValue::Seconds => write!(out, "{}", stamp.ts.secs()),
    };
    written.expect("a string takes all that is written to it");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::{Lsn, Ordinal};
    use crate::rid::{ContainerRid, DatabaseRid};

    #[test]
    fn they_follow_the_members_of_an_item() {
        let container = ContainerRid::new(DatabaseRid::new(1).unwrap(), 2).unwrap();
        let rid = ItemRid::new(container, Ordinal::from_u64(3).unwrap());
        let ts = Timestamp::from_millis(5_999);
        let stamp = ItemStamp { rid, etag: Etag::new(Lsn::from_u64(4), 0, ts), ts };
        let shown = SystemProperties::indexed().shown(r#"{"id":"a"}"#, &stamp);
        let etag = r#""\"00000004-0000-0000-0000-000000050000\"""#;
        assert_eq!(SystemProperties::indexed().own_bytes(shown.as_bytes()), 10);
        assert_eq!(shown, format!(r#"{{"id":"a","_rid":"{rid}","_etag":{etag},"_ts":5}}"#));
    }
}
