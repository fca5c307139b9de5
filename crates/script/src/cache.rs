//! Scripts that were parsed, kept for their next run.
//!
//! A script is found by its text, so that nothing has to be told when one is replaced: the
//! new text is another entry and the old one is forgotten when others need its place. Two
//! containers with the same text share an entry, which is harmless: it has no state.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::fault::Fault;
use crate::limits::{CACHED_BYTES_MAX, CACHED_SCRIPTS_MAX};
use crate::script::Script;

/// Parsed scripts, bounded in number and bytes; what was not used for longest goes first.
#[derive(Debug)]
pub struct ScriptCache {
    kept: Mutex<Kept>,
    scripts_max: usize,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct Kept {
    /// By name and text: the name is part of what stack traces say.
    scripts: BTreeMap<(String, String), Entry>,
    /// When each entry was last used, with its key.
    used: BTreeMap<u64, (String, String)>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct Entry {
    script: Script,
    used: u64,
}

impl Default for ScriptCache {
    fn default() -> Self {
        ScriptCache::new(CACHED_SCRIPTS_MAX, CACHED_BYTES_MAX)
    }
}

impl ScriptCache {
    #[must_use]
    pub fn new(scripts_max: usize, bytes_max: usize) -> Self {
        ScriptCache { kept: Mutex::default(), scripts_max, bytes_max }
    }

    /// The script with that name and text, parsed now if it was not before. A text that
    /// cannot be parsed is not remembered.
    pub fn get(&self, name: &str, text: &str) -> Result<Script, Fault> {
        let key = (name.to_owned(), text.to_owned());
        if let Some(script) = self.locked(|kept| kept.touch(&key)) {
            return Ok(script);
        }
        let script = Script::compile(name, text)?;
        self.locked(|kept| {
            kept.insert(key, script.clone());
            while kept.scripts.len() > self.scripts_max || kept.bytes > self.bytes_max {
                kept.forget_oldest();
            }
        });
        Ok(script)
    }

    /// How many scripts are kept, and the bytes they take.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        self.locked(|kept| (kept.scripts.len(), kept.bytes))
    }

    fn locked<R>(&self, work: impl FnOnce(&mut Kept) -> R) -> R {
        // No entry is half-made between two statements that could panic.
        work(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Kept {
    fn touch(&mut self, key: &(String, String)) -> Option<Script> {
        let entry = self.scripts.get_mut(key)?;
        self.used.remove(&entry.used);
        self.clock += 1;
        entry.used = self.clock;
        self.used.insert(self.clock, key.clone());
        Some(entry.script.clone())
    }

    /// Another thread may have inserted the same script meanwhile.
    fn insert(&mut self, key: (String, String), script: Script) {
        if self.touch(&key).is_some() {
            return;
        }
        self.clock += 1;
        self.bytes += bytes(&key, &script);
        self.used.insert(self.clock, key.clone());
        self.scripts.insert(key, Entry { script, used: self.clock });
    }

    fn forget_oldest(&mut self) {
        let Some((_, key)) = self.used.pop_first() else { return };
        if let Some(entry) = self.scripts.remove(&key) {
            self.bytes -= bytes(&key, &entry.script);
        }
    }
}

/// The key is kept twice.
fn bytes(key: &(String, String), script: &Script) -> usize {
    2 * (key.0.len() + key.1.len()) + script.bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(n: usize) -> String {
        format!("function () {{ return {n}; }}")
    }

    #[test]
    fn keeps_what_was_used_last() {
        let cache = ScriptCache::new(3, usize::MAX);
        for n in [1, 2, 3, 1, 4] {
            cache.get("s", &text(n)).unwrap();
        }
        let kept: Vec<String> =
            cache.locked(|kept| kept.scripts.keys().map(|(_, text)| text.clone()).collect());
        assert_eq!(kept, [text(1), text(3), text(4)]);
        assert_eq!(cache.size().0, 3);
    }

    #[test]
    fn bytes_are_bounded_and_counted() {
        let cache = ScriptCache::new(usize::MAX, 20_000);
        for n in 0..200 {
            cache.get("s", &text(n)).unwrap();
            assert!(cache.size().1 <= 20_000);
        }
        let (scripts, bytes) = cache.size();
        assert!(scripts > 1 && bytes > 10_000, "{scripts} scripts, {bytes} bytes");
        let counted = cache.locked(|kept| {
            kept.scripts.iter().map(|(key, entry)| super::bytes(key, &entry.script)).sum::<usize>()
        });
        assert_eq!(bytes, counted);
    }

    #[test]
    fn the_name_is_part_of_the_script() {
        let cache = ScriptCache::default();
        assert_eq!(cache.get("a", &text(1)).unwrap().name(), "a");
        assert_eq!(cache.get("b", &text(1)).unwrap().name(), "b");
        assert_eq!(cache.size().0, 2);
    }

    #[test]
    fn a_syntax_error_is_not_kept() {
        let cache = ScriptCache::default();
        assert!(cache.get("s", "function (").is_err());
        assert_eq!(cache.size(), (0, 0));
    }
}
