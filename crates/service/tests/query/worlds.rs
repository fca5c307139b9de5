//! One container in several worlds: 1, 3 and 7 partitions, in memory and on disk.

use std::error::Error;

use model::json::{Object, Value};
use service::{Approach, IndexSpec, ServiceError};
use tempfile::TempDir;
use testkit::queries::client::Client;
use testkit::queries::oracle::{Agreement, Oracle, Verdict};
use testkit::queries::trial::judge;
use testkit::queries::{Answer, Ask, Lab, PAGE_ALL, Page};

use crate::scripts::shown;

/// Numbers of partitions.
const PARTITIONS: [usize; 3] = [1, 3, 7];

pub(crate) struct Worlds {
    definition: Object,
    worlds: Vec<World>,
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

type Shown = Result<String, Box<dyn Error>>;

impl Worlds {
    pub(crate) fn new(definition: &Object) -> Result<Worlds, ServiceError> {
        let mut worlds = Vec::new();
        for partitions in PARTITIONS {
            for folder in [None, Some(tempfile::tempdir().unwrap())] {
                let lab = folder.as_ref().map_or_else(Lab::memory, |own| Lab::local(own.path()));
                lab.create_container(definition)?;
                lab.divide(partitions);
                worlds.push(World { lab, folder, rest: None });
            }
        }
        Ok(Worlds { definition: definition.clone(), worlds, paged: None })
    }

    pub(crate) fn each(
        &self,
        act: impl Fn(&Lab) -> Result<(), ServiceError>,
    ) -> Result<(), ServiceError> {
        self.worlds.iter().try_for_each(|world| act(&world.lab))
    }

    /// Asks in all worlds and all ways.
    pub(crate) fn query(&self, ask: &Ask) -> Shown {
        let mut shown: Option<String> = None;
        let mut partitions = Vec::new();
        for world in &self.worlds {
            let (rows, answer) = self.query_in(world, ask)?;
            let (asked, all) = answer.asked;
            partitions.push(format!("{asked}/{all}"));
            let own = rows + &how(&answer);
            let first = shown.get_or_insert_with(|| own.clone());
            assert_eq!(own, *first, "on {all} partitions, {}", ask.text);
        }
        partitions.dedup();
        Ok(format!("{}asked {}\n", shown.unwrap_or_default(), partitions.join(" ")))
    }

    /// Asks in one world: whatever the way, the rows are those that must be.
    fn query_in(&self, world: &World, ask: &Ask) -> Result<(String, Answer), ServiceError> {
        let lab = &world.lab;
        let oracle = Oracle::new(&self.definition, lab.items());
        let verdict = oracle.answer(ask);
        let ways = [Approach::Index, Approach::Scan];
        for approach in ways {
            for page in world.pages() {
                let rows = lab.all(ask, approach, *page, |_| {}).map(|answer| answer.rows);
                let how = format!("{approach:?}, pages of {page}");
                judge(&verdict, rows).unwrap_or_else(|what| panic!("{}, {how}: {what}", ask.text));
            }
            // Without a source, each partition that a client asks gives a row.
            if ask.scope.key.is_none() && ask.text.contains(" FROM ") {
                world.merge(ask, approach, &verdict);
            }
        }
        let answer = lab.all(ask, Approach::Index, PAGE_ALL, |_| {})?;
        let ordered = matches!(&verdict, Verdict::Rows { agreement: Agreement::Exact, .. });
        Ok((listed(&answer.rows, &verdict, ordered), answer))
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

    /// The next page in all worlds, which is the same in all of them.
    fn page(&mut self) -> Shown {
        let Paged { ask, approach, rows_max } = self.paged.as_ref().ok_or("what?")?;
        let mut first: Option<String> = None;
        for world in &mut self.worlds {
            let Page { rows, rest, .. } =
                world.lab.page(ask, *approach, world.rest.as_deref(), *rows_max)?;
            let end = if rest.is_some() { "more\n" } else { "end\n" };
            let page = lines(&rows) + end;
            world.rest = rest;
            let first = first.get_or_insert_with(|| page.clone());
            assert_eq!(page, *first, "worlds differ");
        }
        Ok(first.unwrap_or_default())
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
    /// Sizes of pages; fewer on disk, which has the same pages and takes longer.
    fn pages(&self) -> &'static [usize] {
        if self.folder.is_some() { &[PAGE_ALL, 2] } else { &[PAGE_ALL, 7, 2, 1] }
    }

    /// Lets a client merge the rows of all partitions, and go on behind each of them.
    fn merge(&self, ask: &Ask, approach: Approach, verdict: &Verdict) {
        let in_memory = self.folder.is_none();
        for page in if in_memory { [PAGE_ALL, 2].as_slice() } else { &[2] } {
            let Some(client) = Client::plan(&self.lab, ask, approach, *page) else { return };
            let how = format!("{}, a client by {approach:?}, pages of {page}", ask.text);
            judge(verdict, client.rows()).unwrap_or_else(|what| panic!("{how}: {what}"));
            let resumes = client.resumes() && matches!(verdict, Verdict::Rows { .. });
            if resumes && in_memory && *page == PAGE_ALL && approach == Approach::Index {
                client.check_resuming().unwrap_or_else(|what| panic!("{how}, resumed: {what}"));
            }
        }
    }
}

/// The rows, or how many there are where no more is certain.
fn listed(rows: &[Value], verdict: &Verdict, ordered: bool) -> String {
    if let Verdict::Rows { agreement: Agreement::Some(_), .. } = verdict {
        return format!("{} rows\n", rows.len());
    }
    if ordered {
        return lines(rows);
    }
    let mut rows: Vec<Value> = rows.iter().map(shown).collect();
    rows.sort();
    lines(&rows)
}

fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{}\n", shown(row))).collect()
}

/// How the items were found.
fn how(answer: &Answer) -> String {
    let report = &answer.report;
    let list = |specs: &[IndexSpec], word: &str| match specs {
        [] => String::new(),
        specs => {
            let specs: Vec<String> = specs.iter().map(IndexSpec::to_string).collect();
            format!("; {word} {}", specs.join(", "))
        }
    };
    let (used, wanted) = (list(&report.usage.used, "uses"), list(&report.usage.wanted, "wants"));
    format!("by {}{used}{wanted}\n", report.access)
}
