//! Distinguishes code from comments and literals, byte by byte.

/// What a byte of Rust source belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Code,
    Comment,
    /// String and character literals, with their quotes.
    Literal,
}

/// Gives every byte of `text` its kind. Unfinished comments and literals reach
/// to the end of the text.
pub(super) fn classify(text: &str) -> Vec<Kind> {
    let bytes = text.as_bytes();
    let mut kinds = Vec::with_capacity(bytes.len());
    while let Some(rest) = bytes.get(kinds.len()..).filter(|rest| !rest.is_empty()) {
        let (kind, len) = token(rest);
        kinds.extend(std::iter::repeat_n(kind, len.clamp(1, rest.len())));
    }
    kinds
}

/// Kind and length of the token that `rest` begins with.
fn token(rest: &[u8]) -> (Kind, usize) {
    match rest {
        [b'/', b'/', ..] => (Kind::Comment, line_comment_len(rest)),
        [b'/', b'*', ..] => (Kind::Comment, block_comment_len(rest)),
        [b'"', ..] => (Kind::Literal, string_len(rest)),
        [b'\'', ..] => match char_len(rest) {
            Some(len) => (Kind::Literal, len),
            // A lifetime.
            None => (Kind::Code, 1),
        },
        [first, ..] if is_word(*first) => match raw_string_len(rest) {
            Some(len) => (Kind::Literal, len),
            None => (Kind::Code, rest.iter().take_while(|byte| is_word(**byte)).count()),
        },
        _ => (Kind::Code, 1),
    }
}

/// Bytes of a non-ASCII character count as part of a word, so that none is cut.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

fn line_comment_len(rest: &[u8]) -> usize {
    rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
}

/// Block comments nest.
fn block_comment_len(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        match rest.get(at..) {
            Some([b'/', b'*', ..]) => (depth, at) = (depth + 1, at + 2),
            Some([b'*', b'/', ..]) => (depth, at) = (depth - 1, at + 2),
            Some([_, ..]) => at += 1,
            Some([]) | None => return rest.len(),
        }
        if depth == 0 {
            return at;
        }
    }
}

fn string_len(rest: &[u8]) -> usize {
    let mut at = 1;
    loop {
        match rest.get(at) {
            Some(b'\\') => at += 2,
            Some(b'"') => return at + 1,
            Some(_) => at += 1,
            None => return rest.len(),
        }
    }
}

/// `r"…"`, `br#"…"#` and the like; `None` if this is an ordinary word.
fn raw_string_len(rest: &[u8]) -> Option<usize> {
    let prefix = match rest {
        [b'r', ..] => 1,
        [b'b' | b'c', b'r', ..] => 2,
        _ => return None,
    };
    let hashes = rest.iter().skip(prefix).take_while(|byte| **byte == b'#').count();
    let open = prefix + hashes;
    if rest.get(open) != Some(&b'"') {
        return None;
    }
    let mut close = vec![b'"'];
    close.resize(hashes + 1, b'#');
    let body = rest.get(open + 1..)?;
    let end = body.windows(close.len()).position(|window| window == close);
    Some(end.map_or(rest.len(), |end| open + 1 + end + close.len()))
}

/// The length of a character literal; `None` if the quote opens a lifetime.
fn char_len(rest: &[u8]) -> Option<usize> {
    let inside = match rest.get(1)? {
        // The escaped character may be a quote itself.
        b'\\' => 2 + rest.iter().skip(3).position(|&byte| byte == b'\'')?,
        first => utf8_len(*first),
    };
    (rest.get(1 + inside) == Some(&b'\'')).then_some(inside + 2)
}

/// Bytes of the character that begins with `first`.
fn utf8_len(first: u8) -> usize {
    match first.leading_ones() {
        0 => 1,
        ones => ones as usize,
    }
}
