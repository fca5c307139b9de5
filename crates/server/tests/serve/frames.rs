//! HTTP/2 by hand, for clients that misbehave as a library would not allow.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpStream};

use crate::client::{Stream, connect};

pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 1;
pub(crate) const ACK: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;

/// The reasons that a GOAWAY or a reset gives.
pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len()).expect("frames are small").to_be_bytes();
    let mut bytes = len[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// `GET` of a path below `localhost`, with nothing compressed.
pub(crate) fn get_block(path: &str) -> Vec<u8> {
    let text = |index: u8, value: &str| {
        let mut bytes = vec![index, u8::try_from(value.len()).expect("values are short")];
        bytes.extend(value.as_bytes());
        bytes
    };
    // From the table that both sides begin with: GET, http, and names 4 and 1.
    [vec![0x82, 0x86], text(0x04, path), text(0x01, "localhost")].concat()
}

/// A whole request without a body.
pub(crate) fn get_frame(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &get_block(path))
}

/// A connection whose server is known to speak HTTP/2.
#[derive(Debug)]
pub(crate) struct Line<S> {
    pub(crate) stream: S,
}

impl Line<TcpStream> {
    pub(crate) fn open(address: SocketAddr) -> Line<TcpStream> {
        Line::begin(connect(address))
    }
}

impl<S: Stream> Line<S> {
    pub(crate) fn begin(stream: S) -> Line<S> {
        let mut line = Line { stream };
        line.send(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat());
        line
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server reads");
    }

    /// The next frame; `None` when the server has closed or reset the connection.
    pub(crate) fn read(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.read_exact(&mut head)?;
        let [a, b, c, kind, flags, d, e, f, g] = head;
        let len = u32::from_be_bytes([0, a, b, c]);
        let mut payload = vec![0; usize::try_from(len).expect("24 bits fit")];
        self.read_exact(&mut payload)?;
        Some(Frame { kind, flags, stream: u32::from_be_bytes([d, e, f, g]), payload })
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> Option<()> {
        match self.stream.read_exact(buffer).map_err(|error| error.kind()) {
            Ok(()) => Some(()),
            Err(ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => None,
            Err(error) => panic!("the server neither answered nor closed: {error}"),
        }
    }

    /// Reads on until the server closes.
    pub(crate) fn read_to_end(&mut self) {
        self.read_until(|_| false);
    }

    /// Reads on until there is such a frame. Answers no pings.
    pub(crate) fn read_until(&mut self, wanted: impl FnMut(&Frame) -> bool) -> Option<Frame> {
        std::iter::from_fn(|| self.read()).find(wanted)
    }

    /// Why the server closed the connection; `None` when it closed without a GOAWAY.
    pub(crate) fn read_goaway(&mut self) -> Option<u32> {
        let frame = self.read_until(|frame| frame.kind == GOAWAY)?;
        let reason = frame.payload.get(4..8)?;
        Some(u32::from_be_bytes(reason.try_into().ok()?))
    }

    /// Asks for the server's health and waits for the end of the answer.
    pub(crate) fn ask_health(&mut self, stream: u32) {
        self.send(&get_frame(stream, "/_orrery/health"));
        let ended = |frame: &Frame| {
            frame.stream == stream && frame.kind == DATA && frame.flags & END_STREAM != 0
        };
        self.read_until(ended).expect("the server answers");
    }
}
