//! What names stand for that only give something another name.
//!
//! A query that has only the row around it makes no rows by its sources: each is another
//! name for a path from that row. Where values are grouped, the planner takes one name for
//! the other.

use super::Binder;
use super::block::place;
use crate::bound::{Expr, Key, Origin, Slot, Source};
use crate::syntax::{self, ExprKind};

/// A value by its way from a row: which row, and the steps from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    row: Slot,
    steps: Vec<Key>,
}

impl Place {
    /// Whether a path from a row begins with it, and it is not the whole row.
    pub(super) fn begins(&self, row: Slot, steps: &[Key]) -> bool {
        self.row == row && !self.steps.is_empty() && steps.starts_with(&self.steps)
    }

    pub(super) fn to(mut self, steps: impl IntoIterator<Item = Key>) -> Place {
        self.steps.extend(steps);
        self
    }
}

impl Binder<'_> {
    /// What a row is another name for, or the row itself.
    pub(super) fn place(&self, row: Slot) -> Place {
        let own = self.places.get(&row).cloned();
        own.unwrap_or_else(|| Place { row, steps: Vec::new() })
    }

    /// What a source gives another name to: a path, or a subquery that is no more than one.
    pub(super) fn place_of_source(&self, source: &Source) -> Option<Place> {
        match &source.origin {
            Origin::Slot(row) => Some(self.place(*row).to(source.steps.iter().cloned())),
            Origin::Block(block) => {
                let is_bare =
                    block.sources.is_empty() && block.filter.is_none() && block.grouping.is_none();
                is_bare.then(|| self.place_of_expr(&block.output))?
            }
            Origin::Container => None,
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
    fn place_of_expr(&self, expr: &Expr) -> Option<Place> {
        match expr {
            Expr::Slot(row) => Some(self.place(*row)),
            Expr::Member(base, key) => Some(self.place_of_expr(base)?.to([key.clone()])),
            _ => None,
        }
    }

    /// What an expression stands for that is a name, and steps from there.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
    pub(super) fn place_of_path(&self, expr: &syntax::Expr) -> Option<Place> {
        let (base, key) = match expr.kind() {
            ExprKind::Identifier(name) => return Some(self.place(self.resolve(name)?)),
            ExprKind::Member(base, property) => (base, Key::Name(property.name.clone())),
            ExprKind::Index(base, index) => match index.kind() {
                ExprKind::String(name) => (base, Key::Name(name.clone())),
                ExprKind::Number(number) => (base, Key::Index(place(*number))),
                _ => return None,
            },
            _ => return None,
        };
        Some(self.place_of_path(base)?.to([key]))
    }
}
