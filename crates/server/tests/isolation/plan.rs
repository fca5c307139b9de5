//! Transactions in their various forms: as a request, and what its answer says.

use std::io;

use lab::histories::{ListId, Outcome, Step, Value};
use runtime::{Random, SeededRandom};
use serde_json::{Value as Json, json};
use wire_cosmos::EMULATOR_KEY;

use crate::buffered::Connection;
use crate::client::{Reply, Signed, try_send};

pub(crate) const CONTAINER: &str = "dbs/d/colls/c";
/// Lists of a logical partition. Few, so that transactions meet.
pub(crate) const LISTS: [ListId; 3] = [1, 2, 3];
const STEPS_MAX: u64 = 4;
/// One of this number of transactions fails on purpose, at its end.
const FAILING: u64 = 10;

/// How a transaction is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Procedure {
        /// Begins with a query for all lists.
        queries: bool,
    },
    Batch,
    /// The write of one list, with triggers before and after it.
    Triggers,
    /// Reads only.
    Query,
}

/// A transaction before it is done. Reads are empty.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) form: Form,
    pub(crate) steps: Vec<Step>,
    pub(crate) fails: bool,
}

impl Plan {
    /// A random one, whose values come from `next_value`.
    pub(crate) fn draw(random: &SeededRandom, mut next_value: impl FnMut() -> Value) -> Plan {
        let below = |limit: u64| random.next_u64() % limit;
        let list = || LISTS[usize::try_from(below(LISTS.len() as u64)).unwrap()];
        let mut step = |appends: bool| match appends {
            true => Step::Append { list: list(), value: next_value() },
            false => read(list()),
        };
        let fails = below(FAILING) == 0;
        let (form, steps) = match below(10) {
            0 => (Form::Query, LISTS.map(read).to_vec()),
            1 | 2 => {
                let steps = (0..=below(STEPS_MAX)).map(|_| step(below(2) == 0));
                (Form::Batch, steps.flat_map(shown).collect())
            }
            3 | 4 => {
                (Form::Triggers, [step(true), step(true)].into_iter().flat_map(shown).collect())
            }
            drawn => {
                let queries = drawn == 5;
                let first = LISTS.map(read).into_iter().filter(|_| queries);
                let steps = (0..=below(STEPS_MAX)).map(|_| step(below(2) == 0));
                (Form::Procedure { queries }, first.chain(steps).collect())
            }
        };
        Plan { form, steps, fails: fails && form != Form::Query }
    }

    /// A query for all lists.
    pub(crate) fn read_all() -> Plan {
        Plan { form: Form::Query, steps: LISTS.map(read).to_vec(), fails: false }
    }

    /// The steps that may have happened if there is no answer.
    pub(crate) fn appends(&self) -> Vec<Step> {
        let appends = self.steps.iter().filter(|step| matches!(step, Step::Append { .. }));
        appends.cloned().collect()
    }

    /// Does it. Fails if there is no answer.
    pub(crate) fn perform(
        &self,
        to: &mut Connection,
        key: &str,
    ) -> io::Result<(Outcome, Vec<Step>)> {
        let Asked { path, link, kind, headers, body } = self.asked(key);
        let signed = Signed { method: "POST", path: &path, kind, link: &link };
        let headers = format!(
            "{}x-ms-documentdb-partitionkey: [\"{key}\"]\r\n{headers}",
            signed.headers(EMULATOR_KEY)
        );
        let reply = try_send(to, "POST", &path, &headers, &body.to_string())?;
        Ok(match reply.status {
            200 | 201 => (Outcome::Committed, self.answered(&reply)),
            // A batch of which one operation was refused, and refusals of everything else.
            207 | 400 | 404 | 409 | 412 | 429 | 449 => (Outcome::Aborted, self.appends()),
            408 | 503 => (Outcome::Unknown, self.appends()),
            status => panic!("{self:?}: {status} {}", reply.body),
        })
    }

    fn asked(&self, key: &str) -> Asked {
        match self.form {
            Form::Procedure { queries } => Asked {
                path: format!("/{CONTAINER}/sprocs/transact"),
                link: format!("{CONTAINER}/sprocs/transact"),
                kind: "sprocs",
                headers: "",
                body: json!([self.script_steps(key, queries), self.fails]),
            },
            Form::Batch => {
                let headers =
                    "x-ms-cosmos-is-batch-request: True\r\nx-ms-cosmos-batch-atomic: True\r\n";
                Asked::on_items(headers, self.batch())
            }
            Form::Triggers => Asked::on_items(
                "x-ms-documentdb-is-upsert: True\r\nx-ms-documentdb-pre-trigger-include: before\r\n\
                 x-ms-documentdb-post-trigger-include: after\r\n",
                self.triggered(key),
            ),
            Form::Query => Asked::on_items(
                "x-ms-documentdb-isquery: True\r\ncontent-type: application/query+json\r\n",
                json!({"query": "SELECT c.id, c.list FROM c"}),
            ),
        }
    }

    fn script_steps(&self, key: &str, queries: bool) -> Json {
        let first = queries.then(|| json!({"all": LISTS.map(name)}));
        let steps = self.steps.iter().skip(if queries { LISTS.len() } else { 0 });
        let steps = steps.map(|step| match step {
            Step::Append { list, value } => json!({"id": name(*list), "pk": key, "append": value}),
            Step::Read { list, .. } => json!({"id": name(*list)}),
        });
        first.into_iter().chain(steps).collect()
    }

    /// Reads after an append are answers to it.
    fn batch(&self) -> Json {
        let steps = self.steps.iter().enumerate();
        let operations = steps.filter(|(at, _)| !self.is_shown(*at)).map(|(_, step)| match step {
            Step::Append { list, value } => json!({
                "operationType": "Patch", "id": name(*list),
                "resourceBody": {"operations": [{"op": "add", "path": "/list/-", "value": value}]},
            }),
            Step::Read { list, .. } => json!({"operationType": "Read", "id": name(*list)}),
        });
        let fails = json!({"operationType": "Delete", "id": "absent"});
        operations.chain(self.fails.then_some(fails)).collect()
    }

    fn is_shown(&self, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|at| self.steps.get(at));
        matches!(before, Some(Step::Append { .. }))
    }

    fn triggered(&self, key: &str) -> Json {
        let appends: Vec<_> = self.appends();
        let [Step::Append { list, value }, Step::Append { list: other, value: second }] =
            appends.as_slice()
        else {
            panic!("triggers append to two lists: {self:?}");
        };
        json!({
            "id": name(*list), "pk": key, "append": value,
            "second": {"id": name(*other), "append": second, "fails": self.fails},
        })
    }

    /// The steps with what was read.
    fn answered(&self, reply: &Reply) -> Vec<Step> {
        let json = reply.json();
        let lists: Vec<Vec<Value>> = match self.form {
            Form::Procedure { .. } | Form::Triggers => {
                json.as_array().expect("a list of lists").iter().map(values).collect()
            }
            Form::Batch => {
                let results = json.as_array().expect("a list of results").iter();
                results.map(|result| values(&result["resourceBody"]["list"])).collect()
            }
            Form::Query => {
                assert_eq!(reply.header("x-ms-continuation"), None, "one page is one snapshot");
                let items = json["Documents"].as_array().expect("a feed has a list");
                let of = |list: ListId| items.iter().find(|item| item["id"] == name(list));
                LISTS.map(|list| of(list).map_or(Vec::new(), |it| values(&it["list"]))).to_vec()
            }
        };
        let mut lists = lists.into_iter();
        let mut steps = self.steps.clone();
        for step in &mut steps {
            if let Step::Read { found, .. } = step {
                *found = lists.next().expect("an answer for each read");
            }
        }
        assert_eq!(lists.next(), None, "no more answers than reads: {self:?}");
        steps
    }
}

/// A request for it.
struct Asked {
    path: String,
    link: String,
    kind: &'static str,
    headers: &'static str,
    body: Json,
}

impl Asked {
    fn on_items(headers: &'static str, body: Json) -> Asked {
        let path = format!("/{CONTAINER}/docs");
        Asked { path, link: CONTAINER.to_owned(), kind: "docs", headers, body }
    }
}

fn read(list: ListId) -> Step {
    Step::Read { list, found: Vec::new() }
}

/// A step, and after an append the list as the answer shows it.
fn shown(step: Step) -> Vec<Step> {
    match step {
        Step::Append { list, .. } => vec![step, read(list)],
        Step::Read { .. } => vec![step],
    }
}

pub(crate) fn name(list: ListId) -> String {
    format!("l{list}")
}

fn values(list: &Json) -> Vec<Value> {
    let values = list.as_array().unwrap_or_else(|| panic!("no list: {list}"));
    values.iter().map(|value| value.as_u64().expect("a value")).collect()
}
