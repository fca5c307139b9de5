//! Random queries from the grammar: every clause, every kind of expression, in sizes that
//! people write.

use super::dice::Dice;

const VALUES: &[&str] = &[
    "0",
    "1",
    "2",
    "-1",
    "3.5",
    "1e3",
    "true",
    "false",
    "null",
    "undefined",
    "'x'",
    "'y'",
    "'X'",
    "''",
    "'xy'",
    "\"x\"",
    "[]",
    "[1]",
    "['x', 1]",
    "{}",
    "{'a': 1}",
    "@p",
    "@s",
    "@none",
];

const NAMES: &[&str] = &["pk", "pk", "a", "b", "k", "id"];

const UNARY: &[&str] = &[
    "ABS",
    "SIGN",
    "LENGTH",
    "LOWER",
    "UPPER",
    "REVERSE",
    "FLOOR",
    "ROUND",
    "TOSTRING",
    "TRIM",
    "SQRT",
    "IS_DEFINED",
    "IS_NULL",
    "IS_BOOL",
    "IS_NUMBER",
    "IS_STRING",
    "IS_ARRAY",
    "IS_OBJECT",
    "IS_PRIMITIVE",
    "IS_INTEGER",
    "ARRAY_LENGTH",
    "StringToNumber",
    "ltrim",
    "year",
    "OBJECTTOARRAY",
    "ARRAY_SUM",
    "StringToArray",
    "ST_ISVALID",
    "DateTimeToTimestamp",
];

const BINARY: &[&str] = &[
    "STRINGEQUALS",
    "STARTSWITH",
    "ENDSWITH",
    "CONTAINS",
    "ARRAY_CONTAINS",
    "ARRAY_CONTAINS_ANY",
    "ARRAY_CONTAINS_ALL",
    "CHOOSE",
    "CONCAT",
    "INDEX_OF",
    "SETINTERSECT",
    "POWER",
    "LEFT",
    "RIGHT",
    "ARRAY_CONCAT",
    "REPLICATE",
    "REGEXMATCH",
    "INTADD",
    "STRINGJOIN",
    "StringSplit",
];

const AGGREGATES: &[&str] =
    &["COUNT", "SUM", "AVG", "MIN", "MAX", "COUNTIF", "MAKELIST", "MAKESET"];

/// The keys of containers that queries are planned for.
pub(crate) const KEYS: &[&str] = &[
    r#"{"paths":["/pk"],"kind":"Hash","version":2}"#,
    r#"{"paths":["/pk"],"kind":"Hash","version":2}"#,
    r#"{"paths":["/pk"],"kind":"Hash","version":1}"#,
    r#"{"paths":["/a/b"],"kind":"Hash","version":2}"#,
    r#"{"paths":["/pk","/a"],"kind":"MultiHash","version":2}"#,
    r#"{"paths":["/pk","/a","/k"],"kind":"MultiHash","version":2}"#,
];

/// The parameters that queries refer to.
pub(crate) const PARAMETERS: &str = r#"[{"name":"@p","value":1},{"name":"@s","value":"x"}]"#;

/// A query.
pub(crate) fn query(dice: &mut Dice) -> String {
    Maker { dice, names: Vec::new(), made: 0 }.query(2, true)
}

struct Maker<'d> {
    dice: &'d mut Dice,
    /// The sources that can be referred to, innermost last.
    names: Vec<String>,
    /// Names of sources that were made up.
    made: usize,
}

impl Maker<'_> {
    /// `outermost` queries have a page and an order, too.
    fn query(&mut self, depth: usize, outermost: bool) -> String {
        let known = self.names.len();
        let from = if self.dice.once_in(12) && !outermost || self.dice.once_in(25) {
            String::new()
        } else {
            self.from(depth, outermost)
        };
        let filter = if self.dice.once_in(4) { String::new() } else { self.filter(depth) };
        let mut text = "SELECT ".to_owned();
        if self.dice.once_in(8) {
            text.push_str("DISTINCT ");
        }
        if self.dice.once_in(if outermost { 10 } else { 60 }) {
            text.push_str(self.dice.pick(&["TOP 3 ", "TOP 0 ", "TOP @p ", "TOP 1.0 "]));
        }
        let grouped = self.dice.once_in(6);
        let keys: Vec<String> = if grouped { self.keys() } else { Vec::new() };
        text.push_str(&self.selection(depth, outermost, &keys));
        text.push_str(&from);
        text.push_str(&filter);
        if grouped {
            text.push_str(&format!(" GROUP BY {}", keys.join(", ")));
        }
        if self.dice.once_in(if outermost { 6 } else { 60 }) {
            text.push_str(&self.order(&keys));
        }
        if self.dice.once_in(if outermost { 10 } else { 60 }) {
            text.push_str(self.dice.pick(&[" OFFSET 1 LIMIT 2", " OFFSET 0 LIMIT @p"]));
        }
        self.names.truncate(known);
        text
    }

    fn from(&mut self, depth: usize, outermost: bool) -> String {
        let mut text = String::new();
        if outermost || self.names.is_empty() {
            let first = match self.dice.below(14) {
                0 => ("r IN c.a", "r"),
                1 => ("c AS r", "r"),
                2 => ("root", "root"),
                3 => ("c.a", "a"),
                4 if depth > 0 => {
                    let inner = self.query(depth - 1, false);
                    let name = self.name();
                    self.names.push(name.clone());
                    return format!(" FROM ({inner}) AS {name}");
                }
                _ => ("c", "c"),
            };
            text.push_str(&format!(" FROM {}", first.0));
            self.names.push(first.1.to_owned());
        } else {
            let (name, path) = (self.name(), self.path());
            let text = match self.dice.below(4) {
                0 => format!(" FROM {path} AS {name}"),
                1 if depth > 0 => {
                    let inner = self.query(depth - 1, false);
                    format!(" FROM ({inner}) AS {name}")
                }
                _ => format!(" FROM {name} IN {path}"),
            };
            self.names.push(name);
            return text;
        }
        if self.dice.once_in(6) {
            let (name, path) = (self.name(), self.path());
            if depth > 0 && self.dice.once_in(3) {
                let inner = self.query(depth - 1, false);
                text.push_str(&format!(" JOIN ({inner}) AS {name}"));
            } else {
                text.push_str(&format!(" JOIN {name} IN {path}"));
            }
            self.names.push(name);
        }
        text
    }

    fn name(&mut self) -> String {
        self.made += 1;
        format!("s{}", self.made)
    }

    fn filter(&mut self, depth: usize) -> String {
        format!(" WHERE {}", self.test(depth))
    }

    fn keys(&mut self) -> Vec<String> {
        let mut keys = vec![self.path()];
        if self.dice.once_in(4) {
            keys.push(self.path());
        }
        if self.dice.once_in(10) {
            keys.push(format!("LOWER({})", self.path()));
        }
        keys
    }

    fn selection(&mut self, depth: usize, outermost: bool, keys: &[String]) -> String {
        let grouped = !keys.is_empty();
        if !grouped && self.dice.once_in(4) && (outermost || self.dice.once_in(4)) {
            return "*".to_owned();
        }
        let counts = self.dice.once_in(if grouped { 2 } else { 6 });
        if !outermost || self.dice.once_in(2) {
            let value = if counts { self.aggregate() } else { self.column(depth, keys) };
            return format!("VALUE {value}");
        }
        let items: Vec<String> = (0..=self.dice.below(3))
            .map(|at| {
                let item = if counts && self.dice.once_in(2) {
                    self.aggregate()
                } else {
                    self.column(depth, keys)
                };
                match self.dice.below(3) {
                    0 => item,
                    _ => format!("{item} AS n{at}"),
                }
            })
            .collect();
        items.join(", ")
    }

    fn column(&mut self, depth: usize, keys: &[String]) -> String {
        match self.dice.below(3) {
            0 | 1 if !keys.is_empty() => {
                let at = self.dice.below(keys.len());
                keys.get(at).cloned().unwrap_or_default()
            }
            0 => self.path(),
            _ => self.operand(depth),
        }
    }

    fn aggregate(&mut self) -> String {
        let name = self.dice.pick(AGGREGATES);
        let argument = match self.dice.below(4) {
            0 => "1".to_owned(),
            1 => self.operand(1),
            _ => self.path(),
        };
        match self.dice.below(12) {
            0 => format!("{name}({argument}) + 1"),
            1 => format!("{{'n': {name}({argument})}}"),
            _ => format!("{name}({argument})"),
        }
    }

    fn order(&mut self, keys: &[String]) -> String {
        let key = |own: &mut Self| match (own.dice.below(6), keys.first()) {
            (0, _) => own.operand(1),
            (_, Some(key)) => key.clone(),
            _ => own.path(),
        };
        let mut all = vec![key(self)];
        if self.dice.once_in(3) {
            all.push(key(self));
        }
        let ways: Vec<String> = all
            .iter()
            .map(|key| format!("{key}{}", self.dice.pick(&["", " ASC", " DESC"])))
            .collect();
        format!(" ORDER BY {}", ways.join(", "))
    }

    fn path(&mut self) -> String {
        let at = self.dice.below(self.names.len());
        let root =
            if self.dice.once_in(40) { Some("c") } else { self.names.get(at).map(String::as_str) };
        let root = root.unwrap_or("c").to_owned();
        match self.dice.below(16) {
            0 => root,
            1 => format!("{root}['{}']", self.dice.pick(NAMES)),
            2 => format!("{root}.{}[0]", self.dice.pick(NAMES)),
            3 => format!("{root}.{}.{}", self.dice.pick(NAMES), self.dice.pick(NAMES)),
            4 => format!("{root}.a.b"),
            _ => format!("{root}.{}", self.dice.pick(NAMES)),
        }
    }

    /// Whatever may have any value.
    fn operand(&mut self, depth: usize) -> String {
        let choices = if depth == 0 { 8 } else { 22 };
        match self.dice.below(choices) {
            0..=3 => self.path(),
            4..=7 => self.dice.pick(VALUES).to_owned(),
            8 | 9 => format!("{}({})", self.dice.pick(UNARY), self.operand(depth - 1)),
            10 | 11 => {
                let op =
                    self.dice.pick(&["+", "-", "*", "/", "%", "||", "&", "|", "^", "<<", ">>"]);
                format!("({} {op} {})", self.operand(depth - 1), self.operand(depth - 1))
            }
            12 => {
                format!("({}{})", self.dice.pick(&["-", "+", "~", "NOT "]), self.operand(depth - 1))
            }
            13 => format!("({} ?? {})", self.operand(depth - 1), self.operand(depth - 1)),
            14 => {
                let (condition, yes) = (self.test(depth - 1), self.operand(depth - 1));
                format!("({condition} ? {yes} : {})", self.operand(depth - 1))
            }
            15 => format!("[{}]", self.operand(depth - 1)),
            16 => format!("{{'a': {}, 'b': {}}}", self.operand(depth - 1), self.dice.pick(VALUES)),
            17 => format!("({})", self.query(depth - 1, false)),
            18 => format!("ARRAY({})", self.query(depth - 1, false)),
            19 => self.test(depth - 1),
            _ => {
                let name = self.dice.pick(BINARY);
                format!("{name}({}, {})", self.operand(depth - 1), self.operand(depth - 1))
            }
        }
    }

    /// Something that is true, false or undefined.
    fn test(&mut self, depth: usize) -> String {
        let inner = depth.min(1);
        let choices = if depth == 0 { 6 } else { 20 };
        match self.dice.below(choices) {
            0..=2 => {
                let op = self.dice.pick(&["=", "=", "=", "!=", "<", "<=", ">", ">="]);
                format!("{} {op} {}", self.path(), self.dice.pick(VALUES))
            }
            3..=5 => {
                let op = self.dice.pick(&["=", "=", "=", "!=", "<", "<=", ">", ">="]);
                format!("{} {op} {}", self.operand(inner), self.operand(inner))
            }
            6..=8 => format!("({} AND {})", self.test(depth - 1), self.test(depth - 1)),
            9 | 10 => format!("({} OR {})", self.test(depth - 1), self.test(depth - 1)),
            11 => format!("(NOT {})", self.test(depth - 1)),
            12 => {
                let not = self.dice.pick(&["", "", "NOT "]);
                let (needle, item) = (self.operand(inner), self.operand(0));
                format!("{needle} {not}IN ({item}, {})", self.dice.pick(VALUES))
            }
            13 => {
                let not = self.dice.pick(&["", "", "NOT "]);
                let (low, high) = (self.dice.pick(VALUES), self.dice.pick(VALUES));
                format!("({} {not}BETWEEN {low} AND {high})", self.operand(inner))
            }
            14 => {
                let not = self.dice.pick(&["", "", "NOT "]);
                let pattern = self.dice.pick(&["'x%'", "'x'", "'%'", "'_'", "'%x'", "'[x]'", "@s"]);
                format!("{} {not}LIKE {pattern}", self.operand(inner))
            }
            15 => format!("EXISTS({})", self.query(depth - 1, false)),
            16 => format!("{}({})", self.dice.pick(UNARY), self.operand(inner)),
            17 => self.operand(depth - 1),
            _ => {
                let name =
                    self.dice.pick(&["STRINGEQUALS", "STARTSWITH", "ARRAY_CONTAINS", "CONTAINS"]);
                let (a, b) = (self.operand(inner), self.operand(inner));
                match self.dice.below(3) {
                    0 => format!("{name}({a}, {b}, {})", self.dice.pick(&["true", "false", "c.a"])),
                    _ => format!("{name}({a}, {b})"),
                }
            }
        }
    }
}
