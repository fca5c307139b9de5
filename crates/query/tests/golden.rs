//! Scripts of queries and what they give.
//!
//! Commands: `[parse]> QUERY` prints the canonical text, `[bind]> QUERY` checks names
//! and functions, `[eval]> EXPRESSION` gives a value, `documents JSON…` sets what
//! `[run]> QUERY` and `[condition]> CONDITION` look at, `parameters NAME=JSON…` sets
//! what queries may refer to, `context` sets the time, the geometry, computed
//! properties and functions. `[filter]> QUERY` shows what a query requires of
//! documents, `key PATH…` and `[plan]> QUERY` how clients run it on partitions,
//! `excluded PATH…`, `composites PATHS…` and `[indexes]> QUERY` which indexes serve it,
//! `[advice]> QUERY` how it could be written to cost less.
//! Errors are shown with line, column and the text they are about. Update with
//! `UPDATE_GOLDENFILES=1`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::error::Error;
use std::sync::Arc;

use goldenscript::{Argument, Command};
use model::json::{self, Raw, Value};
use model::partition_key::PartitionKeyDefinition;
use model::policy::{ComputedProperty, GeospatialConfig};
use query::{
    Composite, Condition, Context, Features, IndexSpec, Indexed, KeyShape, Parameters, Path, Query,
    QueryError, UserFunctionError, UserFunctions,
};

#[test]
fn scripts() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/scripts");
    let mut scripts: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    scripts.sort();
    assert!(!scripts.is_empty());
    for script in scripts {
        goldenscript::run(&mut World::default(), &script)
            .unwrap_or_else(|error| panic!("{}: {error}", script.display()));
    }
}

struct World {
    documents: Vec<String>,
    parameters: Parameters,
    context: Arc<Context>,
    key: PartitionKeyDefinition,
    features: Features,
    policy: Policy,
}

/// What is indexed: all but some properties, and some together.
#[derive(Default)]
struct Policy {
    excluded: Vec<String>,
    composites: Vec<Composite>,
}

impl Indexed for Policy {
    fn place(&self, path: &Path) -> Option<bool> {
        let indexable = path.names().is_none_or(|names| names.first() != Some(&"_rid"));
        indexable.then(|| !self.excluded.contains(&path.in_policy()))
    }

    fn composites(&self) -> Vec<Composite> {
        self.composites.clone()
    }
}

impl Default for World {
    fn default() -> World {
        World {
            documents: Vec::new(),
            parameters: Parameters::none(),
            context: Arc::default(),
            key: PartitionKeyDefinition::none(),
            features: Features::all(),
            policy: Policy::default(),
        }
    }
}

/// Functions that a container might have.
#[derive(Debug)]
struct Stored;

impl UserFunctions for Stored {
    fn contains(&self, name: &str) -> bool {
        matches!(name, "double" | "fail" | "nothing")
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Result<Option<Value>, UserFunctionError> {
        match (name, arguments) {
            ("double", [Value::Number(number)]) => {
                Ok(json::Number::from_f64(2.0 * number.as_f64()).map(Value::Number))
            }
            ("fail", _) => Err(UserFunctionError { message: "it threw".to_owned() }),
            _ => Ok(None),
        }
    }
}

impl goldenscript::Runner for World {
    type Command = Command;

    fn run(
        &mut self,
        command: &Command,
        context: &goldenscript::Context,
    ) -> Result<String, Box<dyn Error>> {
        match command.name.as_str() {
            "documents" => self.set_documents(command),
            "parameters" => self.set_parameters(command),
            "context" => self.set_context(command),
            "key" => self.set_key(command),
            "features" => self.set_features(command),
            "excluded" => self.set_excluded(command),
            "composites" => self.set_composites(command),
            text => {
                let verb = context.tags.first().ok_or("a query needs a tag")?;
                let answer = self.answer(verb, text)?;
                Ok(answer.unwrap_or_else(|error| describe(&error, text)))
            }
        }
    }
}

impl World {
    fn set_documents(&mut self, command: &Command) -> Result<String, Box<dyn Error>> {
        self.documents.clear();
        for argument in &command.args {
            let Argument::Positional(document) = argument else { return Err("a key".into()) };
            let document = json::parse(document.as_bytes())?;
            self.documents.push(document.to_string());
        }
        Ok(String::new())
    }

    fn set_parameters(&mut self, command: &Command) -> Result<String, Box<dyn Error>> {
        self.parameters = Parameters::none();
        for argument in &command.args {
            let Argument::KeyValue(name, value) = argument else { return Err("no name".into()) };
            let value = json::parse(value.as_bytes())?;
            self.parameters = std::mem::take(&mut self.parameters).with(&format!("@{name}"), value);
        }
        Ok(String::new())
    }

    /// `now=TICKS geometry functions NAME=QUERY…`: the last are computed properties.
    fn set_context(&mut self, command: &Command) -> Result<String, Box<dyn Error>> {
        let mut context = Context::default();
        for argument in &command.args {
            let Argument::KeyValue(name, value) = argument else {
                let Argument::Positional(word) = argument else { return Err("no word".into()) };
                match word.as_str() {
                    "geometry" => context.spatial = GeospatialConfig::Geometry,
                    "functions" => context.functions = Some(Arc::new(Stored)),
                    other => return Err(format!("what is {other}?").into()),
                }
                continue;
            };
            if name == "now" {
                context.now_ticks = value.parse()?;
            } else {
                let (name, query) = (name.clone(), value.clone());
                context.computed.push(ComputedProperty { name, query });
            }
        }
        self.context = Arc::new(context);
        Ok(String::new())
    }

    fn set_key(&mut self, command: &Command) -> Result<String, Box<dyn Error>> {
        let paths = words(command)?;
        self.key = PartitionKeyDefinition::hash(paths)?;
        Ok(String::new())
    }

    fn set_features(&mut self, command: &Command) -> Result<String, Box<dyn Error>> {
        self.features = Features::parse(&words(command)?.join(", "));
        Ok(String::new())
    }

    fn set_excluded(&mut self, command: &Command) -> Result<String, Box<dyn Error>> {
        self.policy.excluded = words(command)?.into_iter().map(str::to_owned).collect();
        Ok(String::new())
    }

    /// `"/a, -/b"…`: each word is an index, a minus says that a path is descending.
    fn set_composites(&mut self, command: &Command) -> Result<String, Box<dyn Error>> {
        let part = |text: &str| {
            let path = text.trim_start_matches('-');
            (path.split('/').skip(1).map(str::to_owned).collect(), path != text)
        };
        let composite = |word: &str| word.split(", ").map(part).collect();
        self.policy.composites = words(command)?.into_iter().map(composite).collect();
        Ok(String::new())
    }

    fn answer(&self, verb: &str, text: &str) -> Result<Result<String, QueryError>, Box<dyn Error>> {
        Ok(match verb {
            "parse" => Query::parse(text).map(|query| query.syntax().to_string()),
            "bind" => Query::parse(text).and_then(|query| {
                let bound = query.bind_in(&self.parameters, &self.context)?;
                Ok(if bound.is_rowwise() { "ok, row by row" } else { "ok" }.to_owned())
            }),
            "eval" => Ok(format!("{text} → {}", self.evaluate(text))),
            "run" => self.run_query(text),
            "filter" => Query::parse(text).and_then(|query| {
                let bound = query.bind_in(&self.parameters, &self.context)?;
                Ok(bound.filter().to_string())
            }),
            "plan" => self.plan(text),
            "indexes" => self.indexes(text),
            "advice" => Query::parse(text).map(|query| {
                let advice = query.advice().into_iter();
                let lines = advice.map(|advice| format!("{} {advice:?}", advice.id()));
                lines.collect::<Vec<_>>().join("\n")
            }),
            "condition" => self.check_condition(text),
            other => return Err(format!("there is no [{other}]").into()),
        })
    }

    fn evaluate(&self, text: &str) -> String {
        match query::evaluate_in(text, &self.parameters, &self.context) {
            Ok(Some(value)) => value.to_string(),
            Ok(None) => "undefined".to_owned(),
            Err(error) => describe(&error, text),
        }
    }

    /// What differs from the plan of a query that needs no merging.
    fn plan(&self, text: &str) -> Result<String, QueryError> {
        let shape = KeyShape::from(&self.key);
        let plan =
            Query::parse(text)?.plan(&self.parameters, &self.context, &shape, &self.features)?;
        let plain = query::QueryInfo::default().to_value();
        let mut lines = Vec::new();
        let info = plan.info.to_value();
        for (name, value) in info.as_object().unwrap().iter() {
            if plain.get(name) == Some(value) {
                continue;
            }
            let shown = value.as_str().map(|text| text.replace('\n', "\n  "));
            lines.push(format!("{name}: {}", shown.unwrap_or_else(|| value.to_string())));
        }
        for range in plan.ranges.on_ring(&self.key) {
            let close = if range.max_inclusive { ']' } else { ')' };
            lines.push(format!("[{}, {}{close}", range.min, range.max));
        }
        Ok(lines.join("\n"))
    }

    fn indexes(&self, text: &str) -> Result<String, QueryError> {
        let bound = Query::parse(text)?.bind_in(&self.parameters, &self.context)?;
        let usage = bound.index_use(&self.policy);
        let list = |word: &str, specs: &[IndexSpec]| {
            let specs: Vec<String> = specs.iter().map(IndexSpec::to_string).collect();
            (!specs.is_empty()).then(|| format!("{word} {}", specs.join(", ")))
        };
        let lists = [list("uses", &usage.used), list("wants", &usage.wanted)];
        let lists: Vec<String> = lists.into_iter().flatten().collect();
        Ok(if lists.is_empty() { "none".to_owned() } else { lists.join("; ") })
    }

    fn run_query(&self, text: &str) -> Result<String, QueryError> {
        let bound = Query::parse(text)?.bind_in(&self.parameters, &self.context)?;
        let rows = bound.execute(self.documents.iter().map(|text| Raw::trusted(text)))?;
        if rows.is_empty() {
            return Ok("no rows".to_owned());
        }
        Ok(rows.iter().map(Value::to_string).collect::<Vec<_>>().join("\n"))
    }

    fn check_condition(&self, text: &str) -> Result<String, QueryError> {
        let condition = Condition::parse(text)?;
        let mut answers = Vec::new();
        for document in &self.documents {
            answers.push(condition.holds(Raw::trusted(document))?.to_string());
        }
        Ok(answers.join(" "))
    }
}

fn words(command: &Command) -> Result<Vec<&str>, Box<dyn Error>> {
    let mut words = Vec::new();
    for argument in &command.args {
        let Argument::Positional(word) = argument else { return Err("words only".into()) };
        words.push(word.as_str());
    }
    Ok(words)
}

fn describe(error: &QueryError, text: &str) -> String {
    let QueryError::Invalid(errors) = error else {
        return format!("Error: {}", error.to_string().replace('\r', ""));
    };
    let lines = errors.iter().map(|error| {
        let place = error.place(text);
        let about = text.get(error.position.clone()).unwrap_or_default();
        format!("{} at {}:{} {about:?}: {}", error.code, place.line, place.column, error.message)
    });
    lines.collect::<Vec<_>>().join("\n")
}
