//! Frames of any content, and bytes that are none.

#![expect(clippy::unwrap_used, reason = "helpers of tests stop at the first surprise too")]

use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use wire_rntbd::codec::{
    ContextAnswer, ContextError, ContextRequest, Extent, FIXED_BYTES, FrameError, FrameWriter,
    Guid, HEAD_BYTES_MAX, OperationType, RequestHead, ResourceType, ResponseHead, TOKENS_MAX,
    Table, TokenError, TokenValue, TooLong, context_request, context_response, request, response,
};

/// How many random frames are written and read back. `ORRERY_FRAMES` raises it for the long run.
fn cases() -> ProptestConfig {
    let cases = std::env::var("ORRERY_FRAMES").ok().and_then(|text| text.parse().ok());
    ProptestConfig {
        cases: cases.unwrap_or(2_000),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

const ACTIVITY: Guid = Guid([7; 16]);

fn bytes(hex: &str) -> Vec<u8> {
    let hex: String = hex.split_whitespace().collect();
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// What a value is made of, since a value only points at it.
#[derive(Clone, Debug)]
struct Content {
    kind: u8,
    bits: u64,
    text: String,
    binary: Vec<u8>,
}

impl Content {
    #[expect(clippy::cast_possible_truncation, reason = "any bits will do")]
    fn value(&self) -> TokenValue<'_> {
        let Content { kind, bits, text, binary } = self;
        let small = |length: usize| length.min(usize::from(u8::MAX));
        match kind % 16 {
            0 => TokenValue::Byte(*bits as u8),
            1 => TokenValue::UShort(*bits as u16),
            2 => TokenValue::ULong(*bits as u32),
            3 => TokenValue::Long(*bits as i32),
            4 => TokenValue::ULongLong(*bits),
            5 => TokenValue::LongLong(bits.cast_signed()),
            6 => TokenValue::Guid(Guid(u128::from(*bits).to_le_bytes())),
            7 => TokenValue::SmallString(&text[..text.floor_char_boundary(small(text.len()))]),
            8 => TokenValue::String(text),
            9 => TokenValue::ULongString(text),
            10 => TokenValue::SmallBytes(&binary[..small(binary.len())]),
            11 => TokenValue::Bytes(binary),
            12 => TokenValue::ULongBytes(binary),
            // NaN is not equal to itself.
            13 => TokenValue::Float(*bits as i32 as f32),
            14 => TokenValue::Double(*bits as f64),
            _ => TokenValue::Invalid,
        }
    }
}

fn content() -> impl Strategy<Value = Content> {
    let parts = (any::<u8>(), any::<u64>(), any::<String>(), vec(any::<u8>(), 0..300));
    parts.prop_map(|(kind, bits, text, binary)| Content { kind, bits, text, binary })
}

/// A response with any tokens, behind whatever is in the output already.
fn respond(status: u32, tokens: &[(u16, Content)], payload: Option<&[u8]>, out: &mut Vec<u8>) {
    let mut frame = FrameWriter::response(out, status, ACTIVITY);
    frame.put(response::PAYLOAD_PRESENT, u8::from(payload.is_some())).unwrap();
    for (id, content) in tokens {
        frame.put_value(*id, content.value()).unwrap();
    }
    frame.finish(payload.map(<[u8]>::len)).unwrap();
    out.extend_from_slice(payload.unwrap_or_default());
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn frames_come_back_as_they_were(
        status: u32,
        tokens in vec((1_u16.., content()), 0..20),
        payload in of(vec(any::<u8>(), 0..300)),
        before in vec(any::<u8>(), 0..8),
        after in vec(any::<u8>(), 0..8),
    ) {
        let mut written = before.clone();
        respond(status, &tokens, payload.as_deref(), &mut written);
        prop_assert!(written.starts_with(&before));
        let frame = written.split_off(before.len());
        let arrived = [frame.clone(), after].concat();
        let extent = Extent::of_response(&arrived).unwrap().unwrap();
        prop_assert_eq!(extent.bytes(), frame.len());
        let (head, body) = extent.split(&arrived).unwrap();
        prop_assert_eq!(body, payload.as_deref());
        let read = ResponseHead::read(head).unwrap();
        prop_assert_eq!((read.status, read.activity_id), (status, ACTIVITY));
        let found: Vec<_> = read.tokens.iter().skip(1).map(Result::unwrap).collect();
        prop_assert_eq!(found.len(), tokens.len());
        for (token, (id, content)) in found.iter().zip(&tokens) {
            prop_assert_eq!((token.id, token.value), (*id, content.value()));
        }
    }

    /// The rest may arrive any time later, so no part of a frame is an error.
    #[test]
    fn half_a_frame_is_waited_for(
        tokens in vec((1_u16.., content()), 0..6),
        payload in of(vec(any::<u8>(), 0..60)),
    ) {
        let mut frame = Vec::new();
        respond(200, &tokens, payload.as_deref(), &mut frame);
        let whole = Extent::of_response(&frame).unwrap().unwrap();
        for end in 0..frame.len() {
            match Extent::of_response(&frame[..end]).unwrap() {
                None => prop_assert!(end < whole.bytes_before_payload()),
                Some(extent) => {
                    prop_assert_eq!(extent, whole);
                    prop_assert!(extent.split(&frame[..end]).is_none());
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_a_head_or_refused(mut head in vec(any::<u8>(), 0..400)) {
        if let Some(place) = head.first_chunk_mut::<4>() {
            *place = [0; 4];
        }
        let length = u32::try_from(head.len()).unwrap().to_le_bytes();
        for (place, byte) in head.iter_mut().zip(length) {
            *place = byte;
        }
        let _ = Extent::of_request(&head);
        if let Ok(read) = RequestHead::read(&head) {
            let _ = read.tokens.check(&request::TABLE);
            let _ = ContextRequest::read(&read);
        }
    }
}

/// A request with the tokens that a function puts.
fn asked(put: impl FnOnce(&mut FrameWriter<'_>)) -> Vec<u8> {
    let (resource, operation) = (ResourceType::Document, OperationType::Read);
    let mut out = Vec::new();
    let mut frame = FrameWriter::request(&mut out, resource, operation, ACTIVITY);
    put(&mut frame);
    frame.finish(None).unwrap();
    out
}

fn check(frame: &[u8]) -> Result<(), TokenError> {
    RequestHead::read(frame).unwrap().tokens.check(&request::TABLE).map(|_| ())
}

/// What other software publishes about the format.
#[test]
fn published_frames_are_read() {
    let read_document = bytes(
        "23000000 0300 0300 78563412ab90efcd0123456789abcdef 0400 02 00010000 0200 00 01 02000000 7b7d",
    );
    let extent = Extent::of_request(&read_document).unwrap().unwrap();
    let (head, payload) = extent.split(&read_document).unwrap();
    assert_eq!(payload, Some(&b"{}"[..]));
    let head = RequestHead::read(head).unwrap();
    assert_eq!(head.activity_id.to_string(), "12345678-90ab-cdef-0123-456789abcdef");
    assert_eq!(head.tokens.find(request::PAGE_SIZE), Some(256));
}

#[test]
fn lengths_that_no_frame_has_are_refused_before_anything_is_kept() {
    for length in [0, 1, FIXED_BYTES - 1, HEAD_BYTES_MAX + 1, u32::MAX as usize] {
        let length = u32::try_from(length).unwrap();
        let refused = Err(FrameError::HeadLength { bytes: length });
        assert_eq!(Extent::of_request(&length.to_le_bytes()), refused);
        assert_eq!(Extent::of_response(&length.to_le_bytes()), refused);
    }
    let longest = u32::try_from(HEAD_BYTES_MAX).unwrap().to_le_bytes();
    assert_eq!(Extent::of_request(&longest), Ok(None));
}

#[test]
fn what_a_payload_claims_is_known_before_it_arrives() {
    let mut frame = asked(|frame| frame.put(request::PAYLOAD_PRESENT, 1).unwrap());
    assert_eq!(Extent::of_request(&frame), Ok(None));
    frame.extend(u32::MAX.to_le_bytes());
    let extent = Extent::of_request(&frame).unwrap().unwrap();
    assert_eq!(extent.payload_bytes, Some(u32::MAX as usize));
    assert_eq!(extent.split(&frame), None);
}

#[test]
fn bytes_that_cannot_be_followed_close_the_connection() {
    let with_tokens = |tokens: &[u8]| {
        let bytes = u32::try_from(FIXED_BYTES + tokens.len()).unwrap();
        let mut head = bytes.to_le_bytes().to_vec();
        head.extend([3, 0, 3, 0]);
        head.extend(ACTIVITY.0);
        head.extend(tokens);
        RequestHead::read(&head).map(|_| ())
    };
    assert_eq!(with_tokens(&[]), Ok(()));
    let offset = FIXED_BYTES;
    assert_eq!(with_tokens(&[1]), Err(FrameError::Truncated { offset }));
    assert_eq!(with_tokens(&[1, 0]), Err(FrameError::Truncated { offset: offset + 2 }));
    let unknown = FrameError::Type { code: 0x0F, offset: offset + 2 };
    assert_eq!(with_tokens(&[1, 0, 0x0F, 1]), Err(unknown));
    assert_eq!(with_tokens(&[1, 0, 2, 1]), Err(FrameError::Truncated { offset: offset + 3 }));
    let text = [1, 0, 8, 0xFF, 0xFF, b'x'];
    assert_eq!(with_tokens(&text), Err(FrameError::Truncated { offset: offset + 5 }));
    assert_eq!(with_tokens(&[0xFF, 0xFF, 0xFF]), Ok(()), "a token without a value");
}

#[test]
fn a_request_that_is_wrong_leaves_its_id() {
    let wrong = |wrong: fn(&mut FrameWriter<'_>)| {
        let frame = asked(|frame| {
            wrong(frame);
            frame.put(request::TRANSPORT_REQUEST_ID, 9).unwrap();
        });
        let tokens = RequestHead::read(&frame).unwrap().tokens;
        assert_eq!(tokens.find(request::TRANSPORT_REQUEST_ID), Some(9));
        check(&frame).unwrap_err()
    };
    let twice = wrong(|frame| {
        frame.put(request::PAGE_SIZE, 1).unwrap();
        frame.put(request::PAGE_SIZE, 1).unwrap();
    });
    assert_eq!(twice, TokenError::Twice { id: 4 });
    let number = wrong(|frame| frame.put_value(4, TokenValue::String("1")).unwrap());
    assert_eq!(number, TokenError::Mismatch { id: 4, name: "PageSize" });
    let not_text = asked(|frame| frame.put_value(5, TokenValue::Bytes(b"x\xFF")).unwrap());
    let at = not_text.iter().position(|byte| *byte == 0x0B).unwrap();
    let mut as_text = not_text.clone();
    as_text[at] = 0x08;
    assert_eq!(check(&as_text), Err(TokenError::Encoding { id: 5 }));
}

#[test]
fn tokens_that_are_not_known_are_skipped() {
    let frame = asked(|frame| {
        for _ in 0..3 {
            frame.put_value(0x59, TokenValue::Long(-1)).unwrap();
            frame.put_value(0xFFFF, TokenValue::ULongBytes(&[1; 300])).unwrap();
        }
        frame.put(request::PAGE_SIZE, 10).unwrap();
    });
    let tokens = RequestHead::read(&frame).unwrap().tokens.check(&request::TABLE).unwrap();
    assert_eq!(tokens.get(request::PAGE_SIZE), Some(10));
    assert_eq!(tokens.get(request::SESSION_TOKEN), None);
}

#[test]
fn tokens_have_a_greatest_number() {
    let many = |count: usize| {
        asked(|frame| {
            (0..count).for_each(|_| frame.put_value(0xFFFF, TokenValue::Invalid).unwrap());
        })
    };
    assert_eq!(check(&many(TOKENS_MAX)), Ok(()));
    assert_eq!(check(&many(TOKENS_MAX + 1)), Err(TokenError::TooMany));
}

#[test]
fn texts_that_are_too_long_leave_nothing_behind() {
    let (small, medium) = ("x".repeat(256), "x".repeat(65_536));
    let frame = asked(|frame| {
        let refused = frame.put(request::DATE, &small);
        assert_eq!(refused, Err(TooLong { bytes: 256 }));
        assert_eq!(frame.put(request::SESSION_TOKEN, &medium), Err(TooLong { bytes: 65_536 }));
        frame.put(request::DATE, &small[1..]).unwrap();
        frame.put(request::SESSION_TOKEN, &medium[1..]).unwrap();
    });
    assert_eq!(check(&frame), Ok(()));

    let answer = ContextAnswer {
        client_version: "2020-07-15",
        server_agent: &small,
        server_version: "1",
        idle_timeout_secs: 0,
        unauthenticated_timeout_secs: 0,
    };
    let mut out = vec![1, 2, 3];
    assert_eq!(answer.write(ACTIVITY, &mut out), Err(TooLong { bytes: 256 }));
    assert_eq!(out, [1, 2, 3]);
}

#[test]
fn a_context_request_names_version_and_client() {
    let context = |put: fn(&mut FrameWriter<'_>)| {
        let (resource, operation) = (ResourceType::Connection, OperationType::Connection);
        let mut out = Vec::new();
        let mut frame = FrameWriter::request(&mut out, resource, operation, ACTIVITY);
        put(&mut frame);
        frame.finish(None).unwrap();
        let head = RequestHead::read(&out).unwrap();
        ContextRequest::read(&head).map(|context| context.user_agent.to_owned())
    };
    let complete = context(|frame| {
        frame.put(context_request::PROTOCOL_VERSION, 1).unwrap();
        frame.put(context_request::CLIENT_VERSION, "2020-07-15").unwrap();
        frame.put(context_request::USER_AGENT, "a program").unwrap();
    });
    assert_eq!(complete.as_deref(), Ok("a program"));
    let lacking = ContextError::Lacking { name: "ProtocolVersion" };
    assert_eq!(context(|_| {}), Err(lacking));
    let newer = context(|frame| frame.put(context_request::PROTOCOL_VERSION, 2).unwrap());
    assert_eq!(newer, Err(ContextError::Version { found: 2 }));
    let head = asked(|_| {});
    let other = ContextRequest::read(&RequestHead::read(&head).unwrap()).map(|_| ());
    assert_eq!(other, Err(ContextError::NotFirst));
}

#[test]
fn tables_are_in_the_order_of_ids() {
    let tables: [&Table; 4] =
        [&context_request::TABLE, &context_response::TABLE, &request::TABLE, &response::TABLE];
    for table in tables {
        assert!(table.rows.windows(2).all(|pair| pair[0].id < pair[1].id), "{table:?}");
        for row in table.rows {
            assert_eq!(table.row(row.id), Some(row));
        }
    }
}
