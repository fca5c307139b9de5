//! Commands of transcripts about scripts, which have the database `d` with the container `c`.

use std::error::Error;
use std::fmt::Write as _;

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use crate::transcripts::refusal;
use crate::world::World;

const CONTAINER: &str = "/dbs/d/colls/c";

impl World {
    /// `script sprocs|triggers|udfs NAME TEXT [type=Pre operation=Create]` stores a script,
    /// `run NAME [ARGUMENTS] [key=JSON] [header=value …]` runs a procedure, and shows a
    /// failure only if nothing was changed by it; `items` lists all items.
    pub(crate) fn run_procedure_command(
        &mut self,
        command: &goldenscript::Command,
    ) -> Result<Option<String>, Box<dyn Error>> {
        let mut args = command.consume_args();
        match command.name.as_str() {
            "script" => {
                let kind = args.next_pos().ok_or("sprocs, triggers or udfs")?.to_owned();
                let id = args.next_pos().ok_or("a name")?.to_owned();
                let mut body = json!({"id": id, "body": args.next_pos().ok_or("a text")?});
                for (property, name) in [("triggerType", "type"), ("triggerOperation", "operation")]
                {
                    if let Some(value) = args.take_key(name) {
                        body[property] = Value::from(value);
                    }
                }
                args.reject_next()?;
                let upsert = [("x-ms-documentdb-is-upsert", "true")];
                let path = format!("{CONTAINER}/{kind}");
                let answer = self.send(Method::POST, &path, body.to_string(), &upsert);
                if !answer.status().is_success() {
                    return Err(refusal(&answer).into());
                }
                Ok(Some(String::new()))
            }
            "run" => {
                let name = self.fill(args.next_pos().ok_or("a name")?);
                let arguments = args.next_pos().map_or(String::new(), |text| self.fill(text));
                let key = args.take_key("key").unwrap_or(r#"["a"]"#).to_owned();
                let mut headers = vec![("x-ms-documentdb-partitionkey".to_owned(), key)];
                headers.retain(|(_, key)| key != "none");
                while let Some((name, value)) = args.next_key() {
                    headers.push((name.to_owned(), self.fill(value)));
                }
                args.reject_next()?;
                Ok(Some(self.run_procedure(&name, &arguments, &headers)?))
            }
            "items" => {
                args.reject_next()?;
                Ok(Some(self.items()))
            }
            _ => Ok(None),
        }
    }

    fn run_procedure(
        &self,
        name: &str,
        arguments: &str,
        headers: &[(String, String)],
    ) -> Result<String, Box<dyn Error>> {
        let path = format!("{CONTAINER}/sprocs/{name}");
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let before = self.items_with_etags();
        let answer = self.send(Method::POST, &path, arguments, &headers);
        let log = answer.headers().get("x-ms-documentdb-script-log-results");
        let log = log.map(|log| format!("log: {}\n", log.to_str().unwrap()));
        if answer.status().is_success() {
            return Ok(format!("{}{}", log.unwrap_or_default(), succeeded(&answer)));
        }
        if self.items_with_etags() != before {
            return Err(format!("a script failed and changed something: {answer:?}").into());
        }
        Ok(format!("{}{}", log.unwrap_or_default(), refusal(&answer)))
    }

    fn items(&self) -> String {
        let mut out = String::new();
        for mut item in self.feed() {
            let own = item.as_object_mut().unwrap();
            own.retain(|name, _| !name.starts_with('_'));
            writeln!(out, "{item}").unwrap();
        }
        out
    }

    fn items_with_etags(&self) -> String {
        self.feed().iter().map(|item| format!("{item}\n")).collect()
    }

    fn feed(&self) -> Vec<Value> {
        let headers = [("x-ms-max-item-count", "1000")];
        let answer = self.send(Method::GET, &format!("{CONTAINER}/docs"), "", &headers);
        let mut feed: Value = serde_json::from_slice(answer.body()).unwrap();
        feed["Documents"].as_array_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// Status, charge, session and body; a long one by its length.
fn succeeded(answer: &http::Response<Bytes>) -> String {
    const LONG: usize = 2_000;
    let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
    let body = String::from_utf8_lossy(answer.body());
    let body = match body.len() {
        ..LONG => body.into_owned(),
        bytes => format!("({bytes} bytes)"),
    };
    let (charge, token) = (header("x-ms-request-charge"), header("x-ms-session-token"));
    let charge: f64 = charge.parse().unwrap();
    format!("{} {charge:.2} RU {token} {body}\n", answer.status().as_u16())
}
