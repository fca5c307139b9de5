//! The words of a query, well formed or not.

/// Names and numbers, strings, blanks, and signs one by one.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let part = |c: char| c.is_alphanumeric() || c == '_';
        let length = match first {
            '\'' | '"' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            c if part(c) || c == '@' => {
                rest[c.len_utf8()..].find(|c| !part(c)).map_or(rest.len(), |end| end + c.len_utf8())
            }
            c if c.is_whitespace() => rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        words.push(rest[..length].to_owned());
        rest = &rest[length..];
    }
    words
}
