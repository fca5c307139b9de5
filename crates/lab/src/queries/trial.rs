//! Random containers, each asked random queries by all approaches.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::AddAssign;

use model::epk::{Epk, EpkRange};
use model::json::Value;
use model::partition_key::PartitionKey;
use service::{Approach, Scope, ServiceError};

use super::client::Client;
use super::data::{DataSet, new_item};
use super::dice::Dice;
use super::grammar::RandomQuery;
use super::lab::{Ask, Lab, PAGE_ALL};
use super::oracle::{Agreement, Oracle, Verdict};
use super::rows::{canonical, exact, loosened, texts};

/// Partitions that a container has at most, however often one is split between pages.
const PARTITIONS_MAX: usize = 8;

/// Queries on each container that run while something about it changes.
const CHANGED_QUERIES: usize = 3;

/// Ordered queries on each container that clients resume while items are written.
const RESUMED_QUERIES: usize = 10;

/// Queries for groups and distinct rows on each container, run while items are written.
const VALUES_QUERIES: usize = 8;

/// Pages of a query between which partitions are split and merged.
const REARRANGED_PAGES_MAX: usize = 20;

/// Pages of a query between which items are written. Reading a page of one item is not much
/// faster than writing one, so a query might never end otherwise.
const WRITTEN_PAGES_MAX: usize = 50;

/// Rows after each of which a client resumes its query.
const RESUMED_ROWS_MAX: usize = 100;

/// The prefix of ids of items that are written while queries run.
const NEW: &str = "new";

/// The result of a number of trials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub queries: u64,
    pub rows: u64,
    /// Queries that were rightly refused.
    pub refused: u64,
    /// Queries that used an index.
    pub indexed: u64,
    /// Queries that a client merged.
    pub merged: u64,
    /// Queries that a client resumed at a row of every page, while items were written.
    pub resumed: u64,
    /// Pages of groups and distinct rows that were read along an index.
    pub walked: u64,
    /// Splits and merges between two pages.
    pub splits: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.queries += other.queries;
        self.rows += other.rows;
        self.refused += other.refused;
        self.indexed += other.indexed;
        self.merged += other.merged;
        self.resumed += other.resumed;
        self.walked += other.walked;
        self.splits += other.splits;
    }
}

/// Two executions of a query that do not agree, in the smallest container and with the
/// simplest query that were found to show it.
#[derive(Clone, Debug)]
pub struct Difference {
    pub seed: u64,
    pub data: DataSet,
    pub query: String,
    pub what: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.query)?;
        writeln!(f, "{}", self.what)?;
        let definition = Value::from(self.data.definition.clone());
        let (partitions, items) = (self.data.partitions, self.data.page_items_max);
        writeln!(f, "{partitions} partitions, {items} items a page, {definition}")?;
        self.data.items.iter().try_for_each(|item| writeln!(f, "{item}"))
    }
}

/// One question, and everything that is drawn for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    query: RandomQuery,
    key: Option<PartitionKey>,
    /// A part of the ring.
    within: EpkRange,
    pub(super) pages: [usize; 2],
    client: Option<usize>,
    splits: bool,
}

/// Asks a random container of at most `items_max` items `queries` random queries. The seed
/// repeats it.
pub fn run(seed: u64, items_max: usize, queries: usize) -> Result<Tally, Box<Difference>> {
    let dice = Dice::new(seed);
    let mut data = DataSet::random(&dice, items_max);
    let mut tally = Tally::default();
    let (lab, oracle) = furnished(&data);
    for _ in 0..queries {
        let question = Question::random(&dice, &data);
        if let Err(what) = question.ask(&lab, &oracle, &mut tally) {
            let (data, question, what) = shrunk(data, question, what);
            let query = question.to_string();
            return Err(Box::new(Difference { seed, data, query, what }));
        }
    }
    let changed = ask_while_changing(&lab, &oracle, &mut data, &dice, &mut tally);
    changed.map_err(|(query, what)| Box::new(Difference { seed, data, query, what }))?;
    Ok(tally)
}

/// Asks a random container of at most `items_max` items ordered queries, which clients
/// resume at a row of every page while items are written and partitions split. The seed
/// repeats it.
pub fn resume(seed: u64, items_max: usize) -> Result<Tally, Box<Difference>> {
    let dice = Dice::new(seed);
    let data = DataSet::random(&dice, items_max);
    let mut tally = Tally::default();
    let (lab, oracle) = furnished(&data);
    for number in 0..RESUMED_QUERIES {
        let query = RandomQuery::random(&dice).of_versions().in_order(&dice);
        let mut trial = Written::new(&lab, &oracle, &dice, &query, number);
        if let Err(what) = trial.resume(&mut tally) {
            let query = query.to_string();
            return Err(Box::new(Difference { seed, data, query, what }));
        }
    }
    Ok(tally)
}

/// Asks while items are written, and during and after a change of the indexing policy.
/// Returns a difference with its query.
fn ask_while_changing(
    lab: &Lab,
    oracle: &Oracle,
    data: &mut DataSet,
    dice: &Dice,
    tally: &mut Tally,
) -> Result<(), (String, String)> {
    for number in 0..CHANGED_QUERIES {
        let query = RandomQuery::random(dice).of_versions();
        let mut trial = Written::new(lab, oracle, dice, &query, number);
        trial.ask(tally).map_err(|what| (query.to_string(), what))?;
    }
    for number in CHANGED_QUERIES..CHANGED_QUERIES + VALUES_QUERIES {
        let query = values_query(dice);
        ask_values_while_writing(lab, oracle, dice, (&query, number), tally)
            .map_err(|what| (query, what))?;
    }
    data.change_policy(dice);
    lab.replace_container(&data.definition).expect("a policy that can be had");
    let oracle = Oracle::new(&data.definition, lab.items());
    for number in 0..2 * CHANGED_QUERIES {
        let mut question = Question::random(dice, data);
        if number < CHANGED_QUERIES {
            // Which index serves an order is open until the backfill is complete.
            question.query.order_by.clear();
        } else {
            lab.reindex();
        }
        let asked = question.ask(lab, &oracle, tally);
        asked.map_err(|what| (question.to_string(), format!("policy changed, {what}")))?;
    }
    Ok(())
}

/// A query that runs page by page while other items are written and removed, which may be
/// found or not, though no version of one twice; what was there before is found once, in
/// its order.
struct Written<'w> {
    ask: Ask,
    verdict: Verdict,
    page: usize,
    approach: Approach,
    writer: Writer<'w>,
}

impl<'w> Written<'w> {
    fn new(
        lab: &'w Lab,
        oracle: &'w Oracle,
        dice: &'w Dice,
        query: &RandomQuery,
        number: usize,
    ) -> Written<'w> {
        let ask = Ask::new(query.to_string());
        Written {
            verdict: oracle.answer(&ask),
            ask,
            page: 1 + oracle.documents() / 50 + dice.below(4),
            approach: *dice.pick(&[Approach::Index, Approach::Index, Approach::Scan]),
            writer: Writer { lab, oracle, dice, number, written: Vec::new() },
        }
    }

    /// Asks the service, by its tokens.
    fn ask(&mut self, tally: &mut Tally) -> Result<(), String> {
        let lab = self.writer.lab;
        let answer =
            lab.all(&self.ask, Approach::Index, self.page, |pages| self.writer.write(pages));
        tally.queries += 1;
        self.judge("by the service", answer.map(|answer| answer.rows))
    }

    /// Has clients resume by what they know of the rows before.
    fn resume(&mut self, tally: &mut Tally) -> Result<(), String> {
        self.ask(tally)?;
        let (ask, lab) = (self.ask.clone(), self.writer.lab);
        let client = Client::plan(lab, &ask, self.approach, self.page);
        let Some(client) = client.filter(Client::resumes) else { return Ok(()) };
        let rows = client.rows_by_tokens(|pages| self.writer.write(pages));
        self.judge("by tokens", rows)?;
        let rows = client.rows_by_rows(|pages| {
            self.writer.write(pages);
            if pages < REARRANGED_PAGES_MAX && self.writer.dice.once_in(4) {
                tally.splits += u64::from(rearrange(lab));
            }
        });
        self.judge("by rows", rows)?;
        // Such a client repeats ties when their range is split.
        let rows = client.rows_by_ranges(|pages| self.writer.write(pages));
        tally.resumed += 2 * u64::from(matches!(self.verdict, Verdict::Rows { .. }));
        // Ties come in the order of their ranges.
        if let Verdict::Rows { agreement: agreement @ Agreement::Exact, .. } = &mut self.verdict {
            *agreement = Agreement::Bag;
        }
        self.judge("by ranges", rows)
    }

    fn judge(&self, how: &str, rows: Result<Vec<Value>, ServiceError>) -> Result<(), String> {
        let said = |what: String| {
            let Written { page, approach, .. } = self;
            format!("while writing, {how}, {approach:?}, pages of {page}: {what}")
        };
        if let Ok(rows) = &rows {
            let mut seen = BTreeSet::new();
            if let Some(twice) = texts(rows).into_iter().find(|row| !seen.insert(row.clone())) {
                return Err(said(format!("{twice} comes twice")));
            }
        }
        let is_old = |row: &Value| {
            let id = row.get("id").and_then(Value::as_str);
            !id.is_some_and(|id| id.starts_with(NEW))
        };
        let old = rows.map(|rows| rows.into_iter().filter(is_old).collect());
        judge(&self.verdict, old).map_err(said)
    }
}

/// A query whose rows are distinguished by values, and have no others that writes change
/// except `n`.
pub(super) fn values_query(dice: &Dice) -> String {
    let path =
        dice.pick(&["c.a", "c.b", "c.s", "c.num", "c.big", "c.n.x", "c.n", "c.tags", "c.pk"]);
    let other = dice.pick(&["c.t", "c.a", "c.b", "c.num", "c.s"]);
    let way = dice.pick(&["", " DESC"]);
    let filter = dice.pick(&["", "", " WHERE c.t != \"t0\"", " WHERE c.num >= 0"]);
    match dice.below(9) {
        0 => format!("SELECT {path} AS v, COUNT(1) AS n FROM c{filter} GROUP BY {path}"),
        1 => format!("SELECT {path} AS v FROM c{filter} GROUP BY {path} ORDER BY {path}{way}"),
        2 => format!("SELECT {other} AS o, {path} AS v FROM c{filter} GROUP BY {other}, {path}"),
        3 => {
            let key = if dice.once_in(2) { path } else { other };
            format!(
                "SELECT {other} AS o, {path} AS v, MAX(c.num) AS n FROM c{filter} \
                 GROUP BY {other}, {path} ORDER BY {key}{way}"
            )
        }
        4 => format!("SELECT {path} AS v, COUNT(1) AS n FROM c JOIN e IN c.tags GROUP BY {path}"),
        5 => format!("SELECT DISTINCT VALUE {path} FROM c{filter} ORDER BY {path}{way}"),
        6 => format!("SELECT DISTINCT VALUE {path} FROM c{filter}"),
        7 => format!("SELECT DISTINCT {path} AS v, LOWER(c.s) AS o FROM c{filter}"),
        _ => format!("SELECT DISTINCT {other} AS o, {path} AS v FROM c{filter}"),
    }
}

/// Asks page by page, each by any approach, while other items are written and removed and
/// partitions are split. Each row that there was before is found, and no row comes twice.
fn ask_values_while_writing(
    lab: &Lab,
    oracle: &Oracle,
    dice: &Dice,
    (query, number): (&str, usize),
    tally: &mut Tally,
) -> Result<(), String> {
    let ask = Ask::new(query);
    let Verdict::Rows { rows: expected, .. } = oracle.answer(&ask) else { return Ok(()) };
    let items_max = 1 + oracle.documents() / 50 + dice.below(4);
    let mut writer = Writer { lab, oracle, dice, number, written: Vec::new() };
    let (mut found, mut rest, mut ways) = (Vec::new(), None, String::new());
    for pages in 0.. {
        let approach = *dice.pick(&[Approach::Index, Approach::Index, Approach::Scan]);
        let page = lab.page(&ask, approach, rest.as_deref(), items_max);
        let page = page.map_err(|error| error.to_string())?;
        ways.push_str(&format!("{} {}, ", page.rows.len(), page.report.access));
        tally.walked += u64::from(page.report.access.starts_with("index"));
        found.extend(page.rows.iter().map(lasting));
        rest = page.rest;
        if rest.is_none() {
            break;
        }
        writer.write(pages);
        if pages < REARRANGED_PAGES_MAX && dice.once_in(8) {
            tally.splits += u64::from(rearrange(lab));
        }
    }
    tally.queries += 1;
    let distinct: BTreeSet<&String> = found.iter().collect();
    let missed: Vec<String> =
        expected.iter().map(lasting).filter(|row| !distinct.contains(row)).collect();
    if distinct.len() == found.len() && missed.is_empty() {
        return Ok(());
    }
    Err(format!("while writing, pages of {items_max}: {missed:?} missed in {found:?} ({ways})"))
}

/// What writes do not change about a row.
fn lasting(row: &Value) -> String {
    let mut row = exact(row);
    if let Value::Object(members) = &mut row {
        members.remove("n");
    }
    row.to_string()
}

/// Writes items between pages, and removes them again.
struct Writer<'w> {
    lab: &'w Lab,
    oracle: &'w Oracle,
    dice: &'w Dice,
    number: usize,
    written: Vec<String>,
}

impl Writer<'_> {
    fn write(&mut self, pages: usize) {
        let copies = if pages < WRITTEN_PAGES_MAX { self.dice.below(3) } else { 0 };
        for copy in 0..copies {
            let item = new_item(self.dice, &format!("{NEW}{}-{pages}-{copy}", self.number));
            self.lab.put(&item).expect("an item that can be stored");
            self.written.push(item);
        }
        if self.dice.once_in(2) && !self.written.is_empty() {
            let item = self.written.swap_remove(self.dice.below(self.written.len()));
            self.remove(&item);
        }
    }

    fn remove(&self, item: &str) {
        let id = super::definition(item).get("id").and_then(Value::as_str).map(str::to_owned);
        let removed = self.lab.remove(&id.unwrap_or_default(), self.oracle.key_of(item));
        // A later one may have had the same id and key.
        assert!(matches!(removed, Ok(()) | Err(ServiceError::NotFound)), "{removed:?}");
    }
}

/// The next query finds what was there before.
impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.written.iter().for_each(|item| self.remove(item));
    }
}

pub(super) fn furnished(data: &DataSet) -> (Lab, Oracle) {
    let mut lab = Lab::of_short_pages(data.page_items_max);
    // It must not matter where partitions are.
    if data.items.len() % 2 == 1 {
        lab = lab.through_bytes();
    }
    lab.create_container(&data.definition).expect("a container that can be made");
    let (early, late) = data.items.split_at(data.items.len() / 2);
    for (items, partitions) in [(early, data.partitions.div_ceil(2)), (late, data.partitions)] {
        for item in items {
            lab.put(item).expect("an item that can be stored");
        }
        lab.divide(partitions);
    }
    let oracle = Oracle::new(&data.definition, lab.items());
    (lab, oracle)
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.query)?;
        if let Some(key) = &self.key {
            write!(f, " of {key}")?;
        }
        if self.within != EpkRange::full() {
            write!(f, " within {}", self.within)?;
        }
        Ok(())
    }
}

impl Question {
    pub(super) fn random(dice: &Dice, data: &DataSet) -> Question {
        // More than a hundred pages of a query show nothing new.
        let least = 1 + data.items.len() / 100;
        let page = || *dice.pick(&[least, 2 * least, 3 * least, 7 * least, PAGE_ALL]);
        let is_hierarchical = data.definition.get("partitionKey").is_some_and(|key| {
            key.get("paths").and_then(Value::as_array).is_some_and(|paths| paths.len() > 1)
        });
        let key = dice.once_in(6).then(|| {
            let first = format!("k{}", 1 + dice.below(4));
            let second = format!("t{}", dice.below(3));
            match is_hierarchical && dice.once_in(2) {
                true => PartitionKey::new([first.as_str(), second.as_str()]),
                false => PartitionKey::new([first.as_str()]),
            }
        });
        let cuts = ["", "0A", "05C1E0", "1FFF", "2AAAAAAA", "FF"]
            .map(|hex| Epk::from_hex(hex).expect("hexadecimal"));
        let some = EpkRange::new(dice.pick(&cuts).clone(), dice.pick(&cuts).clone());
        let is_some = dice.once_in(8) && !some.is_empty();
        Question {
            query: RandomQuery::random(dice),
            key,
            within: if is_some { some } else { EpkRange::full() },
            pages: [page(), page()],
            client: dice.once_in(3).then(page),
            splits: dice.once_in(12),
        }
    }

    /// Simpler questions that may show the same.
    fn plainer(&self) -> Vec<Question> {
        let all = [PAGE_ALL; 2];
        let mut plainer = vec![Question { pages: all, ..self.clone() }];
        plainer.extend(self.client.map(|_| Question { client: None, ..self.clone() }));
        plainer.extend(self.splits.then(|| Question { splits: false, ..self.clone() }));
        plainer.push(Question { within: EpkRange::full(), ..self.clone() });
        plainer.extend(self.key.as_ref().map(|_| Question { key: None, ..self.clone() }));
        plainer.retain(|plainer| plainer != self);
        plainer
    }

    pub(super) fn to_ask(&self) -> Ask {
        let mut ask = Ask::new(self.query.to_string());
        ask.scope = Scope { key: self.key.clone(), within: self.within.clone(), range: None };
        ask
    }

    /// Asks by all approaches. Returns what differs.
    fn ask(&self, lab: &Lab, oracle: &Oracle, tally: &mut Tally) -> Result<(), String> {
        let ask = self.to_ask();
        let is_one = lab.ranges().len() == 1 && !self.splits;
        let verdict = if is_one { oracle.answer_of_one(&ask) } else { oracle.answer(&ask) };
        tally.queries += 1;
        tally.refused += u64::from(!matches!(verdict, Verdict::Rows { .. }));
        for (approach, page) in [Approach::Index, Approach::Scan].into_iter().zip(self.pages) {
            let mut splits = 0;
            let answer = lab.all(&ask, approach, page, |pages| {
                if self.splits && pages % 2 == 1 && pages < REARRANGED_PAGES_MAX {
                    splits += u64::from(rearrange(lab));
                }
            });
            tally.splits += splits;
            if let Ok(answer) = &answer {
                tally.rows += answer.rows.len() as u64;
                let indexed = !answer.report.access.starts_with("scan");
                tally.indexed += u64::from(indexed && approach == Approach::Index);
            }
            let how = answer.as_ref().map_or_else(|_| String::new(), |a| a.report.access.clone());
            judge(&verdict, answer.map(|answer| answer.rows)).map_err(|what| {
                format!("{approach:?} ({how}), pages of {page}, {splits} splits: {what}")
            })?;
        }
        match self.client {
            // No client knows how to merge what subqueries gather in each partition.
            Some(page) if self.is_of_all() && !self.query.from.starts_with('(') => {
                self.merge(lab, &ask, page, &verdict, tally)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn is_of_all(&self) -> bool {
        self.key.is_none() && self.within == EpkRange::full()
    }

    fn merge(
        &self,
        lab: &Lab,
        ask: &Ask,
        page: usize,
        verdict: &Verdict,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let Some(client) = Client::plan(lab, ask, Approach::Index, page) else { return Ok(()) };
        tally.merged += 1;
        client.judge(verdict).map_err(|what| format!("client, pages of {page}: {what}"))?;
        let is_short =
            matches!(verdict, Verdict::Rows { rows, .. } if rows.len() < RESUMED_ROWS_MAX);
        if client.resumes() && is_short {
            client.check_resuming().map_err(|what| format!("client resumes: {what}"))?;
            client.check_resume_filters().map_err(|what| format!("resume filter: {what}"))?;
        }
        Ok(())
    }
}

/// Splits or merges something; returns whether it did.
fn rearrange(lab: &Lab) -> bool {
    let ranges = lab.ranges();
    match ranges.iter().map(|range| range.id).min() {
        Some(oldest) if ranges.len() < PARTITIONS_MAX => lab.split(oldest).is_ok(),
        Some(_) if ranges.len() > 1 => {
            lab.merge();
            true
        }
        Some(_) | None => false,
    }
}

/// Compares an answer with the expected one.
pub fn judge(verdict: &Verdict, answer: Result<Vec<Value>, ServiceError>) -> Result<(), String> {
    let (expected, agreement, rows) = match (verdict, answer) {
        (Verdict::Rows { rows: expected, agreement }, Ok(rows)) => (expected, agreement, rows),
        (Verdict::Rows { .. }, Err(error)) => return Err(format!("refused: {error}")),
        (Verdict::NoIndex | Verdict::Refused(_), Err(ServiceError::Query { .. })) => return Ok(()),
        // Where the filter keeps nothing, no index is needed.
        (Verdict::NoIndex, Ok(rows)) if rows.is_empty() => return Ok(()),
        (Verdict::NoIndex, other) => return Err(format!("no index serves it, but {other:?}")),
        (Verdict::Refused(error), other) => return Err(format!("{error} expected: {other:?}")),
    };
    let (mut expected_texts, mut found) = (texts(expected), texts(&rows));
    match agreement {
        Agreement::Exact => {}
        Agreement::Bag => {
            expected_texts = bag(expected);
            found = bag(&rows);
        }
        Agreement::Some(all) => {
            let (all, found) = (bag(all), bag(&rows));
            if found.len() == expected.len() && found.iter().all(|row| all.contains(row)) {
                return Ok(());
            }
        }
    }
    if expected_texts == found {
        return Ok(());
    }
    Err(format!("\n  found    {}\n  expected {}", found.join(" "), expected_texts.join(" ")))
}

fn bag(rows: &[Value]) -> Vec<String> {
    let mut rows: Vec<String> =
        rows.iter().map(|row| loosened(&canonical(row)).to_string()).collect();
    rows.sort();
    rows
}

/// Removes items and parts of the query for as long as something differs.
fn shrunk(
    mut data: DataSet,
    mut question: Question,
    mut what: String,
) -> (DataSet, Question, String) {
    let differs = |data: &DataSet, question: &Question| {
        let (lab, oracle) = furnished(data);
        question.ask(&lab, &oracle, &mut Tally::default()).err()
    };
    // Splits between pages have changed the container since.
    if differs(&data, &question).is_none() {
        return (data, question, what);
    }
    loop {
        let simpler = question.query.simpler().into_iter().map(|query| {
            let simpler = Question { query, ..question.clone() };
            (data.clone(), simpler)
        });
        let plainer = question.plainer().into_iter().map(|question| (data.clone(), question));
        let smaller = data.smaller().into_iter().map(|data| (data, question.clone()));
        let found = simpler.chain(plainer).chain(smaller).find_map(|(data, question)| {
            let what = differs(&data, &question)?;
            Some((data, question, what))
        });
        match found {
            Some(smaller) => (data, question, what) = smaller,
            None => return (data, question, what),
        }
    }
}
