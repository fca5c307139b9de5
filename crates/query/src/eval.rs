//! Evaluation of expressions.
//!
//! Wrong types and missing properties give undefined, never an error; the only errors are
//! limits and scalar subqueries with more than one row.

mod ambient;
mod budget;
mod compare;
mod datum;
mod like;
mod operators;

pub(crate) use ambient::Ambient;
pub(crate) use budget::Budget;
pub use budget::{STEPS_MAX, VALUE_BYTES_MAX, WATCH_STEPS};
pub(crate) use compare::{
    distinction, equal, identity, order_beyond_doubles, representative, total_order,
};
pub(crate) use datum::{ALLOCATION_BYTES, Datum, Type};
pub(crate) use like::{Fits, Pattern};
pub(crate) use operators::{Truth, and, or};

use std::borrow::Cow;
use std::cmp::Ordering;

use model::json::{Raw, Value};

use crate::bound::{Computed, Constant, Expr, In, Key, Like, LikePattern, Slot};
use crate::context::Called;
use crate::document::DocumentView;
use crate::error::QueryError;
use crate::execute;
use crate::functions::{Function, RegexCall};
use crate::syntax::{BinaryOp, UnaryOp};
use operators::{binary, equality, not, relation, unary};

pub(crate) type Evaluated<'a> = Result<Datum<'a>, QueryError>;

/// The state of a running query: its slots and its context.
pub(crate) struct Env<'a> {
    slots: Vec<Datum<'a>>,
    pub(crate) ambient: &'a Ambient,
    /// Taken by the one source that ranges over them.
    pub(crate) documents: Option<Box<dyn Iterator<Item = DocumentView<'a>> + 'a>>,
}

impl<'a> Env<'a> {
    pub(crate) fn new(slots: usize, ambient: &'a Ambient) -> Env<'a> {
        Env { slots: vec![Datum::Undefined; slots], ambient, documents: None }
    }

    pub(crate) fn budget(&self) -> &'a Budget {
        &self.ambient.budget
    }

    pub(crate) fn get(&self, slot: Slot) -> &Datum<'a> {
        self.slots.get(slot).unwrap_or(&Datum::Undefined)
    }

    pub(crate) fn set(&mut self, slot: Slot, datum: Datum<'a>) {
        if let Some(place) = self.slots.get_mut(slot) {
            *place = datum;
        }
    }
}

/// Every kind of node has a function of its own: this one is entered once per
/// level of a tree, and what it kept on the stack would be kept for all of them.
pub(crate) fn evaluate<'a>(expr: &'a Expr, env: &mut Env<'a>) -> Evaluated<'a> {
    env.budget().spend_steps(1)?;
    match expr {
        Expr::Constant(constant) => Ok(constant.datum()),
        Expr::Slot(slot) => copied(*slot, env),
        Expr::Member(base, key) => member(base, key, env),
        Expr::Array(items) => array(items, env),
        Expr::Object(members) => object(members, env),
        Expr::Unary(op, operand) => prefixed(*op, operand, env),
        Expr::Binary(op, left, right) => infixed(*op, left, right, env),
        Expr::Chain(first, rest) => row(first, rest, env),
        Expr::And(operands) => chain(operands, env, Some(false), and),
        Expr::Or(operands) => chain(operands, env, Some(true), or),
        Expr::Between { negated, operands } => between(*negated, operands, env),
        Expr::In(list) => membership(list, env),
        Expr::Like(like) => fits(like, env),
        Expr::Coalesce(left, right) => coalesced(left, right, env),
        Expr::Conditional(parts) => conditional(parts, env),
        Expr::Call(function, arguments) => called(function, arguments, env),
        Expr::Regex(call) => searched(call, env),
        Expr::Udf(name, arguments) => user_function(name, arguments, env),
        Expr::Subquery(kind, block) => execute::subquery(*kind, block, env),
        Expr::Let { slot, parts } => defined(*slot, parts, env),
        Expr::Computed(property) => computed(property, env),
    }
}

/// Evaluates to a truth value; a value that is not a boolean counts as undefined.
pub(crate) fn truth<'a>(expr: &'a Expr, env: &mut Env<'a>) -> Result<Truth, QueryError> {
    Ok(evaluate(expr, env)?.as_bool())
}

/// Refuses computed values that have grown too large: values can be doubled as often as a
/// query has levels.
pub(crate) fn bounded(datum: Datum<'_>) -> Evaluated<'_> {
    if datum.weight() > VALUE_BYTES_MAX {
        return Err(QueryError::Limit { what: "bytes in one value", limit: VALUE_BYTES_MAX });
    }
    Ok(datum)
}

impl Constant {
    pub(crate) fn datum(&self) -> Datum<'_> {
        match self {
            Constant::Undefined => Datum::Undefined,
            Constant::Null => Datum::Null,
            Constant::Bool(truth) => Datum::Bool(*truth),
            Constant::Number(number) => Datum::Number(*number),
            Constant::String(text) => Datum::String(Cow::Borrowed(text)),
            Constant::Json(text) => Datum::Json(Raw::trusted(text)),
        }
    }
}

impl Key {
    pub(crate) fn of<'a>(&self, base: &Datum<'a>) -> Datum<'a> {
        match self {
            Key::Name(name) => base.get(name),
            Key::Index(index) => base.at(*index),
        }
    }
}

fn member<'a>(base: &'a Expr, key: &'a Key, env: &mut Env<'a>) -> Evaluated<'a> {
    // Properties of rows are read in place, without a copy.
    if let Expr::Slot(slot) = base {
        let row = env.get(*slot);
        env.budget().spend_reading(row.weight())?;
        return Ok(key.of(row));
    }
    let base = evaluate(base, env)?;
    env.budget().spend_reading(base.weight())?;
    Ok(key.of(&base))
}

/// A computed value is copied; all others are shared.
fn copied<'a>(slot: Slot, env: &Env<'a>) -> Evaluated<'a> {
    let datum = env.get(slot);
    if let Datum::String(Cow::Owned(text)) = datum {
        env.budget().spend_reading(text.len())?;
    }
    Ok(datum.clone())
}

fn array<'a>(items: &'a [Expr], env: &mut Env<'a>) -> Evaluated<'a> {
    let items = values(items, env)?;
    bounded(Datum::array(items))
}

fn prefixed<'a>(op: UnaryOp, operand: &'a Expr, env: &mut Env<'a>) -> Evaluated<'a> {
    let operand = evaluate(operand, env)?;
    Ok(unary(op, &operand))
}

fn infixed<'a>(op: BinaryOp, left: &'a Expr, right: &'a Expr, env: &mut Env<'a>) -> Evaluated<'a> {
    let left = evaluate(left, env)?;
    let right = evaluate(right, env)?;
    operated(op, &left, &right, env)
}

/// A chain of operators, from left to right.
fn row<'a>(first: &'a Expr, rest: &'a [(BinaryOp, Expr)], env: &mut Env<'a>) -> Evaluated<'a> {
    let mut left = evaluate(first, env)?;
    for (op, operand) in rest {
        let right = evaluate(operand, env)?;
        left = operated(*op, &left, &right, env)?;
    }
    Ok(left)
}

fn operated<'a>(op: BinaryOp, left: &Datum<'a>, right: &Datum<'a>, env: &Env<'a>) -> Evaluated<'a> {
    let effort = if op == BinaryOp::Concat {
        left.weight().saturating_add(right.weight())
    } else {
        left.effort().min(right.effort())
    };
    env.budget().spend_reading(effort)?;
    bounded(binary(op, left, right))
}

fn coalesced<'a>(left: &'a Expr, right: &'a Expr, env: &mut Env<'a>) -> Evaluated<'a> {
    let left = evaluate(left, env)?;
    if left.is_defined() { Ok(left) } else { evaluate(right, env) }
}

fn conditional<'a>(parts: &'a [Expr; 3], env: &mut Env<'a>) -> Evaluated<'a> {
    let [condition, yes, no] = parts;
    let holds = truth(condition, env)? == Some(true);
    evaluate(if holds { yes } else { no }, env)
}

fn called<'a>(
    function: &'static Function,
    arguments: &'a [Expr],
    env: &mut Env<'a>,
) -> Evaluated<'a> {
    let arguments = values(arguments, env)?;
    let ambient = env.ambient;
    bounded(ambient.metered(Called::System, || function.apply(ambient, &arguments))?)
}

fn searched<'a>(call: &'a RegexCall, env: &mut Env<'a>) -> Evaluated<'a> {
    let text = evaluate(&call.text, env)?;
    env.budget().spend_reading(text.weight())?;
    let ambient = env.ambient;
    bounded(ambient.metered(Called::System, || call.apply(&text, &ambient.budget))?)
}

fn defined<'a>(slot: Slot, parts: &'a [Expr; 2], env: &mut Env<'a>) -> Evaluated<'a> {
    let [value, body] = parts;
    let value = evaluate(value, env)?;
    env.set(slot, value);
    evaluate(body, env)
}

fn computed<'a>(property: &'a Computed, env: &mut Env<'a>) -> Evaluated<'a> {
    let row = env.get(property.row).clone();
    env.set(property.definition.slot, row);
    evaluate(&property.definition.body, env)
}

fn values<'a>(items: &'a [Expr], env: &mut Env<'a>) -> Result<Vec<Datum<'a>>, QueryError> {
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        values.push(evaluate(item, env)?);
    }
    Ok(values)
}

fn object<'a>(members: &'a [(String, Expr)], env: &mut Env<'a>) -> Evaluated<'a> {
    let mut values = Vec::with_capacity(members.len());
    for (name, value) in members {
        values.push((Cow::Borrowed(name.as_str()), evaluate(value, env)?));
    }
    bounded(Datum::object(values))
}

/// A call with an undefined argument is undefined without being made.
fn user_function<'a>(name: &str, arguments: &'a [Expr], env: &mut Env<'a>) -> Evaluated<'a> {
    let arguments = self::values(arguments, env)?;
    let functions = env.ambient.context.functions.as_ref();
    let functions = functions.ok_or_else(|| QueryError::uncallable(name))?;
    let mut values: Vec<Value> = Vec::with_capacity(arguments.len());
    for argument in &arguments {
        env.budget().spend_reading(argument.effort())?;
        match argument.to_value()? {
            Some(value) => values.push(value),
            None => return Ok(Datum::Undefined),
        }
    }
    let result = env
        .ambient
        .metered(Called::User, || functions.call(name, &values))
        .map_err(|source| QueryError::UserFunction { name: name.to_owned(), source })?;
    bounded(result.map_or(Datum::Undefined, Datum::owned))
}

/// ANDs or ORs the operands; the `decisive` value ends the evaluation (short circuit).
fn chain<'a>(
    operands: &'a [Expr],
    env: &mut Env<'a>,
    decisive: Truth,
    join: fn(Truth, Truth) -> Truth,
) -> Evaluated<'a> {
    let mut joined = not(decisive);
    for operand in operands {
        joined = join(joined, truth(operand, env)?);
        if joined == decisive {
            break;
        }
    }
    Ok(joined.into())
}

fn negated_if(negated: bool, truth: Truth) -> Truth {
    if negated { not(truth) } else { truth }
}

fn between<'a>(negated: bool, operands: &'a [Expr; 3], env: &mut Env<'a>) -> Evaluated<'a> {
    let [needle, low, high] = operands;
    let needle = evaluate(needle, env)?;
    env.budget().spend_reading(needle.weight().saturating_mul(2))?;
    let above = relation(&needle, &evaluate(low, env)?, Ordering::is_ge);
    let below = relation(&needle, &evaluate(high, env)?, Ordering::is_le);
    Ok(negated_if(negated, and(above, below)).into())
}

fn membership<'a>(list: &'a In, env: &mut Env<'a>) -> Evaluated<'a> {
    let needle = evaluate(&list.needle, env)?;
    if !needle.is_defined() {
        return Ok(Datum::Undefined);
    }
    env.budget().spend_reading(needle.effort())?;
    let found = match &list.known {
        Some(known) => known.contains(&identity(&needle)),
        None => is_among(&needle, &list.items, env)?,
    };
    Ok(Datum::Bool(found != list.negated))
}

fn is_among<'a>(
    needle: &Datum<'a>,
    items: &'a [Expr],
    env: &mut Env<'a>,
) -> Result<bool, QueryError> {
    for item in items {
        let item = evaluate(item, env)?;
        env.budget().spend_reading(needle.effort().min(item.effort()))?;
        if equality(needle, &item) == Some(true) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn fits<'a>(like: &'a Like, env: &mut Env<'a>) -> Evaluated<'a> {
    let text = evaluate(&like.text, env)?;
    let Some(text) = text.as_str() else { return Ok(Datum::Undefined) };
    let fits = match &like.pattern {
        LikePattern::Fixed(pattern) => pattern.matches(&text, env.budget())?,
        LikePattern::Computed { pattern, escape } => {
            let pattern = evaluate(pattern, env)?;
            let Some(pattern) = pattern.as_str() else { return Ok(Datum::Undefined) };
            env.budget().spend_steps(pattern.len())?;
            Pattern::new(&pattern, *escape).matches(&text, env.budget())?
        }
    };
    Ok(Datum::Bool(fits != like.negated))
}
