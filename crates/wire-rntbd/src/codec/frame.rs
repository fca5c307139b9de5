//! Frames: where they end, what their heads say, and how they are written.

use crate::codec::error::{FrameError, TooLong};
use crate::codec::guid::Guid;
use crate::codec::kinds::{OperationType, ResourceType};
use crate::codec::reader::Reader;
use crate::codec::tables::{request, response};
use crate::codec::token::{Key, Token, Tokens};
use crate::codec::value::{TokenValue, ValueType};

/// The length of the head, four bytes that say what kind of frame it is, and the activity id.
pub const FIXED_BYTES: usize = 4 + 4 + 16;

/// The longest head that is read. One with three strings of maximal length and all others at
/// their usual lengths; .NET warns its users from 128 KiB on.
pub const HEAD_BYTES_MAX: usize = 256 << 10;

/// What has to be read of a connection to know whether it speaks this protocol.
pub const SNIFFED_BYTES: usize = 8;

/// The length in front of a payload.
const LENGTH_BYTES: usize = 4;

/// The value of the token that announces a payload, in either direction.
const PRESENT: u8 = 1;

/// How long a frame is. The payload's length is what the client claims: compare it with a limit
/// before allocating anything for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub head_bytes: usize,
    /// Without the length in front of it.
    pub payload_bytes: Option<usize>,
}

impl Extent {
    /// The extent of the request that begins here, as soon as enough of it has arrived.
    ///
    /// # Errors
    /// The bytes are no request.
    pub fn of_request(arrived: &[u8]) -> Result<Option<Extent>, FrameError> {
        Extent::of(arrived, |head| Ok(RequestHead::read(head)?.has_payload()))
    }

    /// The same of a response.
    ///
    /// # Errors
    /// The bytes are no response.
    pub fn of_response(arrived: &[u8]) -> Result<Option<Extent>, FrameError> {
        Extent::of(arrived, |head| Ok(ResponseHead::read(head)?.has_payload()))
    }

    fn of(
        arrived: &[u8],
        has_payload: impl FnOnce(&[u8]) -> Result<bool, FrameError>,
    ) -> Result<Option<Extent>, FrameError> {
        let Some(head_bytes) = head_bytes(arrived)? else { return Ok(None) };
        let Some((head, rest)) = arrived.split_at_checked(head_bytes) else { return Ok(None) };
        if !has_payload(head)? {
            return Ok(Some(Extent { head_bytes, payload_bytes: None }));
        }
        let Some(length) = rest.first_chunk() else { return Ok(None) };
        let payload_bytes = u32::from_le_bytes(*length);
        let payload_bytes = usize::try_from(payload_bytes).unwrap_or(usize::MAX);
        Ok(Some(Extent { head_bytes, payload_bytes: Some(payload_bytes) }))
    }

    /// What precedes the payload: the head and the payload's length.
    #[must_use]
    pub fn bytes_before_payload(&self) -> usize {
        self.head_bytes + self.payload_bytes.map_or(0, |_| LENGTH_BYTES)
    }

    /// All of the frame.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes_before_payload().saturating_add(self.payload_bytes.unwrap_or_default())
    }

    /// Head and payload of a frame that has arrived; `None` while it has not.
    #[must_use]
    pub fn split<'a>(&self, arrived: &'a [u8]) -> Option<(&'a [u8], Option<&'a [u8]>)> {
        let head = arrived.get(..self.head_bytes)?;
        let payload = arrived.get(self.bytes_before_payload()..self.bytes())?;
        Some((head, self.payload_bytes.map(|_| payload)))
    }
}

/// The length of the head that begins here, if enough of it has arrived to know.
fn head_bytes(arrived: &[u8]) -> Result<Option<usize>, FrameError> {
    let Some(length) = arrived.first_chunk() else { return Ok(None) };
    let bytes = u32::from_le_bytes(*length);
    let possible = usize::try_from(bytes).ok();
    let possible = possible.filter(|bytes| (FIXED_BYTES..=HEAD_BYTES_MAX).contains(bytes));
    possible.map(Some).ok_or(FrameError::HeadLength { bytes })
}

/// The head of a request.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// The number of a [`ResourceType`].
    pub resource_type: u16,
    /// The number of an [`OperationType`].
    pub operation_type: u16,
    pub activity_id: Guid,
    pub tokens: Tokens<'a>,
}

impl<'a> RequestHead<'a> {
    /// Reads a whole head, which [`Extent`] has measured.
    ///
    /// # Errors
    /// It is longer or shorter than it says, or its tokens cannot be told apart.
    pub fn read(head: &'a [u8]) -> Result<RequestHead<'a>, FrameError> {
        let mut input = open(head)?;
        let (resource_type, operation_type) = (input.u16()?, input.u16()?);
        let activity_id = Guid(input.array()?);
        let tokens = Tokens::read(input)?;
        Ok(RequestHead { resource_type, operation_type, activity_id, tokens })
    }

    /// Whether a payload follows.
    #[must_use]
    pub fn has_payload(&self) -> bool {
        self.tokens.find(request::PAYLOAD_PRESENT) == Some(PRESENT)
    }
}

/// The head of a response.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    pub status: u32,
    pub activity_id: Guid,
    pub tokens: Tokens<'a>,
}

impl<'a> ResponseHead<'a> {
    /// Reads a whole head, which [`Extent`] has measured.
    ///
    /// # Errors
    /// It is longer or shorter than it says, or its tokens cannot be told apart.
    pub fn read(head: &'a [u8]) -> Result<ResponseHead<'a>, FrameError> {
        let mut input = open(head)?;
        let status = input.u32()?;
        let activity_id = Guid(input.array()?);
        Ok(ResponseHead { status, activity_id, tokens: Tokens::read(input)? })
    }

    /// Whether a payload follows.
    #[must_use]
    pub fn has_payload(&self) -> bool {
        self.tokens.find(response::PAYLOAD_PRESENT) == Some(PRESENT)
    }
}

/// What follows the length of a head.
fn open(head: &[u8]) -> Result<Reader<'_>, FrameError> {
    let mut input = Reader::new(head, 0);
    let bytes = input.u32()?;
    match head_bytes(head)? {
        Some(length) if length == head.len() => Ok(input),
        Some(_) | None => Err(FrameError::HeadLength { bytes }),
    }
}

/// Writes one frame: token by token, then the length of its payload. The payload itself is left
/// to the caller, who need not copy it for that.
#[derive(Debug)]
pub struct FrameWriter<'o> {
    out: &'o mut Vec<u8>,
    begin: usize,
}

impl<'o> FrameWriter<'o> {
    /// A request, as clients send it.
    #[must_use]
    pub fn request(
        out: &'o mut Vec<u8>,
        resource: ResourceType,
        operation: OperationType,
        activity_id: Guid,
    ) -> FrameWriter<'o> {
        let [low, high] = (resource as u16).to_le_bytes();
        let [third, fourth] = (operation as u16).to_le_bytes();
        FrameWriter::begin(out, [low, high, third, fourth], activity_id)
    }

    #[must_use]
    pub fn response(out: &'o mut Vec<u8>, status: u32, activity_id: Guid) -> FrameWriter<'o> {
        FrameWriter::begin(out, status.to_le_bytes(), activity_id)
    }

    fn begin(out: &'o mut Vec<u8>, kind: [u8; 4], activity_id: Guid) -> FrameWriter<'o> {
        let begin = out.len();
        out.extend([0; LENGTH_BYTES]);
        out.extend(kind);
        out.extend(activity_id.0);
        FrameWriter { out, begin }
    }

    /// Appends a token.
    ///
    /// # Errors
    /// The value does not fit; nothing was appended.
    pub fn put<T: ValueType>(&mut self, key: Key<T>, value: T::Value<'_>) -> Result<(), TooLong> {
        self.put_value(key.id(), T::wrap(value))
    }

    /// Appends a token of any type.
    ///
    /// # Errors
    /// The value does not fit; nothing was appended.
    pub fn put_value(&mut self, id: u16, value: TokenValue<'_>) -> Result<(), TooLong> {
        Token { id, value }.write(self.out)
    }

    /// Puts the length of the head in front of it, and that of the payload behind it. The head
    /// has a token that says whether there is one.
    ///
    /// # Errors
    /// Either is too long; nothing of the frame is left.
    pub fn finish(self, payload_bytes: Option<usize>) -> Result<(), TooLong> {
        let FrameWriter { out, begin } = self;
        let lengths = || {
            let head = length(out.len() - begin)?;
            Ok((head, payload_bytes.map(length).transpose()?))
        };
        let (head, payload) = lengths().inspect_err(|_: &TooLong| out.truncate(begin))?;
        for (place, byte) in out.iter_mut().skip(begin).zip(head) {
            *place = byte;
        }
        out.extend(payload.into_iter().flatten());
        Ok(())
    }
}

fn length(bytes: usize) -> Result<[u8; LENGTH_BYTES], TooLong> {
    u32::try_from(bytes).map(u32::to_le_bytes).map_err(|_| TooLong { bytes })
}
