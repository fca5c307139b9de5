//! One container in several worlds: 1, 3 and 7 partitions, in memory and on disk.
//! Partitions in memory are reached through serialised bytes.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use lab::queries::client::Client;
use lab::queries::oracle::{Agreement, Oracle, Verdict};
use lab::queries::rows::texts;
use lab::queries::trial::judge;
use lab::queries::{Answer, Ask, Lab, PAGE_ALL};
use model::json::{Object, Value};
use service::{Approach, IndexSpec, ServiceError};
use tempfile::TempDir;

use crate::functions::PlainFunctions;
use crate::scripts::shown;

/// Numbers of partitions.
const PARTITIONS: [usize; 3] = [1, 3, 7];

pub(crate) struct Worlds {
    definition: Object,
    worlds: Vec<World>,
    functions: PlainFunctions,
    /// The query that is being paged through.
    paged: Option<Paged>,
}

struct World {
    lab: Lab,
    /// Kept for as long as the data are.
    folder: Option<TempDir>,
    rest: Option<Vec<u8>>,
}

struct Paged {
    ask: Ask,
    approach: Approach,
    rows_max: usize,
}

impl Paged {
    /// The same in the other approach.
    fn other(&self) -> Paged {
        let approach = match self.approach {
            Approach::Index => Approach::Scan,
            Approach::Scan => Approach::Index,
        };
        Paged { ask: self.ask.clone(), approach, rows_max: self.rows_max }
    }
}

type Shown = Result<String, Box<dyn Error>>;

/// Rows, and where to continue.
type Rows = Result<(Vec<Value>, Option<Vec<u8>>), ServiceError>;

impl Worlds {
    pub(crate) fn new(definition: &Object) -> Result<Worlds, ServiceError> {
        let mut worlds = Vec::new();
        for partitions in PARTITIONS {
            for folder in [None, Some(tempfile::tempdir().unwrap())] {
                let lab = match &folder {
                    Some(own) => Lab::local(own.path()),
                    None => Lab::memory().through_bytes(),
                };
                lab.create_container(definition)?;
                lab.divide(partitions);
                worlds.push(World { lab, folder, rest: None });
            }
        }
        Ok(Worlds {
            definition: definition.clone(),
            worlds,
            functions: PlainFunctions::default(),
            paged: None,
        })
    }

    pub(crate) fn each(
        &self,
        act: impl Fn(&Lab) -> Result<(), ServiceError>,
    ) -> Result<(), ServiceError> {
        self.worlds.iter().try_for_each(|world| act(&world.lab))
    }

    pub(crate) fn create_function(&mut self, name: &str, text: &str) -> Result<(), ServiceError> {
        self.each(|lab| lab.create_function(name, text))?;
        self.functions.insert(name, text);
        Ok(())
    }

    /// Asks in all worlds and by all approaches. Access path and order shown are those of
    /// the first world: partitions choose by what they hold, and rows that compare equal
    /// come in their order.
    pub(crate) fn query(&self, ask: &Ask) -> Shown {
        let mut shown: Option<(String, String, String)> = None;
        let mut alike: BTreeMap<usize, String> = BTreeMap::new();
        let mut same: Option<(Vec<String>, String)> = None;
        let mut partitions = Vec::new();
        for world in &self.worlds {
            let (rows, certain, answer) = self.query_in(world, ask)?;
            let (asked, all) = answer.asked;
            partitions.push(format!("{asked}/{all}"));
            let (usage, access) = (usage(&answer), answer.report.access);
            let _ = shown.get_or_insert_with(|| (rows.clone(), usage.clone(), access));
            let everywhere = (sorted(&certain), usage);
            let first = same.get_or_insert_with(|| everywhere.clone());
            assert_eq!(everywhere, *first, "on {all} partitions, {}", ask.text);
            let before = alike.entry(all).or_insert_with(|| rows.clone());
            assert_eq!(rows, *before, "on {all} partitions, {}", ask.text);
        }
        partitions.dedup();
        let (rows, usage, access) = shown.unwrap_or_default();
        Ok(format!("{rows}by {access}{usage}\nasked {}\n", partitions.join(" ")))
    }

    /// Asks in one world: whatever the approach, the rows are the expected ones. Returns
    /// them, and as much of them as is the same in every world.
    fn query_in(&self, world: &World, ask: &Ask) -> Result<(String, String, Answer), ServiceError> {
        let lab = &world.lab;
        let oracle = Oracle::new(&self.definition, lab.items());
        let oracle = oracle.calling(Arc::new(self.functions.clone()));
        let is_one = lab.ranges().len() == 1;
        let verdict = if is_one { oracle.answer_of_one(ask) } else { oracle.answer(ask) };
        let ways = [Approach::Index, Approach::Scan];
        for approach in ways {
            for page in world.pages() {
                let rows = lab.all(ask, approach, *page, |_| {}).map(|answer| answer.rows);
                let how = format!("{approach:?}, pages of {page}");
                judge(&verdict, rows).unwrap_or_else(|what| panic!("{}, {how}: {what}", ask.text));
            }
            // Without a source, each partition that a client asks returns a row.
            if ask.scope.key.is_none() && ask.text.contains(" FROM ") {
                world.merge(ask, approach, &verdict);
            }
        }
        let answer = lab.all(ask, Approach::Index, PAGE_ALL, |_| {})?;
        let rows = listed(&answer.rows, &verdict);
        Ok((rows, listed(&answer.rows, &oracle.answer(ask)), answer))
    }

    pub(crate) fn begin(&mut self, ask: Ask, rows_max: usize, scans: bool) -> Shown {
        let approach = if scans { Approach::Scan } else { Approach::Index };
        self.worlds.iter_mut().for_each(|world| world.rest = None);
        self.paged = Some(Paged { ask, approach, rows_max });
        self.page()
    }

    pub(crate) fn next(&mut self) -> Shown {
        if self.worlds.iter().any(|world| world.rest.is_none()) {
            return Err("there are no more pages".into());
        }
        self.page()
    }

    /// The next rows in all worlds, in as many pages as there are partitions. They are the
    /// same in worlds with as many partitions, and as many in all of them.
    fn page(&mut self) -> Shown {
        let paged = self.paged.as_ref().ok_or("what?")?;
        let mut pages: BTreeMap<usize, String> = BTreeMap::new();
        for world in &mut self.worlds {
            let (rows, rest) = world.rows(paged, world.rest.clone(), paged.rows_max)?;
            // A cursor means the same in both approaches.
            let other = world.rows(&paged.other(), world.rest.clone(), paged.rows_max)?;
            assert_eq!(texts(&other.0), texts(&rows), "{}", paged.ask.text);
            let has_more = rest.is_some() && !world.rows(paged, rest.clone(), 1)?.0.is_empty();
            world.rest = rest.filter(|_| has_more);
            let page = lines(&rows) + if has_more { "more\n" } else { "end\n" };
            let lines = page.lines().count();
            let alike = pages.entry(world.lab.ranges().len()).or_insert_with(|| page.clone());
            assert_eq!(page, *alike, "worlds differ");
            let ends = pages.values().map(|page| (page.lines().count(), page.ends_with("end\n")));
            let here = (lines, page.ends_with("end\n"));
            assert!(ends.into_iter().all(|end| end == here), "worlds differ in the number of rows");
        }
        Ok(pages.into_values().next().unwrap_or_default())
    }

    pub(crate) fn split(&self) {
        for World { lab, .. } in &self.worlds {
            lab.divide(lab.ranges().len() + 1);
        }
    }

    /// Merges where there are neighbours.
    pub(crate) fn merge(&self) {
        let several = self.worlds.iter().filter(|world| world.lab.ranges().len() > 1);
        several.for_each(|world| world.lab.merge());
    }

    pub(crate) fn reopen(&mut self) {
        self.worlds.iter_mut().for_each(|world| world.lab.reopen());
    }
}

impl World {
    /// The next rows, at most `rows_max`.
    fn rows(&self, paged: &Paged, mut rest: Option<Vec<u8>>, rows_max: usize) -> Rows {
        let mut rows = Vec::new();
        loop {
            let left = rows_max - rows.len();
            let page = self.lab.page(&paged.ask, paged.approach, rest.as_deref(), left)?;
            rows.extend(page.rows);
            rest = page.rest;
            if rest.is_none() || rows.len() == rows_max {
                return Ok((rows, rest));
            }
        }
    }

    /// Sizes of pages; fewer on disk, which has the same pages and takes longer.
    fn pages(&self) -> &'static [usize] {
        if self.folder.is_some() { &[PAGE_ALL, 2] } else { &[PAGE_ALL, 7, 2, 1] }
    }

    /// Lets a client merge the rows of all partitions, and resume after each of them.
    fn merge(&self, ask: &Ask, approach: Approach, verdict: &Verdict) {
        let in_memory = self.folder.is_none();
        for page in if in_memory { [PAGE_ALL, 2].as_slice() } else { &[2] } {
            let Some(client) = Client::plan(&self.lab, ask, approach, *page) else { return };
            let how = format!("{}, a client by {approach:?}, pages of {page}", ask.text);
            client.judge(verdict).unwrap_or_else(|what| panic!("{how}: {what}"));
            let resumes = client.resumes() && matches!(verdict, Verdict::Rows { .. });
            if resumes && in_memory && *page == PAGE_ALL && approach == Approach::Index {
                client.check_resuming().unwrap_or_else(|what| panic!("{how}, resumed: {what}"));
            }
        }
    }
}

/// The rows, or how many there are where no more is certain.
fn listed(rows: &[Value], verdict: &Verdict) -> String {
    if let Verdict::Rows { agreement: Agreement::Some(_), .. } = verdict {
        return format!("{} rows\n", rows.len());
    }
    if matches!(verdict, Verdict::Rows { agreement: Agreement::Exact, .. }) {
        return lines(rows);
    }
    let mut rows: Vec<Value> = rows.iter().map(shown).collect();
    rows.sort();
    lines(&rows)
}

fn sorted(lines: &str) -> Vec<String> {
    let mut lines: Vec<String> = lines.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{}\n", shown(row))).collect()
}

/// The indexes that serve a query, or would.
fn usage(answer: &Answer) -> String {
    let report = &answer.report;
    let list = |specs: &[IndexSpec], word: &str| match specs {
        [] => String::new(),
        specs => {
            let specs: Vec<String> = specs.iter().map(IndexSpec::to_string).collect();
            format!("; {word} {}", specs.join(", "))
        }
    };
    let (used, wanted) = (list(&report.usage.used, "uses"), list(&report.usage.wanted, "wants"));
    used + &wanted
}
