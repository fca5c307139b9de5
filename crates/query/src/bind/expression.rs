//! Binding expressions.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::block::{BoundBlock, place};
use super::{Binder, Clause, Rows, UDF_CALLS_MAX};
use crate::bound::{
    Aggregate, Block, Constant, Counts, Expr, Grouping, In, Key, Like, LikePattern, Slot,
};
use crate::error::{Code, Refusal, Span};
use crate::eval::{Pattern, identity};
use crate::execute::AggregateKind;
use crate::functions::{self, Function, Lookup, RegexCall, RegexError, RegexUse, TimeSpan};
use crate::number::Numeric;
use crate::syntax::{self, Child, ExprKind, Name, Select, SubqueryKind, UnaryOp};

/// Items that an IN list of constants has before it is worth a set.
const KNOWN_ITEMS_MIN: usize = 8;

/// Whether an array or object has more levels than one that is written down as JSON: it is
/// made when it is needed. Reading it again at each level would take long.
fn is_deep(expr: &syntax::Expr) -> bool {
    matches!(expr.kind(), ExprKind::Array(_) | ExprKind::Object(_))
        && expr.height() > model::json::DEPTH_MAX
}

impl<'q> Binder<'q> {
    pub(super) fn expression(&mut self, expr: &'q syntax::Expr) -> Expr {
        if let Some(slot) = self.group_slot(expr) {
            return Expr::Slot(slot);
        }
        if self.is_row_of_group(expr) {
            return self.row_of_group(expr);
        }
        let bound = self.node(expr);
        if is_deep(expr) { bound } else { self.folded(bound) }
    }

    /// Whether the expression is the id of a row where there are groups. Clients that merge
    /// ordered groups are given texts that ask for it, beside each group: any of its rows
    /// will do.
    pub(super) fn is_row_of_group(&self, expr: &syntax::Expr) -> bool {
        let ExprKind::Member(base, property) = expr.kind() else { return false };
        !self.plans
            && self.aggregates.is_some()
            && !self.group_keys.is_empty()
            && property.name == "_rid"
            && matches!(base.kind(), ExprKind::Identifier(_))
    }

    fn row_of_group(&mut self, expr: &'q syntax::Expr) -> Expr {
        let argument = self.node(expr);
        let slot = self.new_slot();
        if let Some(aggregates) = &mut self.aggregates {
            aggregates.push(Aggregate { kind: AggregateKind::Min, argument, slot });
        }
        Expr::Slot(slot)
    }

    /// Where the value of an expression is found that the query groups by.
    fn group_slot(&self, expr: &syntax::Expr) -> Option<Slot> {
        let same =
            |key: &&super::GroupedBy<'_>| key.expr == expr && self.meaning(expr) == key.meaning;
        self.group_keys.iter().rev().find(same).map(|key| key.slot)
    }

    /// What the names in an expression mean here.
    pub(super) fn meaning(&self, expr: &syntax::Expr) -> Vec<Option<Slot>> {
        let mut meaning = Vec::new();
        if let ExprKind::Identifier(name) = expr.kind() {
            meaning.push(self.resolve(name));
        }
        expr.kind().for_each_child(&mut |child| {
            if let Child::Expr(child) = child {
                meaning.extend(self.meaning(child));
            }
        });
        meaning
    }

    fn node(&mut self, expr: &'q syntax::Expr) -> Expr {
        match expr.kind() {
            ExprKind::Undefined => Expr::UNDEFINED,
            ExprKind::Null => Expr::Constant(Constant::Null),
            ExprKind::Bool(truth) => Expr::Constant(Constant::Bool(*truth)),
            ExprKind::Number(number) => Expr::Constant(Constant::Number(*number)),
            ExprKind::String(text) => Expr::Constant(Constant::String(text.as_str().into())),
            ExprKind::Parameter(name) => Expr::Constant(self.parameter(name)),
            ExprKind::Identifier(name) => self.identifier(name, expr.span()),
            ExprKind::Array(items) => Expr::Array(self.expressions(items)),
            ExprKind::Object(members) => self.object(members),
            ExprKind::Member(base, property) => {
                let base = self.expression(base);
                self.member(base, Key::Name(property.name.clone()))
            }
            ExprKind::Index(base, index) => self.indexed(expr.span(), base, index),
            ExprKind::Unary(op, operand) => Expr::Unary(*op, self.boxed(operand)),
            ExprKind::Binary(op, left, right) => {
                Expr::Binary(*op, self.boxed(left), self.boxed(right))
            }
            ExprKind::Chain(first, rest) => {
                let first = self.boxed(first);
                let rest = rest.iter().map(|(op, operand)| (*op, self.expression(operand)));
                Expr::Chain(first, rest.collect())
            }
            ExprKind::And(operands) => Expr::And(self.expressions(operands)),
            ExprKind::Or(operands) => Expr::Or(self.expressions(operands)),
            ExprKind::Coalesce(left, right) => Expr::Coalesce(self.boxed(left), self.boxed(right)),
            ExprKind::Conditional(parts) => Expr::Conditional(self.parts(parts)),
            ExprKind::Between { negated, operands } => {
                Expr::Between { negated: *negated, operands: self.parts(operands) }
            }
            ExprKind::In { negated, needle, list } => self.membership(*negated, needle, list),
            ExprKind::Like { negated, operands, escape } => self.like(*negated, operands, *escape),
            ExprKind::Call { name, arguments } => self.call(expr, name, arguments),
            ExprKind::Udf { name, arguments } => self.udf_call(name, arguments),
            ExprKind::Subquery(kind, select) => self.subquery(*kind, select, expr.span()),
            ExprKind::Let { name, parts } => self.definition(name, parts, expr.span()),
        }
    }

    fn expressions(&mut self, exprs: &'q [syntax::Expr]) -> Vec<Expr> {
        exprs.iter().map(|expr| self.expression(expr)).collect()
    }

    fn boxed(&mut self, expr: &'q syntax::Expr) -> Box<Expr> {
        Box::new(self.expression(expr))
    }

    fn parts<const N: usize>(&mut self, parts: &'q [syntax::Expr; N]) -> Box<[Expr; N]> {
        Box::new(parts.each_ref().map(|part| self.expression(part)))
    }

    fn identifier(&mut self, name: &str, span: Span) -> Expr {
        if let Some(slot) = self.resolve(name) {
            return Expr::Slot(slot);
        }
        self.unresolved(name, span);
        Expr::UNDEFINED
    }

    fn object(&mut self, members: &'q [(Name, syntax::Expr)]) -> Expr {
        let mut names = BTreeSet::new();
        for (name, _) in members {
            if !names.insert(name.text.as_str()) {
                self.repeated_member(&name.text, name.span);
            }
        }
        let bind =
            |(name, value): &'q (Name, syntax::Expr)| (name.text.clone(), self.expression(value));
        Expr::Object(members.iter().map(bind).collect())
    }

    /// A property of a document may be a computed one.
    fn member(&mut self, base: Expr, key: Key) -> Expr {
        match self.computed(&base, &key) {
            Some(computed) => computed,
            None => Expr::Member(Box::new(base), key),
        }
    }

    fn membership(
        &mut self,
        negated: bool,
        needle: &'q syntax::Expr,
        list: &'q [syntax::Expr],
    ) -> Expr {
        let (needle, items) = (self.expression(needle), self.expressions(list));
        let known = (items.len() >= KNOWN_ITEMS_MIN).then(|| identities(&items)).flatten();
        Expr::In(Box::new(In { negated, needle, items, known: known.map(Arc::new) }))
    }

    fn like(
        &mut self,
        negated: bool,
        operands: &'q [syntax::Expr; 2],
        escape: Option<char>,
    ) -> Expr {
        let [text, pattern] = operands;
        let (text, pattern) = (self.expression(text), self.expression(pattern));
        let known = known_text(&pattern).map(str::len);
        let paid = known.map(|bytes| self.ambient.budget.spend_steps(bytes));
        let pattern =
            if let (Expr::Constant(Constant::String(pattern)), Some(Ok(()))) = (&pattern, paid) {
                LikePattern::Fixed(Arc::new(Pattern::new(pattern, escape)))
            } else {
                LikePattern::Computed { pattern, escape }
            };
        Expr::Like(Box::new(Like { negated, text, pattern }))
    }

    /// An index is a string or a number that is written there or given with the query.
    fn indexed(&mut self, span: Span, base: &'q syntax::Expr, index: &'q syntax::Expr) -> Expr {
        let written = matches!(
            index.kind(),
            ExprKind::Number(_) | ExprKind::String(_) | ExprKind::Parameter(_)
        );
        let key = match (written, self.expression(index)) {
            (true, Expr::Constant(Constant::String(name))) => Key::Name(name.as_ref().to_owned()),
            (true, Expr::Constant(Constant::Number(number))) => Key::Index(place(number)),
            _ => {
                let message = "The specified query includes 'member indexer' which is currently \
                               not supported.";
                self.error(Code::NOT_SUPPORTED, span, message);
                return Expr::UNDEFINED;
            }
        };
        let base = self.expression(base);
        self.member(base, key)
    }

    fn call(
        &mut self,
        call: &'q syntax::Expr,
        name: &'q Name,
        arguments: &'q [syntax::Expr],
    ) -> Expr {
        if let Some(kind) = AggregateKind::find(&name.text) {
            return self.aggregate(kind, call, name, arguments);
        }
        let bound = self.expressions(arguments);
        if name.text.eq_ignore_ascii_case("FullTextScore") {
            let message =
                format!("The {} function is only allowed in the ORDER BY RANK clause.", name.text);
            self.error(Code::SCORE_OUTSIDE_RANK, call.span(), message);
            return Expr::UNDEFINED;
        }
        match functions::find(&name.text) {
            Lookup::Found(function) => {
                if function.arity.allows(bound.len()) {
                    if name.text.starts_with('_') {
                        let refusal = Refusal::InternalFunction { name: name.text.clone() };
                        self.run_refusal.get_or_insert(refusal);
                    }
                    self.check_literals(function, call.span(), (arguments, &bound));
                    return self.application(function, bound);
                }
                self.wrong_arity(name, &function.arity.requirement(), call.span());
            }
            Lookup::Later(arity) if !arity.allows(bound.len()) => {
                self.wrong_arity(name, &arity.requirement(), call.span());
            }
            Lookup::Later(_) => {
                let what = format!("search with the function {}", name.text);
                self.unrunnable.get_or_insert(what);
                return Expr::Udf(name.text.clone(), bound);
            }
            Lookup::Unknown => {
                let message =
                    format!("'{}' is not a recognized built-in function name.", name.text);
                self.error(Code::UNKNOWN_FUNCTION, name.span, message);
            }
        }
        Expr::UNDEFINED
    }

    /// Some arguments must be written out: a time span that stands for a part and a
    /// count, and the numbers that a hash is made with.
    fn check_literals(
        &mut self,
        function: &Function,
        span: Span,
        (arguments, bound): (&[syntax::Expr], &[Expr]),
    ) {
        match (function.name(), arguments) {
            ("DATETIMEADD", [written, _]) | ("NOW" | "AGO", [written]) => {
                let ExprKind::String(text) = written.kind() else {
                    return self.no_time_span(span);
                };
                if TimeSpan::parse(text).is_none() {
                    self.no_time_span(span);
                }
            }
            ("HASH", [_, written @ ..]) => {
                let bound = bound.iter().skip(1);
                self.check_hash(&written.iter().zip(bound).collect::<Vec<_>>());
            }
            _ => {}
        }
    }

    /// The modulo and the seed of a hash, each as it is written and bound. Where there is a
    /// seed, a modulo that is undefined counts as none, and so does one that is wrong.
    fn check_hash(&mut self, numbers: &[(&syntax::Expr, &Expr)]) {
        if let Some((written, bound)) = numbers.first() {
            let is_none = numbers.len() > 1 && self.is_nothing(written, bound);
            if !is_none && literal_integer(written, bound).is_none_or(|modulo| modulo == 0) {
                let message = "The modulo value for the 'Hash' function must be a non-zero \
                               integer literal.";
                self.error(Code::HASH_MODULO, written.span(), message);
            }
        }
        if let Some((written, bound)) = numbers.get(1)
            && literal_integer(written, bound).is_none()
        {
            let message = "The seed value for the 'Hash' function must be an integer literal.";
            self.error(Code::HASH_SEED, written.span(), message);
        }
    }

    /// Whether an expression stands for undefined without being computed: it says so, or
    /// what it says is wrong.
    fn is_nothing(&self, written: &syntax::Expr, bound: &Expr) -> bool {
        let is_undefined = matches!(bound, Expr::Constant(Constant::Undefined));
        let says_so = matches!(
            written.kind(),
            ExprKind::Undefined | ExprKind::Parameter(_) | ExprKind::Identifier(_)
        );
        let start = written.span().range().start;
        let is_wrong = || {
            let calls = matches!(written.kind(), ExprKind::Call { .. } | ExprKind::Index(..));
            calls && self.errors.iter().any(|error| error.position.start == start)
        };
        is_undefined && (says_so || is_wrong())
    }

    fn no_time_span(&mut self, span: Span) {
        let message = "The timespan argument provided to the DateTime function is invalid.";
        self.error(Code::TIME_SPAN, span, message);
    }

    /// A call, with its regular expression compiled if that is known. A query of
    /// thousands of patterns leaves the rest to the run, which may not need them.
    fn application(&mut self, function: &'static Function, arguments: Vec<Expr>) -> Expr {
        let known = RegexUse::of(function).zip(known_pattern(&arguments));
        let known = known.filter(|_| !self.plans);
        let Some((kind, (text, pattern, modifiers))) = known else {
            return Expr::Call(function, arguments);
        };
        match RegexCall::new(kind, text, (pattern, modifiers), &self.ambient.budget) {
            Ok(call) => return Expr::Regex(Box::new(call)),
            Err(RegexError::Unpaid(_)) => return Expr::Call(function, arguments),
            Err(RegexError::Invalid) => {}
            Err(RegexError::Unsupported(what)) => {
                self.unsupported(format!("{what} in a regular expression"));
            }
        }
        Expr::UNDEFINED
    }

    fn udf_call(&mut self, name: &Name, arguments: &'q [syntax::Expr]) -> Expr {
        let arguments = self.expressions(arguments);
        match &self.context.functions {
            Some(functions) if functions.contains(&name.text) => {}
            Some(_) => {
                let message =
                    format!("'{}' is not a recognized user-defined function name.", name.text);
                self.error(Code::UNKNOWN_FUNCTION, name.span, message);
            }
            None => {
                self.uncallable.get_or_insert_with(|| name.text.clone());
            }
        }
        self.udf_calls += 1;
        // One call too many is one error, however many there are.
        if self.udf_calls == UDF_CALLS_MAX + 1 {
            let message = format!(
                "The SQL query exceeded the maximum number of user-defined function calls. \
                 The allowed limit is {UDF_CALLS_MAX}."
            );
            let whole = Span::new(0, self.text.len());
            self.error(Code::UDF_COUNT, whole, message);
        }
        Expr::Udf(name.text.clone(), arguments)
    }

    fn wrong_arity(&mut self, name: &Name, requirement: &str, span: Span) {
        let message = format!("The {} function requires {requirement} argument(s).", name.text);
        self.error(Code::ARGUMENT_COUNT, span, message);
    }

    fn aggregate(
        &mut self,
        kind: AggregateKind,
        call: &'q syntax::Expr,
        name: &Name,
        arguments: &'q [syntax::Expr],
    ) -> Expr {
        let [argument] = arguments else {
            self.expressions(arguments);
            self.wrong_arity(name, "1", call.span());
            return Expr::UNDEFINED;
        };
        // An aggregate looks at the rows of the group, not at what they share.
        let keys = std::mem::take(&mut self.group_keys);
        let gathering = self.gathering;
        self.aggregating += 1;
        let argument = self.expression(argument);
        self.aggregating -= 1;
        self.group_keys = keys;
        if self.rows.are_several() {
            self.check_aggregate(call.span(), self.gathering > gathering);
            self.gathering += 1;
        } else if self.aggregating > 0 || self.aggregates.is_none() {
            return self.aggregate_of_row(kind, argument);
        }
        let slot = self.new_slot();
        if let Some(aggregates) = &mut self.aggregates {
            aggregates.push(Aggregate { kind, argument, slot });
        }
        Expr::Slot(slot)
    }

    /// Where an aggregate may not gather rows.
    fn check_aggregate(&mut self, call: Span, nested: bool) {
        if self.clause == Clause::Filter {
            let message = "Aggregates are not allowed in the WHERE clause.";
            self.error(Code::AGGREGATE_IN_FILTER, call, message);
        } else if self.clause == Clause::GroupBy {
            self.no_group_key(call);
        } else if nested {
            let message = "Cannot perform an aggregate function on an expression containing an \
                           aggregate or a subquery.";
            self.error(Code::NESTED_AGGREGATE, call, message);
        }
    }

    /// An aggregate of one row that stands where the query's own rows are not gathered: a
    /// query of that row.
    fn aggregate_of_row(&mut self, kind: AggregateKind, argument: Expr) -> Expr {
        let slot = self.new_slot();
        let aggregates = vec![Aggregate { kind, argument, slot }];
        let grouping =
            Grouping { keys: Vec::new(), aggregates, order: Vec::new(), is_ordered: false };
        let block = Block {
            sources: Vec::new(),
            filter: None,
            grouping: Some(grouping),
            output: Expr::Slot(slot),
            distinct: false,
            order: Vec::new(),
            counts: Counts::default(),
        };
        Expr::Subquery(SubqueryKind::Scalar, Box::new(block))
    }

    fn no_group_key(&mut self, span: Span) {
        let message = "Cannot use an aggregate or a subquery in an expression used for the group \
                       by list of a GROUP BY clause.";
        self.error(Code::GROUP_KEY, span, message);
    }

    /// A value is needed where there may be several rows.
    pub(super) fn several_rows(&mut self, span: Span) {
        let message = "The cardinality of a scalar subquery result set cannot be greater than one.";
        self.error(Code::CARDINALITY, span, message);
    }

    /// Where a subquery stands in an expression: the rows of a scalar one become those of
    /// a query that has none of its own. Otherwise several are wrong.
    fn use_rows(&mut self, kind: SubqueryKind, rows: Rows, span: Span) {
        let rows = if kind == SubqueryKind::Scalar { rows } else { rows.min(Rows::One) };
        if rows.are_several() && self.rows != Rows::Around && !self.defers {
            self.several_rows(span);
        }
        if rows > Rows::Around && !self.defers {
            self.sets.push(None);
        }
        self.rows = self.rows.joined(rows);
    }

    fn subquery(&mut self, kind: SubqueryKind, select: &'q Select, span: Span) -> Expr {
        if self.clause == Clause::GroupBy {
            self.no_group_key(span);
            return Expr::UNDEFINED;
        }
        self.subqueries += 1;
        let (names, sets) = (self.names.len(), self.sets.len());
        let beside = std::mem::replace(&mut self.beside, Rows::Around);
        let BoundBlock { mut block, rows, brings_set } = self.block(select, Rows::Around);
        self.beside = beside;
        self.subqueries -= 1;
        if kind != SubqueryKind::Scalar {
            self.names.truncate(names);
            self.sets.truncate(sets);
        }
        self.use_rows(kind, rows, span);
        if rows == Rows::Around && brings_set && !self.defers {
            self.sets.push(None);
        }
        if kind == SubqueryKind::All {
            // All rows fit the filter if there is none that breaks it.
            let filter = block.filter.take();
            block.filter = Some(match filter {
                Some(filter) => Expr::Unary(UnaryOp::Not, Box::new(filter)),
                None => Expr::Constant(Constant::Bool(false)),
            });
        }
        Expr::Subquery(kind, Box::new(block))
    }

    fn definition(&mut self, name: &'q Name, parts: &'q [syntax::Expr; 2], span: Span) -> Expr {
        let [value, body] = parts;
        if self.clause == Clause::GroupBy {
            let message = "LET expressions are not allowed in the GROUP BY clause.";
            self.error(Code::LET_IN_GROUP_BY, span, message);
            return Expr::UNDEFINED;
        }
        if self.clause == Clause::OrderBy {
            let message = "LET expressions are not allowed in the ORDER BY clause.";
            self.error(Code::LET_IN_ORDER_BY, span, message);
            return Expr::UNDEFINED;
        }
        let value = self.expression(value);
        if self.resolve(&name.text).is_some() {
            let message =
                format!("The variable name '{}' in the LET expression must be unique.", name.text);
            self.error(Code::DUPLICATE_DEFINITION, name.span, message);
            return Expr::UNDEFINED;
        }
        let slot = self.new_slot();
        self.names.push((&name.text, slot));
        let body = self.expression(body);
        self.names.pop();
        Expr::Let { slot, parts: Box::new([value, body]) }
    }
}

/// The text, the pattern and the modifiers of a call, if the last two are known.
fn known_pattern(arguments: &[Expr]) -> Option<(&Expr, &str, &str)> {
    match arguments {
        [text, pattern] => Some((text, known_text(pattern)?, "")),
        [text, pattern, modifiers] => Some((text, known_text(pattern)?, known_text(modifiers)?)),
        _ => None,
    }
}

/// An integer that is written there or given with the query.
fn literal_integer(written: &syntax::Expr, bound: &Expr) -> Option<i64> {
    let is_literal = matches!(written.kind(), ExprKind::Number(_) | ExprKind::Parameter(_));
    let Expr::Constant(Constant::Number(Numeric::Integer(integer))) = bound else { return None };
    is_literal.then_some(*integer)
}

fn known_text(expr: &Expr) -> Option<&str> {
    if let Expr::Constant(Constant::String(text)) = expr { Some(text) } else { None }
}

/// The identities of the values, if all are constants. Undefined is in no list.
fn identities(items: &[Expr]) -> Option<BTreeSet<String>> {
    let mut known = BTreeSet::new();
    for item in items {
        let Expr::Constant(constant) = item else { return None };
        let datum = constant.datum();
        if datum.is_defined() {
            known.insert(identity(&datum));
        }
    }
    Some(known)
}
