//! The indexes that a query can use: those that all possible items agree on.
//!
//! During a backfill after a change of the policy, some items are indexed by one policy and
//! some by another.

use index::{Absence, IndexedPath};
use model::policy::{PolicyPathStep, SortOrder};
use query::{Composite, Indexed, Path};

use crate::config::PartitionConfig;

#[derive(Clone, Copy)]
pub(super) struct Indexes<'s> {
    pub(super) config: &'s PartitionConfig,
}

impl Indexes<'_> {
    /// How a path is indexed; `None` if an item may have no entry for its value there.
    pub(super) fn path(self, path: &Path) -> Option<IndexedPath> {
        if !self.could_have(path) {
            return None;
        }
        let steps = steps_of(path)?;
        let found: Option<Vec<IndexedPath>> =
            self.config.plans.values().map(|plan| plan.path(&steps)).collect();
        found?.into_iter().reduce(IndexedPath::and)
    }

    /// How items without a value at a path are found, if the entries of all items allow it.
    pub(super) fn absence(self, path: &Path) -> Option<Absence> {
        let names = path.names()?;
        let mut found = self.config.plans.values().map(|plan| plan.absence(&names));
        let first = found.next()??;
        found.all(|other| other.as_ref() == Some(&first)).then_some(first)
    }

    /// How the policy in force indexes a path.
    pub(super) fn path_in_force(self, path: &Path) -> Option<IndexedPath> {
        self.config.plans.values().next_back()?.path(&steps_of(path)?)
    }

    /// Whether a policy could index a path: computed properties are in no item, and some
    /// system properties have no entries whatever the policy says.
    pub(super) fn could_have(self, path: &Path) -> bool {
        const NEVER: [&str; 3] = ["_rid", "_self", "_attachments"];
        let computed = self.config.definition.computed_properties();
        let Some(names) = path.names() else { return true };
        names.first().is_some_and(|first| {
            !NEVER.contains(first)
                && !computed.properties().iter().any(|property| property.name == *first)
        })
    }
}

impl Indexed for Indexes<'_> {
    fn place(&self, path: &Path) -> Option<bool> {
        self.could_have(path).then(|| self.path(path).is_some())
    }

    fn composites(&self) -> Vec<Composite> {
        let policy = self.config.definition.indexing();
        let composites = policy.composites().iter().map(|paths| -> Composite {
            let part = |part: &model::policy::CompositePath| {
                (part.path.names().to_vec(), part.order == SortOrder::Descending)
            };
            paths.iter().map(part).collect()
        });
        composites.filter(|composite| self.all_have(composite)).collect()
    }
}

impl Indexes<'_> {
    fn all_have(self, composite: &Composite) -> bool {
        let order: Vec<(Vec<&str>, bool)> = composite
            .iter()
            .map(|(names, way)| (names.iter().map(String::as_str).collect(), *way))
            .collect();
        self.config.plans.values().all(|plan| plan.composite_index(&order).is_some())
    }
}

/// The steps of a path that is not the item itself.
fn steps_of(path: &Path) -> Option<Vec<PolicyPathStep>> {
    let step = |step: &query::PathStep| match step {
        query::PathStep::Name(name) => PolicyPathStep::Property(name.clone()),
        query::PathStep::Index(_) | query::PathStep::Each => PolicyPathStep::Elements,
    };
    let steps: Vec<PolicyPathStep> = path.steps().iter().map(step).collect();
    (!steps.is_empty()).then_some(steps)
}
