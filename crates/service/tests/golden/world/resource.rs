//! Commands on databases, containers, users, permissions, scripts and offers.

use std::fmt::Write as _;

use goldenscript::{ArgumentConsumer, Command};
use model::json::Value;
use service::{Action, CatalogueAction, Kind, Migration, Reply, ResourceQuery, Rest, Throughput};

use super::{Answer, World, link, show_feed, value};

impl World {
    pub(super) fn resource_command(&mut self, command: &Command) -> Answer {
        let mut args = command.consume_args();
        let action = match command.name.as_str() {
            "create" => {
                let (parent, kind) = (link(args.next_pos())?, kind(args.next_pos())?);
                let body = value(args.next_pos().map(super::stretched).as_deref())?;
                let throughput = self.throughput(&mut args)?;
                CatalogueAction::Create { parent, kind, body, throughput, offer_type: None }
            }
            "upsert" => {
                let (parent, kind) = (link(args.next_pos())?, kind(args.next_pos())?);
                CatalogueAction::Upsert { parent, kind, body: value(args.next_pos())? }
            }
            "read" => {
                let conditions = self.conditions(&mut args)?;
                CatalogueAction::Read { link: link(args.next_pos())?, conditions }
            }
            "replace" => {
                let conditions = self.conditions(&mut args)?;
                let (link, body) = (link(args.next_pos())?, value(args.next_pos())?);
                CatalogueAction::Replace { link, body, conditions }
            }
            "migrate" => {
                let conditions = self.conditions(&mut args)?;
                let link = link(args.next_pos())?;
                let migration = match args.next_pos() {
                    Some("autoscale") => Migration::ToAutoscale,
                    Some("manual") => Migration::ToManual,
                    other => return Err(format!("migrate to {other:?}?").into()),
                };
                CatalogueAction::MigrateOffer { link, migration, conditions }
            }
            "delete" => {
                let conditions = self.conditions(&mut args)?;
                CatalogueAction::Delete { link: link(args.next_pos())?, conditions }
            }
            "query" => {
                let (parent, kind) = (link(args.next_pos())?, kind(args.next_pos())?);
                let text = args.next_pos().ok_or("which query?")?.to_owned();
                let parameters = match args.take_key("parameters") {
                    Some(text) => value(Some(text))?,
                    None => Value::Null,
                };
                let query = ResourceQuery {
                    text,
                    parameters,
                    after: None,
                    items_max: 1_000,
                    shown: |body| body,
                };
                CatalogueAction::Query { parent, kind, query }
            }
            "list" => return self.list(&mut args),
            name => return Err(format!("unknown command {name}").into()),
        };
        args.reject_next()?;
        self.perform(action)
    }

    fn perform(&mut self, action: CatalogueAction) -> Answer {
        match self.execute(Action::Catalogue(action))?.reply {
            Reply::One { kind, body, .. } => {
                let body = body.map(|body| format!(" {}", String::from_utf8_lossy(&body)));
                Ok(format!("{kind:?}{}\n", body.unwrap_or_default()))
            }
            Reply::Offer { kind, body, status, .. } => {
                let body = body.map(|body| format!(" {}", String::from_utf8_lossy(&body)));
                let pending = if status.pending { ", pending" } else { "" };
                let minimum = status.minimum;
                Ok(format!("{kind:?}, minimum {minimum}{pending}{}\n", body.unwrap_or_default()))
            }
            Reply::Feed { owner_rid, bodies, rest } => {
                Ok(format!("of '{owner_rid}'\n{}", show_feed(&bodies, rest.as_ref(), true)))
            }
            other @ (Reply::Batch { .. }
            | Reply::Bulk { .. }
            | Reply::Changes { .. }
            | Reply::Rows { .. }
            | Reply::QueryPlan { .. }
            | Reply::Ranges { .. }
            | Reply::Statistics { .. }) => Err(format!("unexpected {other:?}").into()),
        }
    }

    /// Lists by name, page after page; a page is a line.
    fn list(&mut self, args: &mut ArgumentConsumer<'_>) -> Answer {
        let (parent, kind) = (link(args.next_pos())?, kind(args.next_pos())?);
        let items_max = args.take_key("max").map_or(Ok(100), str::parse)?;
        args.reject_next()?;
        let (mut output, mut after) = (String::new(), None);
        loop {
            let action = CatalogueAction::List { parent: parent.clone(), kind, after, items_max };
            let Reply::Feed { bodies, rest, .. } = self.execute(Action::Catalogue(action))?.reply
            else {
                return Err("a list gives a feed".into());
            };
            let name = |body: &bytes::Bytes| {
                let value = model::json::parse(body).unwrap();
                value.get("id").and_then(Value::as_str).unwrap_or("?").to_owned()
            };
            let names: Vec<String> = bodies.iter().map(name).collect();
            writeln!(output, "{}", names.join(" "))?;
            match rest {
                Some(Rest::AfterName(name)) => after = Some(name),
                None => return Ok(output),
                Some(Rest::AfterItem(_) | Rest::AfterRows(_)) => {
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
