//! Scripts of queries and what they give.
//!
//! Commands: `[parse]> QUERY` prints the canonical text, `[bind]> QUERY` checks names
//! and functions, `[eval]> EXPRESSION` gives a value, `documents JSON…` sets what
//! `[run]> QUERY` and `[condition]> CONDITION` look at, `parameters NAME=JSON…` sets
//! what queries may refer to. Errors are shown with line, column and the text they
//! are about. Update with `UPDATE_GOLDENFILES=1`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::error::Error;

use goldenscript::{Argument, Command, Context};
use model::json::{self, Raw, Value};
use query::{Condition, Parameters, Query, QueryError};

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

#[derive(Default)]
struct World {
    documents: Vec<String>,
    parameters: Parameters,
}

impl goldenscript::Runner for World {
    type Command = Command;

    fn run(&mut self, command: &Command, context: &Context) -> Result<String, Box<dyn Error>> {
        match command.name.as_str() {
            "documents" => self.set_documents(command),
            "parameters" => self.set_parameters(command),
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

    fn answer(&self, verb: &str, text: &str) -> Result<Result<String, QueryError>, Box<dyn Error>> {
        Ok(match verb {
            "parse" => Query::parse(text).map(|query| query.syntax().to_string()),
            "bind" => Query::parse(text).and_then(|query| {
                let bound = query.bind(&self.parameters)?;
                Ok(if bound.is_rowwise() { "ok, row by row" } else { "ok" }.to_owned())
            }),
            "eval" => Ok(format!("{text} → {}", self.evaluate(text))),
            "run" => self.run_query(text),
            "condition" => self.check_condition(text),
            other => return Err(format!("there is no [{other}]").into()),
        })
    }

    fn evaluate(&self, text: &str) -> String {
        match query::evaluate(text, &self.parameters) {
            Ok(Some(value)) => value.to_string(),
            Ok(None) => "undefined".to_owned(),
            Err(error) => describe(&error, text),
        }
    }

    fn run_query(&self, text: &str) -> Result<String, QueryError> {
        let bound = Query::parse(text)?.bind(&self.parameters)?;
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

fn describe(error: &QueryError, text: &str) -> String {
    let QueryError::Invalid(errors) = error else { return format!("Error: {error}") };
    let lines = errors.iter().map(|error| {
        let place = error.place(text);
        let about = text.get(error.position.clone()).unwrap_or_default();
        format!("{} at {}:{} {about:?}: {}", error.code, place.line, place.column, error.message)
    });
    lines.collect::<Vec<_>>().join("\n")
}
