//! What must hold of a document so that an expression has one of some values.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not named says nothing, and that is true of every form"
)]

use super::constraint::Constraint;
use super::domain::{Domain, Structures, Values};
use super::forward::Outcome;
use super::inverse;
use super::{Analysis, of_no_rows, signature};
use crate::bound::{Block, Constant, Expr, In, Key, Like, LikePattern};
use crate::eval::Fits;
use crate::functions::Function;
use crate::predicate::Comparison;
use crate::syntax::{BinaryOp, SubqueryKind, UnaryOp};
use model::json::Value;

impl<'p> Analysis<'p> {
    /// What holds wherever the expression has one of the wanted values.
    pub(super) fn demand(&self, expr: &'p Expr, wanted: &Domain) -> Constraint {
        let Some(_deeper) = self.deeper() else { return Constraint::Anything };
        if wanted.is_any() {
            return Constraint::Anything;
        }
        let expr = self.target(expr);
        if let Some(place) = self.place(expr) {
            return Constraint::at(place, wanted.clone());
        }
        let tests = matches!(expr, Expr::And(_) | Expr::Or(_));
        if !tests && self.values(expr).and(wanted).is_empty() {
            return Constraint::Never;
        }
        match expr {
            Expr::Unary(op, operand) => self.demand_unary(*op, operand, wanted),
            Expr::Binary(op, left, right) => self.demand_binary(*op, left, right, wanted),
            Expr::And(operands) => self.demand_chain(operands, wanted, true),
            Expr::Or(operands) => self.demand_chain(operands, wanted, false),
            Expr::Between { negated, operands } => self.test(wanted, *negated, |yes| {
                let [needle, low, high] = &**operands;
                let bounds = vec![
                    self.related(Comparison::GreaterEqual, needle, low, yes),
                    self.related(Comparison::LessEqual, needle, high, yes),
                ];
                if yes { Constraint::all(bounds) } else { Constraint::either(bounds) }
            }),
            Expr::In(list) => self.test(wanted, list.negated, |yes| self.among(list, yes)),
            Expr::Like(like) => self.test(wanted, like.negated, |yes| self.fitting(like, yes)),
            Expr::Coalesce(left, right) => self.demand_coalesced(left, right, wanted),
            Expr::Conditional(parts) => {
                let [condition, yes, no] = &**parts;
                self.demand_chosen(condition, yes, no, wanted)
            }
            Expr::Call(function, arguments) => self.demand_call(function, arguments, wanted),
            Expr::Regex(call) if !wanted.undefined => self.demand(&call.text, &Domain::strings()),
            Expr::Subquery(kind, block) => self.demand_subquery(*kind, block, wanted),
            Expr::Array(items) => self.demand_array(items, wanted),
            Expr::Object(members) => self.demand_object(members, wanted),
            Expr::Member(..)
            | Expr::Chain(..)
            | Expr::Regex(_)
            | Expr::Constant(_)
            | Expr::Slot(_)
            | Expr::Udf(..)
            | Expr::Computed(_)
            | Expr::Let { .. } => Constraint::Anything,
        }
    }

    /// What a test demands so that it comes out as wanted, from what it demands to hold
    /// and not to hold.
    fn test(
        &self,
        wanted: &Domain,
        negated: bool,
        demand: impl Fn(bool) -> Constraint,
    ) -> Constraint {
        if wanted.undefined {
            return Constraint::Anything;
        }
        let (yes, no) = if negated { (wanted.no, wanted.yes) } else { (wanted.yes, wanted.no) };
        match (yes, no) {
            (true, true) => Constraint::either(vec![demand(true), demand(false)]),
            (true, false) => demand(true),
            (false, true) => demand(false),
            (false, false) => Constraint::Never,
        }
    }

    fn demand_unary(&self, op: UnaryOp, operand: &'p Expr, wanted: &Domain) -> Constraint {
        let others = |undefined: bool, own: Domain| {
            if undefined { Domain::any().and(&own.complement()) } else { Domain::none() }
        };
        let domain = match op {
            UnaryOp::Not => {
                let truths = Domain { yes: wanted.no, no: wanted.yes, ..Domain::none() };
                truths.or(others(wanted.undefined, Domain::bools()))
            }
            UnaryOp::Plus => {
                let numbers = Domain::of_numbers(wanted.numbers.clone());
                numbers.or(others(wanted.undefined, Domain::numbers()))
            }
            UnaryOp::Minus => {
                let negated = match wanted.numbers.as_points() {
                    Some(points) => Values::points(points.iter().map(|point| -point)),
                    None => Values::all(),
                };
                Domain::of_numbers(negated).or(others(wanted.undefined, Domain::numbers()))
            }
            UnaryOp::BitNot => Domain::numbers().or(others(wanted.undefined, Domain::numbers())),
        };
        self.demand(operand, &domain)
    }

    fn demand_chain(&self, operands: &'p [Expr], wanted: &Domain, and: bool) -> Constraint {
        self.test(wanted, false, |yes| {
            let truth = if yes { Domain::TRUE } else { Domain::FALSE };
            let parts = operands.iter().map(|operand| self.demand(operand, &truth)).collect();
            if yes == and { Constraint::all(parts) } else { Constraint::either(parts) }
        })
    }

    fn demand_binary(
        &self,
        op: BinaryOp,
        left: &'p Expr,
        right: &'p Expr,
        wanted: &Domain,
    ) -> Constraint {
        let related =
            |comparison| self.test(wanted, false, |yes| self.related(comparison, left, right, yes));
        match op {
            BinaryOp::Equal if is_not_true(wanted) => self.not_equal(left, right),
            BinaryOp::Equal => self.test(wanted, false, |yes| self.equal(left, right, yes)),
            BinaryOp::NotEqual => self.test(wanted, true, |yes| self.equal(left, right, yes)),
            BinaryOp::Less => related(Comparison::Less),
            BinaryOp::LessEqual => related(Comparison::LessEqual),
            BinaryOp::Greater => related(Comparison::Greater),
            BinaryOp::GreaterEqual => related(Comparison::GreaterEqual),
            BinaryOp::Concat if !wanted.undefined => Constraint::all(vec![
                self.demand(left, &Domain::strings()),
                self.demand(right, &Domain::strings()),
            ]),
            _ if wanted.undefined => Constraint::Anything,
            _ => self.computed(op, left, right, &wanted.numbers),
        }
    }

    /// Arithmetic: both operands are numbers, and one of them may be known by the other.
    fn computed(
        &self,
        op: BinaryOp,
        left: &'p Expr,
        right: &'p Expr,
        wanted: &Values<f64>,
    ) -> Constraint {
        let operand = |known: &'p Expr, known_is_left: bool| {
            let Expr::Constant(Constant::Number(number)) = self.target(known) else {
                return Values::all();
            };
            inverse::operands(op, number.as_f64(), known_is_left, wanted)
        };
        Constraint::all(vec![
            self.demand(left, &Domain::of_numbers(operand(right, false))),
            self.demand(right, &Domain::of_numbers(operand(left, true))),
        ])
    }

    fn is_nan(&self, expr: &'p Expr) -> bool {
        matches!(self.target(expr), Expr::Constant(constant) if is_nan(constant))
    }

    fn equal(&self, left: &'p Expr, right: &'p Expr, yes: bool) -> Constraint {
        if yes && (self.is_nan(left) || self.is_nan(right)) {
            return Constraint::Never;
        }
        let same = self.place(left).filter(|left| self.place(right).as_ref() == Some(left));
        if same.is_some() && !yes {
            return Constraint::Never;
        }
        let (a, b) = (self.values(left).defined_part(), self.values(right).defined_part());
        if yes {
            let common = a.and(&b);
            return Constraint::all(vec![
                self.demand(left, &common),
                self.demand(right, &common),
                self.equal_members(left, right),
                self.equal_members(right, left),
            ]);
        }
        let differs = |other: &Domain, expr: &'p Expr| {
            let known = other.is_one() && !self.is_nan(expr);
            if known { Domain::defined().and(&other.complement()) } else { Domain::defined() }
        };
        Constraint::all(vec![
            self.demand(left, &differs(&b, right)),
            self.demand(right, &differs(&a, left)),
        ])
    }

    /// The members of a place that is equal to an object which is written out.
    fn equal_members(&self, place: &'p Expr, object: &'p Expr) -> Constraint {
        let Expr::Object(members) = object else { return Constraint::Anything };
        let Some(place) = self.place(place) else { return Constraint::Anything };
        let own = members.iter().map(|(name, value)| {
            Constraint::at(place.clone().to(Key::Name(name.clone())), self.values(value))
        });
        Constraint::all(own.collect())
    }

    /// What is not equal to a constant, or not there.
    fn not_equal(&self, left: &'p Expr, right: &'p Expr) -> Constraint {
        let (known, other) = match (self.target(left), self.target(right)) {
            (Expr::Constant(known), _) => (known, right),
            (_, Expr::Constant(known)) => (known, left),
            _ => return Constraint::Anything,
        };
        let known = Domain::of(known);
        if known.is_one() && !known.undefined {
            return self.demand(other, &known.complement());
        }
        Constraint::Anything
    }

    /// An order that holds, or that does not hold between values of one type.
    fn related(
        &self,
        comparison: Comparison,
        left: &'p Expr,
        right: &'p Expr,
        yes: bool,
    ) -> Constraint {
        if let Expr::Constant(constant) = self.target(right) {
            return self.against(left, comparison, constant, yes);
        }
        if let Expr::Constant(constant) = self.target(left) {
            return self.against(right, comparison.flipped(), constant, yes);
        }
        let strict = matches!(comparison, Comparison::Less | Comparison::Greater);
        let same = self.place(left).filter(|left| self.place(right).as_ref() == Some(left));
        if same.is_some() && strict == yes {
            return Constraint::Never;
        }
        let ordered = Domain::primitives();
        Constraint::all(vec![self.demand(left, &ordered), self.demand(right, &ordered)])
    }

    fn against(
        &self,
        expr: &'p Expr,
        comparison: Comparison,
        constant: &Constant,
        yes: bool,
    ) -> Constraint {
        // What is computed may be no number, which is in no order with any.
        let comparison = match (yes, self.place(expr)) {
            (true, _) => Some(comparison),
            (false, Some(_)) if !is_nan(constant) => Some(comparison.negated()),
            (false, _) => None,
        };
        self.demand(expr, &ordered(comparison, constant))
    }

    fn among(&self, list: &'p In, yes: bool) -> Constraint {
        let mut values = Vec::with_capacity(list.items.len());
        let mut open = Vec::new();
        for item in &list.items {
            match self.target(item) {
                Expr::Constant(Constant::Undefined) => {}
                Expr::Constant(constant) => match constant.to_value() {
                    Some(value) => values.push(value),
                    None => open.push(item),
                },
                _ => open.push(item),
            }
        }
        let known = Domain::of_values(&values);
        if yes {
            let mut parts = vec![self.demand(&list.needle, &known)];
            parts.extend(open.iter().map(|item| self.equal(&list.needle, item, true)));
            return Constraint::either(parts);
        }
        self.demand(&list.needle, &Domain::defined().and(&known.complement()))
    }

    fn fitting(&self, like: &'p Like, yes: bool) -> Constraint {
        let LikePattern::Fixed(pattern) = &like.pattern else {
            return self.demand(&like.text, &Domain::strings());
        };
        let strings = match pattern.fits() {
            Fits::Prefix(text) if !yes && text.is_empty() => Values::NONE,
            _ if !yes => Values::all(),
            Fits::Exactly(text) => Values::points([text]),
            Fits::Prefix(text) | Fits::AtMost(text) => inverse::beginning_with(text),
        };
        self.demand(&like.text, &Domain::of_strings(strings))
    }

    fn demand_coalesced(&self, left: &'p Expr, right: &'p Expr, wanted: &Domain) -> Constraint {
        let first = self.demand(left, &wanted.defined_part());
        let second = vec![self.demand(left, &Domain::UNDEFINED), self.demand(right, wanted)];
        Constraint::either(vec![first, Constraint::all(second)])
    }

    fn demand_chosen(
        &self,
        condition: &'p Expr,
        yes: &'p Expr,
        no: &'p Expr,
        wanted: &Domain,
    ) -> Constraint {
        let holds = vec![self.demand(condition, &Domain::TRUE), self.demand(yes, wanted)];
        let not = Domain { yes: false, ..Domain::any() };
        let fails = vec![self.demand_not(condition, &not), self.demand(no, wanted)];
        Constraint::either(vec![Constraint::all(holds), Constraint::all(fails)])
    }

    /// A condition that is anything but true.
    fn demand_not(&self, condition: &'p Expr, not: &Domain) -> Constraint {
        let outcome = Outcome::of(&self.values(condition));
        if !outcome.no && !outcome.undefined {
            Constraint::Never
        } else {
            self.demand(condition, not)
        }
    }

    fn demand_subquery(&self, kind: SubqueryKind, block: &'p Block, wanted: &Domain) -> Constraint {
        match kind {
            SubqueryKind::Exists if !wanted.no => self.of_subquery(block),
            SubqueryKind::Scalar if !wanted.undefined => self.demand_scalar(block, wanted),
            SubqueryKind::First | SubqueryKind::Last if !wanted.undefined => {
                self.of_subquery(block)
            }
            SubqueryKind::Array
            | SubqueryKind::All
            | SubqueryKind::Exists
            | SubqueryKind::Scalar
            | SubqueryKind::First
            | SubqueryKind::Last => Constraint::Anything,
        }
    }

    fn demand_scalar(&self, block: &'p Block, wanted: &Domain) -> Constraint {
        let Some(grouping) = &block.grouping else {
            let rows = self.of_block(block);
            return Constraint::all(vec![rows, self.demand(&block.output, wanted)]);
        };
        let rows = self.of_block(block);
        if !grouping.keys.is_empty() {
            return rows;
        }
        // Without a row, an aggregate has a value that is known.
        let slot = if let Expr::Slot(slot) = &block.output { Some(*slot) } else { None };
        let kind = grouping.aggregates.iter().find(|own| Some(own.slot) == slot);
        match kind.map(|own| Domain::of(&of_no_rows(own.kind))) {
            Some(empty) if empty.and(wanted).is_empty() => rows,
            _ => Constraint::Anything,
        }
    }

    /// Undefined items are no part of an array, so only a lone one is in a known place.
    fn demand_array(&self, items: &'p [Expr], wanted: &Domain) -> Constraint {
        let (Structures::Points(points), [item]) = (&wanted.arrays, items) else {
            return Constraint::Anything;
        };
        let one = |point: &Value| match point.as_array() {
            Some([value]) => self.demand(item, &Domain::of_value(value)),
            Some([]) => self.demand(item, &Domain::UNDEFINED),
            _ => Constraint::Never,
        };
        Constraint::either(points.iter().map(one).collect())
    }

    fn demand_object(&self, members: &'p [(String, Expr)], wanted: &Domain) -> Constraint {
        let Structures::Points(points) = &wanted.objects else { return Constraint::Anything };
        let one = |point: &Value| {
            let Some(object) = point.as_object() else { return Constraint::Never };
            if object.iter().any(|(name, _)| !members.iter().any(|(own, _)| own == name)) {
                return Constraint::Never;
            }
            let parts = members.iter().map(|(name, value)| {
                let own = object.get(name).map_or(Domain::UNDEFINED, Domain::of_value);
                self.demand(value, &own)
            });
            Constraint::all(parts.collect())
        };
        Constraint::either(points.iter().map(one).collect())
    }

    fn demand_call(
        &self,
        function: &'static Function,
        arguments: &'p [Expr],
        wanted: &Domain,
    ) -> Constraint {
        let name = function.name();
        match (name, arguments) {
            ("IIF", [condition, yes, no]) => {
                return self.demand_chosen(condition, yes, no, wanted);
            }
            ("CHOOSE", [place, choices @ ..]) => return self.demand_choice(place, choices, wanted),
            _ => {}
        }
        if let (Some(types), [argument]) = (inverse::tested(name), arguments) {
            // That something is there at all is no demand of its own.
            let there = |yes: bool| if name == "IS_DEFINED" && yes { None } else { Some(yes) };
            return self.test(wanted, false, |yes| match there(yes) {
                None => Constraint::Anything,
                Some(true) => self.demand(argument, &types),
                Some(false) => self.demand(argument, &types.complement()),
            });
        }
        if let (Some(types), [argument]) = (inverse::tested_in_part(name), arguments) {
            return self.test(wanted, false, |yes| {
                if yes { self.demand(argument, &types) } else { Constraint::Anything }
            });
        }
        if wanted.undefined {
            return Constraint::Anything;
        }
        let mut parts: Vec<Constraint> = arguments
            .iter()
            .enumerate()
            .filter(|_| !signature::is_short(name, arguments.len()))
            .map(|(place, argument)| self.demand(argument, &signature::takes(name, place)))
            .collect();
        parts.push(self.demand_known_call(name, arguments, wanted));
        Constraint::all(parts)
    }

    /// What single functions demand beyond the types of their arguments.
    fn demand_known_call(&self, name: &str, arguments: &'p [Expr], wanted: &Domain) -> Constraint {
        let only_true = wanted.yes && !wanted.no;
        match (name, arguments) {
            // Nothing is in every string, at its beginning and at its end.
            ("STARTSWITH" | "ENDSWITH" | "CONTAINS", [_, part, ..])
                if !wanted.yes && self.is_empty_text(part) =>
            {
                Constraint::Never
            }
            ("STRINGEQUALS", [a, b, rest @ ..]) if only_true => {
                match rest.first().map(|flag| self.target(flag)) {
                    None | Some(Expr::Constant(Constant::Bool(false))) => self.equal(a, b, true),
                    Some(Expr::Constant(Constant::Bool(true))) => self.equal_in_any_case(a, b),
                    Some(_) => Constraint::Anything,
                }
            }
            ("STARTSWITH", [text, prefix, rest @ ..]) if only_true => {
                let plain = match rest.first().map(|flag| self.target(flag)) {
                    None | Some(Expr::Constant(Constant::Bool(false))) => true,
                    Some(_) => false,
                };
                match self.target(prefix) {
                    Expr::Constant(Constant::String(prefix)) if plain => {
                        let strings = inverse::beginning_with(prefix.to_string());
                        self.demand(text, &Domain::of_strings(strings))
                    }
                    _ => Constraint::Anything,
                }
            }
            ("LEFT", [text, _]) => self.demand_beginning(text, wanted),
            ("SUBSTRING", [text, start, _]) if self.is_zero(start) => {
                self.demand_beginning(text, wanted)
            }
            ("ARRAY_CONTAINS", [array, item, rest @ ..]) if only_true => {
                let in_part = !matches!(
                    rest.first().map(|flag| self.target(flag)),
                    None | Some(Expr::Constant(Constant::Bool(false) | Constant::Undefined))
                );
                self.demand(item, &self.elements(array, in_part))
            }
            ("ARRAY_CONTAINS_ANY", [array, items @ ..]) if only_true => {
                let elements = self.elements(array, false);
                let parts = items.iter().map(|item| self.demand(item, &elements));
                Constraint::either(parts.collect())
            }
            ("ARRAY_CONTAINS_ALL", [array, items @ ..]) if only_true => {
                let elements = self.elements(array, false);
                let parts = items.iter().map(|item| self.demand(item, &elements));
                Constraint::all(parts.collect())
            }
            (_, [argument]) => {
                let found = inverse::arguments(name, wanted);
                found.map_or(Constraint::Anything, |values| self.demand(argument, &values))
            }
            _ => Constraint::Anything,
        }
    }

    /// That the first characters of a text are these, however many were asked for.
    fn demand_beginning(&self, text: &'p Expr, wanted: &Domain) -> Constraint {
        let Some([only]) = wanted.strings.as_points() else { return Constraint::Anything };
        let strings = inverse::beginning_with(only.clone());
        self.demand(text, &Domain::of_strings(strings))
    }

    fn is_zero(&self, expr: &'p Expr) -> bool {
        matches!(self.target(expr), Expr::Constant(Constant::Number(n)) if n.as_i64() == Some(0))
    }

    fn is_empty_text(&self, expr: &'p Expr) -> bool {
        matches!(self.target(expr), Expr::Constant(Constant::String(text)) if text.is_empty())
    }

    /// The elements of an array that is known; objects that are looked for in part may
    /// be any that have members.
    fn elements(&self, array: &'p Expr, in_part: bool) -> Domain {
        let Expr::Constant(constant) = self.target(array) else { return Domain::defined() };
        let value = constant.to_value();
        let Some(elements) = value.as_ref().and_then(Value::as_array) else {
            return Domain::none();
        };
        let mut domain = Domain::of_values(elements);
        if in_part && !domain.objects.is_empty() {
            domain.objects = Structures::Any;
        }
        domain
    }

    fn equal_in_any_case(&self, a: &'p Expr, b: &'p Expr) -> Constraint {
        let one = |known: &'p Expr, other: &'p Expr| match self.target(known) {
            Expr::Constant(Constant::String(text)) => {
                let strings = inverse::spellings(text).unwrap_or(Values::all());
                self.demand(other, &Domain::of_strings(strings))
            }
            _ => Constraint::Anything,
        };
        Constraint::all(vec![one(a, b), one(b, a)])
    }

    fn demand_choice(&self, place: &'p Expr, choices: &'p [Expr], wanted: &Domain) -> Constraint {
        if wanted.undefined {
            return Constraint::Anything;
        }
        let count = |at: usize| u32::try_from(at + 1).map_or(f64::NAN, f64::from);
        let chosen = choices.iter().enumerate().map(|(at, choice)| {
            let number = Domain::of_numbers(Values::points([count(at)]));
            Constraint::all(vec![self.demand(place, &number), self.demand(choice, wanted)])
        });
        Constraint::either(chosen.collect())
    }
}

fn is_nan(constant: &Constant) -> bool {
    matches!(constant, Constant::Number(number) if number.as_f64().is_nan())
}

/// Whether a test may come out in any way but one.
fn is_not_true(wanted: &Domain) -> bool {
    !wanted.yes && wanted.no && wanted.undefined
}

/// The values that are in such an order with a constant; `None` stands for all that are
/// in any order with it.
fn ordered(comparison: Option<Comparison>, constant: &Constant) -> Domain {
    let strict = matches!(comparison, Some(Comparison::Less | Comparison::Greater));
    match constant {
        Constant::Undefined | Constant::Json(_) => Domain::none(),
        Constant::Null => Domain { null: !strict, ..Domain::none() },
        Constant::Bool(own) => {
            let fits = |value: bool| comparison.is_none_or(|c| holds(c, value.cmp(own)));
            Domain { no: fits(false), yes: fits(true), ..Domain::none() }
        }
        Constant::Number(number) => match (comparison, number.as_f64()) {
            (None, _) => Domain::numbers(),
            (Some(_), number) if number.is_nan() => Domain::none(),
            (Some(comparison), number) => Domain::of_numbers(spanning(comparison, number)),
        },
        Constant::String(text) => match comparison {
            None => Domain::strings(),
            // No string comes before the empty one.
            Some(Comparison::Less) if text.is_empty() => Domain::none(),
            Some(Comparison::LessEqual) if text.is_empty() => {
                Domain::of_strings(Values::points([String::new()]))
            }
            Some(Comparison::GreaterEqual) if text.is_empty() => Domain::strings(),
            Some(comparison) => Domain::of_strings(spanning(comparison, text.to_string())),
        },
    }
}

fn holds(comparison: Comparison, order: std::cmp::Ordering) -> bool {
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Less => order.is_lt(),
        Comparison::LessEqual => order.is_le(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterEqual => order.is_ge(),
    }
}

fn spanning<T: Clone + PartialOrd>(comparison: Comparison, value: T) -> Values<T> {
    match comparison {
        Comparison::Less => Values::span(None, Some((value, false))),
        Comparison::LessEqual => Values::span(None, Some((value, true))),
        Comparison::Greater => Values::span(Some((value, false)), None),
        Comparison::GreaterEqual => Values::span(Some((value, true)), None),
        Comparison::Equal => Values::points([value]),
        Comparison::NotEqual => Values::all().without(&value),
    }
}
