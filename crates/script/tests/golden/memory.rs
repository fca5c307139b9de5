//! A host in memory: documents of one logical partition, with staged writes.
//!
//! It is as simple as a host can be, and strict about what hosts are asked: a key of its
//! own, etags, pages. Time stands still and randomness counts.

use std::collections::BTreeMap;

use query::{Context, Parameters, Query};
use script::{
    ContainerLinks, Environment, FeedPage, FeedSource, Host, HostReason, HostRefusal, IndexAction,
    ItemLink, Question, Read, Surroundings,
};
use serde_json::{Value, json};

/// The moment at which all scripts of tests run: 2026-11-18T13:10:26.500Z.
pub(crate) const NOW_MS: i64 = 1_795_007_426_500;

#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// The value of `/pk` that documents must have.
    pub key: Value,
    pub documents: BTreeMap<String, Value>,
    /// What the script wrote, in order.
    pub staged: Vec<String>,
    /// Questions whether to go on until the answer is no.
    pub patience: Option<u64>,
    /// Operations until the answer is that no more are accepted.
    pub accepts: u32,
    /// Where it panics, for tests of what surrounds it.
    pub breaks: Option<Breaks>,
    next: u64,
    random: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(dead_code, reason = "most tests need a host that works")]
pub(crate) enum Breaks {
    Clock,
    Deadline,
}

impl Default for Memory {
    fn default() -> Self {
        Memory {
            key: json!("a"),
            documents: BTreeMap::new(),
            staged: Vec::new(),
            patience: None,
            accepts: u32::MAX,
            breaks: None,
            next: 1,
            random: 0,
        }
    }
}

pub(crate) fn surroundings() -> Surroundings {
    Surroundings {
        links: ContainerLinks {
            of_rids: "dbs/Aa==/colls/AaBb=/".to_owned(),
            of_names: "dbs/shop/colls/orders".to_owned(),
        },
        quota_max: "documentSize=10240;".to_owned(),
        quota_usage: "documentSize=1;".to_owned(),
    }
}

fn refuse<T>(reason: HostReason, message: &str) -> Result<T, HostRefusal> {
    Err(HostRefusal { reason, message: message.to_owned() })
}

impl Memory {
    /// Stores a document as if it had been there before.
    pub(crate) fn put(&mut self, mut document: Value) -> Result<Value, HostRefusal> {
        let Some(id) = document.get("id").and_then(Value::as_str).map(str::to_owned) else {
            return refuse(
                HostReason::BadRequest,
                "The input content is invalid because 'id' is missing.",
            );
        };
        if document.get("pk") != Some(&self.key) {
            return refuse(HostReason::BadRequest, "The key is not that of the transaction.");
        }
        let rid = match self.documents.get(&id) {
            Some(old) => old["_rid"].clone(),
            None => json!(format!("r{}=", self.next)),
        };
        document["_self"] = json!(format!(
            "{}docs/{}/",
            surroundings().links.of_rids,
            rid.as_str().expect("a rid is text")
        ));
        document["_rid"] = rid;
        document["_etag"] = json!(format!("e{}", self.next));
        self.next += 1;
        self.documents.insert(id, document.clone());
        Ok(document)
    }

    fn id_of(&self, item: &ItemLink) -> Result<String, HostRefusal> {
        let found = self.documents.iter().find(|(id, document)| match item {
            ItemLink::Id(wanted) => *id == wanted,
            ItemLink::Rid(rid) => document["_rid"] == json!(rid),
        });
        match found {
            Some((id, _)) => Ok(id.clone()),
            None => refuse(HostReason::NotFound, "Resource Not Found."),
        }
    }

    fn checked(&self, item: &ItemLink, only_if: Option<&str>) -> Result<String, HostRefusal> {
        let id = self.id_of(item)?;
        match only_if {
            Some(etag) if self.documents[&id]["_etag"] != json!(etag) => {
                refuse(HostReason::PreconditionFailed, "The etag has changed.")
            }
            _ => Ok(id),
        }
    }

    fn write(&mut self, verb: &str, body: &str, index: IndexAction) -> Result<String, HostRefusal> {
        let Ok(document) = serde_json::from_str(body) else {
            return refuse(HostReason::BadRequest, "The body is not JSON.");
        };
        let written = self.put(document)?.to_string();
        let note =
            if index == IndexAction::Default { String::new() } else { format!(" {index:?}") };
        self.staged.push(format!("{verb}{note} {body}"));
        Ok(written)
    }

    fn rows(&self, source: &FeedSource<'_>) -> Result<Vec<String>, HostRefusal> {
        let texts: Vec<String> = self.documents.values().map(Value::to_string).collect();
        let (text, parameters) = match source {
            FeedSource::All => return Ok(texts),
            FeedSource::Text(text) => ((*text).to_owned(), Parameters::default()),
            FeedSource::Json(json) => question_of(json)?,
        };
        let bad = |error: query::QueryError| HostRefusal {
            reason: HostReason::BadRequest,
            message: error.to_string(),
        };
        let bound = Query::parse(&text).map_err(bad)?;
        let bound = bound.bind_in(&parameters, &Context::default().into()).map_err(bad)?;
        let raw = texts.iter().map(|text| model::json::Raw::trusted(text));
        let rows = bound.execute(raw).map_err(bad)?;
        Ok(rows.iter().map(ToString::to_string).collect())
    }
}

fn question_of(json: &str) -> Result<(String, Parameters), HostRefusal> {
    let question: Value = serde_json::from_str(json).expect("our JavaScript wrote it");
    let Some(text) = question["query"].as_str() else {
        return refuse(HostReason::BadRequest, "The query has no text.");
    };
    let list = question.get("parameters").cloned().unwrap_or(json!([]));
    let list = model::json::parse(list.to_string().as_bytes()).expect("JSON is JSON");
    let parameters = Parameters::from_list(&list).map_err(|error| HostRefusal {
        reason: HostReason::BadRequest,
        message: error.to_string(),
    })?;
    Ok((text.to_owned(), parameters))
}

impl Environment for Memory {
    fn now_ms(&mut self) -> i64 {
        assert_ne!(self.breaks, Some(Breaks::Clock), "asked to panic");
        NOW_MS
    }

    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        self.random
    }

    fn is_out_of_time(&mut self) -> bool {
        assert_ne!(self.breaks, Some(Breaks::Deadline), "asked to panic");
        let Some(patience) = &mut self.patience else { return false };
        *patience = patience.saturating_sub(1);
        *patience == 0
    }
}

impl Host for Memory {
    fn accepts(&mut self) -> bool {
        self.accepts = self.accepts.saturating_sub(1);
        self.accepts > 0
    }

    fn read(&mut self, item: &ItemLink, unless: Option<&str>) -> Result<Read, HostRefusal> {
        let document = &self.documents[&self.id_of(item)?];
        let same = unless.is_some_and(|etag| document["_etag"] == json!(etag));
        Ok(if same { Read::NotModified } else { Read::Document(document.to_string()) })
    }

    fn create(&mut self, body: &str, index: IndexAction) -> Result<String, HostRefusal> {
        let document: Option<Value> = serde_json::from_str(body).ok();
        let id = document.as_ref().and_then(|document| document["id"].as_str());
        if id.is_some_and(|id| self.documents.contains_key(id)) {
            return refuse(
                HostReason::Conflict,
                "Entity with the specified id already exists in the system.",
            );
        }
        self.write("create", body, index)
    }

    fn upsert(&mut self, body: &str, index: IndexAction) -> Result<String, HostRefusal> {
        self.write("upsert", body, index)
    }

    fn replace(
        &mut self,
        item: &ItemLink,
        body: &str,
        only_if: Option<&str>,
        index: IndexAction,
    ) -> Result<String, HostRefusal> {
        let id = self.checked(item, only_if)?;
        let document: Value = serde_json::from_str(body).unwrap_or_default();
        if document["id"] != json!(id) {
            return refuse(HostReason::BadRequest, "The id is another one.");
        }
        self.write("replace", body, index)
    }

    fn delete(&mut self, item: &ItemLink, only_if: Option<&str>) -> Result<(), HostRefusal> {
        let id = self.checked(item, only_if)?;
        self.documents.remove(&id);
        self.staged.push(format!("delete {id}"));
        Ok(())
    }

    fn query(&mut self, question: &Question<'_>) -> Result<FeedPage, HostRefusal> {
        let rows = self.rows(&question.source)?;
        let from: usize = question.continuation.map_or(Ok(0), str::parse).unwrap_or(usize::MAX);
        let count = question.items_max as usize;
        let documents = rows.iter().skip(from).take(count).cloned().collect();
        let rest = rows.len().saturating_sub(from) > count;
        Ok(FeedPage { documents, continuation: rest.then(|| (from + count).to_string()) })
    }
}
