//! What is told about requests besides their answers: a context that every line of the log
//! about one begins with, figures for whoever observes the gateway, and a line about each
//! that took long.
//!
//! Names of verbs and status codes are few and our own, so figures can be kept for each
//! pair. Containers have names that clients choose, as many as they like: those are in the
//! context only.

use std::fmt;
use std::time::Duration;

use http::{Method, StatusCode};
use tracing::field::display;

use crate::gateway::HttpHead;
use crate::headers::{Headers, IS_BATCH, IS_QUERY_PLAN, IS_UPSERT};
use crate::reply::Answer;
use crate::route::{Path, Route};
use crate::{changes, query};

/// Whoever wants to know of every answer.
pub trait Observer: Send + Sync + fmt::Debug {
    /// Called once the answer is there; the time does not include the way of the request's
    /// body or of the answer.
    fn answered(&self, verb: Verb, status: StatusCode, elapsed: Duration);
}

/// Nobody does.
#[derive(Debug)]
pub(crate) struct Unobserved;

impl Observer for Unobserved {
    fn answered(&self, _verb: Verb, _status: StatusCode, _elapsed: Duration) {}
}

/// What a request is about to do, as far as its head says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    ReadAccount,
    CreateItem,
    UpsertItem,
    ReadItem,
    ReplaceItem,
    PatchItem,
    DeleteItem,
    Batch,
    ListItems,
    ListChanges,
    QueryItems,
    PlanQuery,
    ReadRanges,
    CreateResource,
    ReadResource,
    ReplaceResource,
    DeleteResource,
    ListResources,
    QueryResources,
    /// Nothing that is done here, or nothing that can be told before it is refused.
    Other,
}

impl Verb {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Verb::ReadAccount => "read_account",
            Verb::CreateItem => "create_item",
            Verb::UpsertItem => "upsert_item",
            Verb::ReadItem => "read_item",
            Verb::ReplaceItem => "replace_item",
            Verb::PatchItem => "patch_item",
            Verb::DeleteItem => "delete_item",
            Verb::Batch => "batch",
            Verb::ListItems => "list_items",
            Verb::ListChanges => "list_changes",
            Verb::QueryItems => "query_items",
            Verb::PlanQuery => "plan_query",
            Verb::ReadRanges => "read_ranges",
            Verb::CreateResource => "create_resource",
            Verb::ReadResource => "read_resource",
            Verb::ReplaceResource => "replace_resource",
            Verb::DeleteResource => "delete_resource",
            Verb::ListResources => "list_resources",
            Verb::QueryResources => "query_resources",
            Verb::Other => "other",
        }
    }

    pub(crate) fn of(method: &Method, route: &Route, headers: Headers<'_>) -> Verb {
        match (route, method) {
            (Route::Account, &Method::GET) => Verb::ReadAccount,
            (Route::Items { .. }, _) => Verb::of_items(method, headers),
            (Route::Item { .. }, &Method::GET) => Verb::ReadItem,
            (Route::Item { .. }, &Method::PUT) => Verb::ReplaceItem,
            (Route::Item { .. }, &Method::PATCH) => Verb::PatchItem,
            (Route::Item { .. }, &Method::DELETE) => Verb::DeleteItem,
            (Route::Ranges { .. }, &Method::GET) => Verb::ReadRanges,
            (Route::Feed { .. }, &Method::GET) => Verb::ListResources,
            (Route::Feed { .. }, &Method::POST) if query::is_query(headers) => Verb::QueryResources,
            (Route::Feed { .. }, &Method::POST) => Verb::CreateResource,
            (Route::Resource { .. }, &Method::GET) => Verb::ReadResource,
            (Route::Resource { .. }, &Method::PUT) => Verb::ReplaceResource,
            (Route::Resource { .. }, &Method::DELETE) => Verb::DeleteResource,
            _ => Verb::Other,
        }
    }

    /// As [`crate::items::feed`] tells requests apart.
    fn of_items(method: &Method, headers: Headers<'_>) -> Verb {
        match *method {
            Method::GET if headers.text(changes::KIND).is_some() => Verb::ListChanges,
            Method::GET => Verb::ListItems,
            Method::POST if headers.flag(IS_QUERY_PLAN) => Verb::PlanQuery,
            Method::POST if headers.flag(IS_BATCH) => Verb::Batch,
            Method::POST if query::is_query(headers) => Verb::QueryItems,
            Method::POST if headers.flag(IS_UPSERT) => Verb::UpsertItem,
            Method::POST => Verb::CreateItem,
            _ => Verb::Other,
        }
    }
}

/// What every line of the log about a request begins with, put into words only when there
/// is such a line.
#[derive(Debug)]
pub(crate) struct RequestContext {
    pub(crate) head: HttpHead,
    pub(crate) activity_id: String,
    pub(crate) verb: Verb,
}

impl fmt::Display for RequestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RequestContext { head, activity_id, verb } = self;
        write!(f, "request{{activity_id=\"{activity_id}\" verb=\"{}\"", verb.name())?;
        let route = Path::parse(&head.path, head.query.as_deref()).and_then(|path| path.route());
        if let Some(container) = route.as_ref().ok().and_then(Route::container) {
            write!(f, " container={container}")?;
        }
        f.write_str("}")
    }
}

/// Whether there is a line about a request that took so long.
pub(crate) fn is_logged(elapsed: Duration, slow_after: Option<Duration>) -> bool {
    is_slow(elapsed, slow_after) || tracing::enabled!(tracing::Level::DEBUG)
}

fn is_slow(elapsed: Duration, slow_after: Option<Duration>) -> bool {
    slow_after.is_some_and(|slow| elapsed >= slow)
}

/// Writes down what a request came to. To be called in its context.
pub(crate) fn log(answer: &Answer, elapsed: Duration, slow_after: Option<Duration>) {
    let (partition, charge) = (answer.partition().map(display), display(answer.charge()));
    let (status, elapsed_ms) = (answer.status().as_u16(), elapsed.as_secs_f64() * 1_000.0);
    if is_slow(elapsed, slow_after) {
        let plan = answer.plan();
        tracing::warn!(partition, charge, status, elapsed_ms, plan, "slow request");
    } else {
        tracing::debug!(partition, charge, status, elapsed_ms, "answered");
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    #[test]
    fn a_line_names_the_request_and_its_container() {
        let context = |path: &str| {
            let (path, headers) = (path.to_owned(), HeaderMap::new());
            let head = HttpHead { method: Method::GET, path, query: None, headers, scheme: "http" };
            let context =
                RequestContext { head, activity_id: "a-1".to_owned(), verb: Verb::ReadItem };
            context.to_string()
        };
        let named = "request{activity_id=\"a-1\" verb=\"read_item\" container=dbs/d/colls/c}";
        assert_eq!(context("/dbs/d/colls/c/docs/1"), named);
        assert_eq!(context("/dbs/%FF"), "request{activity_id=\"a-1\" verb=\"read_item\"}");
    }
}
