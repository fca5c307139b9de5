//! Commands on the items of the chosen container.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use cluster::PartitionId;
use goldenscript::{ArgumentConsumer, Command};
use model::name::ItemId;
use model::partition_key::PartitionKey;
use model::session::SessionToken;
use model::system_properties::{ItemStamp, SystemProperties};
use service::{
    Batch, Bulk, BulkOperation, BulkPace, BulkResult, Conditions, ContainerVerb, Failure, Feed,
    InContainer, ItemAction, ItemOperation, ItemResult, ListItems, ReadRanges, Response,
    ResponseMeta, Scope,
};

use super::{Answer, World, failure, key, next_body, show_result, shown};

impl World {
    pub(super) fn item_command(&mut self, command: &Command, tags: &BTreeSet<String>) -> Answer {
        let mut args = command.consume_args();
        let system = tags.contains("system");
        let show = |done: &ItemResult| {
            let with = |(text, stamp): (&Bytes, &ItemStamp)| {
                let text = std::str::from_utf8(text).expect("items are UTF-8");
                Bytes::from(SystemProperties::indexed().shown(text, stamp))
            };
            let body = done.text.as_ref().zip(done.stamp.as_ref()).map(with);
            show_result(done.kind, body.as_ref(), system)
        };
        match command.name.as_str() {
            "ranges" => self.ranges(),
            "items" => self.items(&mut args),
            "batch" => {
                let key = PartitionKey::parse_json(args.next_pos().ok_or("which key?")?)?;
                let mut operations = Vec::new();
                while let Some(text) = args.next_pos() {
                    operations.push(operation(text)?);
                }
                args.reject_next()?;
                let batch = Batch { key, operations, session: None };
                let done = self.in_container(batch);
                routed(done, tags, |results| results.iter().map(show).collect())
            }
            "bulk" => {
                let range = args.take_key("range").map(str::parse).transpose()?.map(PartitionId);
                let mut operations = Vec::new();
                while let Some(key) = args.next_pos() {
                    let key = PartitionKey::parse_json(key)?;
                    let operation = operation(args.next_pos().ok_or("which operation?")?)?;
                    operations.push(BulkOperation { key, operation });
                }
                args.reject_next()?;
                let done = self.in_container(Bulk { range, operations, pace: BulkPace::All });
                let each = |bulk: BulkResult| match bulk.result {
                    Ok(done) => show(&done),
                    Err(error) => format!("{}\n", failure(error)),
                };
                routed(done, tags, |results| results.into_iter().map(each).collect())
            }
            name => {
                let action = self.single(name, &mut args)?;
                args.reject_next()?;
                let done = self.in_container(action);
                if let Some(etag) = done.as_ref().ok().and_then(|done| done.reply.etag()) {
                    self.last_etag = Some(etag.as_str().to_owned());
                }
                routed(done, tags, |item| show(&item))
            }
        }
    }

    fn single(
        &self,
        name: &str,
        args: &mut ArgumentConsumer<'_>,
    ) -> Result<ItemAction, Box<dyn Error>> {
        let key = key(args)?;
        let Conditions { if_match, if_none_match } = self.conditions(args)?;
        let session = args.take_key("session").map(SessionToken::parse).transpose()?;
        let operation = match name.strip_prefix("item.").unwrap_or(name) {
            "create" => ItemOperation::Create { body: body(&super::stretched(next_body(args)?)) },
            "upsert" => {
                let body = body(&super::stretched(next_body(args)?));
                ItemOperation::Upsert { body, if_match }
            }
            verb => {
                let id = ItemId::parse(args.next_pos().ok_or("which item?")?)?;
                match verb {
                    "read" => ItemOperation::Read { id, if_none_match },
                    "delete" => ItemOperation::Delete { id, if_match },
                    "replace" => {
                        ItemOperation::Replace { id, body: body(next_body(args)?), if_match }
                    }
                    "patch" => ItemOperation::Patch { id, body: body(next_body(args)?), if_match },
                    _ => return Err(format!("unknown command {name}").into()),
                }
            }
        };
        Ok(ItemAction { key, operation, session })
    }

    fn in_container<V: ContainerVerb>(&mut self, verb: V) -> Result<Response<V::Reply>, Failure> {
        let container = self.container.clone();
        self.execute(InContainer::new(container, verb))
    }

    fn ranges(&mut self) -> Answer {
        let done = self.in_container(ReadRanges).map_err(|refused| failure(refused.error))?;
        let mut output = String::new();
        for record in done.reply.ranges {
            let bounds = format!("[{}, {})", record.range.min, record.range.max);
            writeln!(output, "{} {bounds} parents {:?}", record.id, record.parents)?;
        }
        Ok(output)
    }

    /// All items, page after page. Their order is that of their hashes.
    fn items(&mut self, args: &mut ArgumentConsumer<'_>) -> Answer {
        let items_max = args.take_key("max").map_or(Ok(100), str::parse)?;
        let range = args.take_key("range").map(str::parse).transpose()?.map(PartitionId);
        let scope = Scope { key: key(args)?, range, ..Scope::default() };
        args.reject_next()?;
        let (mut output, mut after, mut ids) = (String::new(), None, BTreeSet::new());
        loop {
            let scope = scope.clone();
            let system = Some(Arc::new(SystemProperties::indexed()));
            let list = ListItems { scope, session: None, after, items_max, system };
            let done = self.in_container(list).map_err(|refused| failure(refused.error))?;
            let Feed { bodies, rest, .. } = done.reply;
            assert!(bodies.len() <= items_max, "more than asked for");
            for body in &bodies {
                writeln!(output, "{}", shown(body, false))?;
                assert!(ids.insert(shown(body, true)), "an item came twice");
            }
            match rest {
                Some(position) => after = Some(position),
                None => return Ok(output),
            }
        }
    }
}

fn operation(text: &str) -> Result<ItemOperation, Box<dyn Error>> {
    let (verb, rest) = text.split_once(' ').ok_or("a verb and what it is about")?;
    let (id, tail) = rest.split_once(' ').unwrap_or((rest, ""));
    let (if_match, if_none_match) = (None, None);
    Ok(match verb {
        "create" => ItemOperation::Create { body: body(rest) },
        "upsert" => ItemOperation::Upsert { body: body(rest), if_match },
        "read" => ItemOperation::Read { id: ItemId::parse(id)?, if_none_match },
        "replace" => ItemOperation::Replace { id: ItemId::parse(id)?, body: body(tail), if_match },
        "delete" => ItemOperation::Delete { id: ItemId::parse(id)?, if_match },
        "patch" => ItemOperation::Patch { id: ItemId::parse(id)?, body: body(tail), if_match },
        _ => return Err(format!("unknown operation {verb}").into()),
    })
}

fn body(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// An answer, with its partition and charge if the tags ask for that.
fn routed<R>(
    done: Result<Response<R>, Failure>,
    tags: &BTreeSet<String>,
    show: impl FnOnce(R) -> String,
) -> Answer {
    let route = |meta: &ResponseMeta| {
        let route = if tags.contains("route") { route(meta) } else { String::new() };
        let cost = tags.contains("cost").then(|| format!("{} RU\n", meta.charge));
        route + &cost.unwrap_or_default()
    };
    match done {
        Ok(Response { reply, meta }) => Ok(show(reply) + &route(&meta)),
        Err(Failure { error, meta }) => {
            Err(format!("{}\n{}", failure(error), route(&meta)).trim_end().into())
        }
    }
}

fn route(meta: &ResponseMeta) -> String {
    let range = meta.served_by().map_or("none".to_owned(), |(range, _)| range.to_string());
    let session = meta.session().map(|token| token.to_string()).unwrap_or_default();
    let item = meta.item_lsn.map(|lsn| format!(", item {lsn}")).unwrap_or_default();
    format!("range {range}, session {session}{item}\n")
}
