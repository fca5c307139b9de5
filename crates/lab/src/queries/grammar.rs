//! Random queries on the properties of random containers.

use std::fmt;

use super::data::{any, scalar, word};
use super::dice::Dice;

/// A query in pieces, so that pieces can be left out to find what matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RandomQuery {
    pub(super) distinct: bool,
    pub(super) selection: String,
    pub(super) from: String,
    pub(super) filter: Option<Filter>,
    pub(super) group_by: Vec<String>,
    pub(super) order_by: Vec<(String, bool)>,
    pub(super) top: Option<usize>,
    pub(super) page: Option<(usize, usize)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    Leaf(String),
    Not(Box<Filter>),
    And(Vec<Filter>),
    Or(Vec<Filter>),
}

/// Paths for filters and select lists.
const PATHS: &[&str] = &[
    "c.a",
    "c.a",
    "c.b",
    "c.b",
    "c.s",
    "c.s",
    "c.num",
    "c.num",
    "c.big",
    "c.n.x",
    "c.n.y",
    "c[\"a\"]",
    "c.n[\"x\"]",
    "c.a.x",
    "c.tags[0]",
    "c.n",
    "c.tags",
    "c.id",
    "c.pk",
    "c.missing",
    "c.low",
];

/// Paths for orders.
const ORDERS: &[&str] =
    &["c.a", "c.a", "c.b", "c.s", "c.s", "c.num", "c.big", "c.n.x", "c.id", "c.pk", "c._ts"];

const COMPOSITES: &[&[(&str, bool)]] = &[
    &[("c.a", false), ("c.b", false)],
    &[("c.a", false), ("c.b", true)],
    &[("c.s", true), ("c.a", false)],
    &[("c.s", false), ("c.num", false), ("c.n.x", true)],
    &[("c.num", false), ("c.s", false)],
];

impl RandomQuery {
    #[must_use]
    pub(super) fn random(dice: &Dice) -> RandomQuery {
        let (from, own): (&str, &[&str]) = match dice.below(14) {
            0 => ("c JOIN e IN c.tags", &["e"]),
            1 => ("c JOIN e IN c.items", &["e.k", "e.v"]),
            2 => ("e IN c.items", &["e.k", "e.v"]),
            3 => ("e IN c.tags", &["e"]),
            4 => ("(SELECT DISTINCT VALUE c.a FROM c) e", &["e", "e.x"]),
            5 => ("(SELECT c.b AS p, COUNT(1) AS n FROM c GROUP BY c.b) e", &["e.p", "e.n"]),
            6 => ("(SELECT VALUE c FROM c WHERE c.num > 0) e", &["e.a", "e.num"]),
            _ => ("c", &[]),
        };
        let mut paths: Vec<&str> = own.repeat(3);
        if from.starts_with('c') {
            paths.extend(PATHS);
        }
        let filter = match dice.below(10) {
            0 | 1 => None,
            2 if paths.contains(&"c.a") => Some(together(dice)),
            _ => Some(filter(dice, &paths, 0)),
        };
        let mut query = RandomQuery { from: from.to_owned(), filter, ..RandomQuery::default() };
        match dice.below(8) {
            0 => query.aggregate(dice, &paths),
            1 => query.group(dice, &paths),
            2 => query.distinct(dice, &paths),
            _ => query.select(dice, &paths),
        }
        if query.group_by.is_empty() && paths.contains(&"c.a") && dice.once_in(2) {
            query.order(dice);
        }
        match dice.below(6) {
            0 => query.top = Some(dice.below(6)),
            1 => query.page = Some((dice.below(5), dice.below(6))),
            _ => {}
        }
        query
    }

    fn select(&mut self, dice: &Dice, paths: &[&str]) {
        let (p, q) = (dice.pick(paths), dice.pick(paths));
        self.selection = match dice.below(5) {
            0 if self.from == "c" => "*".to_owned(),
            1 => format!("VALUE {p}"),
            2 => format!("{p} AS p, {q} AS q"),
            3 => format!("VALUE {{\"p\": {p}, \"q\": [{q}]}}"),
            _ if self.from == "c" => "VALUE c.id".to_owned(),
            _ => format!("VALUE {p}"),
        };
    }

    fn distinct(&mut self, dice: &Dice, paths: &[&str]) {
        let (p, q) = (dice.pick(paths), dice.pick(paths));
        self.distinct = true;
        self.selection =
            if dice.once_in(2) { format!("VALUE {p}") } else { format!("{p} AS p, {q} AS q") };
    }

    fn aggregate(&mut self, dice: &Dice, paths: &[&str]) {
        self.selection = match dice.below(3) {
            0 => "VALUE COUNT(1)".to_owned(),
            1 => format!("VALUE {}", aggregate(dice, paths)),
            _ => format!("COUNT(1) AS n, {} AS x", aggregate(dice, paths)),
        };
    }

    fn group(&mut self, dice: &Dice, paths: &[&str]) {
        let keys: Vec<String> =
            (0..1 + dice.below(2)).map(|_| (*dice.pick(paths)).to_owned()).collect();
        let named = keys.iter().enumerate().map(|(at, key)| format!("{key} AS k{at}, "));
        self.selection = named.collect::<String>() + &format!("{} AS x", aggregate(dice, paths));
        self.group_by = keys;
        if dice.once_in(4) {
            (self.distinct, self.selection) = (true, format!("{} AS x", aggregate(dice, paths)));
        }
        if dice.once_in(3) {
            let mut order: Vec<(String, bool)> =
                self.group_by.iter().map(|key| (key.clone(), dice.once_in(2))).collect();
            if dice.once_in(2) {
                order.reverse();
            }
            order.truncate(1 + dice.below(2));
            self.order_by = order;
        }
    }

    fn order(&mut self, dice: &Dice) {
        let way = dice.once_in(2);
        self.order_by = if dice.once_in(4) {
            let keys = dice.pick(COMPOSITES).iter();
            keys.map(|(path, descending)| ((*path).to_owned(), *descending != way)).collect()
        } else {
            vec![((*dice.pick(ORDERS)).to_owned(), way)]
        };
    }

    /// A query that returns which items it finds, in which version, and nothing else: all
    /// of them.
    pub(super) fn of_versions(mut self) -> RandomQuery {
        self.selection = "VALUE {id: c.id, rid: c._rid, etag: c._etag}".to_owned();
        (self.distinct, self.top, self.page) = (false, None, None);
        self.group_by.clear();
        if self.from != "c" {
            (self.from, self.filter) = ("c".to_owned(), None);
        }
        self
    }

    /// The same with an order, if it has none.
    pub(super) fn in_order(mut self, dice: &Dice) -> RandomQuery {
        if self.order_by.is_empty() {
            self.order(dice);
        }
        self
    }

    /// Simpler queries that may show the same.
    #[must_use]
    pub(super) fn simpler(&self) -> Vec<RandomQuery> {
        let mut simpler = Vec::new();
        let mut add = |change: &dyn Fn(&mut RandomQuery)| {
            let mut query = self.clone();
            change(&mut query);
            simpler.push(query);
        };
        let is_plain = self.group_by.is_empty() && !self.selection.contains('(') && !self.distinct;
        if is_plain && self.from == "c" && self.selection != "VALUE c.id" {
            add(&|query| query.selection = "VALUE c.id".to_owned());
        }
        if self.top.is_some() || self.page.is_some() {
            add(&|query| (query.top, query.page) = (None, None));
        }
        if !self.order_by.is_empty() {
            add(&|query| query.order_by.clear());
        }
        match &self.filter {
            None => {}
            Some(Filter::Leaf(_)) => add(&|query| query.filter = None),
            Some(Filter::Not(inner)) => add(&|query| query.filter = Some((**inner).clone())),
            Some(Filter::And(parts) | Filter::Or(parts)) => {
                for part in parts {
                    add(&|query| query.filter = Some(part.clone()));
                }
            }
        }
        simpler
    }
}

fn aggregate(dice: &Dice, paths: &[&str]) -> String {
    let path = dice.pick(paths);
    match dice.below(7) {
        0 => format!("COUNT({path})"),
        1 if paths.contains(&"c.num") => "SUM(c.num)".to_owned(),
        2 if paths.contains(&"c.num") => "AVG(c.num)".to_owned(),
        3 => format!("MIN({path})"),
        4 => format!("MAX({path})"),
        5 => format!("COUNTIF({path} = {})", scalar(dice)),
        _ => "COUNT(1)".to_owned(),
    }
}

/// Values for the first paths of a composite index, a range for the next one or an order by
/// it, and sometimes something else.
fn together(dice: &Dice) -> Filter {
    let paths = dice.pick(COMPOSITES);
    let given = 1 + dice.below(paths.len());
    let leaf = |path: &str, sign: &str| Filter::Leaf(format!("{path} {sign} {}", scalar(dice)));
    let mut parts: Vec<Filter> =
        paths.iter().take(given).map(|(path, _)| leaf(path, "=")).collect();
    for (path, _) in paths.iter().skip(given).take(1) {
        let bounds = [">", ">=", "<", "<="];
        parts.extend((0..dice.below(3)).map(|_| leaf(path, dice.pick::<&str>(&bounds))));
    }
    if dice.once_in(3) {
        parts.insert(0, filter(dice, PATHS, 2));
    }
    Filter::And(parts)
}

fn filter(dice: &Dice, paths: &[&str], depth: usize) -> Filter {
    let parts =
        |dice: &Dice| (0..2 + dice.below(2)).map(|_| filter(dice, paths, depth + 1)).collect();
    match dice.below(8) {
        0 | 1 if depth < 3 => Filter::And(parts(dice)),
        2 | 3 if depth < 3 => Filter::Or(parts(dice)),
        4 if depth < 3 => Filter::Not(Box::new(filter(dice, paths, depth + 1))),
        _ => Filter::Leaf(leaf(dice, paths)),
    }
}

fn leaf(dice: &Dice, paths: &[&str]) -> String {
    let path = *dice.pick(paths);
    let value = scalar(dice);
    let word = word(dice);
    let quoted = format!("\"{word}\"");
    if paths.contains(&"c.a") && dice.once_in(4) {
        return special(dice, &value);
    }
    match dice.below(22) {
        0..=4 => format!("{path} = {value}"),
        5 => format!("{path} != {value}"),
        6 => format!("{path} {} {value}", dice.pick(&["<", "<=", ">", ">="])),
        7 => format!("{value} {} {path}", dice.pick(&["<", "<=", ">", ">=", "="])),
        8 => format!("{path} BETWEEN {value} AND {}", scalar(dice)),
        9 => format!("{path} IN ({value}, {}, {})", scalar(dice), any(dice, 1)),
        10 => format!("{path} NOT IN ({value}, {})", scalar(dice)),
        11 => format!("STARTSWITH({path}, {quoted})"),
        12 => format!("STARTSWITH({path}, {quoted}, true)"),
        13 => format!("{path} LIKE \"{word}{}\"", dice.pick(&["%", "_", "%a", ""])),
        14 => format!("{}({path})", dice.pick(&TYPE_CHECKS)),
        15 => format!("{path} = {}", any(dice, 0)),
        16 => format!("{path} = {}", dice.pick(paths)),
        17 => format!("{path} > {quoted} AND {path} <= \"{word}b\""),
        18 => format!("({path} ?? {value}) = {}", scalar(dice)),
        19 => path.to_owned(),
        20 => format!("STRINGEQUALS({path}, {quoted}, {})", dice.pick(&["true", "false"])),
        _ => format!("CONTAINS({path}, {quoted})"),
    }
}

const TYPE_CHECKS: [&str; 8] = [
    "IS_DEFINED",
    "IS_NULL",
    "IS_BOOL",
    "IS_NUMBER",
    "IS_STRING",
    "IS_ARRAY",
    "IS_OBJECT",
    "IS_PRIMITIVE",
];

/// Conditions on arrays, keys and constants.
fn special(dice: &Dice, value: &str) -> String {
    let key = format!("k{}", 1 + dice.below(5));
    match dice.below(14) {
        0 | 1 => format!("ARRAY_CONTAINS(c.tags, {value})"),
        2 => format!("ARRAY_CONTAINS(c.items, {{\"k\": {value}}}, true)"),
        3 => format!("EXISTS(SELECT VALUE u FROM u IN c.tags WHERE u = {value})"),
        4 => format!("EXISTS(SELECT VALUE i FROM i IN c.items WHERE i.k = {value} AND i.v > 0)"),
        5 => format!("c.tags[1] = {value}"),
        6 => format!("ARRAY_LENGTH(c.tags) = {}", dice.below(4)),
        7 => format!("c.pk = \"{key}\""),
        8 => format!("c.pk IN (\"{key}\", \"k1\", null)"),
        9 => format!("c.pk = \"{key}\" AND c.t = \"t{}\"", dice.below(3)),
        10 => format!("c.id = \"{}\"", dice.below(20)),
        11 => format!("ARRAY_CONTAINS([{value}, {}], c.a)", scalar(dice)),
        12 => (*dice.pick(&["true", "false", "undefined", "1 = 1"])).to_owned(),
        _ => format!("(c.a = {value}) = (c.b = {value})"),
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, parts: &[Filter], word: &str| {
            let parts: Vec<String> = parts.iter().map(|part| format!("({part})")).collect();
            f.write_str(&parts.join(word))
        };
        match self {
            Filter::Leaf(text) => f.write_str(text),
            Filter::Not(inner) => write!(f, "NOT ({inner})"),
            Filter::And(parts) => joined(f, parts, " AND "),
            Filter::Or(parts) => joined(f, parts, " OR "),
        }
    }
}

impl fmt::Display for RandomQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SELECT ")?;
        if self.distinct {
            f.write_str("DISTINCT ")?;
        }
        if let Some(top) = self.top {
            write!(f, "TOP {top} ")?;
        }
        write!(f, "{} FROM {}", self.selection, self.from)?;
        if let Some(filter) = &self.filter {
            write!(f, " WHERE {filter}")?;
        }
        if !self.group_by.is_empty() {
            write!(f, " GROUP BY {}", self.group_by.join(", "))?;
        }
        if !self.order_by.is_empty() {
            let key = |(path, descending): &(String, bool)| {
                format!("{path}{}", if *descending { " DESC" } else { "" })
            };
            let keys: Vec<String> = self.order_by.iter().map(key).collect();
            write!(f, " ORDER BY {}", keys.join(", "))?;
        }
        if let Some((offset, limit)) = self.page {
            write!(f, " OFFSET {offset} LIMIT {limit}")?;
        }
        Ok(())
    }
}
