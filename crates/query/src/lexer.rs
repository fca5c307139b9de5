//! The lexer: from text to tokens.
//!
//! Lexing cannot fail: text that is no token becomes a [`Kind::Invalid`] one, and the
//! parser reports it if it gets that far. Strings and numbers are checked here and decoded
//! later, from their position in the text.

mod literal;
mod token;

pub(crate) use literal::{decode_number, decode_string};
pub(crate) use token::{Flaw, Keyword, Kind, Symbol, Token, is_plain_name};

use crate::error::Span;
use token::{SYMBOLS, continues_name, is_blank, starts_name};

/// Tokens that there is room for at first: most texts have no more, and none is so long that
/// this matters.
const FIRST_TOKENS_MAX: usize = 32;

/// The tokens of a text, the last of them [`Kind::End`].
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::with_capacity(text.len().min(FIRST_TOKENS_MAX));
    loop {
        let token = lexer.token();
        tokens.push(token);
        if token.kind == Kind::End {
            return tokens;
        }
    }
}

/// Whether a text is a parameter's name and nothing else.
pub(crate) fn is_parameter(text: &str) -> bool {
    let words = tokens(text);
    matches!(words.as_slice(), [Token { kind: Kind::Parameter, span }, _]
        if span.range() == (0..text.len()))
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl Lexer<'_> {
    fn token(&mut self) -> Token {
        self.skip_blanks();
        let start = self.at;
        let kind = self.word();
        Token { kind, span: Span::new(start, self.at) }
    }

    fn word(&mut self) -> Kind {
        match self.peek() {
            None => Kind::End,
            Some(quote @ ('"' | '\'')) => self.string(quote),
            Some('@') => self.parameter(),
            Some('0'..='9') => self.number(),
            Some('.') if self.byte(1).is_some_and(|byte| byte.is_ascii_digit()) => self.number(),
            Some(c) if starts_name(c) => self.name(),
            Some(_) => self.symbol(),
        }
    }

    /// Skips blanks, and comments up to the end of their line.
    fn skip_blanks(&mut self) {
        loop {
            self.skip_while(is_blank);
            if !self.remaining().starts_with("--") {
                return;
            }
            self.skip_while(|c| c != '\n' && c != '\r');
        }
    }

    fn name(&mut self) -> Kind {
        let start = self.at;
        self.skip_while(continues_name);
        let word = self.text.get(start..self.at).unwrap_or_default();
        Keyword::find(word).map_or(Kind::Identifier, Kind::Keyword)
    }

    /// A lone `@` is no token, whatever follows it.
    fn parameter(&mut self) -> Kind {
        self.at += 1;
        if self.peek().is_some_and(starts_name) {
            self.skip_while(continues_name);
            return Kind::Parameter;
        }
        Kind::Invalid(Flaw::Character)
    }

    /// Numbers have no sign. `5.` and `.5` are numbers; `12a` is neither a number nor two
    /// tokens.
    fn number(&mut self) -> Kind {
        let start = self.at;
        let prefix = self.remaining().get(..2).unwrap_or_default();
        let hexadecimal = prefix.eq_ignore_ascii_case("0x");
        let valid = if hexadecimal { self.hexadecimal() } else { self.decimal() };
        let ends = !self.skip_while(continues_name);
        let literal = self.text.get(start..self.at).unwrap_or_default();
        if valid && ends && decode_number(literal).is_some() {
            return Kind::Number;
        }
        Kind::Invalid(Flaw::Number)
    }

    fn hexadecimal(&mut self) -> bool {
        self.at += 2;
        self.skip_while(|c| c.is_ascii_hexdigit())
    }

    fn decimal(&mut self) -> bool {
        self.digits();
        if self.byte(0) == Some(b'.') {
            self.at += 1;
            self.digits();
        }
        if !matches!(self.byte(0), Some(b'e' | b'E')) {
            return true;
        }
        self.at += 1;
        if matches!(self.byte(0), Some(b'+' | b'-')) {
            self.at += 1;
        }
        self.digits()
    }

    fn digits(&mut self) -> bool {
        self.skip_while(|c| c.is_ascii_digit())
    }

    fn string(&mut self, quote: char) -> Kind {
        let (length, valid) = literal::string_length(self.remaining(), quote);
        self.at += length;
        if valid { Kind::String } else { Kind::Invalid(Flaw::String) }
    }

    fn symbol(&mut self) -> Kind {
        let rest = self.remaining();
        let found = SYMBOLS.iter().find(|(text, _)| rest.starts_with(text));
        if let Some((text, symbol)) = found {
            self.at += text.len();
            return Kind::Symbol(*symbol);
        }
        self.at += rest.chars().next().map_or(0, char::len_utf8);
        Kind::Invalid(Flaw::Character)
    }

    /// Skips characters; returns whether there were any.
    fn skip_while(&mut self, matches: impl Fn(char) -> bool) -> bool {
        let rest = self.remaining();
        let length = rest.find(|c| !matches(c)).unwrap_or(rest.len());
        self.at += length;
        length > 0
    }

    fn peek(&self) -> Option<char> {
        self.remaining().chars().next()
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn remaining(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }
}
