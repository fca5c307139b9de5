//! Rust source as the rules need it: which bytes are code, which lines are
//! tests, where functions begin and end.
//!
//! This reads tokens, not grammar. A real parser would be a large dependency for four
//! questions, and would refuse an unfinished file. What it takes on trust: code is
//! formatted by rustfmt and braces match.

mod lexer;

use std::ops::Range;

use lexer::Kind;

/// One Rust file, read.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path from the repository's root.
    pub path: String,
    text: String,
    /// The text with comments and literals blanked, byte for byte in place.
    code: String,
    /// The text with all but comments blanked, byte for byte in place.
    comments: String,
    line_starts: Vec<usize>,
    /// Byte ranges that are compiled for tests only.
    tests: Vec<Range<usize>>,
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub name: String,
    /// Line of the `fn` keyword, counted from 1.
    pub line: usize,
    /// From the `fn` keyword to the closing brace, both included.
    pub lines: usize,
}

/// Attributes that keep an item out of production.
const TEST_ATTRIBUTES: [&str; 3] = ["#[cfg(test)]", "#[cfg(all(test,", "#[test]"];

impl Source {
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> Source {
        let text = text.into();
        let kinds = lexer::classify(&text);
        let code = keep(&text, &kinds, Kind::Code);
        let comments = keep(&text, &kinds, Kind::Comment);
        let line_starts = std::iter::once(0)
            .chain(text.match_indices('\n').map(|(at, _)| at + 1))
            .filter(|&start| start < text.len())
            .collect();
        let tests = test_items(&code);
        Source { path: path.into(), text, code, comments, line_starts, tests }
    }

    /// The crate's folder from the root, such as `crates/model`, if it is in one.
    pub fn crate_folder(&self) -> Option<&str> {
        let depth = if self.path.starts_with("crates/") { 2 } else { 1 };
        let (end, _) = self.path.match_indices('/').nth(depth - 1)?;
        self.path.get(..end)
    }

    /// The code, with comments and literals blanked.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The comments, everything else blanked.
    pub fn comments(&self) -> &str {
        &self.comments
    }

    /// Line of a byte, counted from 1.
    pub fn line_of(&self, at: usize) -> usize {
        self.line_starts.partition_point(|&start| start <= at)
    }

    /// Whether a byte is compiled for tests only.
    pub fn is_test(&self, at: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&at))
    }

    /// Lines of the file without its test items.
    pub fn production_lines(&self) -> usize {
        let test_lines: usize = self
            .tests
            .iter()
            .map(|range| self.line_of(range.end.saturating_sub(1)) - self.line_of(range.start) + 1)
            .sum();
        self.line_starts.len().saturating_sub(test_lines)
    }

    /// The inner documentation (`//!`) at the head of the file, without marks.
    pub fn docs(&self) -> Vec<&str> {
        self.text
            .lines()
            .skip_while(|line| line.starts_with("#!") || line.trim().is_empty())
            .map_while(|line| line.strip_prefix("//!"))
            .map(str::trim)
            .collect()
    }

    /// Production functions that have a body, in the order of the file.
    pub fn functions(&self) -> Vec<Function> {
        words(&self.code)
            .filter(|(at, word)| *word == "fn" && !self.is_test(*at))
            .filter_map(|(at, _)| self.function(at))
            .collect()
    }

    fn function(&self, keyword: usize) -> Option<Function> {
        let after = keyword + "fn".len();
        let (name_at, name) = words(self.code.get(after..)?).next()?;
        // `fn(u8)` is a type: no name follows the keyword directly.
        if !self.code.get(after..after + name_at)?.trim().is_empty() {
            return None;
        }
        let end = item_end(&self.code, after + name_at, Braces::AreTheBody)?;
        if !self.code.get(..end)?.ends_with('}') {
            return None;
        }
        let line = self.line_of(keyword);
        Some(Function { name: name.to_owned(), line, lines: self.line_of(end - 1) - line + 1 })
    }

    /// Files of modules that are declared here (`mod name;`), as paths without
    /// their extension.
    pub fn modules(&self) -> Vec<String> {
        self.declared().map(|(_, path)| path).collect()
    }

    /// Those of [`Source::modules`] that are compiled for tests only.
    pub fn test_modules(&self) -> Vec<String> {
        self.declared().filter(|(at, _)| self.is_test(*at)).map(|(_, path)| path).collect()
    }

    fn declared(&self) -> impl Iterator<Item = (usize, String)> {
        let keywords = words(&self.code).filter(|(_, word)| *word == "mod");
        keywords.filter_map(|(at, word)| {
            let (name, _) = self.code.get(at + word.len()..)?.split_once(';')?;
            let name = name.trim();
            let is_name = words(name).next() == Some((0, name));
            is_name.then(|| (at, format!("{}/{name}", self.module_folder())))
        })
    }

    /// Where the modules declared in this file live.
    fn module_folder(&self) -> &str {
        let stem = self.path.strip_suffix(".rs").unwrap_or(&self.path);
        match stem.rsplit_once('/') {
            Some((folder, "lib" | "main")) => folder,
            _ => stem,
        }
    }
}

/// Blanks every byte that is of another kind; line breaks stay.
fn keep(text: &str, kinds: &[Kind], kept: Kind) -> String {
    let bytes = text.bytes().zip(kinds);
    let blanked =
        bytes.map(|(byte, &kind)| if kind == kept || byte == b'\n' { byte } else { b' ' });
    String::from_utf8(blanked.collect()).expect("a token starts and ends between characters")
}

/// Words of the code with their offsets.
pub fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = code.get(at..)?;
        let start = at + rest.find(is_word)?;
        let word = code.get(start..)?;
        let end = start + word.find(|c| !is_word(c)).unwrap_or(word.len());
        at = end;
        Some((start, code.get(start..end)?))
    })
}

/// Items with a test attribute, from the attribute to their end. Items inside another test
/// item are part of it.
fn test_items(code: &str) -> Vec<Range<usize>> {
    let mut starts: Vec<usize> = TEST_ATTRIBUTES
        .iter()
        .flat_map(|attribute| code.match_indices(attribute).map(|(at, _)| at))
        .collect();
    starts.sort_unstable();
    let mut items: Vec<Range<usize>> = Vec::new();
    for start in starts {
        let inside = items.last().is_some_and(|item| item.contains(&start));
        if let (false, Some(end)) = (inside, item_end(code, start, braces_of(code, start))) {
            items.push(start..end);
        }
    }
    items
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Braces {
    AreTheBody,
    /// As in `use a::{b, c};`.
    AreAList,
}

/// What the braces of the item at `start`, after its attributes, mean.
fn braces_of(code: &str, start: usize) -> Braces {
    let mut keywords = words(code.get(start..).unwrap_or_default()).map(|(_, word)| word);
    match keywords.find(|word| is_item_keyword(word)) {
        Some("use") => Braces::AreAList,
        _ => Braces::AreTheBody,
    }
}

/// The end of the item that begins at `start`: after its `;`, or after the brace that
/// closes its body. Attributes before it belong to it.
fn item_end(code: &str, start: usize, braces: Braces) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in code.get(start..)?.bytes().enumerate() {
        match byte {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        let ends = byte == b';' || (byte == b'}' && braces == Braces::AreTheBody);
        if ends && depth == 0 {
            return Some(start + at + 1);
        }
    }
    None
}

fn is_item_keyword(word: &str) -> bool {
    matches!(
        word,
        "use" | "mod" | "fn" | "struct" | "enum" | "impl" | "trait" | "const" | "static" | "type"
    )
}

#[cfg(test)]
mod tests;
