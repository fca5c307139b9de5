//! The first frame of a connection, and frames that no connection survives.

use bytes::Bytes;
use wire_rntbd::codec::{
    FrameWriter, Guid, OperationType, ResourceType, ResponseHead, context_request,
    context_response, request,
};

use crate::world::World;

const ACTIVITY: Guid = Guid([9; 16]);

fn frame(
    (resource, operation): (ResourceType, OperationType),
    put: impl FnOnce(&mut FrameWriter<'_>),
) -> Vec<u8> {
    let mut out = Vec::new();
    let mut frame = FrameWriter::request(&mut out, resource, operation, ACTIVITY);
    put(&mut frame);
    frame.finish(None).unwrap();
    out
}

fn context(version: u32) -> Vec<u8> {
    frame((ResourceType::Connection, OperationType::Connection), |frame| {
        frame.put(context_request::PROTOCOL_VERSION, version).unwrap();
        frame.put(context_request::CLIENT_VERSION, "2020-07-15").unwrap();
        frame.put(context_request::USER_AGENT, "a program").unwrap();
    })
}

/// Both SDKs refuse a connection whose answer has no agent or no version.
#[test]
fn a_client_learns_who_answers() {
    let greeting = World::new().gateway.greet(&context(1)).unwrap();
    assert!(greeting.accepted);
    let head = ResponseHead::read(&greeting.answer).unwrap();
    assert_eq!((head.status, head.activity_id), (200, ACTIVITY));
    let tokens = head.tokens.check(&context_response::TABLE).unwrap();
    assert_eq!(tokens.get(context_response::PROTOCOL_VERSION), Some(1));
    assert_eq!(tokens.get(context_response::CLIENT_VERSION), Some("2020-07-15"));
    assert_eq!(tokens.get(context_response::SERVER_AGENT), Some("Orrery"));
    assert!(tokens.get(context_response::SERVER_VERSION).unwrap().starts_with("version="));
}

#[test]
fn another_version_is_told_why_and_left() {
    let greeting = World::new().gateway.greet(&context(2)).unwrap();
    assert!(!greeting.accepted);
    let length = u32::from_le_bytes(*greeting.answer.first_chunk().unwrap());
    let (head, payload) = greeting.answer.split_at(usize::try_from(length).unwrap());
    assert_eq!(ResponseHead::read(head).unwrap().status, 400);
    let text = r#"{"Errors":["version 2 of the protocol is not known here"]}"#;
    assert_eq!(std::str::from_utf8(&payload[4..]), Ok(text));
}

#[test]
fn a_request_before_the_context_opens_nothing() {
    let read = frame((ResourceType::Document, OperationType::Read), |_| {});
    assert!(!World::new().gateway.greet(&read).unwrap().accepted);
    assert!(World::new().gateway.greet(b"GET / HTTP/1.1\r\n\r\n......").is_none());
}

/// An answer without an id belongs to no request: the client would wait for it until it gives up.
#[test]
fn a_request_without_an_id_ends_the_connection() {
    let (world, read) = (World::new(), (ResourceType::Document, OperationType::Read));
    assert!(world.gateway.let_in(Bytes::from(frame(read, |_| {}))).is_none());
    let named = frame(read, |frame| frame.put(request::TRANSPORT_REQUEST_ID, 1).unwrap());
    assert!(world.gateway.let_in(Bytes::from(named)).is_some_and(|asked| asked.is_err()));
}
