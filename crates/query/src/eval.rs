//! Evaluating expressions.
//!
//! Wrong types and missing properties give undefined, never an error; the only
//! errors are limits and subqueries that should have given one row.

mod budget;
mod compare;
mod datum;
mod like;
mod operators;

pub use budget::{KEPT_BYTES_MAX, LIKE_STEPS_MAX, ROWS_VISITED_MAX, VALUE_BYTES_MAX};
pub(crate) use compare::{equal, identity, total_order};
pub(crate) use datum::{Datum, Type};

use std::borrow::Cow;
use std::cmp::Ordering;

use model::json::Raw;

pub(crate) use budget::Budget;
pub(crate) use operators::{Truth, and, or};

use crate::bound::{Constant, Expr, Key, Slot};
use crate::error::QueryError;
use crate::execute;
use operators::{binary, equality, not, relation, unary};

pub(crate) type Evaluated<'a> = Result<Datum<'a>, QueryError>;

/// Where a running query keeps its rows.
pub(crate) struct Env<'a> {
    slots: Vec<Datum<'a>>,
    pub(crate) budget: Budget,
    /// Taken by the one source that ranges over them.
    pub(crate) documents: Option<Box<dyn Iterator<Item = Raw<'a>> + 'a>>,
}

impl<'a> Env<'a> {
    pub(crate) fn new(slots: usize) -> Env<'a> {
        let slots = vec![Datum::Undefined; slots];
        Env { slots, budget: Budget::new(), documents: None }
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

pub(crate) fn evaluate<'a>(expr: &'a Expr, env: &mut Env<'a>) -> Evaluated<'a> {
    match expr {
        Expr::Constant(constant) => Ok(constant.datum()),
        Expr::Slot(slot) => Ok(env.get(*slot).clone()),
        Expr::Member(base, key) => member(base, key, env),
        Expr::Array(items) => array(items, env),
        Expr::Object(members) => object(members, env),
        Expr::Unary(op, operand) => Ok(unary(*op, &evaluate(operand, env)?)),
        Expr::Binary(op, left, right) => {
            let (left, right) = (evaluate(left, env)?, evaluate(right, env)?);
            bounded(binary(*op, &left, &right))
        }
        Expr::And(operands) => chain(operands, env, Some(false), and),
        Expr::Or(operands) => chain(operands, env, Some(true), or),
        Expr::Between { negated, operands } => between(*negated, operands, env),
        Expr::In { negated, needle, list } => membership(*negated, needle, list, env),
        Expr::Like { negated, operands, escape } => like(*negated, operands, *escape, env),
        Expr::Coalesce(left, right) => {
            let left = evaluate(left, env)?;
            if left.is_defined() { Ok(left) } else { evaluate(right, env) }
        }
        Expr::Conditional(parts) => {
            let [condition, yes, no] = &**parts;
            let holds = truth(condition, env)? == Some(true);
            evaluate(if holds { yes } else { no }, env)
        }
        Expr::Call(function, arguments) => {
            let mut values = Vec::with_capacity(arguments.len());
            for argument in arguments {
                values.push(evaluate(argument, env)?);
            }
            bounded(function.apply(&values)?)
        }
        Expr::Subquery(kind, block) => execute::subquery(*kind, block, env),
        Expr::Let { slot, parts } => {
            let [value, body] = &**parts;
            let value = evaluate(value, env)?;
            env.set(*slot, value);
            evaluate(body, env)
        }
    }
}

/// Evaluates to a truth value; what is no boolean counts as undefined.
pub(crate) fn truth<'a>(expr: &'a Expr, env: &mut Env<'a>) -> Result<Truth, QueryError> {
    Ok(evaluate(expr, env)?.as_bool())
}

/// Refuses computed values that have grown beyond all use: values can be
/// doubled as often as a query has levels.
pub(crate) fn bounded(datum: Datum<'_>) -> Evaluated<'_> {
    if datum.weight() > VALUE_BYTES_MAX {
        return Err(QueryError::Limit { what: "bytes in one value", limit: VALUE_BYTES_MAX });
    }
    Ok(datum)
}

impl Constant {
    fn datum(&self) -> Datum<'_> {
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
    // Rows are looked into where they are, not copied first.
    if let Expr::Slot(slot) = base {
        return Ok(key.of(env.get(*slot)));
    }
    Ok(key.of(&evaluate(base, env)?))
}

fn array<'a>(items: &'a [Expr], env: &mut Env<'a>) -> Evaluated<'a> {
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        values.push(evaluate(item, env)?);
    }
    bounded(Datum::array(values))
}

fn object<'a>(members: &'a [(String, Expr)], env: &mut Env<'a>) -> Evaluated<'a> {
    let mut values = Vec::with_capacity(members.len());
    for (name, value) in members {
        values.push((Cow::Borrowed(name.as_str()), evaluate(value, env)?));
    }
    bounded(Datum::object(values))
}

/// ANDs or ORs the operands; nothing can change the `decisive` value.
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
    let above = relation(&needle, &evaluate(low, env)?, Ordering::is_ge);
    let below = relation(&needle, &evaluate(high, env)?, Ordering::is_le);
    Ok(negated_if(negated, and(above, below)).into())
}

fn membership<'a>(
    negated: bool,
    needle: &'a Expr,
    list: &'a [Expr],
    env: &mut Env<'a>,
) -> Evaluated<'a> {
    let needle = evaluate(needle, env)?;
    if !needle.is_defined() {
        return Ok(Datum::Undefined);
    }
    let mut found = false;
    for item in list {
        if equality(&needle, &evaluate(item, env)?) == Some(true) {
            found = true;
            break;
        }
    }
    Ok(Datum::Bool(found != negated))
}

fn like<'a>(
    negated: bool,
    operands: &'a [Expr; 2],
    escape: Option<char>,
    env: &mut Env<'a>,
) -> Evaluated<'a> {
    let [text, pattern] = operands;
    let (text, pattern) = (evaluate(text, env)?, evaluate(pattern, env)?);
    match (text.as_str(), pattern.as_str()) {
        (Some(text), Some(pattern)) => {
            let fits = like::matches(&text, &pattern, escape, &env.budget)?;
            Ok(Datum::Bool(fits != negated))
        }
        _ => Ok(Datum::Undefined),
    }
}
