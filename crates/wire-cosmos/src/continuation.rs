//! Where a feed goes on, as a token that a header can carry.
//!
//! Names and ids may be anything, headers may not: both are spelled in hexadecimal,
//! which also keeps tokens of ordinary names far below the kilobyte that some
//! clients allow.

use model::epk::Epk;
use service::{Position, Rest};

use crate::error::WireError;

/// The token of a place in a feed of resources or items.
pub(crate) fn token(rest: &Rest) -> String {
    match rest {
        Rest::AfterName(name) => hex(name),
        Rest::AfterItem(position) => format!("{}:{}", position.epk, hex(&position.id)),
    }
}

pub(crate) fn parse_name(token: &str) -> Result<String, WireError> {
    unhex(token).filter(|name| !name.is_empty()).ok_or_else(malformed)
}

pub(crate) fn parse_position(token: &str) -> Result<Position, WireError> {
    let parsed = token
        .split_once(':')
        .and_then(|(epk, id)| Some(Position { epk: Epk::from_hex(epk).ok()?, id: unhex(id)? }));
    parsed.ok_or_else(malformed)
}

fn malformed() -> WireError {
    WireError::bad_request("The continuation token is malformed.")
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<String> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok();
    let bytes = pairs.iter().map(byte).collect::<Option<Vec<u8>>>().filter(|_| rest.is_empty());
    String::from_utf8(bytes?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn tokens_lead_back(name in ".+", id in ".*") {
            let token = token(&Rest::AfterName(name.clone()));
            prop_assert_eq!(parse_name(&token).unwrap(), name);
            let position = Position { epk: Epk::from_hex("05C1").unwrap(), id };
            let token = super::token(&Rest::AfterItem(position.clone()));
            prop_assert_eq!(parse_position(&token).unwrap(), position);
        }

        #[test]
        fn any_text_is_a_token_or_refused(text in ".*") {
            let _ = parse_name(&text);
            let _ = parse_position(&text);
        }
    }
}
