//! Computed properties: their texts, and their uses in queries.

use std::sync::Arc;

use super::{Binder, QUICK_FOLD_STEPS_MAX};
use crate::bound::{Computed, Definition, Expr, Key, Slot};
use crate::error::QueryError;
use crate::parameters::Parameters;
use crate::parser;
use crate::syntax::{self, Child, Collection, ExprKind, From, Select, Selection, Source};

impl<'q> Binder<'q> {
    /// The computed property of that name, if the base is a document and the
    /// container has one. It hides a stored property of the same name.
    pub(super) fn computed(&mut self, base: &Expr, key: &Key) -> Option<Expr> {
        let (Expr::Slot(row), Key::Name(name)) = (base, key) else { return None };
        let is_document = self.paths.get(row).is_some_and(|path| path.steps().is_empty());
        let context = self.context;
        let property = context.computed.iter().find(|property| property.name == *name)?;
        let definition =
            is_document.then(|| self.definition_of(&property.name, &property.query))?;
        Some(Expr::Computed(Computed { name: name.clone(), row: *row, definition }))
    }

    /// What the property is, bound once for all its uses. A text that is not of
    /// the allowed form was refused with the container, and is undefined here.
    fn definition_of(&mut self, name: &'q str, query: &str) -> Arc<Definition> {
        if let Some(definition) = self.definitions.get(name) {
            return Arc::clone(definition);
        }
        let slot = self.new_slot();
        let body = self.body_of(query, slot).unwrap_or(Expr::UNDEFINED);
        let definition = Arc::new(Definition { slot, body });
        self.definitions.insert(name, Arc::clone(&definition));
        definition
    }

    fn body_of(&mut self, query: &str, slot: Slot) -> Result<Expr, QueryError> {
        let select = parser::parse_query(query)?;
        let Some((alias, expr)) = parts(&select) else { return Ok(Expr::UNDEFINED) };
        let none = Parameters::none();
        let mut binder = Binder::new(query, &none, self.context);
        binder.container = false;
        binder.names.push((alias, slot));
        binder.slots = self.slots;
        // All properties together may take what one query may.
        binder.ambient.budget.allow_steps(self.ambient.budget.steps_left());
        let body = binder.expression(expr);
        self.ambient.budget.go_on_from(&binder.ambient.budget);
        if self.uncallable.is_none() {
            self.uncallable = binder.uncallable.take();
        }
        self.slots = binder.finish()?;
        Ok(body)
    }
}

/// The alias and the expression of `SELECT VALUE expression FROM alias`.
fn parts(select: &Select) -> Option<(&str, &syntax::Expr)> {
    let Select { distinct: false, top: None, filter: None, order_by: None, page: None, .. } =
        select
    else {
        return None;
    };
    let (Selection::Value(expr), Some(From { first, joins, .. })) =
        (&select.selection, &select.from)
    else {
        return None;
    };
    let Source { collection: Collection::Path { steps, .. }, iterates: false, .. } = first else {
        return None;
    };
    let plain = joins.is_empty() && steps.is_empty() && select.group_by.is_empty();
    plain.then(|| Some((first.name()?, expr)))?
}

/// Functions whose value is not the item's own: they tell the time, or chance.
const FORBIDDEN: [&str; 3] = ["NOW", "AGO", "RAND"];

/// Beginnings of the names of others like them, and of what the documentation forbids.
const FORBIDDEN_FAMILIES: [&str; 2] = ["GETCURRENT", "ST_"];

fn is_forbidden(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    FORBIDDEN.contains(&name.as_str())
        || FORBIDDEN_FAMILIES.iter().any(|family| name.starts_with(family))
}

/// Whether an expression may be computed once and kept: it calls nothing that changes
/// from one moment to the next, no function of the user's, and asks no other rows.
#[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
fn is_fixed(expr: &syntax::Expr) -> bool {
    let own = match expr.kind() {
        ExprKind::Subquery(..) | ExprKind::Udf { .. } => false,
        ExprKind::Call { name, .. } => !is_forbidden(&name.text),
        _ => true,
    };
    let mut fixed = own;
    expr.kind().for_each_child(&mut |child| {
        fixed = fixed
            && match child {
                Child::Expr(child) => is_fixed(child),
                Child::Select(_) => false,
            };
    });
    fixed
}

/// Whether a text can define a computed property: `SELECT VALUE … FROM alias`
/// and nothing else, with names and functions that exist.
pub(crate) fn check(
    query: &str,
    context: &Arc<crate::context::Context>,
) -> Result<bool, QueryError> {
    let select = parser::parse_query(query)?;
    let Some((alias, expr)) = parts(&select).filter(|(_, expr)| is_fixed(expr)) else {
        return Ok(false);
    };
    let none = Parameters::none();
    let mut binder = Binder::new(query, &none, context);
    binder.ambient.budget.allow_steps(QUICK_FOLD_STEPS_MAX);
    binder.container = false;
    let slot = binder.new_slot();
    binder.names.push((alias, slot));
    binder.expression(expr);
    binder.finish().map(|_| true)
}

#[cfg(test)]
mod tests {
    use crate::check_computed_property;

    #[test]
    fn what_may_not_be_computed_is_refused() {
        let allowed =
            ["c.a", "LOWER(c.a)", "c.a + 1", "[c.a, c.b]", "c.nowhere", "LEFT(c.random, 2)"];
        for expression in allowed {
            let text = format!("SELECT VALUE {expression} FROM c");
            assert_eq!(check_computed_property(&text), Ok(()), "{text}");
        }
        let forbidden = [
            "GetCurrentDateTime()",
            "GetCurrentTicks()",
            "GetCurrentTimestamp()",
            "GetCurrentTimestampStatic()",
            "NOW()",
            "AGO('1d')",
            "RAND()",
            "c.a + RAND()",
            "ST_DISTANCE(c.a, c.b)",
            "st_isvalid(c.a)",
            "udf.f(c.a)",
            "EXISTS(SELECT VALUE x FROM x IN c.a)",
            "ARRAY(SELECT VALUE x FROM x IN c.a)",
            "FIRST(SELECT VALUE x FROM x IN c.a)",
            "(SELECT VALUE 1)",
            "[{a: (SELECT VALUE c.a)}]",
        ];
        for expression in forbidden {
            let text = format!("SELECT VALUE {expression} FROM c");
            assert!(check_computed_property(&text).is_err(), "{text}");
        }
        for text in ["SELECT c.a FROM c", "SELECT VALUE c.a FROM c WHERE true", "SELECT VALUE 1"] {
            assert!(check_computed_property(text).is_err(), "{text}");
        }
    }
}
