//! Counts per file, and what was found wrong.

use std::fmt;

/// What became of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Right,
    /// Differs for a reason that the row itself shows.
    Excepted(&'static str),
    /// Needs what the language does not do yet, or what the row does not tell.
    LeftOut(&'static str),
    Wrong(String),
}

/// The counts of one file, or of one part of a file.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) name: String,
    pub(crate) right: usize,
    pub(crate) wrong: Vec<String>,
    pub(crate) excepted: Vec<(&'static str, usize)>,
    pub(crate) left_out: Vec<(&'static str, usize)>,
}

impl Report {
    pub(crate) fn new(name: impl Into<String>) -> Report {
        let name = name.into();
        Report { name, right: 0, wrong: Vec::new(), excepted: Vec::new(), left_out: Vec::new() }
    }

    pub(crate) fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Right => self.right += 1,
            Verdict::Wrong(what) => self.wrong.push(what),
            Verdict::Excepted(reason) => count(&mut self.excepted, reason),
            Verdict::LeftOut(reason) => count(&mut self.left_out, reason),
        }
    }

    /// Rows that were judged.
    pub(crate) fn judged(&self) -> usize {
        self.right + self.wrong.len() + total(&self.excepted)
    }
}

fn count(counts: &mut Vec<(&'static str, usize)>, reason: &'static str) {
    match counts.iter_mut().find(|(own, _)| *own == reason) {
        Some((_, count)) => *count += 1,
        None => counts.push((reason, 1)),
    }
}

fn total(counts: &[(&'static str, usize)]) -> usize {
    counts.iter().map(|(_, count)| count).sum()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, judged) = (&self.name, self.judged());
        write!(f, "{name}: {} of {judged} right, {} wrong", self.right, self.wrong.len())?;
        for (reason, count) in &self.excepted {
            write!(f, ", {count} excepted ({reason})")?;
        }
        for (reason, count) in &self.left_out {
            write!(f, ", {count} left out ({reason})")?;
        }
        Ok(())
    }
}
