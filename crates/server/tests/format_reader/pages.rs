//! What the reader has of a page, and what the page says, are the same.

use std::path::Path;

use serde_json::Value;

use crate::reader::distinct::{
    ARRAY, FALSE, INDEX, NAME, NULL, NUMBER, OBJECT, ROOT, STRING, TRUE, payload,
};
use crate::reader::interpret;
use crate::reader::store::Rows;

/// The cells of the first table with this heading that follows `after`, without quotes.
fn table(page: &str, after: &str, heading: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats").join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let (_, text) = text.split_once(after).unwrap();
    let (_, table) = text.split_once(heading).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| {
        let cells = row.trim_matches('|').split(" | ");
        cells.map(|cell| cell.trim_matches([' ', '`']).to_owned()).collect()
    };
    rows.map(cells).collect()
}

#[test]
fn the_constants_of_distinct_hashes_are_in_their_page() {
    let constants = [
        ("root", ROOT),
        ("null", NULL),
        ("false", FALSE),
        ("true", TRUE),
        ("string", STRING),
        ("number", NUMBER),
        ("array", ARRAY),
        ("index", INDEX),
        ("object", OBJECT),
        ("name", NAME),
    ];
    let constants = constants
        .map(|(name, (h1, h2))| vec![name.to_owned(), format!("{h1:016x}"), format!("{h2:016x}")]);
    assert_eq!(table("index.md", "**Distinct hash.**", "| constant | h1 | h2 |"), constants);
}

#[test]
fn the_examples_of_distinct_hashes_hold() {
    let examples = table("index.md", "**Distinct hash.**", "| value | payload |");
    assert!(examples.len() > 3, "{examples:?}");
    for example in examples {
        let [text, expected] = &example[..] else { panic!("{example:?}") };
        let value: Value = serde_json::from_str(text).unwrap();
        let found = format!("{:032x}", u128::from_be_bytes(payload(&value)));
        assert_eq!(&found, expected, "{text}");
    }
}

/// A folder of a later version is refused with the name of what it has.
#[test]
fn reserved_groups_are_named() {
    let heading = "| group | tag | rest of the key | will hold |";
    let groups = table("partition.md", "Reserved for later versions", heading);
    assert_eq!(groups.len(), 3);
    for group in groups {
        let tag = u8::from_str_radix(&group[1], 16).unwrap();
        let refused = refusal(tag);
        assert!(refused.contains("reserved") && refused.ends_with(&group[0]), "{refused}");
    }
    assert!(!refusal(0x70).contains("reserved"));
}

fn refusal(tag: u8) -> String {
    let key = [0, 0, 0, 1, 0, 0, 0, 0, tag, 0x00, 0x01];
    interpret(&Rows::from([(key.to_vec(), Vec::new())])).unwrap_err().0
}
