//! Computing beforehand what no document can change.

use super::Binder;
use crate::bound::{Constant, Expr, LikePattern};
use crate::eval::{Budget, Datum, Env, evaluate};

impl Binder<'_> {
    /// The value of the expression, if all its parts are constants; what cannot
    /// be computed fails when it is run, if it ever is.
    pub(super) fn folded(&self, expr: Expr) -> Expr {
        let opaque = matches!(&expr, Expr::Call(function, _) if function.is_opaque());
        if !has_constant_parts(&expr) || (self.plans && opaque) {
            return expr;
        }
        self.value(&expr).map_or(expr, Expr::Constant)
    }

    fn value(&self, expr: &Expr) -> Option<Constant> {
        let datum = evaluate(expr, &mut Env::new(0, &self.ambient)).ok()?;
        constant(&datum, &self.ambient.budget)
    }
}

/// Whether the expression is an operation on constants only.
fn has_constant_parts(expr: &Expr) -> bool {
    let all = |exprs: &[Expr]| exprs.iter().all(is_constant);
    match expr {
        Expr::Constant(_)
        | Expr::Slot(_)
        | Expr::Udf(..)
        | Expr::Subquery(..)
        | Expr::Let { .. }
        | Expr::Computed(_) => false,
        Expr::Member(base, _) | Expr::Unary(_, base) => is_constant(base),
        Expr::Array(items) | Expr::And(items) | Expr::Or(items) => all(items),
        Expr::Object(members) => members.iter().all(|(_, value)| is_constant(value)),
        Expr::Binary(_, a, b) | Expr::Coalesce(a, b) => is_constant(a) && is_constant(b),
        Expr::Chain(first, rest) => {
            is_constant(first) && rest.iter().all(|(_, operand)| is_constant(operand))
        }
        Expr::Between { operands, .. } | Expr::Conditional(operands) => all(&operands[..]),
        Expr::In(list) => is_constant(&list.needle) && all(&list.items),
        Expr::Like(like) => {
            is_constant(&like.text) && matches!(like.pattern, LikePattern::Fixed(_))
        }
        Expr::Call(function, arguments) => function.is_constant() && all(arguments),
        Expr::Regex(call) => is_constant(&call.text),
    }
}

pub(super) fn is_constant(expr: &Expr) -> bool {
    matches!(expr, Expr::Constant(_))
}

/// `None` for what JSON cannot say.
fn constant(datum: &Datum<'_>, budget: &Budget) -> Option<Constant> {
    match datum {
        Datum::Undefined => Some(Constant::Undefined),
        Datum::Number(number) => Some(Constant::Number(*number)),
        Datum::Null
        | Datum::Bool(_)
        | Datum::String(_)
        | Datum::Json(_)
        | Datum::Document(_)
        | Datum::Array(_)
        | Datum::Object(_) => {
            budget.spend_bytes(datum.weight()).ok()?;
            budget.spend_reading(datum.effort()).ok()?;
            datum.to_value().ok().flatten().map(|value| Constant::from(&value))
        }
    }
}
