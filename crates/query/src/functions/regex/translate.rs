//! Translation of PCRE syntax into the library's.
//!
//! Most of the two languages is the same. The translation changes what looks alike and
//! means something else (`\d` is ASCII in PCRE, `[` in a class stands for itself, `\<` is
//! no word boundary), and detects what the library cannot do.

use std::iter::Peekable;
use std::str::Chars;

use super::RegexError;

/// What `$` means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dollar {
    /// As in PCRE: a line break at the very end may follow. The translation
    /// takes that break in, which is right where only the match counts.
    BeforeLastBreak,
    AtTheEnd,
}

const LINE_BREAKS: &str = r"\n\x0B\f\r\x{85}\x{2028}\x{2029}";
const BLANKS: &str = r"\t\x20\x{A0}\x{1680}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}";

pub(super) fn translate(
    pattern: &str,
    extended: bool,
    dollar: Dollar,
) -> Result<String, RegexError> {
    let inline_lines = pattern.contains("(?m") || pattern.contains("(?im");
    let dollar = if inline_lines { Dollar::AtTheEnd } else { dollar };
    let out = String::with_capacity(pattern.len() + 16);
    let mut translator = Translator { chars: pattern.chars().peekable(), out, extended, dollar };
    translator.run()?;
    Ok(translator.out)
}

struct Translator<'p> {
    chars: Peekable<Chars<'p>>,
    out: String,
    extended: bool,
    dollar: Dollar,
}

type Translated = Result<(), RegexError>;

impl Translator<'_> {
    fn run(&mut self) -> Translated {
        while let Some(c) = self.chars.next() {
            match c {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.group()?,
                '*' | '+' | '?' | '}' => {
                    self.out.push(c);
                    if self.chars.peek() == Some(&'+') {
                        return Err(RegexError::Unsupported("a possessive quantifier"));
                    }
                }
                '$' if self.dollar == Dollar::BeforeLastBreak => self.out.push_str(r"(?:\n?\z)"),
                '#' if self.extended => {
                    self.chars.by_ref().find(|c| *c == '\n');
                }
                _ => self.out.push(c),
            }
        }
        Ok(())
    }

    /// What follows a backslash outside a class.
    fn escape(&mut self) -> Translated {
        let c = self.chars.next().ok_or(RegexError::Invalid)?;
        if self.shorthand(c) {
            return Ok(());
        }
        match c {
            '1'..='9' | 'g' | 'k' => return Err(RegexError::Unsupported("a back-reference")),
            'G' | 'K' | 'X' | 'C' => return Err(RegexError::Unsupported("this escape")),
            'b' => self.out.push_str(r"(?-u:\b)"),
            'Z' => self.out.push_str(r"(?:\n?\z)"),
            'R' => self.out.push_str(&format!(r"(?:\r\n|[{LINE_BREAKS}])")),
            'N' => self.out.push_str(r"[^\n]"),
            'Q' => self.quoted(),
            'E' => {}
            _ => self.character(c),
        }
        Ok(())
    }

    /// The classes that have a letter; returns whether this is one of them.
    fn shorthand(&mut self, c: char) -> bool {
        let class = match c.to_ascii_lowercase() {
            'd' => "0-9",
            'w' => "0-9A-Za-z_",
            's' => r"\x20\t\n\r\x0B\f",
            'h' => BLANKS,
            'v' => LINE_BREAKS,
            _ => return false,
        };
        let negation = if c.is_ascii_uppercase() { "^" } else { "" };
        self.out.push_str(&format!("[{negation}{class}]"));
        true
    }

    /// An escaped character that stands for one character.
    fn character(&mut self, c: char) {
        match c {
            'e' => self.out.push_str(r"\x1B"),
            '0' => self.octal(),
            '<' | '>' => self.out.push(c),
            _ if c.is_ascii() => {
                self.out.push('\\');
                self.out.push(c);
            }
            _ => self.out.push(c),
        }
    }

    fn octal(&mut self) {
        let mut code = 0;
        for _ in 0..2 {
            let Some(digit) = self.chars.peek().and_then(|c| c.to_digit(8)) else { break };
            code = code * 8 + digit;
            self.chars.next();
        }
        self.out.push_str(&format!(r"\x{{{code:X}}}"));
    }

    /// Text between `\Q` and `\E`, which stands for itself.
    fn quoted(&mut self) {
        while let Some(c) = self.chars.next() {
            if c == '\\' && self.chars.peek() == Some(&'E') {
                self.chars.next();
                return;
            }
            self.out.push_str(&regex_syntax::escape(c.encode_utf8(&mut [0; 4])));
        }
    }

    /// What follows an opening bracket.
    fn group(&mut self) -> Translated {
        let mut ahead = self.chars.clone();
        let (first, second) = (ahead.next(), ahead.next());
        if first == Some('*') {
            return Err(RegexError::Unsupported("a backtracking verb"));
        }
        self.out.push('(');
        if first != Some('?') {
            return Ok(());
        }
        match (second, ahead.next()) {
            (Some('=' | '!'), _) | (Some('<'), Some('=' | '!')) => {
                Err(RegexError::Unsupported("a look-around"))
            }
            (Some('>'), _) => Err(RegexError::Unsupported("an atomic group")),
            (Some('|' | '(' | 'R' | '&' | '+' | '0'..='9'), _) | (Some('P'), Some('>' | '=')) => {
                Err(RegexError::Unsupported("this group"))
            }
            (Some('#'), _) => {
                self.out.pop();
                self.chars.by_ref().find(|c| *c == ')').map(|_| ()).ok_or(RegexError::Invalid)
            }
            (Some('\''), _) => self.quoted_name(),
            _ => Ok(()),
        }
    }

    /// `(?'name'` is an alternative spelling of `(?<name>`.
    fn quoted_name(&mut self) -> Translated {
        self.out.push_str("?<");
        self.chars.nth(1);
        loop {
            match self.chars.next().ok_or(RegexError::Invalid)? {
                '\'' => break,
                c => self.out.push(c),
            }
        }
        self.out.push('>');
        Ok(())
    }

    fn class(&mut self) -> Translated {
        self.out.push('[');
        if self.chars.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        if self.chars.next_if_eq(&']').is_some() {
            self.out.push_str(r"\]");
        }
        loop {
            match self.chars.next().ok_or(RegexError::Invalid)? {
                ']' => break,
                '\\' => self.class_escape()?,
                '[' if self.chars.peek() == Some(&':') => self.posix()?,
                c @ ('[' | '&' | '~' | '#' | ' ') => {
                    self.out.push_str(&format!(r"\x{{{:X}}}", u32::from(c)))
                }
                '-' if self.chars.peek() == Some(&'-') => self.out.push_str(r"\-"),
                c => self.out.push(c),
            }
        }
        self.out.push(']');
        Ok(())
    }

    fn class_escape(&mut self) -> Translated {
        let c = self.chars.next().ok_or(RegexError::Invalid)?;
        if !self.shorthand(c) {
            match c {
                'b' => self.out.push_str(r"\x08"),
                _ => self.character(c),
            }
        }
        Ok(())
    }

    /// `[:name:]` inside a class.
    fn posix(&mut self) -> Translated {
        self.out.push('[');
        loop {
            let c = self.chars.next().ok_or(RegexError::Invalid)?;
            self.out.push(c);
            if c == ']' {
                return Ok(());
            }
        }
    }
}
