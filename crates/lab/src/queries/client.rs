//! A client that asks each partition itself and merges the rows, as SDKs do that fetch a
//! plan first.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use model::epk::{Epk, EpkRange};
use model::json::{DistinctHash, JsonKind, Number, Object, Value};
use model::position::Ordinal;
use model::rid::ItemRid;
use service::{
    Approach, PartitionId, RangeInfo, ResumeFilter, RingRange, Scope, ServiceError, SortValue,
};

use super::lab::{Ask, Lab};
use super::oracle::{Agreement, Verdict};
use super::order::{compare, compare_keys, integer};
use super::rows::distinction;
use super::trial::judge;

/// The placeholder for the condition that resumes an ordered query.
const RESUME_FILTER: &str = "{documentdb-formattableorderbyquery-filter}";

/// A query that a client executes itself.
#[derive(Debug)]
pub struct Client<'l> {
    lab: &'l Lab,
    ask: &'l Ask,
    /// The access path that is forced on each partition, and the page size.
    approach: Approach,
    items_max: usize,
    plan: Plan,
    ranges: Vec<PartitionId>,
}

/// What a client needs of a plan.
#[derive(Debug)]
struct Plan {
    text: String,
    top: Option<usize>,
    offset: usize,
    limit: Option<usize>,
    distinct: bool,
    distinct_count: Option<String>,
    order: Vec<(String, bool)>,
    grouped: bool,
    aggregate: Option<String>,
    aliases: Vec<(String, Option<String>)>,
    is_value: bool,
}

/// A row of an ordered query.
#[derive(Clone, Debug)]
struct Ordered {
    keys: Vec<Option<Value>>,
    item: Ordinal,
    payload: Option<Value>,
}

impl<'l> Client<'l> {
    /// Fetches the plan; `None` if there is none for such a query.
    #[must_use]
    pub fn plan(
        lab: &'l Lab,
        ask: &'l Ask,
        approach: Approach,
        items_max: usize,
    ) -> Option<Client<'l>> {
        let plan = lab.plan(ask).ok()?;
        let asked: Vec<EpkRange> = plan.ranges.iter().map(ring_range).collect();
        let meets = |range: &EpkRange| asked.iter().any(|asked| asked.overlaps(range));
        let ranges = lab.ranges().into_iter().filter(|own| meets(&own.range));
        let ranges = ranges.map(|own| own.id).collect();
        let plan = Plan::read(&plan.info.to_value(), &ask.text);
        Some(Client { lab, ask, approach, items_max, plan, ranges })
    }

    /// All rows of the query.
    pub fn rows(&self) -> Result<Vec<Value>, ServiceError> {
        let plan = &self.plan;
        if let Some(kind) = &plan.aggregate
            && !plan.grouped
        {
            let parts = self.each_partition("true")?.into_iter().flatten();
            let parts: Vec<Value> = parts.collect();
            return Ok(self.cut(aggregate(kind, &items(&parts)).into_iter().collect()));
        }
        let rows: Vec<Value> = if !plan.aliases.is_empty() || plan.grouped {
            self.groups()?
        } else if plan.order.is_empty() {
            self.each_partition("true")?.into_iter().flatten().collect()
        } else {
            self.ordered("true")?.into_iter().filter_map(|row| row.payload).collect()
        };
        let mut seen = BTreeSet::new();
        let is_new = |row: &Value| !plan.distinct || seen.insert(distinction(row));
        let rows: Vec<Value> = rows.into_iter().filter(is_new).collect();
        if let Some(alias) = &plan.distinct_count {
            let count = Value::from(i64::try_from(rows.len()).expect("few rows"));
            return Ok(vec![if plan.is_value {
                count
            } else {
                Object::from_iter([(alias.as_str(), count)]).into()
            }]);
        }
        Ok(self.cut(rows))
    }

    /// Compares its rows with the expected ones. Clients merge groups in no order.
    pub fn judge(&self, verdict: &Verdict) -> Result<(), String> {
        match verdict {
            Verdict::Rows { rows, agreement: Agreement::Exact } if self.plan.grouped => {
                let Plan { top, offset, limit, .. } = &self.plan;
                if top.is_some() || limit.is_some() || *offset > 0 {
                    return self.rows().map(|_| ()).map_err(|error| error.to_string());
                }
                let verdict = Verdict::Rows { rows: rows.clone(), agreement: Agreement::Bag };
                judge(&verdict, self.rows())
            }
            Verdict::Rows { .. } | Verdict::NoIndex | Verdict::Refused(_) => {
                judge(verdict, self.rows())
            }
        }
    }

    /// Whether the query can be resumed after any of its rows by a condition. One that
    /// skips rows itself, as those of a single key do, would skip others after it.
    #[must_use]
    pub fn resumes(&self) -> bool {
        let skips = |line: &str| line.starts_with("OFFSET ") && !line.starts_with("OFFSET 0 ");
        let plan = &self.plan;
        let in_order = !plan.order.is_empty() && !plan.distinct && !plan.grouped;
        in_order && !plan.text.lines().any(skips)
    }

    /// Resumes the query after each of its first rows, with the condition that clients
    /// derive from the row before; returns what differs from continuing.
    pub fn check_resuming(&self) -> Result<(), String> {
        let shown = |error: ServiceError| error.to_string();
        let whole = self.ordered("true").map_err(shown)?;
        let wanted = self.plan.offset.saturating_add(self.plan.limit.unwrap_or(usize::MAX));
        let wanted = wanted.min(self.plan.top.unwrap_or(usize::MAX)).min(whole.len());
        for at in 1..wanted {
            let last = whole.get(at - 1).ok_or("a row before")?;
            let given = whole.get(..at).unwrap_or_default();
            let given = given.iter().filter(|row| row.item == last.item).count();
            let filter = self.after_keys(&last.keys);
            let rest = self.ordered(&filter).map_err(shown)?;
            let rest: Vec<Ordered> = self.after(rest, last, given);
            let expected = whole.get(at..wanted).unwrap_or_default();
            let rest = rest.get(..wanted - at).unwrap_or(&rest);
            alike(rest, expected).map_err(|what| format!("after row {at}, {filter}: {what}"))?;
        }
        Ok(())
    }

    /// Resumes the query at each of its first rows by naming the row, in each form that
    /// clients use.
    pub fn check_resume_filters(&self) -> Result<(), String> {
        let shown = |error: ServiceError| error.to_string();
        let parts = self.ordered_parts("true", None).map_err(shown)?;
        let mut whole: Vec<&Ordered> = parts.iter().flatten().collect();
        whole.sort_by(|a, b| self.compare(a, b));
        for (at, last) in whole.into_iter().enumerate() {
            let (item, exclude) = match at % 3 {
                0 => (Some(last.item), false),
                1 => (None, false),
                _ => (None, true),
            };
            let filter = last.resume_filter(item, exclude);
            let kept = |row: &&Ordered| match self.compare_keys(row, last) {
                Ordering::Equal if exclude => false,
                Ordering::Equal => item.is_none() || self.compare(row, last).is_ge(),
                Ordering::Less => false,
                Ordering::Greater => true,
            };
            let found = self.ordered_parts("true", Some(&filter)).map_err(shown)?;
            for (found, part) in found.iter().zip(&parts) {
                // TOP and LIMIT count what the filter leaves.
                let expected: Vec<Ordered> = part.iter().filter(kept).cloned().collect();
                let found = found.get(..expected.len()).unwrap_or(found);
                alike(found, &expected)
                    .map_err(|what| format!("at row {at}, {filter:?}: {what}"))?;
            }
        }
        Ok(())
    }

    /// The rows of the query, partition by partition, each page after the token of the one
    /// before and with a condition that only rows after it satisfy.
    pub fn rows_by_tokens(
        &self,
        mut between: impl FnMut(usize),
    ) -> Result<Vec<Value>, ServiceError> {
        let (mut all, mut pages) = (Vec::new(), 0);
        for range in &self.ranges {
            let (mut filter, mut rest) = ("true".to_owned(), None);
            loop {
                let ask = self.ask_range(*range, &filter);
                let page = self.lab.page(&ask, self.approach, rest.as_deref(), self.items_max)?;
                all.extend(page.rows.iter().map(Ordered::read));
                if let Some(row) = page.rows.last() {
                    filter = self.after_keys(&Ordered::read(row).keys);
                }
                rest = page.rest;
                if rest.is_none() {
                    break;
                }
                between(pages);
                pages += 1;
            }
        }
        all.sort_by(|a, b| self.compare(a, b));
        Ok(all.into_iter().filter_map(|row| row.payload).collect())
    }

    /// The rows of the query, each page by a client that knows nothing but the last row of
    /// the page before.
    pub fn rows_by_rows(&self, mut between: impl FnMut(usize)) -> Result<Vec<Value>, ServiceError> {
        let (mut all, mut pages): (Vec<Ordered>, usize) = (Vec::new(), 0);
        loop {
            let last = all.last();
            let filter = last.map(|last| last.resume_filter(Some(last.item), false));
            let mut next = Vec::new();
            // It may have been split since.
            for range in self.lab.ranges() {
                let ask = Ask { resume: filter.clone(), ..self.ask_range(range.id, "true") };
                next.extend(self.first_rows(&ask, last)?);
            }
            next.sort_by(|a, b| self.compare(a, b));
            next.truncate(self.items_max);
            if next.is_empty() {
                return Ok(all.into_iter().filter_map(|row| row.payload).collect());
            }
            all.append(&mut next);
            between(pages);
            pages += 1;
        }
    }

    /// The rows of the query, each page by a client like .NET's: ties come in the order of
    /// their ranges, so it knows the last row and its range. Ranges before that one have
    /// returned all rows that tie with it, those after it none.
    pub fn rows_by_ranges(
        &self,
        mut between: impl FnMut(usize),
    ) -> Result<Vec<Value>, ServiceError> {
        let (mut all, mut pages): (Vec<(Ordered, EpkRange)>, usize) = (Vec::new(), 0);
        loop {
            let last = all.last();
            let mut next = Vec::new();
            for RangeInfo { id, range, .. } in self.lab.ranges() {
                let is_there = last.is_some_and(|(_, own)| own.overlaps(&range));
                let filter = last.map(|(row, own)| {
                    row.resume_filter(is_there.then_some(row.item), !is_there && range < *own)
                });
                let ask = Ask { resume: filter, ..self.ask_range(id, "true") };
                let rows = self.first_rows(&ask, last.map(|(row, _)| row).filter(|_| is_there))?;
                next.extend(rows.into_iter().map(|row| (row, range.clone())));
            }
            // Within a range they are in order.
            next.sort_by(|(a, at), (b, other)| self.compare_keys(a, b).then(at.cmp(other)));
            next.truncate(self.items_max);
            if next.is_empty() {
                assert!(
                    all.is_sorted_by(|(a, _), (b, _)| self.compare_keys(a, b).is_le()),
                    "rows do not come in the order of their keys"
                );
                return Ok(all.into_iter().filter_map(|(row, _)| row.payload).collect());
            }
            all.append(&mut next);
            between(pages);
            pages += 1;
        }
    }

    /// The first rows after the last one, as many as a page has.
    fn first_rows(&self, ask: &Ask, last: Option<&Ordered>) -> Result<Vec<Ordered>, ServiceError> {
        let (mut rows, mut rest) = (Vec::new(), None);
        loop {
            let page = self.lab.page(ask, self.approach, rest.as_deref(), self.items_max)?;
            let new = page.rows.iter().map(Ordered::read);
            rows.extend(new.filter(|row| last.is_none_or(|last| self.compare(row, last).is_gt())));
            rest = page.rest;
            if rest.is_none() || rows.len() >= self.items_max {
                return Ok(rows);
            }
        }
    }

    /// Rows after the last one, of whose item `given` were returned.
    fn after(&self, rows: Vec<Ordered>, last: &Ordered, given: usize) -> Vec<Ordered> {
        let mut of_item = 0;
        let rows = rows.into_iter().filter(|row| {
            let order = self.compare(row, last);
            of_item += usize::from(order.is_eq());
            order.is_gt() || (order.is_eq() && of_item > given)
        });
        rows.collect()
    }

    fn cut(&self, rows: Vec<Value>) -> Vec<Value> {
        let Plan { top, offset, limit, .. } = &self.plan;
        let wanted = limit.unwrap_or(usize::MAX).min(top.unwrap_or(usize::MAX));
        rows.into_iter().skip(*offset).take(wanted).collect()
    }

    fn ask_range(&self, range: PartitionId, filter: &str) -> Ask {
        let text = self.plan.text.replace(RESUME_FILTER, filter);
        let scope = Scope { range: Some(range), ..Scope::default() };
        Ask { text, scope, ..self.ask.clone() }
    }

    /// The rows of each partition.
    fn each_partition(&self, filter: &str) -> Result<Vec<Vec<Value>>, ServiceError> {
        self.each_resumed(filter, None)
    }

    fn each_resumed(
        &self,
        filter: &str,
        resume: Option<&ResumeFilter>,
    ) -> Result<Vec<Vec<Value>>, ServiceError> {
        let mut parts = Vec::new();
        for range in &self.ranges {
            let ask = Ask { resume: resume.cloned(), ..self.ask_range(*range, filter) };
            parts.push(self.lab.all(&ask, self.approach, self.items_max, |_| {})?.rows);
        }
        Ok(parts)
    }

    fn ordered(&self, filter: &str) -> Result<Vec<Ordered>, ServiceError> {
        let mut all: Vec<Ordered> =
            self.ordered_parts(filter, None)?.into_iter().flatten().collect();
        all.sort_by(|a, b| self.compare(a, b));
        Ok(all)
    }

    fn ordered_parts(
        &self,
        filter: &str,
        resume: Option<&ResumeFilter>,
    ) -> Result<Vec<Vec<Ordered>>, ServiceError> {
        let mut parts = Vec::new();
        for part in self.each_resumed(filter, resume)? {
            let rows: Vec<Ordered> = part.iter().map(Ordered::read).collect();
            assert!(
                rows.is_sorted_by(|a, b| self.compare(a, b).is_le()),
                "rows of a partition are not in the order of clients: {rows:?}"
            );
            parts.push(rows);
        }
        Ok(parts)
    }

    fn compare(&self, a: &Ordered, b: &Ordered) -> Ordering {
        let items = a.item.cmp(&b.item);
        let backwards = self.plan.order.first().is_some_and(|(_, descending)| *descending);
        self.compare_keys(a, b).then(if backwards { items.reverse() } else { items })
    }

    fn compare_keys(&self, a: &Ordered, b: &Ordered) -> Ordering {
        let ways: Vec<bool> = self.plan.order.iter().map(|(_, descending)| *descending).collect();
        compare_keys(&ways, &a.keys, &b.keys)
    }

    /// The condition that only rows satisfy that may come after one with these keys.
    fn after_keys(&self, keys: &[Option<Value>]) -> String {
        let mut ways = Vec::new();
        let mut equal = String::from("true");
        for ((expr, descending), key) in self.plan.order.iter().zip(keys) {
            ways.push(format!("({equal} AND ({}))", later(expr, key.as_ref(), *descending)));
            equal = format!("{equal} AND {}", same(expr, key.as_ref()));
            // No condition expresses how these are sorted among themselves.
            if matches!(key, Some(Value::Array(_) | Value::Object(_))) {
                break;
            }
        }
        ways.push(format!("({equal})"));
        ways.join(" OR ")
    }

    fn groups(&self) -> Result<Vec<Value>, ServiceError> {
        let mut groups: BTreeMap<_, Vec<Value>> = BTreeMap::new();
        for row in self.each_partition("true")?.into_iter().flatten() {
            // For groups in order, the row contains the group.
            let around = row.get("orderByItems").and(row.get("payload")).cloned();
            let row = around.unwrap_or(row);
            let keys = row.get("groupByItems").map(distinction);
            let payload = row.get("payload").cloned();
            groups.entry(keys).or_default().extend(payload);
        }
        Ok(groups.into_values().filter_map(|parts| self.group(&parts)).collect())
    }

    /// Merges the parts of a group.
    fn group(&self, parts: &[Value]) -> Option<Value> {
        if let Some(kind) = &self.plan.aggregate {
            return aggregate(kind, &items(parts));
        }
        let first = parts.first()?;
        if self.plan.is_value {
            return Some(first.clone());
        }
        let member = |(alias, kind): &(String, Option<String>)| {
            let own: Vec<Value> =
                parts.iter().filter_map(|part| part.get(alias).cloned()).collect();
            let value = match kind {
                Some(kind) => aggregate(kind, &own)?,
                None => own.first().cloned()?,
            };
            Some((alias.clone(), value))
        };
        Some(self.plan.aliases.iter().filter_map(member).collect::<Object>().into())
    }
}

impl Plan {
    fn read(info: &Value, text: &str) -> Plan {
        let string = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let count = |name: &str| {
            let number = info.get(name).and_then(Value::as_number)?.as_i64()?;
            usize::try_from(number).ok()
        };
        let ways = members(info, "orderBy").iter().map(|way| way.as_str() == Some("Descending"));
        let expressions = members(info, "orderByExpressions").iter().map(string);
        let types = info.get("groupByAliasToAggregateType");
        let kind = |alias: &str| types?.get(alias)?.as_str().map(str::to_owned);
        let aliases = members(info, "groupByAliases").iter().map(string);
        let rewritten = info.get("rewrittenQuery").map(string).unwrap_or_default();
        let counted = info.get("dCountInfo").and_then(|counted| counted.get("dCountAlias"));
        Plan {
            text: if rewritten.is_empty() { text.to_owned() } else { rewritten },
            top: count("top"),
            offset: count("offset").unwrap_or_default(),
            limit: count("limit"),
            distinct: info.get("distinctType").and_then(Value::as_str) != Some("None"),
            distinct_count: counted.map(string),
            order: expressions.zip(ways).collect(),
            grouped: !members(info, "groupByExpressions").is_empty(),
            aggregate: members(info, "aggregates").first().map(string),
            aliases: aliases.map(|alias| (alias.clone(), kind(&alias))).collect(),
            is_value: info.get("hasSelectValue").and_then(Value::as_bool) == Some(true),
        }
    }
}

impl Ordered {
    fn read(row: &Value) -> Ordered {
        let rid = row.get("_rid").and_then(Value::as_str).expect("rewritten rows have ids");
        let item = ItemRid::parse(rid).expect("of items").ordinal();
        let keys = members(row, "orderByItems").iter().map(|key| key.get("item").cloned());
        Ordered { keys: keys.collect(), item, payload: row.get("payload").cloned() }
    }

    /// Resumes a query at this row.
    fn resume_filter(&self, item: Option<Ordinal>, exclude: bool) -> ResumeFilter {
        let key = |key: &Option<Value>| match key {
            None => SortValue::Undefined,
            Some(array @ Value::Array(_)) => {
                SortValue::Hashed(JsonKind::Array, DistinctHash::of(array))
            }
            Some(own @ Value::Object(_)) => {
                SortValue::Hashed(JsonKind::Object, DistinctHash::of(own))
            }
            Some(scalar) => SortValue::Value(scalar.clone()),
        };
        ResumeFilter { keys: self.keys.iter().map(key).collect(), item, exclude }
    }
}

/// Whether rows are the expected ones; what differs otherwise.
fn alike(found: &[Ordered], expected: &[Ordered]) -> Result<(), String> {
    let texts = |rows: &[Ordered]| -> Vec<String> {
        rows.iter().map(|row| format!("{:?}", row.payload)).collect()
    };
    let (found, expected) = (texts(found), texts(expected));
    if found == expected { Ok(()) } else { Err(format!("\n{found:?}\n{expected:?}")) }
}

fn members<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value.get(name).and_then(Value::as_array).unwrap_or_default()
}

fn ring_range(RingRange { min, max, max_inclusive }: &RingRange) -> EpkRange {
    match max_inclusive {
        // A query without a source is asked of the first partition, once.
        true if *min == Epk::MIN => {
            EpkRange::new(Epk::MIN, Epk::from_hex("00").expect("a position on the ring"))
        }
        true => EpkRange::around(min.clone()),
        false => EpkRange::new(min.clone(), max.clone()),
    }
}

/// The elements of `[{"item": …}]` in all rows.
fn items(rows: &[Value]) -> Vec<Value> {
    rows.iter().filter_map(Value::as_array).flatten().cloned().collect()
}

/// Merges the parts of an aggregate; `None` is undefined.
fn aggregate(kind: &str, parts: &[Value]) -> Option<Value> {
    let each = parts.iter().map(|part| part.get("item"));
    match kind {
        "Count" | "CountIf" | "Sum" => sum(each),
        "Average" => {
            let of = |name| parts.iter().map(move |part| part.get("item")?.get(name));
            let (sum, count) = (sum(of("sum"))?, sum(of("count"))?);
            let (sum, count) = (sum.as_number()?.as_f64(), count.as_number()?.as_f64());
            (count > 0.0).then(|| Number::from_f64(sum / count).map(Value::Number))?
        }
        "Min" => extreme(parts, "min", Ordering::Less),
        "Max" => extreme(parts, "max", Ordering::Greater),
        "MakeList" | "MakeSet" => {
            let all = each.flatten().filter_map(Value::as_array).flatten().cloned();
            let mut seen = BTreeSet::new();
            let kept = |item: &Value| kind == "MakeList" || seen.insert(distinction(item));
            Some(all.filter(kept).collect())
        }
        other => panic!("there is no aggregate {other}"),
    }
}

fn sum<'v>(parts: impl Iterator<Item = Option<&'v Value>>) -> Option<Value> {
    let mut sum = 0.0;
    for part in parts {
        sum += part?.as_number()?.as_f64();
    }
    Number::from_f64(sum).map(Value::Number)
}

fn extreme(parts: &[Value], name: &str, wanted: Ordering) -> Option<Value> {
    let mut best: Option<&Value> = None;
    for part in parts.iter().filter_map(|part| part.get("item2")) {
        if part.get("count").and_then(Value::as_number).is_some_and(|count| count.as_f64() == 0.0) {
            continue;
        }
        let own = part.get(name)?;
        let order = |best: &Value| {
            compare(Some(own), Some(best)).then_with(|| integer(own).cmp(&integer(best)))
        };
        if best.is_none_or(|best| order(best) == wanted) {
            best = Some(own);
        }
    }
    best.cloned()
}

/// The types in their order, each with its condition.
const TYPES: [(&str, &str); 7] = [
    ("undefined", "NOT IS_DEFINED"),
    ("null", "IS_NULL"),
    ("boolean", "IS_BOOL"),
    ("number", "IS_NUMBER"),
    ("string", "IS_STRING"),
    ("array", "IS_ARRAY"),
    ("object", "IS_OBJECT"),
];

fn rank(key: Option<&Value>) -> usize {
    match key {
        None => 0,
        Some(Value::Null) => 1,
        Some(Value::Bool(_)) => 2,
        Some(Value::Number(_)) => 3,
        Some(Value::String(_)) => 4,
        Some(Value::Array(_)) => 5,
        Some(Value::Object(_)) => 6,
    }
}

/// That an expression has a value which ties with the key.
fn same(expr: &str, key: Option<&Value>) -> String {
    match key {
        Some(key @ (Value::Bool(_) | Value::Number(_) | Value::String(_))) => {
            format!("{expr} = {key}")
        }
        other => TYPES.get(rank(other)).map(|(_, is)| format!("{is}({expr})")).unwrap_or_default(),
    }
}

/// That an expression has a value which comes after the key.
fn later(expr: &str, key: Option<&Value>, descending: bool) -> String {
    let own = rank(key);
    let other = TYPES.iter().enumerate();
    let other = other.filter(|(rank, _)| if descending { *rank < own } else { *rank > own });
    let mut ways: Vec<String> = other.map(|(_, (_, is))| format!("{is}({expr})")).collect();
    if let Some(key @ (Value::Bool(_) | Value::Number(_) | Value::String(_))) = key {
        ways.push(format!("{expr} {} {key}", if descending { "<" } else { ">" }));
    }
    if ways.is_empty() { "false".to_owned() } else { ways.join(" OR ") }
}
