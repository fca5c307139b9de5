//! Answers, found in the bytes of a connection without copying them.
//!
//! The client shares the machine with the server, so it looks at no more than it needs: the
//! status, the length, and the few headers that a following request repeats.

use anyhow::{Context as _, Result, ensure};

/// One answer. Borrows from the connection's buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) status: u16,
    head: &'a [u8],
    pub(crate) body: &'a [u8],
}

impl<'a> Answer<'a> {
    /// The answer at the beginning of `bytes` and its length, once all of it is there.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Option<(Answer<'a>, usize)>> {
        let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            return Ok(None);
        };
        let head = bytes.get(..end + 2).unwrap_or_default();
        let status = head.get(9..12).and_then(number).context("an answer has a status")?;
        let status = u16::try_from(status).context("a status has three digits")?;
        let mut answer = Answer { status, head, body: &[] };
        let rest = bytes.get(end + 4..).unwrap_or_default();
        let Some(length) = answer.header("content-length").and_then(number) else {
            // 204 and 304 have no body.
            let is_chunked = answer.header("transfer-encoding").is_some();
            let length = if is_chunked { chunked_length(rest)? } else { Some(0) };
            answer.body = rest.get(..length.unwrap_or_default()).unwrap_or_default();
            return Ok(length.map(|length| (answer, end + 4 + length)));
        };
        let Some(body) = rest.get(..length) else { return Ok(None) };
        answer.body = body;
        Ok(Some((answer, end + 4 + length)))
    }

    /// The value of a header, whose name is given in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&'a [u8]> {
        let name = name.as_bytes();
        self.head.split(|byte| *byte == b'\n').find_map(|line| {
            let (found, value) = line.split_at_checked(name.len())?;
            if !found.eq_ignore_ascii_case(name) {
                return None;
            }
            Some(value.strip_prefix(b":")?.trim_ascii())
        })
    }
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The length of a body in chunks, with their lengths, once the last of them is there. Some
/// servers send long answers so; none of what is in them is looked at.
fn chunked_length(bytes: &[u8]) -> Result<Option<usize>> {
    let mut at = 0;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(end) = rest.windows(2).position(|window| window == b"\r\n") else {
            return Ok(None);
        };
        let digits = rest.get(..end).and_then(|digits| std::str::from_utf8(digits).ok());
        let length = digits.and_then(|digits| usize::from_str_radix(digits.trim(), 16).ok());
        let length = length.context("a chunk has a length")?;
        ensure!(length < 1 << 30, "a chunk of {length} bytes");
        at += end + 2 + length + 2;
        if at > bytes.len() {
            return Ok(None);
        }
        if length == 0 {
            return Ok(Some(at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_there_once_its_body_is() {
        let bytes =
            b"HTTP/1.1 201 Created\r\nContent-Length: 3\r\nx-ms-continuation: ab\r\n\r\n{} ";
        assert!(Answer::parse(&bytes[..bytes.len() - 1]).unwrap().is_none());
        let (answer, length) = Answer::parse(bytes).unwrap().unwrap();
        assert_eq!((answer.status, answer.body, length), (201, b"{} ".as_slice(), bytes.len()));
        assert_eq!(answer.header("x-ms-continuation"), Some(b"ab".as_slice()));
        assert_eq!(answer.header("etag"), None);
    }

    #[test]
    fn chunks_are_counted() {
        let bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
        assert!(Answer::parse(&bytes[..bytes.len() - 2]).unwrap().is_none());
        assert_eq!(Answer::parse(bytes).unwrap().unwrap().1, bytes.len());
    }
}
