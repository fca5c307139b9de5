//! The exchange that opens a connection: who speaks, and which version.

use crate::codec::error::{ContextError, TooLong};
use crate::codec::frame::{FrameWriter, RequestHead, SNIFFED_BYTES};
use crate::codec::guid::Guid;
use crate::codec::kinds::{OperationType, ResourceType};
use crate::codec::tables::{context_request, context_response};

/// The one version of the protocol that clients speak.
pub const PROTOCOL_VERSION: u32 = 1;

/// Whether a connection that begins with these bytes speaks this protocol. Its first frame is a
/// context request, whose types are zero; where they are, HTTP has a part of a method or a path.
#[must_use]
pub fn is_context_request(first: &[u8; SNIFFED_BYTES]) -> bool {
    matches!(first, [_, _, _, _, 0, 0, 0, 0])
}

/// What a client says first. It sends no request before the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextRequest<'a> {
    pub client_version: &'a str,
    pub user_agent: &'a str,
}

impl<'a> ContextRequest<'a> {
    /// # Errors
    /// The frame is another one, lacks something, or asks for another version.
    pub fn read(head: &RequestHead<'a>) -> Result<ContextRequest<'a>, ContextError> {
        let kind = (ResourceType::Connection as u16, OperationType::Connection as u16);
        if (head.resource_type, head.operation_type) != kind {
            return Err(ContextError::NotFirst);
        }
        let tokens = head.tokens.check(&context_request::TABLE)?;
        let lacking = |name| ContextError::Lacking { name };
        let version = tokens.get(context_request::PROTOCOL_VERSION);
        match version.ok_or_else(|| lacking("ProtocolVersion"))? {
            PROTOCOL_VERSION => {}
            found => return Err(ContextError::Version { found }),
        }
        let client_version = tokens.get(context_request::CLIENT_VERSION);
        let user_agent = tokens.get(context_request::USER_AGENT);
        Ok(ContextRequest {
            client_version: client_version.ok_or_else(|| lacking("ClientVersion"))?,
            user_agent: user_agent.ok_or_else(|| lacking("UserAgent"))?,
        })
    }
}

/// What a client learns then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextAnswer<'a> {
    /// The client's own, echoed.
    pub client_version: &'a str,
    pub server_agent: &'a str,
    /// What clients show as the version of the service with every answer.
    pub server_version: &'a str,
    /// Both clients read these two and do nothing with them.
    pub idle_timeout_secs: u32,
    pub unauthenticated_timeout_secs: u32,
}

impl ContextAnswer<'_> {
    /// Appends the answer of a connection that came about.
    ///
    /// # Errors
    /// A text has more than 255 bytes; nothing was appended.
    pub fn write(&self, activity_id: Guid, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let begin = out.len();
        let mut frame = FrameWriter::response(out, 200, activity_id);
        match self.put_all(&mut frame) {
            Ok(()) => frame.finish(None),
            Err(error) => {
                out.truncate(begin);
                Err(error)
            }
        }
    }

    fn put_all(&self, frame: &mut FrameWriter<'_>) -> Result<(), TooLong> {
        frame.put(context_response::PROTOCOL_VERSION, PROTOCOL_VERSION)?;
        frame.put(context_response::CLIENT_VERSION, self.client_version)?;
        frame.put(context_response::SERVER_AGENT, self.server_agent)?;
        frame.put(context_response::SERVER_VERSION, self.server_version)?;
        frame.put(context_response::IDLE_TIMEOUT_SECS, self.idle_timeout_secs)?;
        frame.put(context_response::UNAUTHENTICATED_TIMEOUT_SECS, self.unauthenticated_timeout_secs)
    }
}
