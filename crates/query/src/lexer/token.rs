//! The words of the language.

use crate::error::Span;

/// One word and where it stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) span: Span,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Identifier,
    Keyword(Keyword),
    Number,
    String,
    Parameter,
    Symbol(Symbol),
    /// Text that is no word of the language. It becomes an error only when the
    /// parser gets there, so that errors are reported in reading order.
    Invalid,
    End,
}

/// Operators and punctuation, longest first where one begins another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    ShiftRightUnsigned,
    ShiftLeft,
    ShiftRight,
    LessEqual,
    GreaterEqual,
    LessGreater,
    NotEqual,
    Concat,
    Coalesce,
    Equal,
    Less,
    Greater,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    Pipe,
    Ampersand,
    Caret,
    Tilde,
    Question,
    Colon,
    Comma,
    Dot,
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
}

/// Spellings, longest first where one begins another.
pub(super) const SYMBOLS: &[(&str, Symbol)] = &[
    (">>>", Symbol::ShiftRightUnsigned),
    ("<<", Symbol::ShiftLeft),
    (">>", Symbol::ShiftRight),
    ("<=", Symbol::LessEqual),
    (">=", Symbol::GreaterEqual),
    ("<>", Symbol::LessGreater),
    ("!=", Symbol::NotEqual),
    ("||", Symbol::Concat),
    ("??", Symbol::Coalesce),
    ("=", Symbol::Equal),
    ("<", Symbol::Less),
    (">", Symbol::Greater),
    ("+", Symbol::Plus),
    ("-", Symbol::Minus),
    ("*", Symbol::Star),
    ("/", Symbol::Slash),
    ("%", Symbol::Percent),
    ("|", Symbol::Pipe),
    ("&", Symbol::Ampersand),
    ("^", Symbol::Caret),
    ("~", Symbol::Tilde),
    ("?", Symbol::Question),
    (":", Symbol::Colon),
    (",", Symbol::Comma),
    (".", Symbol::Dot),
    ("(", Symbol::OpenParen),
    (")", Symbol::CloseParen),
    ("[", Symbol::OpenBracket),
    ("]", Symbol::CloseBracket),
    ("{", Symbol::OpenBrace),
    ("}", Symbol::CloseBrace),
];

macro_rules! keywords {
    ($($name:ident $text:literal),* $(,)?) => {
        /// Words with a meaning of their own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Keyword {
            $($name),*
        }

        /// In the order of their spelling, which the lookup relies on.
        const KEYWORDS: &[(&str, Keyword)] = &[$(($text, Keyword::$name)),*];
    };
}

keywords! {
    And "AND", Array "ARRAY", As "AS", Asc "ASC", Between "BETWEEN", By "BY", Case "CASE",
    Cast "CAST", Convert "CONVERT", Cross "CROSS", Desc "DESC", Distinct "DISTINCT",
    Else "ELSE", End "END", Escape "ESCAPE", Exists "EXISTS", False "FALSE", For "FOR",
    From "FROM", Group "GROUP", Having "HAVING", In "IN", Inner "INNER", Insert "INSERT",
    Into "INTO", Is "IS", Join "JOIN", Left "LEFT", Let "LET", Like "LIKE", Limit "LIMIT",
    Not "NOT", Null "NULL", Offset "OFFSET", On "ON", Or "OR", Order "ORDER", Outer "OUTER",
    Over "OVER", Rank "RANK", Right "RIGHT", Select "SELECT", Set "SET", Then "THEN",
    Top "TOP", True "TRUE", Udf "UDF", Undefined "UNDEFINED", Update "UPDATE", Value "VALUE",
    When "WHEN", Where "WHERE", With "WITH",
}

impl Keyword {
    /// Looks a word up, whatever its case.
    pub(crate) fn find(word: &str) -> Option<Keyword> {
        let order = |candidate: &str| {
            candidate.bytes().cmp(word.bytes().map(|byte| byte.to_ascii_uppercase()))
        };
        let at = KEYWORDS.binary_search_by(|(text, _)| order(text)).ok()?;
        KEYWORDS.get(at).map(|(_, keyword)| *keyword)
    }

    /// Words that came late to the language still serve as names, or older
    /// queries would have broken.
    pub(crate) fn is_name(self) -> bool {
        matches!(self, Keyword::Let | Keyword::Rank)
    }
}

/// Whether a name can be written without brackets and quotes.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(starts_name)
        && bytes.all(continues_name)
        && Keyword::find(name).is_none_or(Keyword::is_name)
}

pub(super) fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

pub(super) fn continues_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_sorted_for_the_lookup() {
        assert!(KEYWORDS.is_sorted_by_key(|(text, _)| *text));
        assert!(KEYWORDS.iter().all(|(text, keyword)| Keyword::find(text) == Some(*keyword)));
        assert_eq!(Keyword::find("sElEcT"), Some(Keyword::Select));
        assert_eq!(Keyword::find("selects"), None);
    }

    #[test]
    fn longer_symbols_come_before_their_beginnings() {
        for (at, (text, _)) in SYMBOLS.iter().enumerate() {
            assert!(SYMBOLS.iter().skip(at + 1).all(|(later, _)| !later.starts_with(text)));
        }
    }
}
