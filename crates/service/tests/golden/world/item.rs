//! Commands on the items of the chosen container.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;

use bytes::Bytes;
use cluster::RangeId;
use goldenscript::{ArgumentConsumer, Command};
use model::name::ItemId;
use model::partition_key::PartitionKey;
use service::{
    Action, BulkOperation, BulkPace, ContainerAction, Failure, ItemOperation, ItemTarget, Receipt,
    Reply, Response, Rest, Scope,
};

use super::{Answer, World, failure, key, next_body, show_result, shown};

impl World {
    pub(super) fn item_command(&mut self, command: &Command, tags: &BTreeSet<String>) -> Answer {
        let mut args = command.consume_args();
        let action = match command.name.as_str() {
            "ranges" => return self.ranges(),
            "items" => return self.items(&mut args),
            "batch" => {
                let key = PartitionKey::parse_header(args.next_pos().ok_or("which key?")?)?;
                let mut operations = Vec::new();
                while let Some(text) = args.next_pos() {
                    operations.push(operation(text)?);
                }
                ContainerAction::Batch { key, operations, session: None }
            }
            "bulk" => {
                let range = args.take_key("range").map(str::parse).transpose()?.map(RangeId);
                let mut operations = Vec::new();
                while let Some(key) = args.next_pos() {
                    let key = PartitionKey::parse_header(key)?;
                    let operation = operation(args.next_pos().ok_or("which operation?")?)?;
                    operations.push(BulkOperation { key, operation });
                }
                ContainerAction::Bulk { range, operations, pace: BulkPace::All }
            }
            name => self.single(name, &mut args)?,
        };
        args.reject_next()?;
        let container = self.container.clone();
        let done = self.execute(Action::Container {
            container,
            intended_rid: None,
            merge_aware: true,
            action,
        });
        let route = |receipt: &Receipt| {
            let route = if tags.contains("route") { route(receipt) } else { String::new() };
            let cost = tags.contains("cost").then(|| format!("{} RU\n", receipt.charge));
            route + &cost.unwrap_or_default()
        };
        match done {
            Ok(Response { reply, receipt }) => {
                Ok(show(reply, tags.contains("system"))? + &route(&receipt))
            }
            Err(Failure { error, receipt }) => {
                Err(format!("{}\n{}", failure(error), route(&receipt)).trim_end().into())
            }
        }
    }

    fn single(
        &self,
        name: &str,
        args: &mut ArgumentConsumer<'_>,
    ) -> Result<ContainerAction, Box<dyn Error>> {
        let (key, conditions) = (key(args)?, self.conditions(args)?);
        let verb = name.strip_prefix("item.").unwrap_or(name);
        if let "create" | "upsert" = verb {
            let body = body(&super::stretched(next_body(args)?));
            return Ok(match verb {
                "create" => ContainerAction::CreateItem { key, body },
                _ => ContainerAction::UpsertItem { key, body, conditions },
            });
        }
        let id = ItemId::parse(args.next_pos().ok_or("which item?")?)?;
        let target = ItemTarget { key, id };
        Ok(match verb {
            "read" => ContainerAction::ReadItem { target, conditions },
            "delete" => ContainerAction::DeleteItem { target, conditions },
            "replace" => {
                let body = body(next_body(args)?);
                ContainerAction::ReplaceItem { target, body, conditions }
            }
            "patch" => {
                let body = body(next_body(args)?);
                ContainerAction::PatchItem { target, body, conditions }
            }
            _ => return Err(format!("unknown command {name}").into()),
        })
    }

    fn in_container(&mut self, action: ContainerAction) -> Result<Response, Box<dyn Error>> {
        let container = self.container.clone();
        let action = Action::Container { container, intended_rid: None, merge_aware: true, action };
        self.execute(action).map_err(|refused| failure(refused.error))
    }

    fn ranges(&mut self) -> Answer {
        let Reply::Ranges { ranges, .. } = self.in_container(ContainerAction::ReadRanges)?.reply
        else {
            return Err("ranges are asked for".into());
        };
        let mut output = String::new();
        for record in ranges {
            let bounds = format!("[{}, {})", record.range.min, record.range.max);
            writeln!(output, "{} {bounds} parents {:?}", record.id, record.parents)?;
        }
        Ok(output)
    }

    /// All items, page after page. Their order is that of their hashes.
    fn items(&mut self, args: &mut ArgumentConsumer<'_>) -> Answer {
        let items_max = args.take_key("max").map_or(Ok(100), str::parse)?;
        let range = args.take_key("range").map(str::parse).transpose()?.map(RangeId);
        let scope = Scope { key: key(args)?, range, ..Scope::default() };
        args.reject_next()?;
        let (mut output, mut after, mut ids) = (String::new(), None, BTreeSet::new());
        loop {
            let scope = scope.clone();
            let action = ContainerAction::ListItems { scope, session: None, after, items_max };
            let Reply::Feed { bodies, rest, .. } = self.in_container(action)?.reply else {
                return Err("a list gives a feed".into());
            };
            assert!(bodies.len() <= items_max, "more than asked for");
            for body in &bodies {
                writeln!(output, "{}", shown(body, false))?;
                assert!(ids.insert(shown(body, true)), "an item came twice");
            }
            match rest {
                Some(Rest::AfterItem(position)) => after = Some(position),
                None => return Ok(output),
                Some(Rest::AfterName(_) | Rest::AfterRows(_)) => {
                    return Err("items are listed by position".into());
                }
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

fn show(reply: Reply, system: bool) -> Answer {
    Ok(match reply {
        Reply::One { kind, body, .. } => show_result(kind, body.as_ref(), system),
        Reply::Batch { results } => {
            results.iter().map(|done| show_result(done.kind, done.body.as_ref(), system)).collect()
        }
        Reply::Bulk { results } => {
            let each = results.into_iter().map(|bulk| match bulk.result {
                Ok(done) => show_result(done.kind, done.body.as_ref(), system),
                Err(error) => format!("{}\n", failure(error)),
            });
            each.collect()
        }
        other @ (Reply::Offer { .. }
        | Reply::Changes { .. }
        | Reply::Feed { .. }
        | Reply::Rows { .. }
        | Reply::QueryPlan { .. }
        | Reply::Ranges { .. }
        | Reply::Statistics { .. }) => {
            return Err(format!("unexpected {other:?}").into());
        }
    })
}

fn route(receipt: &Receipt) -> String {
    let range = receipt.served_by().map_or("nobody".to_owned(), |(range, _)| range.to_string());
    let session = receipt.session().map(|token| token.to_string()).unwrap_or_default();
    let item = receipt.item_lsn.map(|lsn| format!(", item {lsn}")).unwrap_or_default();
    format!("range {range}, session {session}{item}\n")
}
