//! From text to words.
//!
//! Lexing cannot fail: what is no word becomes a [`Kind::Invalid`] token, and
//! the parser reports it if it gets that far. Strings and numbers are checked
//! here and decoded later, from their place in the text.

mod literal;
mod token;

pub(crate) use literal::{decode_number, decode_string};
pub(crate) use token::{Keyword, Kind, Symbol, Token, is_plain_name};

use crate::error::Span;
use token::{SYMBOLS, continues_name, starts_name};

/// The words of a text, the last of them [`Kind::End`].
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer { text, at: 0 };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.token();
        tokens.push(token);
        if token.kind == Kind::End {
            return tokens;
        }
    }
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

impl Lexer<'_> {
    fn token(&mut self) -> Token {
        let complete = self.skip_blanks();
        let start = self.at;
        let kind = if complete { self.word() } else { self.rest() };
        Token { kind, span: Span::new(start, self.at) }
    }

    fn word(&mut self) -> Kind {
        match self.peek(0) {
            None => Kind::End,
            Some(quote @ (b'"' | b'\'')) => self.string(quote),
            Some(b'@') => self.parameter(),
            Some(byte) if byte.is_ascii_digit() => self.number(),
            Some(byte) if starts_name(byte) => self.name(),
            Some(_) => self.symbol(),
        }
    }

    /// Skips blanks and comments; false if a comment does not end.
    fn skip_blanks(&mut self) -> bool {
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(b' ' | b'\t' | b'\r' | b'\n'), _) => self.at += 1,
                (Some(b'-'), Some(b'-')) => {
                    self.at += self.remaining().find('\n').unwrap_or(self.remaining().len());
                }
                (Some(b'/'), Some(b'*')) => match self.remaining().find("*/") {
                    // "/*/" opens a comment and does not close it.
                    Some(1) => match self.remaining().get(3..).and_then(|rest| rest.find("*/")) {
                        Some(length) => self.at += length + 5,
                        None => return false,
                    },
                    Some(length) => self.at += length + 2,
                    None => return false,
                },
                _ => return true,
            }
        }
    }

    fn name(&mut self) -> Kind {
        let start = self.at;
        self.skip_while(continues_name);
        let word = self.text.get(start..self.at).unwrap_or_default();
        Keyword::find(word).map_or(Kind::Identifier, Kind::Keyword)
    }

    fn parameter(&mut self) -> Kind {
        self.at += 1;
        let named = self.peek(0).is_some_and(starts_name);
        self.skip_while(continues_name);
        if named { Kind::Parameter } else { Kind::Invalid }
    }

    /// Numbers have no sign. `5.`, `0.E` and `12a` are no numbers and no two
    /// words either.
    fn number(&mut self) -> Kind {
        let hexadecimal = self.peek(0) == Some(b'0') && matches!(self.peek(1), Some(b'x' | b'X'));
        let valid = if hexadecimal { self.hexadecimal() } else { self.decimal() };
        let stops = !self.peek(0).is_some_and(|byte| continues_name(byte) || byte == b'.');
        if valid && stops {
            return Kind::Number;
        }
        self.skip_while(|byte| continues_name(byte) || byte == b'.');
        Kind::Invalid
    }

    fn hexadecimal(&mut self) -> bool {
        self.at += 2;
        self.skip_while(|byte| byte.is_ascii_hexdigit())
    }

    fn decimal(&mut self) -> bool {
        self.digits();
        if self.peek(0) == Some(b'.') && self.peek(1).is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
            self.digits();
        }
        if !matches!(self.peek(0), Some(b'e' | b'E')) {
            return true;
        }
        self.at += 1;
        if matches!(self.peek(0), Some(b'+' | b'-')) {
            self.at += 1;
        }
        self.digits()
    }

    fn digits(&mut self) -> bool {
        self.skip_while(|byte| byte.is_ascii_digit())
    }

    fn string(&mut self, quote: u8) -> Kind {
        match literal::string_length(self.remaining(), quote) {
            Some(length) => {
                self.at += length;
                Kind::String
            }
            None => self.rest(),
        }
    }

    fn symbol(&mut self) -> Kind {
        let rest = self.remaining();
        let found = SYMBOLS.iter().find(|(text, _)| rest.starts_with(text));
        if let Some((text, symbol)) = found {
            self.at += text.len();
            return Kind::Symbol(*symbol);
        }
        self.at += rest.chars().next().map_or(0, char::len_utf8);
        Kind::Invalid
    }

    /// Takes all that is left as one invalid token: nothing can be told apart
    /// behind a string or comment that does not end.
    fn rest(&mut self) -> Kind {
        self.at = self.text.len();
        Kind::Invalid
    }

    /// Skips bytes; whether there were any.
    fn skip_while(&mut self, matches: impl Fn(u8) -> bool) -> bool {
        let start = self.at;
        while self.peek(0).is_some_and(&matches) {
            self.at += 1;
        }
        self.at > start
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn remaining(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }
}
