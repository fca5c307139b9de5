//! Resource ids and etags in what a script returned.
//!
//! A script sees those of its writes before they are committed, as they will be if nothing
//! else is written to the partition meanwhile. If something was, the texts that leave the
//! server get the real ones instead. Both have a form that is found without parsing.

use std::collections::BTreeMap;

use cluster::Cluster;
use model::system_properties::ItemStamp;

use crate::error::ServiceError;

/// The text of an etag without its quotes.
const ETAG_BYTES: usize = 36;
/// The first of its dashes.
const DASH: usize = 8;
/// The text of an item's resource id, which ends with two equals signs.
const RID_BYTES: usize = 24;

/// The text with the real ids and etags.
pub(crate) async fn corrected(
    cluster: &Cluster,
    text: String,
    stamps: &[(ItemStamp, ItemStamp)],
) -> Result<String, ServiceError> {
    if stamps.is_empty() || text.len() < RID_BYTES {
        return Ok(text);
    }
    let names = names(stamps);
    // Two megabytes of text take some milliseconds.
    Ok(cluster.take_turns_always(move |_| replaced(&text, &names)).await?)
}

type Names = BTreeMap<String, String>;

fn names(stamps: &[(ItemStamp, ItemStamp)]) -> Names {
    let etag = |stamp: &ItemStamp| stamp.etag.as_str().trim_matches('"').to_owned();
    let etags = stamps.iter().map(|(seen, real)| (etag(seen), etag(real)));
    let rids = stamps.iter().map(|(seen, real)| (seen.rid.to_string(), real.rid.to_string()));
    etags.chain(rids).collect()
}

/// In one pass, as a real name may be what another item was to have.
fn replaced(text: &str, names: &Names) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut from, mut at) = (0, 0);
    while at < text.len() {
        let name = etag_at(text, at).or_else(|| rid_at(text, at));
        match name.and_then(|name| Some((name.len(), names.get(name)?))) {
            Some((length, real)) => {
                out.push_str(text.get(from..at).unwrap_or_default());
                out.push_str(real);
                at += length;
                from = at;
            }
            None => at += 1,
        }
    }
    out.push_str(text.get(from..).unwrap_or_default());
    out
}

fn etag_at(text: &str, at: usize) -> Option<&str> {
    let is_dash = text.as_bytes().get(at + DASH) == Some(&b'-');
    is_dash.then(|| text.get(at..at + ETAG_BYTES)).flatten()
}

fn rid_at(text: &str, at: usize) -> Option<&str> {
    let end = at + RID_BYTES;
    let ends = text.as_bytes().get(end - 2..end) == Some(b"==");
    ends.then(|| text.get(at..end)).flatten()
}

#[cfg(test)]
mod tests {
    use model::etag::Etag;
    use model::position::{Lsn, Ordinal, Timestamp};
    use model::rid::{ContainerRid, DatabaseRid, ItemRid};

    use super::*;

    fn stamp(number: u64) -> ItemStamp {
        let container = ContainerRid::new(DatabaseRid::new(1).unwrap(), 2).unwrap();
        let rid = ItemRid::new(container, Ordinal::from_u64(number).unwrap());
        let ts = Timestamp::from_millis(5_000);
        ItemStamp { rid, etag: Etag::new(Lsn::from_u64(number), 0, ts), ts }
    }

    #[test]
    fn names_are_replaced_all_at_once() {
        // The second item got what the first was to have.
        let names = names(&[(stamp(1), stamp(2)), (stamp(2), stamp(3))]);
        let text = |a: u64, b: u64| {
            let (a, b, other) = (stamp(a), stamp(b), stamp(9));
            format!(
                r#"["dbs/x/docs/{}/",{:?},"{}","ä{}==","{}",{:?}]"#,
                a.rid,
                a.etag.as_str(),
                b.rid,
                b.rid,
                other.rid,
                b.etag.as_str()
            )
        };
        assert_eq!(replaced(&text(1, 2), &names), text(2, 3));
        for short in ["", "==", "-", "ääääää-ä", "\"\"\"\"\"\"\"\"-"] {
            assert_eq!(replaced(short, &names), short);
        }
    }
}
