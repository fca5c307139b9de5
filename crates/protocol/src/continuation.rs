//! Where a feed continues, as a token that fits into a header.
//!
//! Names and ids may be anything, headers may not: both are encoded in hexadecimal, which
//! also keeps tokens of ordinary names far below the kilobyte that some clients allow.
//! Queries and lists of items have cursors, which are bytes already: they are encoded in base 64. They begin
//! with a number that no text begins with, so that no client takes one for a token of its
//! own.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::hex::{self, Lower};
use model::rid::ItemRid;
use service::{Cursor, ResourceRest};

use crate::error::WireError;

/// What surrounds the token of a query that went to all partitions.
const ACROSS_BEGINS: &str = r#"{"token":""#;
const ACROSS_ENDS: &str = r#"","range":{"min":"","max":"FF"}}"#;

/// The prefix of tokens that count rows. Names are encoded without these letters.
const AFTER_ROWS: &str = "rows-";

/// The token of a position in a feed of resources.
pub fn token(rest: &ResourceRest) -> String {
    match rest {
        ResourceRest::AfterName(name) => hex(name),
        ResourceRest::AfterRows(count) => format!("{AFTER_ROWS}{count}"),
    }
}

pub fn parse_name(token: &str) -> Result<String, WireError> {
    unhex(token).filter(|name| !name.is_empty()).ok_or_else(malformed)
}

/// Where a query on resources continues.
pub fn parse_resource(token: &str) -> Result<ResourceRest, WireError> {
    match token.strip_prefix(AFTER_ROWS) {
        Some(count) => count.parse().map(ResourceRest::AfterRows).map_err(|_| malformed()),
        None => parse_name(token).map(ResourceRest::AfterName),
    }
}

/// The token of a position between the rows of a query. One that went to all partitions has
/// the form of the service's gateway, which says what its token covers: everything.
pub fn cursor_token(cursor: &Cursor, is_across: bool) -> String {
    let token = URL_SAFE_NO_PAD.encode(cursor.to_bytes());
    if is_across { format!("{ACROSS_BEGINS}{token}{ACROSS_ENDS}") } else { token }
}

/// Where a query, or a list of items, continues. A token that the service itself made refers to a container that
/// does not exist here; as the service does with tokens of other containers, the query
/// starts from the beginning.
pub fn parse_cursor(token: &str) -> Result<Option<Cursor>, WireError> {
    let inner = token.strip_prefix(ACROSS_BEGINS).and_then(|it| it.strip_suffix(ACROSS_ENDS));
    let token = inner.unwrap_or(token);
    if is_of_the_service(token) {
        return Ok(None);
    }
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| malformed())?;
    Cursor::from_bytes(&bytes).map(Some).map_err(|_| malformed())
}

/// Whether a token has the service's form, `-RID:~<resource id>#RT:1#TRC:2#…`: an
/// item, then numbers with names.
fn is_of_the_service(token: &str) -> bool {
    let mut fields = token.split('#');
    let rid = fields.next().and_then(|first| first.strip_prefix("-RID:"));
    let rid = rid.map(|rid| rid.strip_prefix('~').unwrap_or(rid));
    let is_number = |field: &str| {
        field.split_once(':').is_some_and(|(name, number)| {
            name.bytes().all(|byte| byte.is_ascii_uppercase()) && number.parse::<u64>().is_ok()
        })
    };
    rid.is_some_and(|rid| ItemRid::parse(rid).is_ok()) && fields.all(is_number)
}

fn malformed() -> WireError {
    WireError::bad_request("Invalid Continuation Token")
}

fn hex(text: &str) -> String {
    Lower(text.as_bytes()).to_string()
}

fn unhex(text: &str) -> Option<String> {
    String::from_utf8(hex::decode(text)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn tokens_lead_back(name in ".+", rows: u64) {
            let token = token(&ResourceRest::AfterName(name.clone()));
            prop_assert_eq!(&parse_name(&token).unwrap(), &name);
            prop_assert_eq!(parse_resource(&token).unwrap(), ResourceRest::AfterName(name));
            let rows = ResourceRest::AfterRows(rows);
            prop_assert_eq!(parse_resource(&super::token(&rows)).unwrap(), rows);
        }

        #[test]
        fn any_text_is_a_token_or_refused(text in ".*") {
            let _ = parse_name(&text);
            let _ = parse_resource(&text);
            let _ = parse_cursor(&text);
        }
    }

    #[test]
    fn cursors_have_one_spelling() {
        // The first page of the query with the number 0 was returned.
        let token = "AgAAAAAAAAA";
        let cursor = parse_cursor(token).unwrap().unwrap();
        assert_eq!(cursor_token(&cursor, false), token);
        let across = cursor_token(&cursor, true);
        assert_eq!(across, r#"{"token":"AgAAAAAAAAA","range":{"min":"","max":"FF"}}"#);
        assert_eq!(parse_cursor(&across).unwrap(), Some(cursor));
        let others = [
            "",
            "Ag",
            "AgAAAAAAAAA=",
            "AgAAAAAAAAB",
            // Of an earlier version.
            "AQAAAAAAAAA",
            "eyJ2IjoxfQ",
            "05C1:31",
            "[{}]",
            "é",
            r#"{"token":"AgAAAAAAAAA"}"#,
            r#"{"token":"AgAAAAAAAAA","range":{"min":"05C1","max":"FF"}}"#,
        ];
        for other in others {
            assert!(parse_cursor(other).is_err(), "{other}");
        }
    }

    #[test]
    fn tokens_of_the_service_begin_at_the_beginning() {
        let of_the_service = [
            "-RID:~a0NPAOszCpOChB4AAAAAAA==#RT:1#TRC:2#ISV:2#IEO:65567#QCF:8",
            "-RID:a0NPAOszCpOChB4AAAAAAA==#RT:1",
        ];
        for token in of_the_service {
            assert_eq!(parse_cursor(token).unwrap(), None, "{token}");
        }
        let others = [
            "-RID:",
            "-RID:~#RT:1",
            "-RID:~a0NPAA==#RT:1",
            "-RID:~a0NPAOszCpOChB4AAAAAAA==#RT:",
            "-RID:~a0NPAOszCpOChB4AAAAAAA==#RT:-1",
            "-RID:~a0NPAOszCpOChB4AAAAAAA==#",
        ];
        for token in others {
            assert!(parse_cursor(token).is_err(), "{token}");
        }
    }
}
