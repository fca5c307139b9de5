//! Which values an expression can have.

use super::constraint::member_domain;
use super::domain::{Domain, Structures, Values};
use super::{Analysis, Constraint, Meaning, inverse, signature};
use crate::bound::{Block, Constant, Expr, In, Key, Like, LikePattern, Origin, Source};
use crate::functions::Function;
use crate::syntax::{BinaryOp, SubqueryKind, UnaryOp};

/// What a test can come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) yes: bool,
    pub(super) no: bool,
    pub(super) undefined: bool,
}

impl From<Outcome> for Domain {
    fn from(Outcome { yes, no, undefined }: Outcome) -> Domain {
        Domain { yes, no, undefined, ..Domain::none() }
    }
}

impl Outcome {
    const OPEN: Outcome = Outcome { yes: true, no: true, undefined: true };
    const UNDEFINED: Outcome = Outcome { yes: false, no: false, undefined: true };

    /// What a value counts as where a truth is needed.
    pub(super) fn of(domain: &Domain) -> Outcome {
        let others = Domain { yes: false, no: false, ..domain.clone() };
        Outcome { yes: domain.yes, no: domain.no, undefined: !others.is_empty() }
    }

    fn not(self) -> Outcome {
        Outcome { yes: self.no, no: self.yes, undefined: self.undefined }
    }

    fn and(self, other: Outcome) -> Outcome {
        let open = |outcome: Outcome| outcome.yes || outcome.undefined;
        Outcome {
            yes: self.yes && other.yes,
            no: self.no || other.no,
            undefined: (self.undefined && open(other)) || (other.undefined && open(self)),
        }
    }

    fn or(self, other: Outcome) -> Outcome {
        self.not().and(other.not()).not()
    }

    fn negated_if(self, negated: bool) -> Outcome {
        if negated { self.not() } else { self }
    }
}

impl<'p> Analysis<'p> {
    /// Every value that the expression can have is among these.
    pub(super) fn values(&self, expr: &'p Expr) -> Domain {
        let Some(_deeper) = self.deeper() else { return Domain::any() };
        match self.target(expr) {
            Expr::Constant(constant) => Domain::of(constant),
            Expr::Slot(slot) => match self.meaning(*slot) {
                Some(Meaning::Values(values)) => values,
                _ => Domain::any(),
            },
            Expr::Member(base, key) => self.member_values(base, key),
            Expr::Array(_) => Domain::arrays(),
            Expr::Object(_) => Domain::objects(),
            Expr::Unary(op, operand) => self.unary_values(*op, operand),
            Expr::Binary(op, left, right) => self.binary_values(*op, left, right),
            Expr::Chain(_, rest) => rest.last().map_or_else(Domain::any, |(op, _)| kinds(*op)),
            Expr::And(operands) => self.joined(operands, Outcome::and).into(),
            Expr::Or(operands) => self.joined(operands, Outcome::or).into(),
            Expr::Between { negated, operands } => {
                let [needle, low, high] = &**operands;
                let (needle, low, high) =
                    (self.values(needle), self.values(low), self.values(high));
                let (above, below) = (relation(&needle, &low), relation(&needle, &high));
                above.and(below).negated_if(*negated).into()
            }
            Expr::In(list) => self.membership_values(list).into(),
            Expr::Like(like) => self.like_values(like).into(),
            Expr::Coalesce(left, right) => {
                let left = self.values(left);
                if left.undefined { left.defined_part().or(self.values(right)) } else { left }
            }
            Expr::Conditional(parts) => {
                let [condition, yes, no] = &**parts;
                self.chosen(condition, yes, no)
            }
            Expr::Call(function, arguments) => self.call_values(function, arguments),
            Expr::Regex(call) => {
                let strings = self.values(&call.text).strings;
                if strings.is_empty() { Domain::UNDEFINED } else { Domain::any() }
            }
            Expr::Subquery(kind, block) => self.subquery_values(*kind, block),
            Expr::Udf(..) | Expr::Computed(_) | Expr::Let { .. } => Domain::any(),
        }
    }

    fn subquery_values(&self, kind: SubqueryKind, block: &'p Block) -> Domain {
        let rows = self.of_subquery(block).reduced();
        let (never, always) = (rows == Constraint::Never, self.gives_row(block));
        match kind {
            SubqueryKind::Exists => Outcome { yes: !never, no: !always, undefined: false }.into(),
            SubqueryKind::All => Domain::bools(),
            SubqueryKind::Array => Domain::arrays(),
            SubqueryKind::Scalar | SubqueryKind::First | SubqueryKind::Last => match () {
                () if never => Domain::UNDEFINED,
                () if always => self.values(&block.output),
                () => types(&self.values(&block.output)).or(Domain::UNDEFINED),
            },
        }
    }

    /// Whether a subquery gives one row whatever the row around it is.
    pub(super) fn gives_row(&self, block: &'p Block) -> bool {
        let one = |source: &'p Source| match &source.origin {
            Origin::Slot(_) => source.steps.is_empty() && !source.iterates,
            Origin::Block(inner) => !source.iterates && self.gives_row(inner),
            Origin::Container => false,
        };
        let passes = |filter: &'p Expr| self.values(filter) == Domain::TRUE;
        let one_group = block.grouping.as_ref().is_some_and(|grouping| grouping.keys.is_empty());
        let rows = one_group
            || (block.grouping.is_none()
                && block.sources.iter().all(one)
                && block.filter.iter().all(passes));
        rows && !self.values(&block.output).undefined
    }

    fn chosen(&self, condition: &'p Expr, yes: &'p Expr, no: &'p Expr) -> Domain {
        let outcome = Outcome::of(&self.values(condition));
        let mut values = Domain::none();
        if outcome.yes {
            values = values.or(self.values(yes));
        }
        if outcome.no || outcome.undefined {
            values = values.or(self.values(no));
        }
        values
    }

    fn member_values(&self, base: &'p Expr, key: &Key) -> Domain {
        if let (Expr::Subquery(SubqueryKind::Scalar, block), Key::Name(name)) =
            (self.target(base), key)
            && let Expr::Object(members) = self.target(&block.output)
            && !members.iter().any(|(own, _)| own == name)
        {
            return Domain::UNDEFINED;
        }
        let base = self.values(base);
        let known = match key {
            Key::Name(name) => member_domain(&base, std::slice::from_ref(name)),
            Key::Index(_) => None,
        };
        if let Some(known) = known {
            return known;
        }
        let holders = match key {
            Key::Name(_) => base.objects,
            Key::Index(_) => base.arrays,
        };
        if holders.is_empty() { Domain::UNDEFINED } else { Domain::any() }
    }

    fn unary_values(&self, op: UnaryOp, operand: &'p Expr) -> Domain {
        let operand = self.values(operand);
        if op == UnaryOp::Not {
            return Outcome::of(&operand).not().into();
        }
        let others = Domain { numbers: Values::NONE, ..operand.clone() };
        let undefined = !others.is_empty();
        let numbers = if operand.numbers.is_empty() { Values::NONE } else { Values::all() };
        Domain { undefined, numbers, ..Domain::none() }
    }

    fn binary_values(&self, op: BinaryOp, left: &'p Expr, right: &'p Expr) -> Domain {
        let (a, b) = (self.values(left), self.values(right));
        match op {
            BinaryOp::Equal => equality(&a, &b).into(),
            BinaryOp::NotEqual => equality(&a, &b).not().into(),
            BinaryOp::Less | BinaryOp::LessEqual | BinaryOp::Greater | BinaryOp::GreaterEqual => {
                relation(&a, &b).into()
            }
            BinaryOp::Concat => {
                if a.strings.is_empty() || b.strings.is_empty() {
                    return Domain::UNDEFINED;
                }
                Domain::strings().or(Domain::UNDEFINED)
            }
            BinaryOp::Add
            | BinaryOp::Subtract
            | BinaryOp::Multiply
            | BinaryOp::Divide
            | BinaryOp::Modulo
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::ShiftLeft
            | BinaryOp::ShiftRight
            | BinaryOp::ShiftRightUnsigned => {
                if a.numbers.is_empty() || b.numbers.is_empty() {
                    return Domain::UNDEFINED;
                }
                Domain::numbers().or(Domain::UNDEFINED)
            }
        }
    }

    fn joined(&self, operands: &'p [Expr], join: fn(Outcome, Outcome) -> Outcome) -> Outcome {
        let outcomes = operands.iter().map(|operand| Outcome::of(&self.values(operand)));
        outcomes.reduce(join).unwrap_or(Outcome::OPEN)
    }

    fn membership_values(&self, list: &'p In) -> Outcome {
        let needle = self.values(&list.needle);
        let mut found = Outcome { yes: false, no: true, undefined: needle.undefined };
        if !needle.is_defined_somewhere() {
            return Outcome::UNDEFINED;
        }
        for item in &list.items {
            let equal = equality(&needle, &self.values(item));
            found.yes |= equal.yes;
            found.no &= equal.no || equal.undefined;
            if found.yes && found.no {
                break;
            }
        }
        found.negated_if(list.negated)
    }

    fn like_values(&self, like: &'p Like) -> Outcome {
        let text = self.values(&like.text);
        let no_pattern = match &like.pattern {
            LikePattern::Fixed(_) => false,
            LikePattern::Computed { pattern, .. } => self.values(pattern).strings.is_empty(),
        };
        if text.strings.is_empty() || no_pattern { Outcome::UNDEFINED } else { Outcome::OPEN }
    }

    fn call_values(&self, function: &'static Function, arguments: &'p [Expr]) -> Domain {
        match (function.name(), arguments) {
            ("IIF", [condition, yes, no]) => return self.chosen(condition, yes, no),
            ("CHOOSE", [place, choices @ ..]) => return self.choice_values(place, choices),
            (name, [argument]) => {
                if let Some(outcome) = self.tested_values(name, argument) {
                    return outcome.into();
                }
            }
            _ => {}
        }
        let values: Vec<Domain> = arguments.iter().map(|argument| self.values(argument)).collect();
        signature::results(function.name(), &values)
    }

    /// What a test of types can come to.
    fn tested_values(&self, name: &str, argument: &'p Expr) -> Option<Outcome> {
        let (types, in_part) = match (inverse::tested(name), inverse::tested_in_part(name)) {
            (Some(types), _) => (types, false),
            (None, Some(types)) => (types, true),
            (None, None) => return None,
        };
        let values = self.values(argument);
        let yes = !values.and(&types).is_empty();
        let no = in_part || !values.and(&types.complement()).is_empty();
        Some(Outcome { yes, no, undefined: false })
    }

    fn choice_values(&self, place: &'p Expr, choices: &'p [Expr]) -> Domain {
        if let Expr::Constant(Constant::Number(number)) = self.target(place) {
            let place = number.as_i64().and_then(|place| place.checked_sub(1));
            let place = place.and_then(|place| usize::try_from(place).ok());
            let choice = place.and_then(|place| choices.get(place));
            return choice.map_or(Domain::UNDEFINED, |choice| self.values(choice));
        }
        if self.values(place).numbers.is_empty() {
            return Domain::UNDEFINED;
        }
        let all = choices.iter().map(|choice| self.values(choice));
        all.fold(Domain::UNDEFINED, |all, next| all.or(next))
    }
}

/// What an operator can give, by its kind alone.
fn kinds(op: BinaryOp) -> Domain {
    let gives = match op {
        BinaryOp::Equal
        | BinaryOp::NotEqual
        | BinaryOp::Less
        | BinaryOp::LessEqual
        | BinaryOp::Greater
        | BinaryOp::GreaterEqual => Domain::bools(),
        BinaryOp::Concat => Domain::strings(),
        BinaryOp::ShiftLeft
        | BinaryOp::ShiftRight
        | BinaryOp::ShiftRightUnsigned
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::BitAnd
        | BinaryOp::Add
        | BinaryOp::Subtract
        | BinaryOp::Multiply
        | BinaryOp::Divide
        | BinaryOp::Modulo => Domain::numbers(),
    };
    gives.or(Domain::UNDEFINED)
}

/// `=` between values of two sets.
pub(super) fn equality(a: &Domain, b: &Domain) -> Outcome {
    let (a_defined, b_defined) = (a.defined_part(), b.defined_part());
    let undefined = a.undefined || b.undefined;
    if a_defined.is_empty() || b_defined.is_empty() {
        return Outcome::UNDEFINED;
    }
    let yes = !a_defined.and(&b_defined).is_empty();
    let no = !(yes && a_defined.is_one() && b_defined.is_one());
    Outcome { yes, no, undefined }
}

/// `<` and its kin between values of two sets, by types alone.
pub(super) fn relation(a: &Domain, b: &Domain) -> Outcome {
    let ordered = |domain: &Domain| Domain {
        undefined: false,
        arrays: Structures::NONE,
        objects: Structures::NONE,
        ..domain.clone()
    };
    if types(&ordered(a)).and(&types(&ordered(b))).is_empty() {
        return Outcome::UNDEFINED;
    }
    Outcome::OPEN
}

/// All values of the types that there are.
fn types(domain: &Domain) -> Domain {
    let truths = domain.yes || domain.no;
    let all = |is_empty: bool| if is_empty { Values::NONE } else { Values::all() };
    Domain {
        undefined: domain.undefined,
        null: domain.null,
        no: truths,
        yes: truths,
        numbers: all(domain.numbers.is_empty()),
        strings: if domain.strings.is_empty() { Values::NONE } else { Values::all() },
        arrays: if domain.arrays.is_empty() { Structures::NONE } else { Structures::Any },
        objects: if domain.objects.is_empty() { Structures::NONE } else { Structures::Any },
    }
}
