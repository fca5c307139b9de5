//! What a query must return, computed without index, partition and page.
//!
//! Rows come from the language itself, document by document; order, DISTINCT and the
//! numbers of rows are applied here again, as simply as possible.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use index::IndexPlan;
use model::json::{Object, Raw, Value};
use model::partition_key::{PartitionKey, PartitionKeyDefinition};
use model::policy::{ContainerDefinition, PolicyPathStep};
use model::rid::ItemRid;
use query::{Bound, Context, Order, Parameters, Query, QueryError, Run, UserFunctions};
use service::Scope;

use super::lab::Ask;
use super::order::{compare_beyond_doubles, compare_keys};
use super::rows::exact;

/// Steps of a query: enough for what tests ask.
const STEPS: usize = 1_000_000_000;

/// Documents and the expected results of queries on them.
#[derive(Debug)]
pub struct Oracle {
    /// In the order of their ordinals.
    documents: Vec<(ItemRid, String)>,
    plan: IndexPlan,
    key: PartitionKeyDefinition,
    context: Arc<Context>,
}

/// The expected result of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    Rows {
        rows: Vec<Value>,
        /// How much of the rows is certain.
        agreement: Agreement,
    },
    /// No index serves the order.
    NoIndex,
    Refused(QueryError),
}

/// What two executions of a query must agree on.
#[derive(Clone, Debug, PartialEq)]
pub enum Agreement {
    /// Rows and their order.
    Exact,
    /// Rows in any order.
    Bag,
    /// The number of rows, each of which is among these.
    Some(Vec<Value>),
}

impl Oracle {
    /// Knows a container by its definition and all its items.
    #[must_use]
    pub fn new(definition: &Object, items: Vec<String>) -> Oracle {
        let rid = |item: &String| {
            let value = Raw::trusted(item).to_value();
            let rid = value.get("_rid").and_then(Value::as_str).expect("items have ids");
            ItemRid::parse(rid).expect("of their own kind")
        };
        let mut documents: Vec<(ItemRid, String)> =
            items.into_iter().map(|item| (rid(&item), item)).collect();
        documents.sort();
        let mut definition = definition.clone();
        definition.insert("id", "c");
        let definition = ContainerDefinition::parse(&definition.into());
        let definition = definition.expect("a container could be made of it");
        let computed = definition.computed_properties().properties().to_vec();
        let context = Arc::new(Context { computed, ..Context::default() });
        let (plan, key) =
            (IndexPlan::compile(definition.indexing(), 0), definition.partition_key());
        Oracle { documents, plan, key: key.clone(), context }
    }

    /// The same for queries that call functions.
    #[must_use]
    pub fn calling(self, functions: Arc<dyn UserFunctions>) -> Oracle {
        let functions = Some(functions);
        Oracle { context: Arc::new(Context { functions, ..(*self.context).clone() }), ..self }
    }

    #[must_use]
    pub fn documents(&self) -> usize {
        self.documents.len()
    }

    /// The partition key of an item.
    pub(super) fn key_of(&self, item: &str) -> PartitionKey {
        self.key.extract(Raw::trusted(item)).expect("items have keys")
    }

    /// Answers a query over all documents, or those in its scope.
    #[must_use]
    pub fn answer(&self, ask: &Ask) -> Verdict {
        let bound = self.bind(ask);
        let bound = match bound {
            Ok(bound) => bound,
            Err(error) => return Verdict::Refused(error),
        };
        let ordered = !bound.order().is_empty() && !bound.is_aggregated();
        let rows = if ordered {
            self.ordered(&bound, &ask.scope)
        } else {
            self.unordered(&bound, &ask.scope)
        };
        rows.unwrap_or_else(Verdict::Refused)
    }

    /// The same where one partition has all items: rows that nothing orders come in the
    /// order of creation there.
    #[must_use]
    pub fn answer_of_one(&self, ask: &Ask) -> Verdict {
        match (self.bind(ask), self.answer(ask)) {
            (Ok(bound), Verdict::Rows { rows, .. }) if bound.streams() => {
                Verdict::Rows { rows, agreement: Agreement::Exact }
            }
            (_, verdict) => verdict,
        }
    }

    fn bind(&self, ask: &Ask) -> Result<Bound, QueryError> {
        let parameters = if ask.parameters.is_null() {
            Parameters::none()
        } else {
            Parameters::from_list(&ask.parameters)?
        };
        Query::parse(&ask.text)?.bind_in(&parameters, &self.context)
    }

    fn unordered(&self, bound: &Bound, scope: &Scope) -> Result<Verdict, QueryError> {
        let rows = bound.execute(self.raw(scope))?;
        if bound.orders_groups() {
            return Ok(Verdict::Rows { rows, agreement: Agreement::Exact });
        }
        let (offset, limit) = bound.window();
        if offset == 0 && limit == usize::MAX {
            return Ok(Verdict::Rows { rows, agreement: Agreement::Bag });
        }
        let mut all = Vec::new();
        let groups = self.each_row(bound, scope, |_, _, row| all.push(row))?;
        all.extend(groups);
        Ok(Verdict::Rows { rows, agreement: Agreement::Some(all) })
    }

    fn ordered(&self, bound: &Bound, scope: &Scope) -> Result<Verdict, QueryError> {
        let order = bound.order();
        if !self.is_served(&order) {
            return Ok(Verdict::NoIndex);
        }
        let ways: Vec<bool> = order.iter().map(|key| key.descending).collect();
        let backwards = ways.first() == Some(&true);
        let mut kept = Vec::new();
        // Rows that show their order have no document to be sorted by.
        let is_shown = bound.value_order().is_some();
        self.each_row(bound, scope, |document, keys, row| kept.push((document, keys, row)))?;
        // Rows of one document stay in their order.
        kept.sort_by(|(left, a, _), (right, b, _)| {
            let ties = match is_shown {
                true => compare_beyond_doubles(a, b),
                false if backwards => right.cmp(left),
                false => left.cmp(right),
            };
            compare_keys(&ways, a, b).then(ties)
        });
        let mut seen = BTreeSet::new();
        let is_new = |row: &Value| !bound.is_distinct() || seen.insert(exact(row).to_string());
        let (offset, limit) = bound.window();
        let rows = kept.into_iter().map(|(_, _, row)| row).filter(is_new);
        let rows = rows.skip(offset).take(limit).collect();
        Ok(Verdict::Rows { rows, agreement: Agreement::Exact })
    }

    /// Whether an index serves the order, or none could.
    fn is_served(&self, order: &[Order<'_>]) -> bool {
        let names: Option<Vec<(Vec<&str>, bool)>> =
            order.iter().map(|key| Some((key.path.names()?, key.descending))).collect();
        // What no policy could index is sorted after evaluating it.
        let Some(names) = names else { return true };
        if names.iter().any(|(names, _)| self.is_never_indexed(names)) {
            return true;
        }
        if let [(names, _)] = names.as_slice() {
            let steps: Vec<PolicyPathStep> =
                names.iter().map(|name| PolicyPathStep::Property((*name).to_owned())).collect();
            return self.plan.path(&steps).is_some();
        }
        self.plan.composite_index(&names).is_some()
    }

    fn is_never_indexed(&self, names: &[&str]) -> bool {
        let Some(first) = names.first() else { return true };
        let is_computed = self.context.computed.iter().any(|own| own.name == *first);
        is_computed || ["_rid", "_self", "_attachments"].contains(first)
    }

    /// Passes on the rows of all documents, each with the number of its document. Returns
    /// the groups of the rows.
    fn each_row(
        &self,
        bound: &Bound,
        scope: &Scope,
        mut keep: impl FnMut(usize, Vec<Option<Value>>, Value),
    ) -> Result<Vec<Value>, QueryError> {
        let mut run = Run::new(bound, STEPS);
        for (number, document) in self.raw(scope).enumerate() {
            let _ = run.document(document.into(), &mut |row| {
                if let Some(value) = row.value()? {
                    keep(number, row.keys()?, value);
                }
                Ok(ControlFlow::Continue(()))
            })?;
        }
        let mut groups = Vec::new();
        let _ = run.finish(&mut |row| {
            groups.extend(row.value()?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(groups)
    }

    fn raw<'o>(&'o self, scope: &'o Scope) -> impl Iterator<Item = Raw<'o>> {
        let documents = self.documents.iter().map(|(_, text)| Raw::trusted(text));
        documents.filter(|document| self.is_within(*document, scope))
    }

    fn is_within(&self, document: Raw<'_>, scope: &Scope) -> bool {
        let own = self.key.extract(document).expect("items have keys");
        let position = self.key.locate(&own).expect("items have whole keys");
        let prefix = scope.key.as_ref().map(PartitionKey::components).unwrap_or_default();
        scope.within.contains(&position) && own.components().starts_with(prefix)
    }
}
