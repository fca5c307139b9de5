//! The plan that the gateway gives to clients who run a query on each partition
//! and put the results together themselves.
//!
//! It says which parts of the ring to ask, which text to send there, and what to
//! do with the rows that come back. The client must be able to do that: a plan
//! that asks for more than the client declares is refused.

mod features;
mod ranges;
mod rewrite;

pub use features::{Feature, Features};
pub use ranges::{KeyBound, KeyRanges, PlannedRange, RingRange};

use model::json::{Object, Value};
use model::partition_key::{KeyKind, KeyPath, PartitionKeyDefinition};

use crate::analysis::{self, Demands};
use crate::bind::{Program, is_aggregated};
use crate::bound::Block;
use crate::context::Context;
use crate::error::{QueryError, Refusal};
pub use crate::execute::AggregateKind;
use crate::syntax::{
    self, Child, Collection, Expr, ExprKind, OrderItem, OrderKeys, Select, Selection, SortDirection,
};

/// Rows to skip and rows to give, as a rewritten text says it.
type Page = (String, String);

/// The form of plans that clients read.
const VERSION: u32 = 2;

/// How a client runs a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub info: QueryInfo,
    pub ranges: KeyRanges,
}

/// What a client does with the rows of the partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryInfo {
    pub distinct: DistinctType,
    pub top: Option<u32>,
    pub offset: Option<u32>,
    pub limit: Option<u32>,
    /// Texts of the sort keys, and their directions.
    pub order_by: Vec<(String, SortDirection)>,
    pub group_by: Vec<String>,
    /// The aggregate of `SELECT VALUE`.
    pub aggregates: Vec<AggregateKind>,
    /// The members of a select list with aggregates, in their order, and what
    /// they are aggregates of.
    pub aliases: Vec<(String, Option<AggregateKind>)>,
    /// Empty where the client sends its own text.
    pub rewritten: String,
    pub has_select_value: bool,
    /// The name of the count of distinct rows; empty for `SELECT VALUE`.
    pub distinct_count: Option<String>,
    /// Rows are ordered by something that no index has in order.
    pub non_streaming_order: bool,
    /// A subquery in FROM puts rows together, which each partition does for its own.
    pub extended: bool,
}

/// Whether equal rows come one after another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DistinctType {
    #[default]
    None,
    Ordered,
    Unordered,
}

/// A partition key as far as plans are concerned. Old containers have keys that
/// new ones may not have, and their plans are on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyShape {
    pub kind: KeyKind,
    /// The names of each path.
    pub paths: Vec<Vec<String>>,
}

impl From<&PartitionKeyDefinition> for KeyShape {
    fn from(definition: &PartitionKeyDefinition) -> KeyShape {
        let names = |path: &KeyPath| path.names().to_vec();
        // Keys of kind `Range` are hashed like all others here.
        let kind = match definition.kind() {
            KeyKind::Range => KeyKind::Hash,
            kind @ (KeyKind::Hash | KeyKind::MultiHash) => kind,
        };
        KeyShape { kind, paths: definition.paths().iter().map(names).collect() }
    }
}

/// What a client, or a caller on its behalf, asks of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanOptions {
    /// Ordered texts have a place for the condition to go on from.
    pub formattable_order: bool,
    /// The server gives tokens for all that is about one key, so that nothing is left
    /// to the client but DISTINCT.
    pub continuation_expected: bool,
    pub non_value_aggregates: bool,
    /// The request names the key: one partition skips and stops by itself.
    pub logical_key: bool,
    pub distinct_counts: bool,
    /// System properties begin with `__sys`.
    pub system_prefix: bool,
}

impl Default for PlanOptions {
    fn default() -> PlanOptions {
        PlanOptions {
            formattable_order: true,
            continuation_expected: false,
            non_value_aggregates: true,
            logical_key: false,
            distinct_counts: true,
            system_prefix: false,
        }
    }
}

/// Plans a bound query.
pub(crate) fn plan(
    select: &Select,
    program: &Program,
    shape: &KeyShape,
    features: &Features,
    options: PlanOptions,
) -> Result<Plan, QueryError> {
    let demands = analysis::demands(&program.block);
    let ranges =
        if demands.is_empty { KeyRanges::Nothing } else { ranges_of(program, shape, &demands) };
    let one_key = ranges.is_one_key(shape.paths.len());
    let planner = Planner { options, one_key, is_empty: demands.is_empty };
    let info = planner.info(select, program)?;
    let missing = features.missing(&info);
    if !missing.is_empty() {
        return Err(Refusal::UnsupportedFeatures { features: missing }.into());
    }
    Ok(Plan { info, ranges })
}

/// The keys that a query can be about. Without a source it is about none.
pub(crate) fn key_ranges(program: &Program, shape: &KeyShape) -> KeyRanges {
    ranges_of(program, shape, &analysis::demands(&program.block))
}

fn ranges_of(program: &Program, shape: &KeyShape, demands: &Demands) -> KeyRanges {
    if program.block.sources.is_empty() {
        return KeyRanges::Nothing;
    }
    let found = ranges::ranges(&demands.rows, shape.kind, &shape.paths);
    let misled = matches!(found, KeyRanges::Some(_)) && is_hidden(shape, &program.context);
    if misled { KeyRanges::Everything } else { found }
}

/// Whether a computed property has the name of a property that leads to the key:
/// what a filter says about it says nothing about the key.
fn is_hidden(shape: &KeyShape, context: &Context) -> bool {
    let first: Vec<&String> = shape.paths.iter().filter_map(|path| path.first()).collect();
    context.computed.iter().any(|property| first.contains(&&property.name))
}

struct Planner {
    options: PlanOptions,
    /// The query is about one key, with a value for every path.
    one_key: bool,
    /// No document changes what the query gives.
    is_empty: bool,
}

impl Planner {
    fn info(&self, select: &Select, program: &Program) -> Result<QueryInfo, QueryError> {
        let has_select_value = matches!(select.selection, Selection::Value(_));
        let plain = QueryInfo { has_select_value, ..QueryInfo::default() };
        // What is ordered by something computed is planned in full, even if it gives nothing.
        if self.is_empty && !select.distinct && !has_computed_order(select) {
            return Ok(plain);
        }
        if self.options.continuation_expected && self.one_key && !select.distinct {
            return Ok(plain);
        }
        if let Some((inner, alias)) =
            distinct_count(select).filter(|_| self.options.distinct_counts)
        {
            let mut info = self.query_info(inner, None)?;
            // A count of groups alone names no columns.
            if has_select_value && info.aliases.iter().all(|(_, kind)| kind.is_none()) {
                info.aliases.clear();
            }
            let text = Some(info.rewritten).filter(|text| !text.is_empty());
            let rewritten = text.unwrap_or_else(|| inner.to_string());
            let distinct = DistinctType::Unordered;
            let distinct_count = Some(alias);
            return Ok(QueryInfo { distinct, rewritten, has_select_value, distinct_count, ..info });
        }
        let mut info = self.query_info(select, Some(&program.block))?;
        info.extended = gathers(select);
        Ok(info)
    }

    /// `block` is there for the outermost query, which alone has counts.
    fn query_info(&self, select: &Select, block: Option<&Block>) -> Result<QueryInfo, QueryError> {
        let mut info = QueryInfo {
            distinct: distinct_type(select),
            group_by: select.group_by.iter().map(Expr::to_string).collect(),
            has_select_value: matches!(select.selection, Selection::Value(_)),
            ..QueryInfo::default()
        };
        if select.from.is_none() {
            return Ok(info);
        }
        let aggregated = selects_aggregate(select);
        let grouped = !select.group_by.is_empty();
        if aggregated || grouped {
            self.aggregates(select, &mut info)?;
        }
        if let Some(block) = block {
            counts(select, block, &mut info);
        }
        let page = self.page(select, &mut info);
        if !aggregated {
            info.order_by = order_by(select);
        }
        info.non_streaming_order = has_computed_order(select);
        info.rewritten = self.rewritten(select, &info, aggregated, page);
        Ok(info)
    }

    /// Where rows are put together first, no partition can know which to leave out;
    /// otherwise each gives what could be skipped and what is wanted, and one that is
    /// alone skips and stops by itself.
    fn page(&self, select: &Select, info: &mut QueryInfo) -> Option<Page> {
        let (offset, limit) = (info.offset?, info.limit?);
        let merges = select.distinct || !select.group_by.is_empty() || !info.aggregates.is_empty();
        if merges {
            return None;
        }
        let alone = self.one_key || self.options.logical_key;
        if alone && !has_computed_order(select) {
            (info.offset, info.limit) = (None, None);
            // Parameters stay what they are.
            return select.page.as_ref().map(|own| (own.offset.to_string(), own.limit.to_string()));
        }
        Some(("0".to_owned(), offset.wrapping_add(limit).to_string()))
    }

    fn rewritten(
        &self,
        select: &Select,
        info: &QueryInfo,
        aggregated: bool,
        page: Option<Page>,
    ) -> String {
        if !select.group_by.is_empty() && info.order_by.is_empty() {
            return rewrite::grouped(select);
        }
        if aggregated && select.group_by.is_empty() {
            return rewrite::aggregated(select, page);
        }
        if !info.order_by.is_empty() {
            return rewrite::ordered(select, info, page, self.options);
        }
        let distinct_counts = select.distinct && (info.top.is_some() || info.offset.is_some());
        if distinct_counts || info.offset.is_some() {
            return rewrite::plain(select, page);
        }
        String::new()
    }

    /// Partial results can be added up only where the aggregate stands alone.
    fn aggregates(&self, select: &Select, info: &mut QueryInfo) -> Result<(), QueryError> {
        let composed = |expr: &Expr| rewrite::aggregate(expr).is_none() && contains_aggregate(expr);
        match &select.selection {
            Selection::Value(expr) if composed(expr) => Err(Refusal::ComposedAggregate.into()),
            Selection::Value(expr) => {
                info.aggregates.extend(rewrite::aggregate(expr).map(|aggregate| aggregate.kind));
                Ok(())
            }
            Selection::List(items) => {
                if items.iter().any(|item| composed(&item.expr)) {
                    return Err(Refusal::ComposedAggregate.into());
                }
                let kind = |expr: &Expr| rewrite::aggregate(expr).map(|aggregate| aggregate.kind);
                let named = rewrite::named(items).into_iter();
                info.aliases.extend(named.map(|(name, expr)| (name, kind(expr))));
                let has = info.aliases.iter().any(|(_, kind)| kind.is_some());
                if has && !self.options.non_value_aggregates {
                    return Err(Refusal::NonValueAggregate.into());
                }
                Ok(())
            }
            Selection::All(_) => Ok(()),
        }
    }
}

/// Whether an aggregate stands in the select list.
fn selects_aggregate(select: &Select) -> bool {
    match &select.selection {
        Selection::All(_) => false,
        Selection::Value(expr) => contains_aggregate(expr),
        Selection::List(items) => items.iter().any(|item| contains_aggregate(&item.expr)),
    }
}

/// Whether an aggregate of this query, not of a subquery, is in the expression.
fn contains_aggregate(expr: &Expr) -> bool {
    let mut found = rewrite::aggregate(expr).is_some();
    expr.kind().for_each_child(&mut |child| {
        if let Child::Expr(child) = child {
            found = found || contains_aggregate(child);
        }
    });
    found
}

/// The numbers of rows, from the bound query: parameters are values there.
fn counts(select: &Select, block: &Block, info: &mut QueryInfo) {
    info.top = select.top.as_ref().and(block.counts.top);
    info.offset = select.page.as_ref().and(block.counts.offset);
    info.limit = select.page.as_ref().and(block.counts.limit);
}

fn order_items(select: &Select) -> &[OrderItem] {
    match select.order_by.as_ref().map(|order| &order.keys) {
        Some(OrderKeys::Items(items)) => items,
        Some(OrderKeys::Rank(_)) | None => &[],
    }
}

fn order_by(select: &Select) -> Vec<(String, SortDirection)> {
    let direction =
        |direction: Option<SortDirection>| direction.unwrap_or(SortDirection::Ascending);
    let items = order_items(select).iter();
    items.map(|item| (item.expr.to_string(), direction(item.direction))).collect()
}

/// Whether rows are ordered by something that no index has in order.
fn has_computed_order(select: &Select) -> bool {
    // What chooses between paths is one of them.
    let computes = |expr: &Expr| {
        let ExprKind::Call { name, .. } = expr.kind() else { return false };
        !["IIF", "CHOOSE"].iter().any(|own| name.text.eq_ignore_ascii_case(own))
    };
    let is_reference = |expr: &Expr| !computes(expr) && (refers(expr) || !is_aggregated(select));
    let is_computed = order_items(select).iter().any(|item| !is_reference(&item.expr));
    (select.group_by.is_empty() && is_computed) || orders_one_row(select)
}

/// Whether the one row that is ordered is an aggregate of all documents that always has a
/// value. Others are no path either, and refused.
fn orders_one_row(select: &Select) -> bool {
    let Some(from) = select.from.as_ref().filter(|from| from.joins.is_empty()) else {
        return false;
    };
    let Collection::Subquery(inner) = &from.first.collection else { return false };
    let Selection::Value(value) = &inner.selection else { return false };
    let ExprKind::Call { name, .. } = value.kind() else { return false };
    let kind = AggregateKind::find(&name.text);
    let is_defined = matches!(
        kind,
        Some(
            AggregateKind::Count
                | AggregateKind::CountIf
                | AggregateKind::MakeList
                | AggregateKind::MakeSet
        )
    );
    is_defined
        && !order_items(select).is_empty()
        && inner.group_by.is_empty()
        && !(from.first.iterates || iterates(inner))
}

/// Whether a query or a subquery of it has rows for the elements of an array: documents are
/// not alone then, and what is gathered is gathered for each of them.
fn iterates(select: &Select) -> bool {
    let mut found =
        select.from.iter().flat_map(syntax::From::sources).any(|source| source.iterates);
    select.for_each_child(&mut |child| found = found || has_elements(&child));
    found
}

fn has_elements(child: &Child<'_>) -> bool {
    match child {
        Child::Select(select) => iterates(select),
        Child::Expr(expr) => {
            let mut found = false;
            expr.kind().for_each_child(&mut |child| found = found || has_elements(&child));
            found
        }
    }
}

/// Whether the expression is a name and steps from there.
#[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
fn refers(expr: &Expr) -> bool {
    match expr.kind() {
        ExprKind::Identifier(_) => true,
        ExprKind::Member(base, _) | ExprKind::Index(base, _) => refers(base),
        _ => false,
    }
}

/// Equal rows are neighbours only where the row itself is the sort key, by the same
/// spelling. Without a source there is one row.
fn distinct_type(select: &Select) -> DistinctType {
    if !select.distinct || select.from.is_none() {
        return DistinctType::None;
    }
    match (&select.selection, order_items(select)) {
        (Selection::Value(value), [item]) if item.expr.to_string() == value.to_string() => {
            DistinctType::Ordered
        }
        _ => DistinctType::Unordered,
    }
}

/// `SELECT [VALUE] COUNT(1) FROM (SELECT DISTINCT …)`: the subquery, and the name
/// of the count.
fn distinct_count(select: &Select) -> Option<(&Select, String)> {
    let from = select.from.as_ref().filter(|from| from.joins.is_empty())?;
    let Collection::Subquery(inner) = &from.first.collection else { return None };
    let plain = select.filter.is_none()
        && select.group_by.is_empty()
        && select.order_by.is_none()
        && select.page.is_none()
        && !from.first.iterates;
    let (expr, alias) = match &select.selection {
        Selection::Value(expr) => (expr, String::new()),
        Selection::List(items) => match rewrite::named(items).as_slice() {
            [(name, expr)] => (*expr, name.clone()),
            _ => return None,
        },
        Selection::All(_) => return None,
    };
    let aggregate = rewrite::aggregate(expr)?;
    let counts = aggregate.kind == AggregateKind::Count && is_literal(aggregate.argument);
    (plain && counts && inner.distinct).then_some((&**inner, alias))
}

/// Whether a value is written out.
#[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
fn is_literal(expr: &Expr) -> bool {
    match expr.kind() {
        ExprKind::Null | ExprKind::Bool(_) | ExprKind::Number(_) | ExprKind::String(_) => true,
        ExprKind::Array(items) => items.iter().all(is_literal),
        ExprKind::Object(members) => members.iter().all(|(_, value)| is_literal(value)),
        _ => false,
    }
}

/// Whether a subquery in FROM puts rows together, which each partition does for its own.
fn gathers(select: &Select) -> bool {
    let mut sources = select.from.iter().flat_map(syntax::From::sources);
    sources.any(|source| match &source.collection {
        Collection::Subquery(inner) => {
            let merges = inner.distinct || !inner.group_by.is_empty() || is_aggregated(inner);
            (merges && inner.from.is_some()) || gathers(inner)
        }
        Collection::Path { .. } => false,
    })
}

impl Plan {
    /// The answer to a plan request.
    #[must_use]
    pub fn to_value(&self, definition: &PartitionKeyDefinition) -> Value {
        let range = |range: RingRange| {
            let mut object = Object::new();
            object.insert("min", range.min.to_string());
            object.insert("max", range.max.to_string());
            object.insert("isMinInclusive", true);
            object.insert("isMaxInclusive", range.max_inclusive);
            Value::from(object)
        };
        let ranges: Vec<Value> = self.ranges.on_ring(definition).into_iter().map(range).collect();
        let mut plan = Object::new();
        plan.insert("partitionedQueryExecutionInfoVersion", VERSION);
        plan.insert("queryInfo", self.info.to_value());
        plan.insert("queryRanges", ranges);
        plan.into()
    }
}

impl QueryInfo {
    /// All members are there, whether they say something or not: clients read
    /// some of them without looking first.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let count = |count: Option<u32>| count.map_or(Value::Null, Value::from);
        let texts = |texts: Vec<&str>| Value::from(texts);
        let types = self.aliases.iter().map(|(alias, kind)| {
            (alias.as_str(), kind.map_or(Value::Null, |kind| Value::from(kind.plan_name())))
        });
        let counted = self.distinct_count.as_ref().map_or(Value::Null, |alias| {
            Object::from_iter([("dCountAlias", alias.as_str())]).into()
        });
        let members = [
            ("distinctType", Value::from(self.distinct.as_str())),
            ("top", count(self.top)),
            ("offset", count(self.offset)),
            ("limit", count(self.limit)),
            ("orderBy", texts(self.order_by.iter().map(|(_, way)| direction(*way)).collect())),
            ("orderByExpressions", texts(self.order_by.iter().map(|(e, _)| e.as_str()).collect())),
            ("groupByExpressions", texts(self.group_by.iter().map(String::as_str).collect())),
            ("groupByAliases", texts(self.aliases.iter().map(|(a, _)| a.as_str()).collect())),
            ("aggregates", texts(self.aggregates.iter().map(|kind| kind.plan_name()).collect())),
            ("groupByAliasToAggregateType", types.collect::<Object>().into()),
            ("rewrittenQuery", Value::from(self.rewritten.as_str())),
            ("hasSelectValue", Value::from(self.has_select_value)),
            ("dCountInfo", counted),
            ("hasNonStreamingOrderBy", Value::from(self.non_streaming_order)),
        ];
        let extended = self.extended.then_some(("requiresExtendedQueryPlan", Value::from(true)));
        members.into_iter().chain(extended).collect::<Object>().into()
    }
}

impl DistinctType {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            DistinctType::None => "None",
            DistinctType::Ordered => "Ordered",
            DistinctType::Unordered => "Unordered",
        }
    }
}

fn direction(direction: SortDirection) -> &'static str {
    match direction {
        SortDirection::Ascending => "Ascending",
        SortDirection::Descending => "Descending",
    }
}
