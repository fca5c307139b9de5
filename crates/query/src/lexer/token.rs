//! The tokens of the language.

use crate::error::Span;

/// One token and its position.
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
    /// Text that is no token of the language. It becomes an error only when the parser gets
    /// there, so that errors are reported in reading order.
    Invalid(Flaw),
    End,
}

/// What is wrong with text that is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    Character,
    Number,
    String,
}

/// Operators and punctuation, longest first where one is a prefix of another.
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

/// Spellings, longest first where one is a prefix of another.
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
        /// Reserved words.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Keyword {
            $($name),*
        }

        /// Sorted, which the lookup relies on.
        const KEYWORDS: &[(&str, Keyword)] = &[$(($text, Keyword::$name)),*];
    };
}

keywords! {
    And "AND", Array "ARRAY", As "AS", Asc "ASC", Between "BETWEEN", By "BY", Case "CASE",
    Cast "CAST", Convert "CONVERT", Cross "CROSS", Desc "DESC", Distinct "DISTINCT",
    Else "ELSE", End "END", Escape "ESCAPE", Exists "EXISTS", False "FALSE", For "FOR",
    From "FROM", Group "GROUP", Having "HAVING", In "IN", Infinity "INFINITY", Inner "INNER",
    Insert "INSERT", Into "INTO", Is "IS", Join "JOIN", Left "LEFT", Let "LET", Like "LIKE",
    Limit "LIMIT", Nan "NAN", Not "NOT", Null "NULL", Offset "OFFSET", On "ON", Or "OR",
    Order "ORDER", Outer "OUTER", Over "OVER", Rank "RANK", Right "RIGHT", Select "SELECT",
    Set "SET", Then "THEN", Top "TOP", True "TRUE", Udf "UDF", Undefined "UNDEFINED",
    Update "UPDATE", Value "VALUE", When "WHEN", Where "WHERE", With "WITH",
}

impl Keyword {
    /// Looks a word up, ignoring case. Constants and the prefix of user-defined functions
    /// are keywords in one spelling only, and names in all others.
    pub(crate) fn find(word: &str) -> Option<Keyword> {
        let order = |candidate: &str| {
            candidate.bytes().cmp(word.bytes().map(|byte| byte.to_ascii_uppercase()))
        };
        let at = KEYWORDS.binary_search_by(|(text, _)| order(text)).ok()?;
        let keyword = KEYWORDS.get(at).map(|(_, keyword)| *keyword)?;
        keyword.only_spelling().is_none_or(|only| only == word).then_some(keyword)
    }

    fn only_spelling(self) -> Option<&'static str> {
        let spellings = [
            (Keyword::True, "true"),
            (Keyword::False, "false"),
            (Keyword::Null, "null"),
            (Keyword::Undefined, "undefined"),
            (Keyword::Udf, "udf"),
            (Keyword::Nan, "NaN"),
            (Keyword::Infinity, "Infinity"),
        ];
        spellings.into_iter().find(|(own, _)| *own == self).map(|(_, spelling)| spelling)
    }

    /// Keywords that were added later are still names, or older queries would have broken.
    pub(crate) fn is_name(self) -> bool {
        matches!(self, Keyword::Let | Keyword::Rank)
    }
}

/// Whether a name can be written without brackets and quotes.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(starts_name)
        && chars.all(continues_name)
        && Keyword::find(name).is_none_or(Keyword::is_name)
}

/// The service examines UTF-16 units one by one, and accepts no surrogate as a letter.
fn is_one_unit(c: char) -> bool {
    c.len_utf16() == 1
}

pub(super) fn starts_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || (!c.is_ascii() && c.is_alphabetic() && is_one_unit(c))
}

pub(super) fn continues_name(c: char) -> bool {
    starts_name(c) || c.is_ascii_digit() || (!c.is_ascii() && c.is_numeric() && is_one_unit(c))
}

/// White space, among it U+180E, which Unicode no longer counts as such.
pub(super) fn is_blank(c: char) -> bool {
    c.is_whitespace() || c == '\u{180E}'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_sorted_for_the_lookup() {
        assert!(KEYWORDS.is_sorted_by_key(|(text, _)| *text));
        for (text, keyword) in KEYWORDS {
            let spelling = keyword.only_spelling().unwrap_or(text);
            assert_eq!(Keyword::find(spelling), Some(*keyword));
            assert_eq!(Keyword::find(text), (spelling == *text).then_some(*keyword));
        }
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
