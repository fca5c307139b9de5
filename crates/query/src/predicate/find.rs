//! Extraction of predicates from bound filters.

use model::json::{self, JsonKind, Raw, Value};

use super::{ANY_KIND, Comparison, Filter, Predicate};
use crate::bind::{Path, PathStep, Program, path_of};
use crate::bound::{Block, Constant, Expr, In, Like, LikePattern, Origin, Source};
use crate::eval::Fits;
use crate::functions::Function;
use crate::syntax::{BinaryOp, SubqueryKind, UnaryOp};

/// NOT IN lists up to this length are worth a comparison per item.
const NOT_IN_MAX: usize = 16;

/// What the query as a whole requires of a document.
pub(crate) fn filter_of(program: &Program) -> Filter {
    Scope { program }.of_block(&program.block)
}

/// The predicates on single paths of a document that calls in a query's output imply.
pub(crate) fn calls_of(program: &Program) -> Vec<Predicate> {
    let mut calls = Vec::new();
    Scope { program }.calls(&program.block.output, &mut calls);
    calls
}

/// The scope of an expression: slots stand for paths in documents.
struct Scope<'p> {
    program: &'p Program,
}

impl Filter {
    const ANYTHING: Filter = Filter { predicate: Predicate::Anything, covers_filter: false };
    const CERTAIN: Filter = Filter { predicate: Predicate::Anything, covers_filter: true };
    const NEVER: Filter = Filter { predicate: Predicate::Never, covers_filter: true };

    fn exactly(predicate: Predicate) -> Filter {
        Filter { predicate, covers_filter: true }
    }

    fn at_least(predicate: Predicate) -> Filter {
        Filter { predicate, covers_filter: false }
    }

    /// The conjunction.
    ///
    /// Predicates on elements of arrays may be satisfied by different elements, so two of
    /// them together do not imply that one element satisfies both.
    fn all(filters: Vec<Filter>) -> Filter {
        if filters.iter().any(|filter| filter.predicate == Predicate::Never) {
            return Filter::NEVER;
        }
        let all_cover = filters.iter().all(|filter| filter.covers_filter);
        let mut parts = Vec::new();
        for filter in filters {
            if let Predicate::All(inner) = filter.predicate {
                parts.extend(inner);
            } else if filter.predicate != Predicate::Anything {
                parts.push(filter.predicate);
            }
        }
        drop_implied(&mut parts);
        let elements = parts.iter().filter(|part| part.is_about_elements()).count();
        let predicate = match parts.len() {
            0 => Predicate::Anything,
            1 => parts.swap_remove(0),
            _ => Predicate::All(parts),
        };
        Filter { predicate, covers_filter: all_cover && elements <= 1 }
    }

    fn either(filters: Vec<Filter>) -> Filter {
        let possible: Vec<Filter> =
            filters.into_iter().filter(|f| f.predicate != Predicate::Never).collect();
        let covers_filter = possible.iter().all(|filter| filter.covers_filter);
        if possible.iter().any(|filter| filter.predicate == Predicate::Anything) {
            return if covers_filter { Filter::CERTAIN } else { Filter::ANYTHING };
        }
        let mut parts = Vec::new();
        for filter in possible {
            if let Predicate::Either(inner) = filter.predicate {
                parts.extend(inner);
            } else {
                parts.push(filter.predicate);
            }
        }
        let predicate = match parts.len() {
            0 => return Filter::NEVER,
            1 => parts.swap_remove(0),
            _ => Predicate::Either(parts),
        };
        Filter { predicate, covers_filter }
    }

    /// The same predicate, which no longer covers the filter.
    fn loosely(self) -> Filter {
        Filter { covers_filter: false, ..self }
    }
}

/// Drops tests of existence where another predicate implies them.
fn drop_implied(parts: &mut Vec<Predicate>) {
    let asked = parts.iter().filter(|part| !part.is_presence()).filter_map(Predicate::path);
    let asked: Vec<Path> = asked.cloned().collect();
    let implied = |part: &Predicate| {
        let within =
            |path: &Path| asked.iter().any(|asked| asked.steps().starts_with(path.steps()));
        part.is_presence() && part.path().is_some_and(within)
    };
    parts.retain(|part| !implied(part));
}

impl Predicate {
    /// The conjuncts.
    #[must_use]
    pub fn parts(&self) -> &[Predicate] {
        if let Predicate::All(parts) = self { parts } else { std::slice::from_ref(self) }
    }

    /// Whether it only requires that there is a value.
    pub(crate) fn is_presence(&self) -> bool {
        matches!(self, Predicate::Types { types, .. } if *types == ANY_KIND)
    }

    /// The one path that it refers to.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Predicate::Compare { path, .. }
            | Predicate::OneOf { path, .. }
            | Predicate::Prefix { path, .. }
            | Predicate::Types { path, .. } => Some(path),
            Predicate::Anything | Predicate::Never | Predicate::All(_) | Predicate::Either(_) => {
                None
            }
        }
    }

    fn is_about_elements(&self) -> bool {
        if let Predicate::All(parts) | Predicate::Either(parts) = self {
            return parts.iter().any(Predicate::is_about_elements);
        }
        self.path().is_some_and(|path| path.steps().contains(&PathStep::Each))
    }
}

impl Scope<'_> {
    /// What must hold so that the block returns a row.
    fn of_block(&self, block: &Block) -> Filter {
        let nested = block.sources.iter().any(|source| matches!(source.origin, Origin::Block(_)));
        let mut filters: Vec<Filter> = block.sources.iter().map(|s| self.of_source(s)).collect();
        filters.extend(block.filter.as_ref().map(|filter| self.require(filter, true)));
        let filter = Filter::all(filters);
        if nested { filter.loosely() } else { filter }
    }

    /// What must hold so that a subquery returns a row. An aggregate without groups returns
    /// one in any case.
    fn of_subquery(&self, block: &Block) -> Filter {
        let always = block.grouping.as_ref().is_some_and(|grouping| grouping.keys.is_empty());
        if always { Filter::ANYTHING } else { self.of_block(block).loosely() }
    }

    fn of_source(&self, source: &Source) -> Filter {
        if let Origin::Block(block) = &source.origin {
            return self.of_subquery(block);
        }
        let Some(path) = self.program.paths.get(&source.slot) else { return Filter::ANYTHING };
        if path.steps().is_empty() {
            return Filter::CERTAIN;
        }
        Filter::exactly(Predicate::Types { path: path.clone(), types: ANY_KIND })
    }

    /// What must hold so that the expression is exactly true, or exactly false.
    fn require(&self, expr: &Expr, wanted: bool) -> Filter {
        if let Some(path) = self.path(expr) {
            return compare(path, Comparison::Equal, Value::Bool(wanted));
        }
        match expr {
            Expr::Constant(Constant::Bool(truth)) if *truth == wanted => Filter::CERTAIN,
            Expr::Constant(_) => Filter::NEVER,
            Expr::Unary(UnaryOp::Not, operand) => self.require(operand, !wanted),
            Expr::And(operands) => self.chain(operands, wanted, wanted),
            Expr::Or(operands) => self.chain(operands, wanted, !wanted),
            Expr::Binary(op, left, right) => self.comparison(*op, left, right, wanted),
            Expr::Between { negated, operands } => self.between(operands, wanted != *negated),
            Expr::In(list) => self.membership(list, wanted != list.negated),
            Expr::Like(like) => self.like(like, wanted != like.negated),
            Expr::Regex(call) => self.string(&call.text),
            Expr::Call(function, arguments) => self.call(function, arguments, wanted),
            Expr::Subquery(SubqueryKind::Exists, block) if wanted => self.of_subquery(block),
            Expr::Subquery(..)
            | Expr::Chain(..)
            | Expr::Slot(_)
            | Expr::Member(..)
            | Expr::Array(_)
            | Expr::Object(_)
            | Expr::Unary(..)
            | Expr::Coalesce(..)
            | Expr::Conditional(_)
            | Expr::Udf(..)
            | Expr::Let { .. }
            | Expr::Computed(_) => Filter::ANYTHING,
        }
    }

    fn calls(&self, output: &Expr, calls: &mut Vec<Predicate>) {
        if let Expr::Object(members) = output {
            members.iter().for_each(|(_, member)| self.calls(member, calls));
        } else if let Expr::Array(elements) = output {
            elements.iter().for_each(|element| self.calls(element, calls));
        } else if let Expr::Call(..) | Expr::Regex(_) | Expr::Like(_) = output {
            calls.push(self.require(output, true).predicate);
        }
    }

    fn path(&self, expr: &Expr) -> Option<Path> {
        path_of(expr, &|slot| self.program.paths.get(&slot))
    }

    fn chain(&self, operands: &[Expr], wanted: bool, all: bool) -> Filter {
        let filters = operands.iter().map(|operand| self.require(operand, wanted)).collect();
        if all { Filter::all(filters) } else { Filter::either(filters) }
    }

    fn comparison(&self, op: BinaryOp, left: &Expr, right: &Expr, wanted: bool) -> Filter {
        let Some(comparison) = comparison(op) else { return Filter::ANYTHING };
        let comparison = if wanted { comparison } else { comparison.negated() };
        let found = match (left, right) {
            (expr, Expr::Constant(constant)) => self.against(expr, comparison, constant),
            (Expr::Constant(constant), expr) => self.against(expr, comparison.flipped(), constant),
            _ => None,
        };
        // A comparison with undefined is not even false, so a subquery beside the operator
        // must return a row.
        found.unwrap_or_else(|| Filter::all(vec![self.gives_row(left), self.gives_row(right)]))
    }

    fn gives_row(&self, expr: &Expr) -> Filter {
        if let Expr::Subquery(SubqueryKind::Scalar, block) = expr {
            return self.of_subquery(block);
        }
        Filter::ANYTHING
    }

    fn against(&self, expr: &Expr, comparison: Comparison, constant: &Constant) -> Option<Filter> {
        let value = constant.to_value();
        if let Some(path) = self.path(expr) {
            return Some(match value {
                Some(value) => compare(path, comparison, value),
                None if matches!(constant, Constant::Undefined) => Filter::NEVER,
                None => Filter::ANYTHING,
            });
        }
        let Expr::Call(function, arguments) = expr else { return None };
        let [argument] = arguments.as_slice() else { return None };
        let magnitude = value?.as_number().map(|number| number.as_f64())?;
        let absolute = function.name() == "ABS" && comparison == Comparison::Equal;
        absolute.then(|| self.path(argument).map(|path| of_magnitude(path, magnitude)))?
    }

    fn between(&self, operands: &[Expr; 3], wanted: bool) -> Filter {
        let [needle, low, high] = operands;
        let (above, below) = (BinaryOp::GreaterEqual, BinaryOp::LessEqual);
        let bounds = vec![
            self.comparison(above, needle, low, wanted),
            self.comparison(below, needle, high, wanted),
        ];
        if wanted { Filter::all(bounds) } else { Filter::either(bounds) }
    }

    fn membership(&self, list: &In, wanted: bool) -> Filter {
        let Some(path) = self.path(&list.needle) else { return Filter::ANYTHING };
        let Some(values) = constants(&list.items) else {
            return Filter::at_least(Predicate::Types { path, types: ANY_KIND });
        };
        if wanted {
            return one_of(path, values);
        }
        if values.len() > NOT_IN_MAX {
            return Filter::at_least(Predicate::Types { path, types: ANY_KIND });
        }
        let differs = |value| compare(path.clone(), Comparison::NotEqual, value);
        let mut filters =
            vec![Filter::exactly(Predicate::Types { path: path.clone(), types: ANY_KIND })];
        filters.extend(values.into_iter().map(differs));
        Filter::all(filters)
    }

    fn like(&self, like: &Like, wanted: bool) -> Filter {
        let (Some(path), LikePattern::Fixed(pattern)) = (self.path(&like.text), &like.pattern)
        else {
            return self.string(&like.text);
        };
        let prefix =
            |prefix: String| Predicate::Prefix { path: path.clone(), prefix, ignores_case: false };
        match pattern.fits() {
            _ if !wanted => self.string(&like.text),
            Fits::Exactly(text) => compare(path, Comparison::Equal, Value::from(text)),
            Fits::Prefix(text) => Filter::exactly(prefix(text)),
            Fits::AtMost(text) if text.is_empty() => self.string(&like.text),
            Fits::AtMost(text) => Filter::at_least(prefix(text)),
        }
    }

    /// At least, the value is a string.
    fn string(&self, expr: &Expr) -> Filter {
        let types: &'static [JsonKind] = &[JsonKind::String];
        self.path(expr)
            .map_or(Filter::ANYTHING, |path| Filter::at_least(Predicate::Types { path, types }))
    }

    fn call(&self, function: &Function, arguments: &[Expr], wanted: bool) -> Filter {
        let [first, rest @ ..] = arguments else { return Filter::ANYTHING };
        if let Some(types) = checked_types(function.name()) {
            let path = self.path(first).filter(|_| wanted);
            return path.map_or(Filter::ANYTHING, |path| {
                Filter::exactly(Predicate::Types { path, types })
            });
        }
        match function.name() {
            "STARTSWITH" | "STRINGEQUALS" if wanted => self.beginning(function, first, rest),
            "STARTSWITH" | "STRINGEQUALS" | "CONTAINS" | "ENDSWITH" => self.string(first),
            "ARRAY_CONTAINS" if wanted => self.array_contains(first, rest),
            "ARRAY_CONTAINS_ANY" if wanted => {
                Filter::either(rest.iter().map(|item| self.has_element(first, item)).collect())
            }
            "ARRAY_CONTAINS_ALL" if wanted => {
                Filter::all(rest.iter().map(|item| self.has_element(first, item)).collect())
            }
            _ => Filter::ANYTHING,
        }
    }

    fn beginning(&self, function: &Function, text: &Expr, rest: &[Expr]) -> Filter {
        let ignores_case = match rest.get(1) {
            None | Some(Expr::Constant(Constant::Bool(false))) => false,
            Some(Expr::Constant(Constant::Bool(true))) => true,
            Some(_) => return self.string(text),
        };
        let (Some(path), Some(Expr::Constant(Constant::String(other)))) =
            (self.path(text), rest.first())
        else {
            return self.string(text);
        };
        let whole = function.name() == "STRINGEQUALS";
        if whole && !ignores_case {
            return compare(path, Comparison::Equal, Value::from(&**other));
        }
        let prefix = Predicate::Prefix { path, prefix: other.to_string(), ignores_case };
        Filter { predicate: prefix, covers_filter: !whole }
    }

    /// Either the array or the searched value may be in the document.
    fn array_contains(&self, array: &Expr, rest: &[Expr]) -> Filter {
        let [wanted, partial @ ..] = rest else { return Filter::ANYTHING };
        if let Expr::Constant(constant) = array {
            let values = constant.to_value().and_then(|v| v.as_array().map(<[Value]>::to_vec));
            let found = self.path(wanted).zip(values).map(|(path, values)| one_of(path, values));
            let found = found.unwrap_or(Filter::ANYTHING);
            return if partial.is_empty() { found } else { Filter::ANYTHING };
        }
        let partial_object = match (wanted, partial) {
            (_, []) => false,
            (Expr::Constant(constant), _) => matches!(constant, Constant::Json(_)),
            _ => true,
        };
        if partial_object {
            return Filter::ANYTHING;
        }
        let found = self.has_element(array, wanted);
        Filter { covers_filter: found.covers_filter && partial.iter().all(is_flag), ..found }
    }

    fn has_element(&self, array: &Expr, item: &Expr) -> Filter {
        let (Some(path), Expr::Constant(constant)) = (self.path(array), item) else {
            return Filter::ANYTHING;
        };
        match constant.to_value() {
            Some(value) => compare(path.to(PathStep::Each), Comparison::Equal, value),
            None => Filter::ANYTHING,
        }
    }
}

/// Whether a flag surely does not make a call undefined.
fn is_flag(expr: &Expr) -> bool {
    matches!(expr, Expr::Constant(Constant::Bool(_) | Constant::Undefined))
}

fn comparison(op: BinaryOp) -> Option<Comparison> {
    let comparisons = [
        (BinaryOp::Equal, Comparison::Equal),
        (BinaryOp::NotEqual, Comparison::NotEqual),
        (BinaryOp::Less, Comparison::Less),
        (BinaryOp::LessEqual, Comparison::LessEqual),
        (BinaryOp::Greater, Comparison::Greater),
        (BinaryOp::GreaterEqual, Comparison::GreaterEqual),
    ];
    comparisons.into_iter().find(|(own, _)| *own == op).map(|(_, comparison)| comparison)
}

/// Order is between values of one primitive type; null is equal to itself and less than
/// nothing.
fn compare(path: Path, comparison: Comparison, value: Value) -> Filter {
    let ordered = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
    let strict = matches!(comparison, Comparison::Less | Comparison::Greater);
    let structured = matches!(value, Value::Array(_) | Value::Object(_));
    if (structured && ordered) || (value.is_null() && strict) {
        return Filter::NEVER;
    }
    let comparison = if value.is_null() && ordered { Comparison::Equal } else { comparison };
    Filter::exactly(Predicate::Compare { path, comparison, value })
}

fn one_of(path: Path, mut values: Vec<Value>) -> Filter {
    match values.len() {
        0 => Filter::NEVER,
        1 => compare(path, Comparison::Equal, values.swap_remove(0)),
        _ => Filter::exactly(Predicate::OneOf { path, values }),
    }
}

/// Numbers of this magnitude.
fn of_magnitude(path: Path, magnitude: f64) -> Filter {
    if magnitude < 0.0 {
        return Filter::NEVER;
    }
    let values = [magnitude, -magnitude].into_iter().filter_map(json::Number::from_f64);
    let mut values: Vec<Value> = values.map(Value::Number).collect();
    values.dedup();
    one_of(path, values)
}

/// The values of constants that are defined; `None` if one is not a constant.
fn constants(items: &[Expr]) -> Option<Vec<Value>> {
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        let Expr::Constant(constant) = item else { return None };
        if !matches!(constant, Constant::Undefined) {
            values.push(constant.to_value()?);
        }
    }
    Some(values)
}

fn checked_types(function: &str) -> Option<&'static [JsonKind]> {
    Some(match function {
        "IS_DEFINED" => ANY_KIND,
        "IS_NULL" => &[JsonKind::Null],
        "IS_BOOL" => &[JsonKind::Bool],
        "IS_NUMBER" => &[JsonKind::Number],
        "IS_STRING" => &[JsonKind::String],
        "IS_ARRAY" => &[JsonKind::Array],
        "IS_OBJECT" => &[JsonKind::Object],
        "IS_PRIMITIVE" => &[JsonKind::Null, JsonKind::Bool, JsonKind::Number, JsonKind::String],
        _ => return None,
    })
}

impl Constant {
    /// `None` for undefined, and for numbers that JSON cannot represent.
    pub(crate) fn to_value(&self) -> Option<Value> {
        match self {
            Constant::Undefined => None,
            Constant::Null => Some(Value::Null),
            Constant::Bool(truth) => Some(Value::Bool(*truth)),
            Constant::Number(number) => number.to_number().map(Value::Number),
            Constant::String(text) => Some(Value::from(&**text)),
            Constant::Json(text) => Some(Raw::trusted(text).to_value()),
        }
    }
}
