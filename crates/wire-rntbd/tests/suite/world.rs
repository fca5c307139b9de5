//! A gateway in front of a small database, and requests signed as SDKs sign them.
//!
//! The signing is implemented again here, so that the server's reading of the rule is checked
//! against a second one.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, Mac};
use model::limits::Limits;
use protocol::auth::EMULATOR_KEY;
use runtime::{Runtime, SimulatedClock};
use service::identity::{AccountKey, AccountKeyKind, AccountKeys};
use service::{Kind, Link, Principal, Request, ResourceAction, Service};
use sha2::Sha256;
use wire_rntbd::codec::{
    FrameWriter, Guid, Known, OperationType, ResourceType, ResponseHead, TokenType, TokenValue,
    request, response,
};
use wire_rntbd::{DirectAnswer, DirectConfig, DirectGateway};

/// A key that may only read.
pub(crate) const READ_KEY: &str = "cmVhZC1vbmx5LWtleS1vZi10aGUtdGVzdHM=";
/// A key that is not the account's.
pub(crate) const WRONG_KEY: &str = "d3Jvbmcta2V5LXdyb25nLWtleS13cm9uZw==";

/// What a client names each request by, and the id that its answer has to have.
const ACTIVITY: Guid = Guid([5; 16]);
const REQUEST_ID: u32 = 7;

pub(crate) struct World {
    pub(crate) gateway: DirectGateway,
    service: Arc<Service>,
    runtime: Runtime,
    tokio: tokio::runtime::Runtime,
}

/// A request before it is a frame.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) operation: OperationType,
    /// Kinds and names in turn.
    pub(crate) path: String,
    /// `RID/RANGE`, or the master partition.
    pub(crate) at: String,
    pub(crate) payload: Option<Bytes>,
    pub(crate) key: Option<&'static str>,
    /// Tokens by their names, with texts for their values.
    pub(crate) tokens: Vec<(String, String)>,
}

impl World {
    pub(crate) fn new() -> World {
        let clock = Arc::new(SimulatedClock::new());
        let runtime = Runtime::simulated_at(clock, 1);
        let service = Service::open(storage::memory::create(), runtime.clone(), Limits::default());
        let service = Arc::new(service.unwrap());
        let key = |text| AccountKey::parse(text).unwrap();
        let keys = AccountKeys::new(key(EMULATOR_KEY));
        let keys = Arc::new(keys.with(AccountKeyKind::PrimaryReadOnly, key(READ_KEY)));
        let (issuers, tokens_with_keys) = (Arc::new([]), false);
        let config = DirectConfig { keys, issuers, tokens_with_keys, skew_secs_max: 900 };
        World {
            gateway: DirectGateway::new(Arc::clone(&service), runtime.clone(), config),
            service,
            runtime,
            tokio: tokio::runtime::Builder::new_current_thread().build().unwrap(),
        }
    }

    /// Creates a database or a container, which clients do over HTTP.
    pub(crate) fn create(&self, parent: &str, body: &str, throughput: Option<i64>) -> String {
        let parent = Link::parse(parent).unwrap();
        let kind = if parent.kind().is_none() { Kind::Database } else { Kind::Container };
        let body = model::json::parse(body.as_bytes()).unwrap();
        let throughput = throughput.map(service::manual_throughput);
        let verb = ResourceAction::Create { parent, kind, body, throughput, offer_type: None };
        self.execute(verb)
    }

    pub(crate) fn drop(&self, link: &str) {
        let link = Link::parse(link).unwrap();
        self.execute(ResourceAction::Delete { link, conditions: service::Conditions::default() });
    }

    fn execute(&self, verb: ResourceAction) -> String {
        let (principal, caller) = (Principal::Account, service::Caller::default());
        let request = Request { principal, caller, verb };
        let body = self.tokio.block_on(self.service.execute(request)).unwrap().reply.body;
        let body = body.and_then(|body| model::json::parse(&body).ok());
        let rid = body.and_then(|body| Some(body.get("_rid")?.as_str()?.to_owned()));
        rid.unwrap_or_default()
    }

    /// Sends it as the server does: first the head, then the payload.
    pub(crate) fn ask(&self, asked: &Asked) -> DirectAnswer {
        match self.gateway.let_in(Bytes::from(self.frame(asked))).expect("it has an id") {
            Ok(request) => {
                let payload = Some(asked.payload.clone().unwrap_or_default());
                self.tokio.block_on(self.gateway.answer(request, payload))
            }
            Err(refusal) => *refusal,
        }
    }

    /// The head of a request, without its payload.
    fn frame(&self, asked: &Asked) -> Vec<u8> {
        let segments: Vec<&str> = asked.path.split('/').filter(|part| !part.is_empty()).collect();
        let kind = segments.chunks(2).last().and_then(|pair| pair.first()).copied().unwrap_or("");
        let mut out = Vec::new();
        let resource = resource(kind);
        let mut frame = FrameWriter::request(&mut out, resource, asked.operation, ACTIVITY);
        if let Some(key) = asked.key {
            let date = self.date();
            let named = segments.len() / 2 * 2;
            let token = sign(key, verb(asked.operation), kind, &segments[..named].join("/"), &date);
            frame.put(request::AUTHORIZATION_TOKEN, &token).unwrap();
            frame.put(request::DATE, &date).unwrap();
        }
        frame.put(request::PAYLOAD_PRESENT, u8::from(asked.payload.is_some())).unwrap();
        frame.put(request::REPLICA_PATH, &replica_path(&asked.at)).unwrap();
        for pair in segments.chunks(2) {
            if let [kind, name] = pair {
                frame.put_value(name_token(kind), TokenValue::String(name)).unwrap();
            }
        }
        for (name, value) in &asked.tokens {
            put_named(&mut frame, name, value);
        }
        frame.put(request::TRANSPORT_REQUEST_ID, REQUEST_ID).unwrap();
        frame.finish(None).unwrap();
        out
    }

    fn date(&self) -> String {
        let now = self.runtime.clock.now().as_unix_seconds();
        httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_secs(now))
    }
}

fn replica_path(at: &str) -> String {
    match at.split_once('/') {
        Some((rid, range)) => {
            let rid = rid.trim_end_matches('=');
            format!("/apps/orrery/services/{rid}/partitions/{range}/replicas/1p")
        }
        None => "/apps/orrery/services/master/partitions/M/replicas/2s".to_owned(),
    }
}

fn resource(kind: &str) -> ResourceType {
    match kind {
        "dbs" => ResourceType::Database,
        "colls" => ResourceType::Collection,
        "docs" => ResourceType::Document,
        "sprocs" => ResourceType::StoredProcedure,
        "attachments" => ResourceType::Attachment,
        other => panic!("{other}"),
    }
}

fn name_token(kind: &str) -> u16 {
    match kind {
        "dbs" => request::DATABASE_NAME.id(),
        "colls" => request::COLLECTION_NAME.id(),
        "docs" => request::DOCUMENT_NAME.id(),
        "sprocs" => request::STORED_PROCEDURE_NAME.id(),
        other => panic!("{other}"),
    }
}

/// A token of the table, with its value in words.
#[expect(clippy::wildcard_enum_match_arm, reason = "types of tokens that scripts have")]
fn put_named(frame: &mut FrameWriter<'_>, name: &str, value: &str) {
    let row = request::TABLE.rows.iter().find(|row| row.name == name);
    let row = row.unwrap_or_else(|| panic!("there is no token {name}"));
    let value = match row.token_type {
        TokenType::Byte => TokenValue::Byte(value.parse().unwrap()),
        TokenType::ULong => TokenValue::ULong(value.parse().unwrap()),
        TokenType::LongLong => TokenValue::LongLong(value.parse().unwrap()),
        TokenType::String => TokenValue::String(value),
        TokenType::Bytes => TokenValue::Bytes(value.as_bytes()),
        other => panic!("{other:?}"),
    };
    frame.put_value(row.id, value).unwrap();
}

#[expect(clippy::wildcard_enum_match_arm, reason = "all others are sent with POST")]
fn verb(operation: OperationType) -> &'static str {
    match operation {
        OperationType::Read | OperationType::ReadFeed => "get",
        OperationType::Replace => "put",
        OperationType::Delete => "delete",
        OperationType::Patch => "patch",
        OperationType::Head => "head",
        _ => "post",
    }
}

fn sign(key: &str, verb: &str, kind: &str, link: &str, date: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(&STANDARD.decode(key).unwrap()).unwrap();
    mac.update(format!("{verb}\n{kind}\n{link}\n{}\n\n", date.to_lowercase()).as_bytes());
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    let token = format!("type=master&ver=1.0&sig={signature}");
    // As .NET does it, in lower case.
    token.replace('=', "%3d").replace('&', "%26").replace('+', "%2b").replace('/', "%2f")
}

/// What every answer has, whatever came of its request: clients retry without end, or fail,
/// where something is missing. Answers of the master partition have neither range nor session.
pub(crate) fn assert_complete(answer: &DirectAnswer, is_master: bool) {
    let head = ResponseHead::read(&answer.head[..head_bytes(answer)]).unwrap();
    assert_eq!(head.activity_id, ACTIVITY);
    let tokens = head.tokens.check(&response::TABLE).unwrap();
    assert_eq!(tokens.get(response::TRANSPORT_REQUEST_ID), Some(REQUEST_ID));
    assert_eq!(tokens.get(response::PAYLOAD_PRESENT), Some(u8::from(!answer.payload.is_empty())));
    assert_positions(&tokens);
    assert_eq!(tokens.get(response::PARTITION_KEY_RANGE_ID).is_none(), is_master);
    let session = tokens.get(response::SESSION_TOKEN);
    let lsn = tokens.get(response::LSN).unwrap();
    assert_eq!(session, (!is_master).then(|| format!("-1#{lsn}")).as_deref());
    assert_eq!(tokens.get(response::CURRENT_WRITE_QUORUM), Some(3));
    assert_eq!(tokens.get(response::CURRENT_REPLICA_SET_SIZE), Some(4));
    assert_eq!(tokens.get(response::NUMBER_OF_READ_REGIONS), Some(0));
    assert!(tokens.get(response::REQUEST_CHARGE).is_some());
    let ids: Vec<u16> = head.tokens.iter().map(|token| token.unwrap().id).collect();
    assert!(ids.is_sorted(), "{ids:04x?}");
}

/// Clients use these in one mode and those in another: they are equal, and never zero.
fn assert_positions(tokens: &Known<'_>) {
    let lsn = tokens.get(response::LSN).unwrap();
    assert!(lsn > 0);
    for key in [
        response::QUORUM_ACKED_LSN,
        response::GLOBAL_COMMITTED_LSN,
        response::LOCAL_LSN,
        response::QUORUM_ACKED_LOCAL_LSN,
    ] {
        assert_eq!(tokens.get(key), Some(lsn), "{key:?}");
    }
    let item = tokens.get(response::ITEM_LSN);
    assert_eq!(item, tokens.get(response::ITEM_LOCAL_LSN));
    assert!(item.is_none_or(|item| 0 < item && item <= lsn), "{item:?} {lsn}");
}

/// The head without the length of the payload behind it.
pub(crate) fn head_bytes(answer: &DirectAnswer) -> usize {
    let length = answer.head.first_chunk().copied().map(u32::from_le_bytes).unwrap();
    let length = usize::try_from(length).unwrap();
    let behind = &answer.head[length..];
    let payload = u32::try_from(answer.payload.len()).unwrap();
    let expected = if payload == 0 { Vec::new() } else { payload.to_le_bytes().to_vec() };
    assert_eq!(behind, expected);
    length
}
