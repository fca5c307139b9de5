//! Random requests that conflict: few keys, few ids, few values.

use std::sync::Arc;

use bytes::Bytes;
use model::epk::Epk;
use model::json::{Object, Raw, Value};
use model::limits::Limits;
use model::name::ItemId;
use partition::{
    Command, Document, EffectKind, EtagMatch, Operation, Outcome, PartitionConfig, PartitionError,
    Patch,
};
use runtime::{Random, SeededRandom};

use super::fixture::{Container, json};
use super::model::{Done, Edit, Model, Path, Request, Rules, Stamp, Step, Why, patch_request};

/// The partition key values, and none at all.
const KEYS: [Option<&str>; 6] =
    [Some("\"a\""), Some("\"b\""), Some("17"), Some("null"), None, Some("\"ключ\"")];
const IDS: u64 = 9;
const ITEM_BYTES_MAX: u16 = 500;

/// Draws from a seed.
#[derive(Debug)]
pub(crate) struct Dice(SeededRandom);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(SeededRandom::new(seed))
    }

    pub(crate) fn below(&self, end: u64) -> u64 {
        self.0.next_u64() % end
    }

    /// True with this probability, in thousandths.
    pub(crate) fn chance(&self, in_thousand: u64) -> bool {
        self.below(1000) < in_thousand
    }

    pub(crate) fn pick<T: Clone>(&self, items: &[T]) -> T {
        items[usize::try_from(self.below(items.len() as u64)).unwrap()].clone()
    }
}

/// What kind of container the traffic goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Plain,
    /// With unique keys and expiry.
    Ruled,
}

impl Shape {
    pub(crate) const ALL: [Shape; 2] = [Shape::Plain, Shape::Ruled];

    pub(crate) fn container(self) -> Container {
        let mut container = Container::keyed("/pk");
        if self == Shape::Ruled {
            let paths = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
            container.unique = vec![paths(&["/u"]), paths(&["/v", "/o/w"])];
            container.default_ttl = Some(20);
        }
        container
    }

    pub(crate) fn rules(self) -> Rules {
        let path = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Path>();
        let item_bytes_max = usize::from(ITEM_BYTES_MAX);
        match self {
            Shape::Plain => Rules { item_bytes_max, ..Rules::default() },
            Shape::Ruled => Rules {
                default_ttl: Some(20),
                unique: vec![vec![path(&["u"])], vec![path(&["v"]), path(&["o", "w"])]],
                item_bytes_max,
            },
        }
    }

    pub(crate) fn config(self) -> PartitionConfig {
        let limits = Limits { item_bytes_max: ITEM_BYTES_MAX.into(), ..Limits::default() };
        PartitionConfig { limits: Arc::new(limits), ..self.container().config(3) }
    }
}

/// Makes requests for one container.
#[derive(Debug)]
pub(crate) struct Traffic {
    pub(crate) dice: Dice,
    shape: Shape,
    positions: Vec<Epk>,
    stale: Vec<String>,
}

impl Traffic {
    pub(crate) fn new(shape: Shape, seed: u64) -> Traffic {
        let definition = shape.container().definition();
        let locate = |key: &Option<&str>| {
            let text = key.map_or("{}".to_owned(), |key| format!("{{\"pk\":{key}}}"));
            let key = definition.partition_key().extract(Raw::trusted(&text)).unwrap();
            definition.partition_key().locate(&key).unwrap()
        };
        let positions = KEYS.iter().map(locate).collect();
        Traffic { dice: Dice::new(seed), shape, positions, stale: vec!["nonsense".to_owned()] }
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = (usize, &Epk)> {
        self.positions.iter().enumerate()
    }

    pub(crate) fn ids() -> impl Iterator<Item = String> {
        (0..IDS).map(|number| format!("id{number}"))
    }

    pub(crate) fn position(&self, key: usize) -> &Epk {
        &self.positions[key]
    }

    /// A request that makes sense, or nearly, in the state of `model`.
    pub(crate) fn request(&mut self, model: &Model) -> Request {
        let key = usize::try_from(self.dice.below(KEYS.len() as u64)).unwrap();
        let count = if self.dice.chance(800) { 1 } else { 2 + self.dice.below(5) };
        let steps = (0..count).map(|_| self.step(model, key)).collect();
        Request { key, steps }
    }

    fn step(&mut self, model: &Model, key: usize) -> Step {
        let id = format!("id{}", self.dice.below(IDS));
        let body = self.body(key, &id);
        let condition = self.condition(model, key, &id);
        match self.dice.below(100) {
            0..20 => Step::Create { body },
            20..45 => Step::Upsert { body, if_match: condition },
            45..55 => Step::Read { id, if_none_match: condition },
            55..70 => {
                let other = self.dice.chance(30);
                let id = if other { "other".to_owned() } else { id };
                Step::Replace { id, body, if_match: condition }
            }
            70..82 => Step::Delete { id, if_match: condition },
            _ => {
                let edits = (0..1 + self.dice.below(3)).map(|_| self.edit()).collect();
                let wanted = self.dice.chance(200).then(|| i64::from(self.small()));
                Step::Patch { id, edits, condition: wanted, if_match: condition }
            }
        }
    }

    fn small(&self) -> u8 {
        u8::try_from(self.dice.below(4)).unwrap()
    }

    /// An etag to require: the right one, a wrong one, any, or none.
    fn condition(&mut self, model: &Model, key: usize, id: &str) -> Option<String> {
        let current = model.items.get(&key).and_then(|items| items.get(id));
        let current = current.map(|entry| entry.stamp.etag.clone());
        if let Some(etag) = &current
            && self.dice.chance(50)
        {
            self.stale.push(etag.clone());
        }
        match self.dice.below(20) {
            0..4 => current,
            4..6 => Some("*".to_owned()),
            6..8 => Some(self.dice.pick(&self.stale)),
            _ => None,
        }
    }

    /// A body that may be written as a whole.
    pub(crate) fn body(&self, key: usize, id: &str) -> Value {
        loop {
            let body = self.any_body(key, id);
            if body.to_string().len() <= usize::from(ITEM_BYTES_MAX) {
                return body;
            }
        }
    }

    fn any_body(&self, key: usize, id: &str) -> Value {
        let mut body = Object::new();
        body.insert("id", id);
        if let Some(key) = KEYS[key] {
            body.insert("pk", json(key));
        }
        if self.shape == Shape::Ruled {
            body.insert("u", self.unique_value());
            body.insert("v", self.unique_value());
            if self.dice.chance(200) {
                body.insert("ttl", json(self.dice.pick(&["1", "3", "30", "-1"])));
            }
        }
        for name in ["n", "s", "list", "o"] {
            if self.dice.chance(700) {
                body.insert(name, self.value());
            }
        }
        body.into()
    }

    /// Equal numbers in different spellings; rarely nothing, which counts as null.
    fn unique_value(&self) -> Value {
        let number = self.dice.below(25);
        match self.dice.below(20) {
            0 => Value::Null,
            1..4 => json(&format!("{number}.0")),
            _ => json(&number.to_string()),
        }
    }

    fn value(&self) -> Value {
        let spelled = [
            "0",
            "1",
            "2",
            "3",
            "1.0",
            "-0",
            "1e1",
            "0.50",
            "12345678901234567890",
            "true",
            "null",
            "\"\"",
            "\"text\"",
            "\"é\\n\\u0001\"",
            "[]",
            "[1,2,3]",
            "[\"a\",{\"b\":1}]",
            "{}",
            "{\"w\":1}",
            "{\"w\":[0]}",
            "{\"x\":{\"y\":\"z\"}}",
        ];
        if self.dice.chance(30) {
            Value::from("long ".repeat(60))
        } else {
            json(self.dice.pick(&spelled))
        }
    }

    pub(crate) fn edit(&self) -> Edit {
        let (path, value) = (self.path(), self.value());
        match self.dice.below(12) {
            0..2 => Edit::Add { path, value },
            2..5 => Edit::Set { path, value },
            5..7 => Edit::Replace { path, value },
            7..8 => Edit::Remove { path },
            8..11 => {
                let by = self.dice.pick(&["1", "-2", "0.5", "100"]);
                let path = vec![self.dice.pick(&["n", "s", "m"]).to_string()];
                Edit::Increment { path, by: json(by).as_number().unwrap() }
            }
            _ => {
                let from = self.path();
                // A value cannot move into itself: refused when it is parsed.
                if path.starts_with(&from) && path != from {
                    return Edit::Remove { path };
                }
                Edit::Move { from, path }
            }
        }
    }

    fn path(&self) -> Path {
        let paths: [&[&str]; 14] = [
            &["n"],
            &["n"],
            &["s"],
            &["m"],
            &["list"],
            &["list", "0"],
            &["list", "2"],
            &["list", "-"],
            &["o", "w"],
            &["o", "x", "y"],
            &["u"],
            &["ttl"],
            &["id"],
            &["pk"],
        ];
        self.dice.pick(&paths).iter().map(|step| (*step).to_owned()).collect()
    }

    /// The request as the partition takes it.
    pub(crate) fn command(&self, request: &Request, limits: &Limits) -> Command {
        let operations = request.steps.iter().map(|step| operation(step, limits)).collect();
        Command { position: self.positions[request.key].clone(), operations }
    }
}

pub(crate) fn operation(step: &Step, limits: &Limits) -> Operation {
    let document = |body: &Value| Document::parse(Bytes::from(body.to_string()), limits).unwrap();
    let id = || ItemId::parse(&step.id()).unwrap();
    let etag = |etag: &Option<String>| etag.clone().map(EtagMatch);
    match step {
        Step::Create { body } => Operation::Create { document: document(body) },
        Step::Upsert { body, if_match } => {
            Operation::Upsert { document: document(body), if_match: etag(if_match) }
        }
        Step::Read { if_none_match, .. } => {
            Operation::Read { id: id(), if_none_match: etag(if_none_match) }
        }
        Step::Replace { body, if_match, .. } => {
            Operation::Replace { id: id(), document: document(body), if_match: etag(if_match) }
        }
        Step::Delete { if_match, .. } => Operation::Delete { id: id(), if_match: etag(if_match) },
        Step::Patch { edits, condition, if_match, .. } => {
            let patch = Patch::parse(&patch_request(edits, *condition), limits).unwrap();
            Operation::Patch { id: id(), patch, if_match: etag(if_match) }
        }
    }
}

/// What an item counts besides its text.
const SYSTEM_BYTES: u64 = 205;

/// What the model adopts from an answer, one for each step.
pub(crate) fn stamps(outcome: &Outcome) -> Vec<Stamp> {
    let stamp = |effect: &partition::Effect| {
        let Some(text) = &effect.text else { return Stamp::default() };
        let stamp = effect.stamp.as_ref().unwrap();
        let (rid, etag) = (stamp.rid.to_string(), stamp.etag.to_string());
        Stamp { etag, rid, bytes: text.len() as u64 + SYSTEM_BYTES }
    };
    outcome.effects.iter().map(stamp).collect()
}

/// An answer as the model has it.
pub(crate) fn done(outcome: &Outcome) -> Vec<Done> {
    let done = |effect: &partition::Effect| {
        let body = effect.text.as_ref().map(|text| own_body(text).to_string());
        match (effect.kind, body) {
            (EffectKind::Created, Some(body)) => Done::Created(body),
            (EffectKind::Replaced, Some(body)) => Done::Replaced(body),
            (EffectKind::Read, Some(body)) => Done::Read(body),
            (EffectKind::Deleted, None) => Done::Deleted,
            (EffectKind::NotModified, None) => Done::NotModified,
            (kind, body) => panic!("{kind:?} with {body:?}"),
        }
    };
    outcome.effects.iter().map(done).collect()
}

/// A refusal as the model has it; `None` if the store is to blame.
pub(crate) fn why(problem: &PartitionError) -> Option<Why> {
    match problem {
        PartitionError::Exists => Some(Why::Exists),
        PartitionError::UniqueKey => Some(Why::UniqueKey),
        PartitionError::NotFound => Some(Why::NotFound),
        PartitionError::Precondition => Some(Why::Precondition),
        PartitionError::TooLarge { .. } => Some(Why::TooLarge),
        PartitionError::Patch(_) => Some(Why::Patch),
        PartitionError::Storage(_) => None,
        PartitionError::Empty
        | PartitionError::TooMany { .. }
        | PartitionError::Gone
        | PartitionError::OutOfOrdinals
        | PartitionError::Record(_)
        | _ => panic!("no request of ours leads to {problem:?}"),
    }
}

/// The text without what the database added.
pub(crate) fn own_body(text: &[u8]) -> Value {
    model::json::parse(text).unwrap()
}
