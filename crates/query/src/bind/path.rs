//! Places in documents that expressions stand for.

use std::fmt;

use super::Binder;
use crate::bound::{Block, Constant, Expr, Key, Origin, Slot, Source};
use crate::syntax::SubqueryKind;

/// The way from a document to a value in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Path {
    steps: Vec<PathStep>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathStep {
    /// A property, stored or computed.
    Name(String),
    /// One element of an array.
    Index(usize),
    /// Any element of an array.
    Each,
}

impl Path {
    #[must_use]
    pub fn steps(&self) -> &[PathStep] {
        &self.steps
    }

    /// The names, where there is nothing else: the form of partition keys.
    #[must_use]
    pub fn names(&self) -> Option<Vec<&str>> {
        self.steps.iter().map(PathStep::name).collect()
    }

    pub(crate) fn to(&self, step: PathStep) -> Path {
        let mut steps = self.steps.clone();
        steps.push(step);
        Path { steps }
    }
}

impl PathStep {
    fn name(&self) -> Option<&str> {
        match self {
            PathStep::Name(name) => Some(name),
            PathStep::Index(_) | PathStep::Each => None,
        }
    }
}

impl fmt::Display for Path {
    /// As in an indexing policy, with indexes in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() {
            return f.write_str("/");
        }
        self.steps.iter().try_for_each(|step| match step {
            PathStep::Name(name) => write!(f, "/{name}"),
            PathStep::Index(index) => write!(f, "/[{index}]"),
            PathStep::Each => f.write_str("/[]"),
        })
    }
}

impl From<&Key> for PathStep {
    fn from(key: &Key) -> PathStep {
        match key {
            Key::Name(name) => PathStep::Name(name.clone()),
            Key::Index(index) => PathStep::Index(*index),
        }
    }
}

/// The place that an expression stands for, given those of the slots.
pub(crate) fn path_of<'p>(expr: &Expr, slots: &impl Fn(Slot) -> Option<&'p Path>) -> Option<Path> {
    match expr {
        Expr::Slot(slot) => slots(*slot).cloned(),
        Expr::Computed(property) => {
            slots(property.row).map(|row| row.to(PathStep::Name(property.name.clone())))
        }
        Expr::Member(base, key) => match (&**base, key) {
            // A member of an object that is written out is the value written there.
            (Expr::Object(members), Key::Name(name)) => {
                let (_, value) = members.iter().find(|(own, _)| own == name)?;
                path_of(value, slots)
            }
            (Expr::Array(items), Key::Index(0)) if items.len() == 1 => {
                path_of(items.first()?, slots)
            }
            _ => path_of(base, slots).map(|base| base.to(key.into())),
        },
        Expr::Subquery(SubqueryKind::Scalar, block) if is_transparent(block) => {
            path_of(&block.output, slots)
        }
        Expr::Coalesce(left, right) => match (&**left, &**right) {
            (Expr::Constant(Constant::Undefined), one)
            | (one, Expr::Constant(Constant::Undefined)) => path_of(one, slots),
            _ => None,
        },
        Expr::Conditional(parts) => chosen(&parts[0], &parts[1], &parts[2], slots),
        Expr::Call(function, arguments) => match (function.name(), arguments.as_slice()) {
            ("IIF", [condition, yes, no]) => chosen(condition, yes, no, slots),
            ("CHOOSE", [Expr::Constant(Constant::Number(place)), choices @ ..]) => {
                let place = usize::try_from(place.as_i64()?.checked_sub(1)?).ok()?;
                path_of(choices.get(place)?, slots)
            }
            _ => None,
        },
        Expr::Subquery(..)
        | Expr::Constant(_)
        | Expr::Array(_)
        | Expr::Object(_)
        | Expr::Unary(..)
        | Expr::Binary(..)
        | Expr::Chain(..)
        | Expr::And(_)
        | Expr::Or(_)
        | Expr::Between { .. }
        | Expr::In(_)
        | Expr::Like(_)
        | Expr::Regex(_)
        | Expr::Udf(..)
        | Expr::Let { .. } => None,
    }
}

/// The place of what a condition chooses: it is known, or the choice makes no difference.
fn chosen<'p>(
    condition: &Expr,
    yes: &Expr,
    no: &Expr,
    slots: &impl Fn(Slot) -> Option<&'p Path>,
) -> Option<Path> {
    if let Expr::Constant(constant) = condition {
        let holds = matches!(constant, Constant::Bool(true));
        return path_of(if holds { yes } else { no }, slots);
    }
    let yes = path_of(yes, slots)?;
    path_of(no, slots).filter(|no| *no == yes)
}

/// Whether a subquery gives one row whatever the row around it is, and is no more than
/// what it selects.
fn is_transparent(block: &Block) -> bool {
    let renames = |source: &Source| {
        matches!(source.origin, Origin::Slot(_)) && source.steps.is_empty() && !source.iterates
    };
    let keeps = |filter: &Expr| matches!(filter, Expr::Constant(Constant::Bool(true)));
    block.sources.iter().all(renames)
        && block.filter.iter().all(keeps)
        && block.grouping.is_none()
        && block.counts.given() > 0
        && block.counts.skipped() == 0
}

impl Binder<'_> {
    pub(super) fn path_of(&self, expr: &Expr) -> Option<Path> {
        path_of(expr, &|slot| self.paths.get(&slot))
    }

    /// The place that the rows of a subquery stand for. Rows that were made from
    /// several others stand for none.
    pub(super) fn path_of_block(&self, block: &Block) -> Option<Path> {
        let plain = block.grouping.is_none() && !block.distinct;
        plain.then(|| self.path_of(&block.output))?
    }
}
