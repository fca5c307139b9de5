//! The bodies for RNTBD: what arrives on a connection of a client in direct mode.

use wire_rntbd::codec::{
    ContextAnswer, ContextRequest, Extent, FIXED_BYTES, FrameWriter, HEAD_BYTES_MAX, OperationType,
    RequestHead, ResourceType, ResponseHead, Tokens, request, response,
};

/// A connection is cut into frames; each has a bounded head, and more bytes behind it change
/// nothing about it.
pub fn rntbd_frame(input: &[u8]) {
    let mut rest = input;
    while let Ok(Some(extent)) = Extent::of_request(rest) {
        assert!((FIXED_BYTES..=HEAD_BYTES_MAX).contains(&extent.head_bytes));
        let Some((head, payload)) = extent.split(rest) else { break };
        assert_eq!(payload.map(<[u8]>::len), extent.payload_bytes);
        let frame = rest.get(..extent.bytes()).expect("all of it has arrived");
        assert_eq!(Extent::of_request(frame), Ok(Some(extent)), "the next frame has no influence");
        let read = RequestHead::read(head).expect("it was measured");
        assert_eq!(read.has_payload(), payload.is_some());
        rest = rest.get(extent.bytes()..).unwrap_or_default();
    }
    if let Ok(Some(extent)) = Extent::of_response(input)
        && let Some((head, _)) = extent.split(input)
    {
        ResponseHead::read(head).expect("it was measured");
    }
}

/// Any bytes as the tokens of a head: those that can be told apart are the same when written and
/// read back.
pub fn rntbd_tokens(input: &[u8]) {
    let head = headed([3, 0, 3, 0], input);
    let Ok(read) = RequestHead::read(&head) else { return };
    let known = read.tokens.check(&request::TABLE);
    let Ok(all) = read.tokens.iter().collect::<Result<Vec<_>, _>>() else {
        assert!(known.is_err(), "what cannot be read does not agree with a table");
        return;
    };
    let mut written = Vec::new();
    let (resource, operation) = (ResourceType::Document, OperationType::Read);
    let mut frame = FrameWriter::request(&mut written, resource, operation, read.activity_id);
    for token in &all {
        frame.put_value(token.id, token.value).expect("it was in a frame");
    }
    frame.finish(None).expect("it was a frame");
    assert_eq!(written, head, "there is one way to write it");
    if let Ok(known) = known {
        let Some(row) = request::TABLE.row(request::PAGE_SIZE.id()) else { return };
        let first = all.iter().find(|token| token.id == row.id);
        assert_eq!(known.get(request::PAGE_SIZE).is_some(), first.is_some());
    }
    // The other direction has a table of its own.
    let _ = Tokens::check(&read.tokens, &response::TABLE);
}

/// The first frame of a connection is answered or refused.
pub fn rntbd_context(input: &[u8]) {
    let head = headed([0; 4], input);
    let Ok(read) = RequestHead::read(&head) else { return };
    let Ok(context) = ContextRequest::read(&read) else { return };
    let answer = ContextAnswer {
        client_version: context.client_version,
        server_agent: context.user_agent,
        server_version: "1",
        idle_timeout_secs: 0,
        unauthenticated_timeout_secs: 0,
    };
    let mut written = Vec::new();
    answer.write(read.activity_id, &mut written).expect("both came in as short");
    let answered = ResponseHead::read(&written).expect("what we write, we can read");
    assert_eq!((answered.status, answered.activity_id), (200, read.activity_id));
}

/// A head of any tokens, with its length in front.
fn headed(kind: [u8; 4], tokens: &[u8]) -> Vec<u8> {
    let bytes = u32::try_from(FIXED_BYTES + tokens.len()).unwrap_or(u32::MAX);
    [&bytes.to_le_bytes()[..], &kind, &[7; 16], tokens].concat()
}
