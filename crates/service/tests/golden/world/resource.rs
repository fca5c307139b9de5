//! Commands on databases, containers, users, permissions, scripts and offers.

use std::fmt::Write as _;

use goldenscript::{ArgumentConsumer, Command};
use model::json::Value;
use service::{
    Feed, Kind, ListResources, Migration, QueryResources, ResourceAction, ResourceReply,
    ResourceRest, Throughput,
};

use super::{Answer, World, link, show_feed, value};

impl World {
    pub(super) fn resource_command(&mut self, command: &Command) -> Answer {
        let mut args = command.consume_args();
        let action = match command.name.as_str() {
            "create" => {
                let (parent, kind) = (link(args.next_pos())?, kind(args.next_pos())?);
                let body = value(args.next_pos().map(super::stretched).as_deref())?;
                let throughput = self.throughput(&mut args)?;
                ResourceAction::Create { parent, kind, body, throughput, offer_type: None }
            }
            "upsert" => {
                let (parent, kind) = (link(args.next_pos())?, kind(args.next_pos())?);
                ResourceAction::Upsert { parent, kind, body: value(args.next_pos())? }
            }
            "read" => {
                let conditions = self.conditions(&mut args)?;
                ResourceAction::Read { link: link(args.next_pos())?, conditions }
            }
            "replace" => {
                let conditions = self.conditions(&mut args)?;
                let (link, body) = (link(args.next_pos())?, value(args.next_pos())?);
                ResourceAction::Replace { link, body, conditions }
            }
            "migrate" => {
                let conditions = self.conditions(&mut args)?;
                let link = link(args.next_pos())?;
                let migration = match args.next_pos() {
                    Some("autoscale") => Migration::ToAutoscale,
                    Some("manual") => Migration::ToManual,
                    other => return Err(format!("migrate to {other:?}?").into()),
                };
                ResourceAction::MigrateOffer { link, migration, conditions }
            }
            "delete" => {
                let conditions = self.conditions(&mut args)?;
                ResourceAction::Delete { link: link(args.next_pos())?, conditions }
            }
            "query" => {
                let (parent, kind) = (link(args.next_pos())?, kind(args.next_pos())?);
                let text = args.next_pos().ok_or("which query?")?.to_owned();
                let parameters = match args.take_key("parameters") {
                    Some(text) => value(Some(text))?,
                    None => Value::Null,
                };
                args.reject_next()?;
                let (after, items_max) = (None, 1_000);
                let shown = |body| body;
                let query =
                    QueryResources { parent, kind, text, parameters, after, items_max, shown };
                let Feed { owner_rid, bodies, rest } = self.execute(query)?.reply;
                return Ok(format!(
                    "of '{owner_rid}'\n{}",
                    show_feed(&bodies, rest.as_ref(), true)
                ));
            }
            "list" => return self.list(&mut args),
            name => return Err(format!("unknown command {name}").into()),
        };
        args.reject_next()?;
        self.perform(action)
    }

    fn perform(&mut self, action: ResourceAction) -> Answer {
        let ResourceReply { kind, etag, body, offer } = self.execute(action)?.reply;
        if let Some(etag) = etag {
            self.last_etag = Some(etag.as_str().to_owned());
        }
        let body = body.map(|body| format!(" {}", String::from_utf8_lossy(&body)));
        let offer = offer.map(|offer| {
            let pending = if offer.pending { ", pending" } else { "" };
            format!(", minimum {}{pending}", offer.minimum)
        });
        Ok(format!("{kind:?}{}{}\n", offer.unwrap_or_default(), body.unwrap_or_default()))
    }

    /// Lists by name, page after page; a page is a line.
    fn list(&mut self, args: &mut ArgumentConsumer<'_>) -> Answer {
        let (parent, kind) = (link(args.next_pos())?, kind(args.next_pos())?);
        let items_max = args.take_key("max").map_or(Ok(100), str::parse)?;
        args.reject_next()?;
        let (mut output, mut after) = (String::new(), None);
        loop {
            let list = ListResources { parent: parent.clone(), kind, after, items_max };
            let Feed { bodies, rest, .. } = self.execute(list)?.reply;
            let name = |body: &bytes::Bytes| {
                let value = model::json::parse(body).unwrap();
                value.get("id").and_then(Value::as_str).unwrap_or("?").to_owned()
            };
            let names: Vec<String> = bodies.iter().map(name).collect();
            writeln!(output, "{}", names.join(" "))?;
            match rest {
                Some(ResourceRest::AfterName(name)) => after = Some(name),
                None => return Ok(output),
                Some(ResourceRest::AfterRows(_)) => {
                    return Err("resources are listed by name".into());
                }
            }
        }
    }

    fn throughput(
        &self,
        args: &mut ArgumentConsumer<'_>,
    ) -> Result<Option<Throughput>, Box<dyn std::error::Error>> {
        if let Some(max) = args.take_key("auto") {
            return Ok(Some(Throughput::Autoscale { max: max.parse()?, increment_percent: None }));
        }
        Ok(match args.take_key("ru") {
            Some("any") => Some(Throughput::Manual(self.ru)),
            Some(rate) => Some(Throughput::Manual(rate.parse()?)),
            None => None,
        })
    }
}

fn kind(segment: Option<&str>) -> Result<Kind, Box<dyn std::error::Error>> {
    let kinds = [
        Kind::Database,
        Kind::Container,
        Kind::User,
        Kind::Permission,
        Kind::ClientEncryptionKey,
        Kind::StoredProcedure,
        Kind::Trigger,
        Kind::UserDefinedFunction,
        Kind::Offer,
    ];
    let found = kinds.into_iter().find(|kind| Some(kind.segment()) == segment);
    found.ok_or_else(|| format!("{segment:?} is not a kind").into())
}
