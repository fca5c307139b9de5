//! Random queries, and documents that have a chance to match them.
//!
//! The values of one query and its documents come from one small pool: a few values and
//! those beside them, which are the ones that rounding and case take for each other.

/// A generator that gives the same numbers for the same seed (xorshift).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(most).unwrap()).unwrap()
    }

    fn pick<'t, T>(&mut self, choices: &'t [T]) -> &'t T {
        &choices[self.below(choices.len())]
    }
}

/// Numbers that computers get wrong, all finite.
const NUMBERS: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    2.0,
    3.0,
    0.1,
    0.2,
    0.3,
    0.5,
    1.5,
    1.0 / 3.0,
    5e-324,
    1e-323,
    1e-310,
    f64::MIN_POSITIVE,
    f64::EPSILON,
    f64::MAX,
    1e308,
    1e16,
    1e17,
    9_007_199_254_740_991.0,
    9_007_199_254_740_992.0,
    9_007_199_254_740_994.0,
    4_503_599_627_370_496.5,
    9_223_372_036_854_775_808.0,
    18_446_744_073_709_551_616.0,
    4_294_967_296.0,
    1_700_000_000_000.0,
];

/// Integers as they are written, beyond what a double tells apart.
const INTEGERS: &[&str] = &[
    "9007199254740993",
    "9007199254740995",
    "-9007199254740993",
    "10000000000000001",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
];

/// Letters whose cases are no pairs, letters of several characters, and characters of
/// two UTF-16 units.
const TEXTS: &[&str] = &[
    "",
    "x",
    "xy",
    "k",
    "s",
    "i",
    "ss",
    "ki",
    "\u{212A}",
    "\u{17F}",
    "\u{130}",
    "\u{131}",
    "\u{DF}",
    "\u{1E9E}",
    "\u{212B}",
    "\u{E5}",
    "\u{E9}",
    "e\u{301}",
    "\u{1C5}",
    "\u{149}",
    "\u{390}",
    "\u{3A3}",
    "\u{3C2}",
    "\u{FB01}",
    "\u{10400}",
    "\u{1F600}",
    "\u{FFFF}",
    "\u{10FFFF}",
    "\u{D7FF}",
    "\u{E000}",
    "1",
    "0.1",
    "true",
    "null",
    "[1]",
    "1970-01-01T00:00:00.0000000Z",
    "2023-11-14T22:13:20.0000000Z",
];

const OTHERS: &[&str] = &[
    "true",
    "false",
    "null",
    "undefined",
    "[]",
    "{}",
    "NaN",
    "{'type': 'Point', 'coordinates': [1, 2]}",
];

fn number(value: f64) -> String {
    format!("{value:?}")
}

fn text(value: &str) -> String {
    format!("'{value}'")
}

/// A number and its neighbours, by one step of the type and by arithmetic.
fn beside_number(value: f64) -> Vec<f64> {
    let near = [
        value,
        -value,
        value.next_up(),
        value.next_down(),
        value + 1.0,
        value - 1.0,
        value * 2.0,
        value / 2.0,
        value * 10.0,
        value + 1e16,
    ];
    near.into_iter().filter(|near| near.is_finite()).collect()
}

/// A text and those that are the same but for a case, an end, or an order.
fn beside_text(value: &str) -> Vec<String> {
    let long = value.repeat(120 / value.len().max(1));
    vec![
        value.to_owned(),
        value.to_uppercase(),
        value.to_lowercase(),
        value.chars().rev().collect(),
        format!("{value}x"),
        format!("{value}{value}"),
        value.chars().take(1).collect(),
        format!("{long}x"),
        format!("{long}y"),
    ]
}

/// The values that one query and its documents are made of, as the language writes them.
pub(crate) struct Pool(Vec<String>);

impl Pool {
    pub(crate) fn new(random: &mut Random) -> Pool {
        let (mut all, kind) = (Vec::new(), random.below(4));
        if kind != 0 {
            all.extend(beside_number(*random.pick(NUMBERS)).into_iter().map(number));
            all.push((*random.pick(INTEGERS)).to_owned());
        }
        if kind != 1 {
            let base = *random.pick(TEXTS);
            all.extend(beside_text(base).iter().map(|near| text(near)));
        }
        if random.below(8) == 0 {
            // What the clock says when queries are run.
            all = vec![number(1_700_000_000_000.0), text("2023-11-14T22:13:20.0000000Z")];
        }
        let count = 2 + random.below(6);
        let mut few: Vec<String> = (0..count).map(|_| random.pick(&all).clone()).collect();
        few.extend((0..random.below(3)).map(|_| (*random.pick(OTHERS)).to_owned()));
        let one = few[0].clone();
        let built = [
            format!("[{one}]"),
            format!("[{one}, {}]", few[1]),
            format!("{{'b': {one}}}"),
            format!("{{'pk': {one}}}"),
        ];
        if random.below(2) == 0 {
            few.push(random.pick(&built).clone());
        }
        Pool(few)
    }

    fn value(&self, random: &mut Random) -> String {
        random.pick(&self.0).clone()
    }

    /// A value as JSON has it, unless it has none.
    fn json(&self, random: &mut Random) -> Option<String> {
        let value = self.value(random).replace('\'', "\"");
        (!value.contains("undefined") && !value.contains("NaN")).then_some(value)
    }

    /// A value for a parameter.
    pub(crate) fn parameter(&self, random: &mut Random) -> Option<model::json::Value> {
        let value = self.json(random)?;
        model::json::parse(value.as_bytes()).ok()
    }

    /// A document, as JSON text.
    pub(crate) fn document(&self, random: &mut Random) -> String {
        let mut members = vec!["\"id\":\"1\"".to_owned()];
        members.extend(self.json(random).map(|value| format!("\"pk\":{value}")));
        members.extend(self.json(random).map(|value| format!("\"t\":{value}")));
        let inner = self.json(random);
        members.extend(match random.below(4) {
            0 => inner.map(|value| format!("\"a\":{value}")),
            _ => inner.map(|value| format!("\"a\":{{\"b\":{value}}}")),
        });
        let list: Vec<String> = (0..random.below(3)).filter_map(|_| self.json(random)).collect();
        members.push(format!("\"l\":[{}]", list.join(",")));
        format!("{{{}}}", members.join(","))
    }
}

const PATHS: &[&str] =
    &["c.pk", "c.pk", "c.pk", "c['pk']", "c.t", "c.a.b", "c.a.b", "c.a", "c.pk[0]", "c.l[0]", "c"];

const UNARY: &[&str] = &[
    "ABS",
    "SIGN",
    "LENGTH",
    "LOWER",
    "UPPER",
    "REVERSE",
    "FLOOR",
    "CEILING",
    "ROUND",
    "TRUNC",
    "SQRT",
    "SQUARE",
    "EXP",
    "LOG",
    "TOSTRING",
    "TRIM",
    "LTRIM",
    "IS_DEFINED",
    "IS_NULL",
    "IS_BOOL",
    "IS_NUMBER",
    "IS_STRING",
    "IS_ARRAY",
    "IS_OBJECT",
    "IS_PRIMITIVE",
    "IS_INTEGER",
    "IS_FINITE_NUMBER",
    "IS_DATETIME",
    "ARRAY_LENGTH",
    "ARRAY_SUM",
    "ARRAY_MIN",
    "STRINGTONUMBER",
    "STRINGTOBOOLEAN",
    "STRINGTONULL",
    "STRINGTOARRAY",
    "OBJECTTOARRAY",
    "ST_ISVALID",
    "INTBITNOT",
    "HASH",
    "YEAR",
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
    "SETUNION",
    "SETEQUAL",
    "POWER",
    "INTADD",
    "INTMUL",
    "INTSUB",
    "LEFT",
    "RIGHT",
    "REPLICATE",
    "STRINGSPLIT",
    "STRINGJOIN",
    "SUBSTRINGBEFORE",
    "NUMBERBIN",
    "REGEXMATCH",
    "ST_DISTANCE",
    "ROUND",
    "TRIM",
];

const TERNARY: &[&str] = &[
    "STRINGEQUALS",
    "STARTSWITH",
    "ENDSWITH",
    "CONTAINS",
    "ARRAY_CONTAINS",
    "ARRAY_CONTAINS_ANY",
    "ARRAY_CONTAINS_ALL",
    "IIF",
    "CHOOSE",
    "REPLACE",
    "SUBSTRING",
    "INDEX_OF",
    "CONCAT",
    "ARRAY_SLICE",
    "REGEXREPLACE",
];

/// What is different when the query is run from when it was planned.
const CHANGING: &[&str] = &[
    "GETCURRENTTIMESTAMP()",
    "GETCURRENTTIMESTAMPSTATIC()",
    "GETCURRENTDATETIME()",
    "GETCURRENTTICKSSTATIC()",
    "NOW()",
    "AGO('1d')",
    "RAND()",
];

/// Makes the text of one query.
pub(crate) struct Maker<'r> {
    pub(crate) random: &'r mut Random,
    pub(crate) pool: &'r Pool,
    /// What names lead to besides the document.
    pub(crate) rows: Vec<String>,
}

impl Maker<'_> {
    fn pick(&mut self, choices: &[&'static str]) -> &'static str {
        let chosen: &&'static str = self.random.pick(choices);
        chosen
    }

    fn value(&mut self) -> String {
        match self.random.below(20) {
            0 => "@p".to_owned(),
            1 if self.random.below(8) == 0 => "@missing".to_owned(),
            _ => self.pool.value(self.random),
        }
    }

    fn path(&mut self) -> String {
        if !self.rows.is_empty() && self.random.below(3) == 0 {
            return self.random.pick(&self.rows).clone();
        }
        self.pick(PATHS).to_owned()
    }

    /// A part that may use one more name.
    fn with_row(&mut self, row: String, part: impl FnOnce(&mut Self) -> String) -> String {
        self.rows.push(row);
        let made = part(self);
        self.rows.pop();
        made
    }

    /// A name that is in use nowhere around.
    fn name(&self) -> String {
        format!("r{}", self.rows.len())
    }

    /// Whatever may have any value.
    pub(crate) fn operand(&mut self, depth: usize) -> String {
        if depth == 0 {
            return if self.random.below(2) == 0 { self.path() } else { self.value() };
        }
        let below = depth - 1;
        match self.random.below(24) {
            0..=2 => self.path(),
            3..=5 => self.value(),
            6 | 7 => format!("{}({})", self.pick(UNARY), self.operand(below)),
            8 | 9 => self.arithmetic(below),
            10 => format!("({} {})", self.pick(&["-", "+", "~", "NOT"]), self.operand(below)),
            11 => format!("({} ?? {})", self.operand(below), self.operand(below)),
            12 => {
                let condition = self.test(below);
                format!("({condition} ? {} : {})", self.operand(below), self.operand(below))
            }
            13 => format!("[{}]", self.operand(below)),
            14 => format!("{{'b': {}, 'pk': {}}}", self.operand(below), self.value()),
            15 => format!("(SELECT VALUE {} WHERE {})", self.operand(below), self.test(below)),
            16 => self.over_elements(below),
            17 => self.definition(below),
            18 => {
                let name = self.pick(TERNARY);
                let last = self.operand(0);
                format!("{name}({}, {}, {last})", self.operand(below), self.operand(below))
            }
            19 => self.pick(CHANGING).to_owned(),
            20 => format!("({}).b", self.operand(below)),
            21 => self.test(below),
            _ => {
                let name = self.pick(BINARY);
                format!("{name}({}, {})", self.operand(below), self.operand(below))
            }
        }
    }

    fn arithmetic(&mut self, depth: usize) -> String {
        let op = self.pick(&["+", "-", "*", "/", "%", "||", "&", "|", "^", "<<", ">>", ">>>"]);
        // Rows of operators are held in another form from some length on.
        let times = if self.random.below(20) == 0 { 40 } else { 1 };
        let rest = format!(" {op} {}", self.operand(depth)).repeat(times);
        format!("({}{rest})", self.operand(depth))
    }

    /// A subquery over the elements of an array.
    fn over_elements(&mut self, depth: usize) -> String {
        let name = self.name();
        let list = ["c.l", "c.l", "c.pk"][self.random.below(3)];
        let test = self.with_row(name.clone(), |own| own.test(depth));
        match self.random.below(5) {
            0 => format!("ARRAY(SELECT VALUE {name} FROM {name} IN {list} WHERE {test})"),
            1 => format!("(SELECT VALUE COUNT(1) FROM {name} IN {list} WHERE {test})"),
            2 => {
                let kind = self.pick(&["SUM", "AVG", "MIN", "MAX", "COUNT", "MAKELIST"]);
                format!("(SELECT VALUE {kind}({name}) FROM {name} IN {list} WHERE {test})")
            }
            3 => format!("FIRST(SELECT VALUE {name} FROM {name} IN {list} WHERE {test})"),
            _ => format!("EXISTS(SELECT VALUE {name} FROM {name} IN {list} WHERE {test})"),
        }
    }

    fn definition(&mut self, depth: usize) -> String {
        let (name, value) = (self.name(), self.operand(depth));
        let body = self.with_row(name.clone(), |own| own.operand(depth));
        format!("(LET {name} = ({value}) IN {body})")
    }

    /// Something that is true, false or undefined.
    pub(crate) fn test(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.comparison(0);
        }
        let (below, inner) = (depth - 1, (depth - 1).min(1));
        if self.random.below(5) < 3 {
            return self.about_key();
        }
        match self.random.below(20) {
            0..=4 => self.comparison(depth),
            5 | 6 => format!("({} AND {})", self.test(below), self.test(below)),
            7 | 8 => format!("({} OR {})", self.test(below), self.test(below)),
            9 | 10 => format!("(NOT {})", self.test(below)),
            11 => {
                let (needle, item) = (self.operand(inner), self.operand(inner));
                format!("({needle} IN ({item}, {}, {}))", self.value(), self.value())
            }
            12 => format!("({} NOT IN ({}))", self.operand(inner), self.operand(inner)),
            13 => {
                let not = self.pick(&["", "NOT "]);
                let (low, high) = (self.value(), self.value());
                format!("({} {not}BETWEEN {low} AND {high})", self.operand(inner))
            }
            14 => {
                let not = self.pick(&["", "NOT "]);
                let pattern = self.pick(&["'x%'", "'[x]'", "'x'", "'%'", "'_'", "'k_'", "c.t"]);
                format!("({} {not}LIKE {pattern})", self.operand(inner))
            }
            15 => format!("EXISTS(SELECT VALUE 1 WHERE {})", self.test(below)),
            16 => {
                let name = self.pick(&TERNARY[..7]);
                let flag = self.pick(&["true", "false", "c.t", "undefined"]);
                format!("{name}({}, {}, {flag})", self.operand(inner), self.operand(inner))
            }
            17 => format!("({} = {})", self.test(below), self.pick(&["true", "false"])),
            18 => self.operand(below),
            _ => self.over_elements(below),
        }
    }

    /// A test that says something about a place where keys are, in one of the forms that
    /// the analysis sees through.
    fn about_key(&mut self) -> String {
        let (path, a, b) = (self.path(), self.value(), self.value());
        match self.random.below(34) {
            0..=4 => format!("({path} = {a})"),
            5 => format!("({a} = {path})"),
            6 => format!("({path} IN ({a}, {b}))"),
            7 => format!("({a} IN ({path}, {b}))"),
            8 => {
                let function = self.pick(&UNARY[..6]);
                format!("({function}({path}) {} {a})", self.pick(&["=", "IN (1) OR 1 =", "<="]))
            }
            9 => format!("(LOWER({path}) = LOWER({a}) OR UPPER({path}) = UPPER({b}))"),
            10 => format!("STRINGEQUALS({path}, {a}, true)"),
            11 => format!("STRINGEQUALS({a}, {path}, {})", self.pick(&["false", "true"])),
            12..=14 => {
                let op = self.pick(&["+", "-", "*", "/", "%"]);
                // What the operator gives for one value, so that it is found again.
                let near = self.value();
                format!("(({path} {op} {a}) = ({near} {op} {a}))")
            }
            15 => {
                let op = self.pick(&["-", "*", "/", "+"]);
                let near = self.value();
                format!("(({a} {op} {path}) = ({a} {op} {near}))")
            }
            16 => format!("(- {path} = {a})"),
            17 => format!("(({path} ?? {b}) = {a})"),
            18 => format!("([{path}] = [{a}])"),
            19 => format!("({{'b': {path}}} = {{'b': {a}}})"),
            20 => format!("ARRAY_CONTAINS([{a}, {b}], {path})"),
            21 => format!("ARRAY_CONTAINS([{a}, {{'b': {b}}}], {path}, true)"),
            22 => format!("ARRAY_CONTAINS_ANY([{a}], {path}, {b})"),
            23 => format!("ARRAY_CONTAINS_ALL([{a}, {b}], {path})"),
            24 => format!("(({path} = {a}) ? true : ({path} = {b}))"),
            25 => format!("(IIF({path} = {a}, {path}, {b}) = {a})"),
            26 => format!("(CHOOSE(1, {path}, {b}) = {a})"),
            27 => format!("((SELECT VALUE {path} WHERE {path} != {b}) = {a})"),
            28 => {
                let again = self.pick(&[">=", "<="]);
                format!("({path} {again} {a} AND {path} >= {a} AND {path} <= {a})")
            }
            29 => format!("({path} = {})", self.pick(CHANGING)),
            30 => format!("(({path} ?? {a}) = {a})"),
            31 => format!("(LEFT({path}, 1) = LEFT({a}, 1))"),
            32 => format!("(SUBSTRING({path}, 0, 1) = LEFT({a}, 1))"),
            _ => format!("(NOT ({path} != {a}))"),
        }
    }

    fn comparison(&mut self, depth: usize) -> String {
        let op = self.pick(&["=", "=", "=", "=", "!=", "<", "<=", ">", ">="]);
        let inner = depth.min(2);
        let (left, right) = match self.random.below(3) {
            0 => (self.operand(inner), self.value()),
            1 => (self.value(), self.operand(inner)),
            _ => (self.operand(inner), self.operand(inner)),
        };
        format!("({left} {op} {right})")
    }

    /// A whole query.
    pub(crate) fn query(&mut self) -> String {
        let test = self.test(3);
        match self.random.below(16) {
            0..=3 => format!("SELECT VALUE {} FROM c WHERE {test}", self.operand(1)),
            4 | 5 => format!("SELECT VALUE {} FROM c", self.operand(3)),
            6 | 7 => format!("SELECT * FROM c WHERE {test}"),
            8 => {
                let kind = self.pick(&["COUNT", "SUM", "AVG", "MIN", "MAX", "MAKELIST", "COUNTIF"]);
                format!("SELECT VALUE {kind}({}) FROM c WHERE {test}", self.operand(2))
            }
            9 => format!("SELECT c.pk, COUNT(1) AS n FROM c WHERE {test} GROUP BY c.pk"),
            10 | 11 => {
                let list = self.pick(&["c.l", "c.l", "c.pk", "c.a"]);
                self.with_row("x".to_owned(), |own| {
                    let (output, test) = (own.operand(1), own.test(3));
                    format!("SELECT VALUE {output} FROM c JOIN x IN {list} WHERE {test}")
                })
            }
            12 => self.over_projection(),
            13 => self.over_rows(&test),
            14 => format!("SELECT DISTINCT VALUE {} FROM c WHERE {test}", self.operand(1)),
            _ => format!("SELECT TOP 3 {} AS v FROM c WHERE {test} ORDER BY c.pk", self.operand(1)),
        }
    }

    /// A filter on what a subquery projects.
    fn over_projection(&mut self) -> String {
        let inner = self.operand(1);
        let outer = ["s.q", "s.p", "s"][self.random.below(3)];
        let value = self.value();
        format!(
            "SELECT VALUE s.q FROM (SELECT {inner} AS q, c.pk AS p FROM c) s \
             WHERE {outer} = {value} OR s.p = s.q"
        )
    }

    fn over_rows(&mut self, test: &str) -> String {
        let (inner, op) = (self.operand(2), self.pick(&["=", "!=", "<", ">="]));
        format!(
            "SELECT VALUE r FROM (SELECT VALUE {inner} FROM c WHERE {test}) r WHERE r {op} {}",
            self.value()
        )
    }
}
