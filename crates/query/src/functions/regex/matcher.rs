//! Regular-expression search, byte by byte, charged as it runs.
//!
//! The library's own searches cannot be interrupted, and their worst case is the size of
//! the compiled pattern times the length of the text: hours for two megabytes. So only its
//! lazy DFA is used, and driven from here. A cached transition costs as much as reading a
//! byte. Computing a new one may visit the whole pattern and costs accordingly; a pattern
//! that needs a new state for every byte pays for every byte. Where a DFA cannot decide
//! (Unicode word boundaries next to letters outside ASCII), the library simulates the
//! pattern, which is charged beforehand as if each byte visited all of it.

use std::collections::BTreeSet;
use std::ops::Range;

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{self, Cache, DFA};
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::pool::Pool;
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};

use crate::error::QueryError;
use crate::eval::Budget;

/// Bytes that a compiled pattern may take: counted repetitions multiply.
const COMPILED_BYTES_MAX: usize = 1024 * 1024;

/// Steps that compiling a pattern takes, besides those for each of its bytes.
const COMPILE_STEPS: usize = 2_000;

/// Steps per byte of a pattern.
const COMPILE_BYTE_STEPS: usize = 100;

/// Bytes of a compiled pattern that are made in one step.
const COMPILED_BYTES_PER_STEP: usize = 4;

/// Bytes of states that the DFA caches; when they are used up it clears the cache.
const CACHE_BYTES: usize = 2 * 1024 * 1024;

/// Steps for a new state of the DFA, besides those for visiting the pattern.
const STATE_STEPS: usize = 20;

/// States of the pattern that are visited in one step.
const VISITS_PER_STEP: usize = 8;

/// The same where the library simulates the pattern, which takes longer.
const SIMULATED_VISITS_PER_STEP: usize = 4;

/// Positions in a text that a simulation may remember for groups: some megabytes.
const PLACES_MAX: usize = 500_000;

/// Steps for beginning a search.
const SEARCH_STEPS: usize = 2;

/// Bytes that are read before they are charged: some microseconds.
const CHUNK_BYTES: usize = 4096;

/// The modifiers of a pattern.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    pub(super) multi_line: bool,
    pub(super) dot_matches_new_line: bool,
    pub(super) case_insensitive: bool,
    pub(super) ignore_whitespace: bool,
}

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Matcher {
    forward: DFA,
    /// Finds the start of a match; not needed where only the existence of one matters.
    reverse: Option<DFA>,
    simulation: PikeVM,
    /// The states made so far. One thread after another works with a pattern.
    caches: Pool<Caches, fn() -> Caches>,
}

#[derive(Debug, Default)]
struct Caches {
    forward: Option<Cache>,
    reverse: Option<Cache>,
    simulation: Option<regex_automata::nfa::thompson::pikevm::Cache>,
}

/// Why a search was halted.
enum Halt {
    /// Its budget is used up, or it was stopped.
    Unpaid(QueryError),
    /// The DFA cannot decide.
    Undecided,
}

impl From<QueryError> for Halt {
    fn from(error: QueryError) -> Halt {
        Halt::Unpaid(error)
    }
}

impl Matcher {
    /// Steps that are charged before a pattern is parsed.
    pub(super) fn steps(pattern: &str) -> usize {
        pattern.len().saturating_mul(COMPILE_BYTE_STEPS).saturating_add(COMPILE_STEPS)
    }

    /// Compiles a pattern; `None` if it is malformed or too large. `locates` is whether the
    /// positions of matches are needed, not only their existence.
    pub(super) fn new(
        pattern: &str,
        flags: Flags,
        locates: bool,
        budget: &Budget,
    ) -> Result<Option<Matcher>, QueryError> {
        budget.spend_steps(Matcher::steps(pattern))?;
        let implicit = WhichCaptures::Implicit;
        let Some(forward) = compiled(pattern, flags, implicit, budget)? else { return Ok(None) };
        let reverse = match locates {
            false => None,
            true => match compiled(pattern, flags, WhichCaptures::None, budget)? {
                Some(reverse) => Some(reverse),
                None => return Ok(None),
            },
        };
        let simulation = PikeVM::new_from_nfa(forward.clone());
        let dfa = |nfa: NFA, kind: MatchKind| {
            let config = dfa::Config::new()
                .match_kind(kind)
                .unicode_word_boundary(true)
                .cache_capacity(CACHE_BYTES)
                .skip_cache_capacity_check(true);
            dfa::Builder::new().configure(config).build_from_nfa(nfa).ok()
        };
        let forward = dfa(forward, MatchKind::LeftmostFirst);
        let reverse = reverse.map(|reverse| dfa(reverse, MatchKind::All));
        let (Some(forward), Ok(simulation)) = (forward, simulation) else { return Ok(None) };
        if matches!(reverse, Some(None)) {
            return Ok(None);
        }
        let reverse = reverse.flatten();
        let caches: fn() -> Caches = Caches::default;
        Ok(Some(Matcher { forward, reverse, simulation, caches: Pool::new(caches) }))
    }

    /// Whether the pattern is found in the text.
    pub(super) fn is_match(&self, text: &str, budget: &Budget) -> Result<bool, QueryError> {
        let mut caches = self.caches.get();
        let mut walker = Walker::new(&self.forward, &mut caches.forward, budget);
        match walker.forward(text.as_bytes(), 0, true) {
            Ok(end) => Ok(end.is_some()),
            Err(Halt::Unpaid(error)) => Err(error),
            Err(Halt::Undecided) => {
                let found = self.simulate(text, 0, &mut caches.simulation, budget)?;
                Ok(found.is_some())
            }
        }
    }

    /// Passes each match to `take`, from left to right, until it wants no more.
    pub(super) fn each_match<'t>(
        &self,
        text: &'t str,
        budget: &Budget,
        mut take: impl FnMut(&'t str) -> Result<bool, QueryError>,
    ) -> Result<(), QueryError> {
        self.each_place(text, budget, |found| take(text.get(found).unwrap_or_default()))
    }

    /// As [`Matcher::each_match`], by position.
    pub(super) fn each_place(
        &self,
        text: &str,
        budget: &Budget,
        mut take: impl FnMut(Range<usize>) -> Result<bool, QueryError>,
    ) -> Result<(), QueryError> {
        let mut caches = self.caches.get();
        let mut search = Search::new(self, &mut caches, budget);
        let (mut from, mut last) = (0, None);
        while from <= text.len() {
            let Some(found) = search.next(text, from)? else { return Ok(()) };
            let is_repeated = found.is_empty() && last == Some(found.end);
            if is_repeated || !text.is_char_boundary(found.start) {
                // An empty match right after another one is none, nor is one inside a
                // character.
                from = boundary_behind(text, found.end);
                continue;
            }
            (from, last) = (found.end, Some(found.end));
            if !take(found)? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn simulate(
        &self,
        text: &str,
        from: usize,
        cache: &mut Option<regex_automata::nfa::thompson::pikevm::Cache>,
        budget: &Budget,
    ) -> Result<Option<Range<usize>>, QueryError> {
        let (bytes, states) = (text.len() - from, self.simulation.get_nfa().states().len());
        let visits = bytes.saturating_add(1).saturating_mul(states);
        budget.spend_steps(visits / SIMULATED_VISITS_PER_STEP)?;
        let cache = cache.get_or_insert_with(|| self.simulation.create_cache());
        let mut slots = [None; 2];
        self.simulation.search_slots(cache, &Input::new(text).range(from..), &mut slots);
        let [start, end] = slots.map(|slot| slot.map(|slot| slot.get()));
        Ok(start.zip(end).map(|(start, end)| start..end))
    }
}

/// The groups of a pattern in a match. Only the simulation finds them.
#[derive(Debug)]
pub(super) struct Groups {
    simulation: PikeVM,
}

impl Groups {
    /// `None` if the pattern is malformed, or too large to track its groups.
    pub(super) fn new(
        pattern: &str,
        flags: Flags,
        budget: &Budget,
    ) -> Result<Option<Groups>, QueryError> {
        budget.spend_steps(Matcher::steps(pattern))?;
        let nfa = compiled(pattern, flags, WhichCaptures::All, budget)?;
        let nfa = nfa.filter(|nfa| watched_places(nfa) <= PLACES_MAX);
        Ok(nfa
            .and_then(|nfa| PikeVM::new_from_nfa(nfa).ok())
            .map(|simulation| Groups { simulation }))
    }

    /// Whether the pattern has a group of that number.
    pub(super) fn has(&self, group: usize) -> bool {
        group < self.simulation.get_nfa().group_info().all_group_len()
    }

    /// The range of a group in a match that was found.
    pub(super) fn taken(
        &self,
        text: &str,
        found: Range<usize>,
        group: usize,
        budget: &Budget,
    ) -> Result<Option<Range<usize>>, QueryError> {
        let nfa = self.simulation.get_nfa();
        let visits = found.len().saturating_add(1).saturating_mul(nfa.states().len());
        budget.spend_steps((visits + watched_places(nfa)) / SIMULATED_VISITS_PER_STEP)?;
        let mut slots = vec![None; 2 * (group + 1)];
        let input = Input::new(text).range(found).anchored(Anchored::Yes);
        self.simulation.search_slots(&mut self.simulation.create_cache(), &input, &mut slots);
        let place = |slot: usize| slots.get(slot).copied().flatten().map(|slot| slot.get());
        Ok(place(2 * group).zip(place(2 * group + 1)).map(|(start, end)| start..end))
    }
}

/// Positions in a text that a simulation remembers: one for each end of a group, in each
/// state.
fn watched_places(nfa: &NFA) -> usize {
    nfa.states().len().saturating_mul(nfa.group_info().slot_len())
}

/// Compiles the automaton of a pattern, and charges for it; reversed if it captures
/// nothing.
fn compiled(
    pattern: &str,
    flags: Flags,
    captures: WhichCaptures,
    budget: &Budget,
) -> Result<Option<NFA>, QueryError> {
    let syntax = syntax::Config::new()
        .multi_line(flags.multi_line)
        .dot_matches_new_line(flags.dot_matches_new_line)
        .case_insensitive(flags.case_insensitive)
        .ignore_whitespace(flags.ignore_whitespace);
    let config = thompson::Config::new()
        .nfa_size_limit(Some(COMPILED_BYTES_MAX))
        .reverse(captures.is_none())
        .which_captures(captures);
    let built = thompson::Compiler::new().syntax(syntax).configure(config).build(pattern);
    match built {
        Ok(nfa) => {
            // Start states have to be computed besides, one for each kind of preceding
            // byte.
            const BEGINNINGS: usize = 6;
            let begins = BEGINNINGS * state_steps(&nfa);
            budget.spend_steps(nfa.memory_usage() / COMPILED_BYTES_PER_STEP + begins)?;
            Ok(Some(nfa))
        }
        Err(error) => {
            if error.size_limit().is_some() {
                budget.spend_steps(COMPILED_BYTES_MAX / COMPILED_BYTES_PER_STEP)?;
            }
            Ok(None)
        }
    }
}

fn state_steps(nfa: &NFA) -> usize {
    STATE_STEPS + nfa.states().len() / VISITS_PER_STEP
}

fn boundary_behind(text: &str, at: usize) -> usize {
    (at + 1..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len() + 1)
}

/// One search after another in a text.
struct Search<'m> {
    matcher: &'m Matcher,
    forward: Walker<'m>,
    reverse: Option<Walker<'m>>,
    simulation: &'m mut Option<regex_automata::nfa::thompson::pikevm::Cache>,
    budget: &'m Budget,
}

impl<'m> Search<'m> {
    fn new(matcher: &'m Matcher, caches: &'m mut Caches, budget: &'m Budget) -> Search<'m> {
        let Caches { forward, reverse, simulation } = caches;
        let forward = Walker::new(&matcher.forward, forward, budget);
        let reverse = matcher.reverse.as_ref().map(|dfa| Walker::new(dfa, reverse, budget));
        Search { matcher, forward, reverse, simulation, budget }
    }

    /// The first match from a position on.
    fn next(&mut self, text: &str, from: usize) -> Result<Option<Range<usize>>, QueryError> {
        match self.located(text.as_bytes(), from) {
            Ok(found) => Ok(found),
            Err(Halt::Unpaid(error)) => Err(error),
            Err(Halt::Undecided) => self.matcher.simulate(text, from, self.simulation, self.budget),
        }
    }

    fn located(&mut self, text: &[u8], from: usize) -> Result<Option<Range<usize>>, Halt> {
        let Some(end) = self.forward.forward(text, from, false)? else { return Ok(None) };
        let Some(reverse) = self.reverse.as_mut().filter(|_| end > from) else {
            return Ok(Some(end..end));
        };
        let start = reverse.backward(text, from, end)?.unwrap_or(end);
        Ok(Some(start..end))
    }
}

/// Runs a DFA over a text.
struct Walker<'m> {
    dfa: &'m DFA,
    cache: &'m mut Cache,
    budget: &'m Budget,
    /// The cost of a new state.
    state_steps: usize,
    /// For each byte, the last match state that it led on from.
    recent: Box<[Option<LazyStateID>; 256]>,
    /// The known transitions of match states: only for others does the DFA show whether
    /// they are cached.
    known: BTreeSet<(LazyStateID, u8)>,
    /// Number of times the cache was cleared.
    clears: usize,
}

impl<'m> Walker<'m> {
    fn new(dfa: &'m DFA, cache: &'m mut Option<Cache>, budget: &'m Budget) -> Walker<'m> {
        let cache = cache.get_or_insert_with(|| dfa.create_cache());
        let (state_steps, clears) = (state_steps(dfa.get_nfa()), cache.clear_count());
        let (recent, known) = (Box::new([None; 256]), BTreeSet::new());
        Walker { dfa, cache, budget, state_steps, recent, known, clears }
    }

    /// Where the first match ends, or where it could end at the earliest.
    fn forward(&mut self, text: &[u8], from: usize, earliest: bool) -> Result<Option<usize>, Halt> {
        let input = Input::new(text).range(from..);
        self.budget.spend_steps(SEARCH_STEPS)?;
        let start = self.dfa.start_state_forward(self.cache, &input);
        let mut state = start.map_err(|_| Halt::Undecided)?;
        let (mut at, mut found) = (from, None);
        for chunk in text.get(from..).unwrap_or_default().chunks(CHUNK_BYTES) {
            let begin = at;
            for byte in chunk {
                state = self.next(state, *byte)?;
                if state.is_tagged() {
                    if state.is_match() {
                        // The DFA reports a match one byte later.
                        found = Some(at);
                    }
                    if state.is_dead() || (earliest && found.is_some()) {
                        self.budget.spend_reading(at - begin)?;
                        return Ok(found);
                    }
                }
                at += 1;
            }
            self.budget.spend_reading(chunk.len())?;
        }
        let is_match = self.at_the_end(state)?.is_match();
        Ok(if is_match { Some(text.len()) } else { found })
    }

    /// Where the match begins that ends at `end`.
    fn backward(&mut self, text: &[u8], from: usize, end: usize) -> Result<Option<usize>, Halt> {
        let input = Input::new(text).range(from..end).anchored(Anchored::Yes);
        self.budget.spend_steps(SEARCH_STEPS)?;
        let start = self.dfa.start_state_reverse(self.cache, &input);
        let mut state = start.map_err(|_| Halt::Undecided)?;
        let (mut at, mut found) = (end, None);
        for chunk in text.get(from..end).unwrap_or_default().rchunks(CHUNK_BYTES) {
            let begin = at;
            for byte in chunk.iter().rev() {
                state = self.next(state, *byte)?;
                if state.is_match() {
                    found = Some(at);
                }
                if state.is_dead() {
                    self.budget.spend_reading(begin - at)?;
                    return Ok(found);
                }
                at -= 1;
            }
            self.budget.spend_reading(chunk.len())?;
        }
        let before = from.checked_sub(1).and_then(|before| text.get(before));
        let last = match before {
            Some(byte) => self.next(state, *byte)?,
            None => self.at_the_end(state)?,
        };
        Ok(if last.is_match() { Some(from) } else { found })
    }

    /// The next state. One that is not cached is charged for.
    fn next(&mut self, state: LazyStateID, byte: u8) -> Result<LazyStateID, Halt> {
        if !state.is_tagged() {
            let next = self.dfa.next_state_untagged(self.cache, state, byte);
            if !next.is_unknown() {
                return decided(next);
            }
            self.budget.spend_steps(self.state_steps)?;
        } else if !self.is_known(state, byte)? {
            self.budget.spend_steps(self.state_steps)?;
        }
        let next = self.dfa.next_state(self.cache, state, byte);
        if self.clears != self.cache.clear_count() {
            self.clears = self.cache.clear_count();
            self.recent.fill(None);
            self.known.clear();
        }
        decided(next.map_err(|_| Halt::Undecided)?)
    }

    /// Whether a match state has been left with that byte before.
    fn is_known(&mut self, state: LazyStateID, byte: u8) -> Result<bool, QueryError> {
        let recent = self.recent.get_mut(usize::from(byte)).expect("there are 256 bytes");
        if recent.replace(state) == Some(state) {
            return Ok(true);
        }
        self.budget.spend_steps(1)?;
        Ok(!self.known.insert((state, byte)))
    }

    fn at_the_end(&mut self, state: LazyStateID) -> Result<LazyStateID, Halt> {
        self.budget.spend_steps(self.state_steps)?;
        let next = self.dfa.next_eoi_state(self.cache, state);
        decided(next.map_err(|_| Halt::Undecided)?)
    }
}

fn decided(state: LazyStateID) -> Result<LazyStateID, Halt> {
    if state.is_quit() { Err(Halt::Undecided) } else { Ok(state) }
}
