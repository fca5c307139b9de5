//! The paths that belong to the server and to no protocol.
//!
//! Three of them are open to everybody: whether the process lives, whether it can
//! serve, and the certificate to trust. All others ask for the account key.

use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use serde_json::json;
use storage::StorageError;
use subtle::ConstantTimeEq as _;

use crate::http::service::{Answer, HttpService, json, problem};
use crate::layout::Order;
use crate::settings::Secret;

/// Where the official emulators have it.
const CERTIFICATE_PATH: &str = "/_explorer/emulator.pem";
const ROOT: &str = "/_orrery";

/// What these paths need to know.
#[derive(Debug)]
pub(crate) struct Admin {
    pub(crate) key: Secret,
    pub(crate) certificate_pem: Bytes,
}

/// What to do with a request.
#[derive(Debug)]
pub(crate) enum Route {
    /// This is the answer.
    Answered(Answer),
    /// How containers are used, which has to be read first.
    Metrics,
    /// The service has to be asked, and its body may say what for.
    Order(Order),
    /// It belongs to a protocol.
    Protocol,
}

/// Finds out whether a request is for us. Paths are compared as they were sent:
/// another spelling is another path, and the protocols want a signature for it.
pub(crate) fn route<B>(http: &HttpService, request: &Request<B>) -> Route {
    let path = request.uri().path();
    if path == CERTIFICATE_PATH {
        return Route::Answered(get_only(request, || certificate(http)));
    }
    let Some(below) = path.strip_prefix(ROOT) else { return Route::Protocol };
    Route::Answered(match below {
        "/health" => get_only(request, || json(StatusCode::OK, &json!({ "status": "alive" }))),
        "/ready" => get_only(request, || ready(http)),
        _ if !below.is_empty() && !below.starts_with('/') => return Route::Protocol,
        _ if !bears(request.headers(), &http.admin.key) => unauthorised(),
        "/version" => get_only(request, version),
        "/counters" => get_only(request, || counters(http)),
        "/metrics" if reads(request) => return Route::Metrics,
        "/metrics" => not_read(),
        _ => match Order::at(below, request.method(), request.uri().query()) {
            Ok(Some(order)) => return Route::Order(order),
            Ok(None) => {
                problem(StatusCode::NOT_FOUND, "NotFound", "There is nothing at this path.")
            }
            Err(allowed) => not_allowed(&format!("This path takes {allowed}."), allowed),
        },
    })
}

fn get_only<B>(request: &Request<B>, answer: impl FnOnce() -> Answer) -> Answer {
    if reads(request) { answer() } else { not_read() }
}

fn reads<B>(request: &Request<B>) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
}

fn not_read() -> Answer {
    not_allowed("This path can only be read.", "GET, HEAD")
}

fn not_allowed(message: &str, allowed: &'static str) -> Answer {
    let mut refusal = problem(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message);
    refusal.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    refusal
}

fn certificate(http: &HttpService) -> Answer {
    let mut answer = Response::new(http.admin.certificate_pem.clone());
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-pem-file"));
    answer
}

pub(crate) fn ready(http: &HttpService) -> Answer {
    let not_ready = |status: &str, message: &str| {
        json(StatusCode::SERVICE_UNAVAILABLE, &json!({ "status": status, "message": message }))
    };
    let Some(store) = http.open.get().map(|open| open.service.store()) else {
        return not_ready("opening", "The data is being opened.");
    };
    match (store.health(), store.loss()) {
        (Ok(()), None) => json(StatusCode::OK, &json!({ "status": "ready" })),
        (Ok(()), Some(loss)) => {
            json(StatusCode::OK, &json!({ "status": "ready", "lost": loss.to_string() }))
        }
        (Err(error @ StorageError::Full { .. }), _) => not_ready("full", &error.to_string()),
        (Err(error), _) => not_ready("failed", &error.to_string()),
    }
}

fn version() -> Answer {
    json(StatusCode::OK, &json!({ "name": "orrery", "version": env!("CARGO_PKG_VERSION") }))
}

fn counters(http: &HttpService) -> Answer {
    let mut body = http.counters.to_json();
    body["memory"] = http.memory().to_json();
    if let Some(open) = http.open.get() {
        let store = open.service.store().counters();
        body["store"] = json!({
            "batchesSubmitted": store.batches_submitted,
            "batchesDurable": store.batches_durable,
            "commits": store.commits,
            "syncs": store.syncs,
            "keys": store.keys,
            "bytes": store.bytes,
        });
    }
    json(StatusCode::OK, &body)
}

/// Whether the key stands in the request, compared in constant time.
fn bears(headers: &HeaderMap, key: &Secret) -> bool {
    let given = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some((scheme, token)) = given.and_then(|value| value.split_once(' ')) else {
        return false;
    };
    let right: bool = token.trim().as_bytes().ct_eq(key.reveal().as_bytes()).into();
    scheme.eq_ignore_ascii_case("bearer") && right
}

fn unauthorised() -> Answer {
    let message = "This path takes the account key as a bearer token.";
    let mut answer = problem(StatusCode::UNAUTHORIZED, "Unauthorized", message);
    answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    answer
}
