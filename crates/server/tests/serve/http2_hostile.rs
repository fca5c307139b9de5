//! Malicious HTTP/2 clients.

use std::io::Write as _;
use std::net::TcpStream;

use crate::client::{connect, exchange, get, read_to_end};
use crate::frames::{
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, Frame, HEADERS, Line,
    PING, PREFACE, RST_STREAM, SETTINGS, frame, get_block, get_frame,
};
use crate::program::Program;

fn assert_others_are_served(program: &Program) {
    assert_eq!(get(&mut connect(program.address()), "/_orrery/ready").status, 200);
    Line::open(program.address()).ask_health(1);
}

/// Sends what the server may refuse to read to the end.
fn flood(line: &mut Line<TcpStream>, bytes: &[u8]) {
    for part in bytes.chunks(1 << 16) {
        if line.stream.write_all(part).is_err() {
            return;
        }
    }
}

/// Takes as long as the server's limit for a head, which is ten seconds.
#[test]
fn silence_after_the_preface_ends_in_time() {
    let program = Program::in_memory();
    let mut silent: Vec<_> = [PREFACE, &PREFACE[..10], b"P"]
        .into_iter()
        .map(|bytes| {
            let mut stream = connect(program.address());
            stream.write_all(bytes).unwrap();
            stream
        })
        .collect();
    assert_others_are_served(&program);
    for stream in &mut silent {
        read_to_end(stream);
    }
}

#[test]
fn garbage_ends_the_connection() {
    let program = Program::in_memory();
    let settings = frame(SETTINGS, 0, 0, &[]);
    let garbage: Vec<Vec<u8>> = vec![
        b"\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF".to_vec(),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![0; 100_000],
        // Larger than a frame may be.
        [settings.clone(), frame(DATA, 0, 1, &[0; 20_000])].concat(),
        // A body without a head; a head for no stream; settings that make no sense.
        [settings.clone(), frame(DATA, 0, 1, b"x")].concat(),
        [settings.clone(), frame(HEADERS, END_HEADERS, 0, &get_block("/"))].concat(),
        [settings.clone(), frame(SETTINGS, 0, 0, b"12345")].concat(),
        [settings.clone(), frame(SETTINGS, 0, 0, &[0, 4, 0xFF, 0xFF, 0xFF, 0xFF])].concat(),
        // A head that cannot be unpacked; one that is interrupted; an update by nothing.
        [settings.clone(), frame(HEADERS, END_HEADERS, 1, &[0xFF; 50])].concat(),
        [settings.clone(), frame(HEADERS, 0, 1, &get_block("/")), frame(PING, 0, 0, &[0; 8])]
            .concat(),
        [settings, frame(8, 0, 0, &[0; 4])].concat(),
    ];
    for bytes in garbage {
        exchange(program.address(), &[PREFACE, &bytes].concat());
    }
    assert_others_are_served(&program);
}

#[test]
fn almost_a_preface_is_a_bad_request() {
    let program = Program::in_memory();
    let reply = exchange(program.address(), b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n");
    assert!(reply.starts_with("HTTP/1.1 400 ") || reply.starts_with("HTTP/1.1 505 "), "{reply}");
}

#[test]
fn no_more_streams_than_allowed_at_a_time() {
    let program = Program::in_memory();
    let mut line = Line::open(program.address());
    // Requests that never end: their bodies do not come.
    let open = |number: u32| frame(HEADERS, END_HEADERS, number * 2 + 1, &get_block("/dbs"));
    let many: Vec<u8> = (0..10_000).flat_map(open).collect();
    flood(&mut line, &many);
    line.read_to_end();
    assert_others_are_served(&program);
}

#[test]
fn streams_beyond_the_limit_are_refused_and_the_others_answered() {
    let program = Program::in_memory();
    let mut line = Line::open(program.address());
    let open = |number: u32| frame(HEADERS, END_HEADERS, number * 2 + 1, &get_block("/dbs"));
    line.send(&(0..150).flat_map(open).collect::<Vec<u8>>());
    for _ in 0..50 {
        let refused = line.read_until(|frame| frame.kind == RST_STREAM).unwrap();
        assert!(refused.stream > 2 * 99, "{refused:?}");
    }
    for number in 0..100 {
        line.send(&frame(DATA, END_STREAM, number * 2 + 1, b"{}"));
    }
    let mut answers = 0;
    line.read_until(|frame| {
        answers += usize::from(frame.kind == HEADERS);
        answers == 100
    });
    assert_eq!(answers, 100);
}

#[test]
fn a_flood_of_resets_ends_the_connection() {
    let program = Program::in_memory();
    let mut line = Line::open(program.address());
    let ask_and_leave = |number: u32| {
        let stream = number * 2 + 1;
        [get_frame(stream, "/dbs"), frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
    };
    let many: Vec<u8> = (0..10_000).flat_map(ask_and_leave).collect();
    flood(&mut line, &many);
    // Closing while the client still sends may destroy the reason.
    let reason = line.read_goaway();
    assert!(reason.is_none_or(|reason| reason == ENHANCE_YOUR_CALM), "{reason:?}");
    line.read_to_end();
    assert_others_are_served(&program);
}

#[test]
fn heads_without_end_are_cut_off() {
    let program = Program::in_memory();
    let mut line = Line::open(program.address());
    let header = [&[0x00, 1][..], b"x", &[100], &[b'y'; 100]].concat();
    let piece = frame(CONTINUATION, 0, 1, &header.repeat(100));
    flood(&mut line, &frame(HEADERS, 0, 1, &get_block("/")));
    flood(&mut line, &piece.repeat(2_000));
    line.read_to_end();
    let mut line = Line::open(program.address());
    flood(&mut line, &frame(HEADERS, 0, 1, &get_block("/")));
    flood(&mut line, &frame(CONTINUATION, 0, 1, &[]).repeat(100_000));
    line.read_to_end();
    assert_others_are_served(&program);
}

/// A few bytes on the line that stand for megabytes: one long header in the table that
/// both sides keep, then a thousand references to it.
#[test]
fn a_head_that_unpacks_to_megabytes_is_refused() {
    let program = Program::in_memory();
    let mut line = Line::open(program.address());
    let kept = [&[0x40, 1][..], b"x", &[0x7F, 0xA1, 0x1E], &[b'y'; 4000]].concat();
    let bomb = [get_block("/_orrery/health"), kept, vec![0xBE; 10_000]].concat();
    line.send(&frame(HEADERS, END_STREAM | END_HEADERS, 1, &bomb));
    let refused = line.read_until(|frame| frame.stream == 1);
    assert!(refused.is_none_or(|frame| frame.kind != DATA));
    assert_others_are_served(&program);
}

#[test]
fn floods_of_small_frames_are_answered_or_cut_off() {
    let program = Program::in_memory();
    for small in [frame(PING, 0, 0, &[7; 8]), frame(SETTINGS, 0, 0, &[])] {
        let mut line = Line::open(program.address());
        // Not one answer is read meanwhile.
        line.stream.set_write_timeout(Some(std::time::Duration::from_secs(1))).unwrap();
        flood(&mut line, &small.repeat(1_000_000));
        assert_others_are_served(&program);
    }
    let mut line = Line::open(program.address());
    line.send(&frame(PING, 0, 0, b"12345678"));
    let pong = |frame: &Frame| frame.kind == PING && frame.flags & ACK != 0;
    assert_eq!(line.read_until(pong).map(|frame| frame.payload), Some(b"12345678".to_vec()));
}

/// The client asks for much and has no window for any of it.
#[test]
fn answers_without_room_wait_without_harm() {
    let program = Program::in_memory();
    let mut line = Line { stream: connect(program.address()) };
    // The window of each stream is empty from the start.
    line.send(&[PREFACE, &frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])].concat());
    let path = "/_explorer/emulator.pem";
    line.send(&(0..100).flat_map(|number| get_frame(number * 2 + 1, path)).collect::<Vec<u8>>());
    let mut heads = 0;
    line.read_until(|frame| {
        assert_ne!(frame.kind, DATA);
        heads += usize::from(frame.kind == HEADERS);
        heads == 100
    });
    assert_others_are_served(&program);
    // The window opens at last.
    line.send(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0xFF, 0xFF]));
    let mut ends = 0;
    line.read_until(|frame| {
        ends += usize::from(frame.kind == DATA && frame.flags & END_STREAM != 0);
        ends == 30
    });
    assert_eq!(ends, 30);
}
