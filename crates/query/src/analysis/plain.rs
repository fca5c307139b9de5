//! The plain case, which most queries are: places of a document compared with constants.
//!
//! It comes to the same as the whole analysis, for a fraction of its work. That no two
//! places have to do with each other is checked, so that there is nothing to be concluded.

use super::DEPTH_MAX;
use super::constraint::{Constraint, Root, ValuePath};
use super::domain::Domain;
use crate::bound::{Block, Constant, Expr, Slot};
use crate::syntax::BinaryOp;

/// Comparisons that are looked at, each with each.
const COMPARISONS_MAX: usize = 8;

/// What the documents have that a query gives rows of, if it is so plain.
pub(super) fn equalities(block: &Block) -> Option<Constraint> {
    let [source] = block.sources.as_slice() else { return None };
    let has_row = match &block.output {
        Expr::Slot(slot) => *slot == source.slot,
        Expr::Object(_) => true,
        _ => false,
    };
    if !source.is_document() || block.grouping.is_some() || !has_row {
        return None;
    }
    let filter = block.filter.as_ref()?;
    let tests = if let Expr::And(tests) = filter { tests } else { std::slice::from_ref(filter) };
    if tests.len() > COMPARISONS_MAX {
        return None;
    }
    let mut found: Vec<(ValuePath, Domain)> = Vec::with_capacity(tests.len());
    for test in tests {
        let (place, domain) = equality(test, source.slot)?;
        if found.iter().any(|(other, _)| meet(other, &place)) {
            return None;
        }
        found.push((place, domain));
    }
    let parts = found.into_iter().map(|(place, domain)| Constraint::At(place, domain)).collect();
    Some(Constraint::all(parts))
}

fn equality(test: &Expr, row: Slot) -> Option<(ValuePath, Domain)> {
    let Expr::Binary(BinaryOp::Equal, left, right) = test else { return None };
    let (path, constant) = match (&**left, &**right) {
        (path, Expr::Constant(constant)) | (Expr::Constant(constant), path) => (path, constant),
        _ => return None,
    };
    let known = match constant {
        Constant::Undefined => false,
        Constant::Number(number) => !number.as_f64().is_nan(),
        Constant::Null | Constant::Bool(_) | Constant::String(_) | Constant::Json(_) => true,
    };
    known.then(|| Some((place(path, row)?, Domain::of(constant))))?
}

/// The place in a row that a path leads to.
fn place(path: &Expr, row: Slot) -> Option<ValuePath> {
    let (mut steps, mut at) = (Vec::new(), path);
    while let Expr::Member(base, key) = at {
        steps.push(key.clone());
        at = base;
    }
    let leads = matches!(at, Expr::Slot(slot) if *slot == row);
    steps.reverse();
    let plain = leads && !steps.is_empty() && steps.len() <= DEPTH_MAX;
    plain.then_some(ValuePath { root: Root::Document, steps })
}

/// Whether one of the places lies in the other.
fn meet(a: &ValuePath, b: &ValuePath) -> bool {
    a.steps.iter().zip(&b.steps).all(|(a, b)| a == b)
}
