//! The reference model of a partition: a map of bodies.
//!
//! No index, no log, no overlay, no bytes. Etags and resource ids are not
//! predicted but adopted from the partition's answers; what is predicted is when
//! they match and when they change.

use std::collections::BTreeMap;

use model::json::{Number, Object, Value};

/// One operation of a request.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Create { body: Value },
    Upsert { body: Value, if_match: Option<String> },
    Read { id: String, if_none_match: Option<String> },
    Replace { id: String, body: Value, if_match: Option<String> },
    Delete { id: String, if_match: Option<String> },
    Patch { id: String, edits: Vec<Edit>, condition: Option<i64>, if_match: Option<String> },
}

impl Step {
    pub(crate) fn id(&self) -> String {
        match self {
            Step::Create { body } | Step::Upsert { body, .. } => id_of(body),
            Step::Read { id, .. }
            | Step::Replace { id, .. }
            | Step::Delete { id, .. }
            | Step::Patch { id, .. } => id.clone(),
        }
    }
}

/// One operation of a patch. Paths are property names and array indexes.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    Add { path: Path, value: Value },
    Set { path: Path, value: Value },
    Replace { path: Path, value: Value },
    Remove { path: Path },
    Increment { path: Path, by: Number },
    Move { from: Path, path: Path },
}

pub(crate) type Path = Vec<String>;

/// Operations on items of one key, all or none.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) key: usize,
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Created(String),
    Replaced(String),
    Deleted,
    Read(String),
    NotModified,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Exists,
    UniqueKey,
    NotFound,
    Precondition,
    TooLarge,
    Patch,
}

/// What only the partition can know about a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) etag: String,
    pub(crate) rid: String,
    pub(crate) bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) body: Value,
    pub(crate) ts_secs: u64,
    pub(crate) stamp: Stamp,
}

/// The policies of the container.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) default_ttl: Option<i64>,
    /// Constraints, each a list of paths.
    pub(crate) unique: Vec<Vec<Path>>,
    pub(crate) item_bytes_max: usize,
}

pub(crate) type Items = BTreeMap<String, Entry>;

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    pub(crate) rules: Rules,
    /// By key and id, including expired items that were not replaced yet.
    pub(crate) items: BTreeMap<usize, Items>,
    pub(crate) last_commit_millis: u64,
    pub(crate) commits: u64,
}

impl Model {
    /// Executes a request, or returns why not; `stamps` has one for each step.
    pub(crate) fn apply(
        &mut self,
        now_millis: u64,
        request: &Request,
        stamps: &[Stamp],
    ) -> Result<Vec<Done>, (usize, Why)> {
        let now_millis = now_millis.max(self.last_commit_millis);
        let items = self.items.get(&request.key).cloned().unwrap_or_default();
        let mut draft = Draft { rules: &self.rules, now: now_millis / 1000, items, written: false };
        let mut done = Vec::new();
        for (at, step) in request.steps.iter().enumerate() {
            let stamp = stamps.get(at).cloned().unwrap_or_default();
            done.push(draft.step(step, stamp).map_err(|why| (at, why))?);
        }
        let Draft { items, written, .. } = draft;
        if written {
            self.items.insert(request.key, items);
            self.last_commit_millis = now_millis;
            self.commits += 1;
        }
        Ok(done)
    }

    /// The item, if it exists and has not expired.
    pub(crate) fn live(&self, key: usize, id: &str, now_secs: u64) -> Option<&Entry> {
        let entry = self.items.get(&key)?.get(id)?;
        (!is_expired(&self.rules, entry, now_secs)).then_some(entry)
    }
}

struct Draft<'a> {
    rules: &'a Rules,
    now: u64,
    items: Items,
    written: bool,
}

impl Draft<'_> {
    fn step(&mut self, step: &Step, stamp: Stamp) -> Result<Done, Why> {
        self.drop_expired(&step.id());
        match step {
            Step::Create { body } => match self.items.get(&id_of(body)) {
                Some(_) => Err(Why::Exists),
                None => self.put(body, stamp),
            },
            Step::Upsert { body, if_match } => match self.items.get(&id_of(body)) {
                Some(old) if !matches(old, if_match) => Err(Why::Precondition),
                _ => self.put(body, stamp),
            },
            Step::Read { id, if_none_match } => {
                let item = self.items.get(id).ok_or(Why::NotFound)?;
                let known = if_none_match.is_some() && matches(item, if_none_match);
                Ok(if known { Done::NotModified } else { Done::Read(item.body.to_string()) })
            }
            Step::Replace { id, body, if_match } => {
                self.existing(id, if_match)?;
                let new_id = id_of(body);
                if new_id != *id {
                    self.drop_expired(&new_id);
                    if self.items.contains_key(&new_id) {
                        return Err(Why::Exists);
                    }
                    self.items.remove(id);
                }
                self.put(body, stamp).map(|_| Done::Replaced(body.to_string()))
            }
            Step::Delete { id, if_match } => {
                self.existing(id, if_match)?;
                self.items.remove(id);
                self.written = true;
                Ok(Done::Deleted)
            }
            Step::Patch { id, edits, condition, if_match } => {
                let mut body = self.existing(id, if_match)?.body.clone();
                if edits.iter().any(is_forbidden) {
                    return Err(Why::Patch);
                }
                let wanted = condition.map(Value::from);
                if wanted.is_some_and(|wanted| body.get("n") != Some(&wanted)) {
                    return Err(Why::Precondition);
                }
                edits.iter().try_for_each(|edit| perform(&mut body, edit)).ok_or(Why::Patch)?;
                if body.to_string().len() > self.rules.item_bytes_max {
                    return Err(Why::TooLarge);
                }
                if own_ttl(&body).is_err() {
                    return Err(Why::Patch);
                }
                self.put(&body, stamp)
            }
        }
    }

    fn existing(&self, id: &str, if_match: &Option<String>) -> Result<&Entry, Why> {
        let item = self.items.get(id).ok_or(Why::NotFound)?;
        if matches(item, if_match) { Ok(item) } else { Err(Why::Precondition) }
    }

    fn put(&mut self, body: &Value, stamp: Stamp) -> Result<Done, Why> {
        let id = id_of(body);
        for constraint in &self.rules.unique {
            let values = |body: &Value| -> Vec<Value> {
                constraint.iter().map(|path| value_at(body, path)).collect()
            };
            let wanted = values(body);
            let taken = |(other, entry): (&String, &Entry)| {
                (*other != id && values(&entry.body) == wanted).then(|| other.clone())
            };
            if let Some(owner) = self.items.iter().find_map(taken)
                && !self.drop_expired(&owner)
            {
                return Err(Why::UniqueKey);
            }
        }
        let entry = Entry { body: body.clone(), ts_secs: self.now, stamp };
        let old = self.items.insert(id, entry);
        self.written = true;
        let text = body.to_string();
        Ok(if old.is_some() { Done::Replaced(text) } else { Done::Created(text) })
    }

    fn drop_expired(&mut self, id: &str) -> bool {
        let expired = self.items.get(id).is_some_and(|old| is_expired(self.rules, old, self.now));
        if expired {
            self.items.remove(id);
        }
        expired
    }
}

fn is_expired(rules: &Rules, entry: &Entry, now_secs: u64) -> bool {
    let own = own_ttl(&entry.body).expect("only valid bodies are kept");
    let ttl = rules.default_ttl.map(|default| own.unwrap_or(default));
    let ttl = ttl.and_then(|ttl| u64::try_from(ttl).ok());
    ttl.is_some_and(|ttl| entry.ts_secs + ttl <= now_secs)
}

fn own_ttl(body: &Value) -> Result<Option<i64>, ()> {
    let Some(ttl) = body.get("ttl") else { return Ok(None) };
    let ttl = ttl.as_number().and_then(Number::as_i64).ok_or(())?;
    if ttl == -1 || ttl > 0 { Ok(Some(ttl)) } else { Err(()) }
}

fn matches(item: &Entry, condition: &Option<String>) -> bool {
    condition.as_ref().is_none_or(|etag| etag == "*" || *etag == item.stamp.etag)
}

pub(crate) fn id_of(body: &Value) -> String {
    body.get("id").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn value_at(body: &Value, path: &[String]) -> Value {
    path.iter().try_fold(body, |value, name| value.get(name)).cloned().unwrap_or(Value::Null)
}

fn is_forbidden(edit: &Edit) -> bool {
    let first = |path: &Path| ["id", "pk", "_ts"].contains(&path[0].as_str());
    match edit {
        Edit::Add { path, .. }
        | Edit::Set { path, .. }
        | Edit::Replace { path, .. }
        | Edit::Remove { path }
        | Edit::Increment { path, .. } => first(path),
        Edit::Move { from, path } => first(from) || first(path),
    }
}

/// Executes one edit; `None` where that is impossible.
pub(crate) fn perform(body: &mut Value, edit: &Edit) -> Option<()> {
    match edit {
        Edit::Add { path, value } => write(body, path, value.clone(), false),
        Edit::Set { path, value } => write(body, path, value.clone(), true),
        Edit::Replace { path, value } => {
            *find(body, path)? = value.clone();
            Some(())
        }
        Edit::Remove { path } => take(body, path).map(drop),
        Edit::Increment { path, by } => {
            let sum = match find(body, path) {
                None => *by,
                Some(Value::Number(number)) => sum(number, by)?,
                Some(_) => return None,
            };
            write(body, path, Value::Number(sum), true)
        }
        Edit::Move { from, path } => {
            let value = take(body, from)?;
            write(body, path, value, true)
        }
    }
}

fn sum(a: &Number, b: &Number) -> Option<Number> {
    match (a.as_i64(), b.as_i64()) {
        (Some(a), Some(b)) => Some(Number::from(a + b)),
        _ => Number::from_f64(a.as_f64() + b.as_f64()),
    }
}

fn find<'a>(value: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, step| match value {
        Value::Object(object) => object.get_mut(step),
        Value::Array(items) => items.get_mut(step.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

fn write(body: &mut Value, path: &[String], value: Value, over: bool) -> Option<()> {
    let (last, above) = path.split_last()?;
    match find(body, above)? {
        Value::Object(object) => object.insert(last.as_str(), value),
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            let at = last.parse::<usize>().ok().filter(|at| *at <= items.len())?;
            if over && at < items.len() { items[at] = value } else { items.insert(at, value) }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    }
    Some(())
}

fn take(body: &mut Value, path: &[String]) -> Option<Value> {
    let (last, above) = path.split_last()?;
    match find(body, above)? {
        Value::Object(object) => object.remove(last),
        Value::Array(items) => {
            let at = last.parse::<usize>().ok().filter(|at| *at < items.len())?;
            Some(items.remove(at))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// The request body of a patch.
pub(crate) fn patch_request(edits: &[Edit], condition: Option<i64>) -> Value {
    let mut request = Object::new();
    if let Some(wanted) = condition {
        request.insert("condition", format!("from c where c.n = {wanted}"));
    }
    request.insert("operations", edits.iter().map(edit_value).collect::<Vec<Value>>());
    request.into()
}

fn edit_value(edit: &Edit) -> Value {
    let pointer = |path: &Path| path.iter().map(|step| format!("/{step}")).collect::<String>();
    let mut object = Object::new();
    let (op, path) = match edit {
        Edit::Add { path, .. } => ("add", path),
        Edit::Set { path, .. } => ("set", path),
        Edit::Replace { path, .. } => ("replace", path),
        Edit::Remove { path } => ("remove", path),
        Edit::Increment { path, .. } => ("incr", path),
        Edit::Move { path, .. } => ("move", path),
    };
    object.insert("op", op);
    object.insert("path", pointer(path));
    match edit {
        Edit::Add { value, .. } | Edit::Set { value, .. } | Edit::Replace { value, .. } => {
            object.insert("value", value.clone());
        }
        Edit::Increment { by, .. } => object.insert("value", Value::Number(*by)),
        Edit::Move { from, .. } => object.insert("from", pointer(from)),
        Edit::Remove { .. } => {}
    }
    object.into()
}
