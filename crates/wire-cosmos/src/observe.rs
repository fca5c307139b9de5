//! Observability of requests: a context that every log line about one begins with, figures
//! for the observer of the gateway, and a line about each slow one.
//!
//! Names of verbs and status codes are few and our own, so figures can be kept for each
//! pair. Containers have names that clients choose, in any number: those are in the context
//! only.

use std::fmt;
use std::time::Duration;

use http::{Method, StatusCode};
use tracing::field::display;

use crate::gateway::HttpHead;
use crate::headers::{Headers, IS_BATCH, IS_QUERY_PLAN, IS_UPSERT};
use crate::reply::Answer;
use crate::route::{Path, Route};
use crate::{changes, query};

/// Receives every answer.
pub trait Observer: Send + Sync + fmt::Debug {
    /// Called once the answer is ready; the time does not include receiving the request's
    /// body or sending the answer.
    fn answered(&self, verb: VerbLabel, status: StatusCode, elapsed: Duration);
}

/// Ignores them.
#[derive(Debug)]
pub(crate) struct Unobserved;

impl Observer for Unobserved {
    fn answered(&self, _verb: VerbLabel, _status: StatusCode, _elapsed: Duration) {}
}

/// What a request is about to do, judging by its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VerbLabel {
    ReadAccount,
    ReadAddresses,
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
    ExecuteProcedure,
    /// Not one of the verbs, or refused before it could be determined.
    Other,
}

impl VerbLabel {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            VerbLabel::ReadAccount => "read_account",
            VerbLabel::ReadAddresses => "read_addresses",
            VerbLabel::CreateItem => "create_item",
            VerbLabel::UpsertItem => "upsert_item",
            VerbLabel::ReadItem => "read_item",
            VerbLabel::ReplaceItem => "replace_item",
            VerbLabel::PatchItem => "patch_item",
            VerbLabel::DeleteItem => "delete_item",
            VerbLabel::Batch => "batch",
            VerbLabel::ListItems => "list_items",
            VerbLabel::ListChanges => "list_changes",
            VerbLabel::QueryItems => "query_items",
            VerbLabel::PlanQuery => "plan_query",
            VerbLabel::ReadRanges => "read_ranges",
            VerbLabel::CreateResource => "create_resource",
            VerbLabel::ReadResource => "read_resource",
            VerbLabel::ReplaceResource => "replace_resource",
            VerbLabel::DeleteResource => "delete_resource",
            VerbLabel::ListResources => "list_resources",
            VerbLabel::QueryResources => "query_resources",
            VerbLabel::ExecuteProcedure => "execute_procedure",
            VerbLabel::Other => "other",
        }
    }

    pub(crate) fn of(method: &Method, route: &Route, headers: Headers<'_>) -> VerbLabel {
        match (route, method) {
            (Route::Account, &Method::GET) => VerbLabel::ReadAccount,
            (Route::Addresses { .. }, &Method::GET) => VerbLabel::ReadAddresses,
            (Route::Items { .. }, _) => VerbLabel::of_items(method, headers),
            (Route::Item { .. }, &Method::GET) => VerbLabel::ReadItem,
            (Route::Item { .. }, &Method::PUT) => VerbLabel::ReplaceItem,
            (Route::Item { .. }, &Method::PATCH) => VerbLabel::PatchItem,
            (Route::Item { .. }, &Method::DELETE) => VerbLabel::DeleteItem,
            (Route::Ranges { .. }, &Method::GET) => VerbLabel::ReadRanges,
            (Route::Feed { .. }, &Method::GET) => VerbLabel::ListResources,
            (Route::Feed { .. }, &Method::POST) if query::is_query(headers) => {
                VerbLabel::QueryResources
            }
            (Route::Feed { .. }, &Method::POST) => VerbLabel::CreateResource,
            (Route::Resource { .. }, &Method::GET) => VerbLabel::ReadResource,
            // Nothing else is posted to one resource.
            (Route::Resource { .. }, &Method::POST) => VerbLabel::ExecuteProcedure,
            (Route::Resource { .. }, &Method::PUT) => VerbLabel::ReplaceResource,
            (Route::Resource { .. }, &Method::DELETE) => VerbLabel::DeleteResource,
            _ => VerbLabel::Other,
        }
    }

    /// By the same rules as [`crate::items::feed`].
    fn of_items(method: &Method, headers: Headers<'_>) -> VerbLabel {
        match *method {
            Method::GET if headers.text(changes::KIND).is_some() => VerbLabel::ListChanges,
            Method::GET => VerbLabel::ListItems,
            Method::POST if headers.flag(IS_QUERY_PLAN) => VerbLabel::PlanQuery,
            Method::POST if headers.flag(IS_BATCH) => VerbLabel::Batch,
            Method::POST if query::is_query(headers) => VerbLabel::QueryItems,
            Method::POST if headers.flag(IS_UPSERT) => VerbLabel::UpsertItem,
            Method::POST => VerbLabel::CreateItem,
            _ => VerbLabel::Other,
        }
    }
}

/// The prefix of every log line about a request, formatted only when there is such a line.
#[derive(Debug)]
pub(crate) struct RequestContext {
    pub(crate) head: HttpHead,
    pub(crate) activity_id: String,
    pub(crate) verb: VerbLabel,
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

/// Whether a request that took this long is logged.
pub(crate) fn is_logged(elapsed: Duration, slow_after: Option<Duration>) -> bool {
    is_slow(elapsed, slow_after) || tracing::enabled!(tracing::Level::DEBUG)
}

fn is_slow(elapsed: Duration, slow_after: Option<Duration>) -> bool {
    slow_after.is_some_and(|slow| elapsed >= slow)
}

/// Logs the result of a request. To be called in its context.
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
                RequestContext { head, activity_id: "a-1".to_owned(), verb: VerbLabel::ReadItem };
            context.to_string()
        };
        let named = "request{activity_id=\"a-1\" verb=\"read_item\" container=dbs/d/colls/c}";
        assert_eq!(context("/dbs/d/colls/c/docs/1"), named);
        assert_eq!(context("/dbs/%FF"), "request{activity_id=\"a-1\" verb=\"read_item\"}");
    }
}
