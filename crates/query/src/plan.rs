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
pub use ranges::{KeyBound, KeyRange, KeyRanges, RingRange};

use model::json::{Object, Value};
use model::partition_key::{KeyKind, KeyPath, PartitionKeyDefinition};

use crate::bind::Program;
use crate::bound::Block;
use crate::context::Context;
use crate::error::{QueryError, Refusal};
pub use crate::execute::AggregateKind;
use crate::requirement;
use crate::syntax::{Child, Collection, Direction, Expr, OrderKeys, Select, Selection};

/// Rows to skip and rows to give, as a rewritten text says it.
type Page = (u64, u64);

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
    pub order_by: Vec<(String, Direction)>,
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

/// Plans a bound query.
pub(crate) fn plan(
    select: &Select,
    program: &Program,
    shape: &KeyShape,
    features: &Features,
) -> Result<Plan, QueryError> {
    let ranges = key_ranges(program, shape);
    let info = match distinct_count(select) {
        Some((inner, alias)) => counted(select, inner, alias),
        None => query_info(select, &program.block, ranges.is_one_key(shape.paths.len()))?,
    };
    let missing = features.missing(&info);
    if !missing.is_empty() {
        return Err(Refusal::UnsupportedFeatures { features: missing }.into());
    }
    Ok(Plan { info, ranges })
}

/// The keys that a query can be about. Without a source it is about none.
pub(crate) fn key_ranges(program: &Program, shape: &KeyShape) -> KeyRanges {
    if program.block.sources.is_empty() {
        return KeyRanges::Nothing;
    }
    let filter = requirement::filter_of(program);
    let found = ranges::ranges(&filter.requirement, shape.kind, &shape.paths);
    let misled = matches!(found, KeyRanges::Some(_)) && is_hidden(shape, &program.context);
    if misled { KeyRanges::Everything } else { found }
}

/// Whether a computed property has the name of a property that leads to the key:
/// what a filter says about it says nothing about the key.
fn is_hidden(shape: &KeyShape, context: &Context) -> bool {
    let first: Vec<&String> = shape.paths.iter().filter_map(|path| path.first()).collect();
    context.computed.iter().any(|property| first.contains(&&property.name))
}

fn query_info(select: &Select, block: &Block, one_key: bool) -> Result<QueryInfo, QueryError> {
    let mut info = QueryInfo {
        distinct: distinct_type(select),
        group_by: select.group_by.iter().map(Expr::to_string).collect(),
        has_select_value: matches!(select.selection, Selection::Value(_)),
        ..QueryInfo::default()
    };
    let aggregated = block.grouping.is_some();
    if aggregated {
        aggregates(select, &mut info)?;
    }
    counts(select, block, &mut info);
    let merges = aggregated || select.distinct;
    // Where rows are put together first, no partition can know which to leave out;
    // otherwise each gives what could be skipped and what is wanted, and one that
    // is alone skips and stops by itself.
    let page = match (info.offset, info.limit) {
        (Some(offset), Some(limit)) if one_key && !merges => {
            (info.offset, info.limit) = (None, None);
            Some((u64::from(offset), u64::from(limit)))
        }
        (Some(offset), Some(limit)) if !merges => Some((0, u64::from(offset) + u64::from(limit))),
        _ => None,
    };
    if !aggregated {
        info.order_by = order_by(select);
    }
    info.rewritten = rewritten(select, &info, aggregated, page);
    Ok(info)
}

fn rewritten(select: &Select, info: &QueryInfo, aggregated: bool, page: Option<Page>) -> String {
    if !select.group_by.is_empty() {
        return rewrite::grouped(select);
    }
    if aggregated {
        return rewrite::aggregated(select);
    }
    if !info.order_by.is_empty() {
        return rewrite::ordered(select, info, page);
    }
    let distinct_counts = select.distinct && (info.top.is_some() || info.offset.is_some());
    if distinct_counts || info.offset.is_some() {
        return rewrite::plain(select, page);
    }
    String::new()
}

/// Partial results can be added up only where the aggregate stands alone.
fn aggregates(select: &Select, info: &mut QueryInfo) -> Result<(), QueryError> {
    let composed = |expr: &Expr| rewrite::aggregate(expr).is_none() && contains_aggregate(expr);
    match &select.selection {
        Selection::Value(expr) if composed(expr) => return Err(Refusal::ComposedAggregate.into()),
        Selection::Value(expr) => info.aggregates.extend(rewrite::aggregate(expr).map(|(k, _)| k)),
        Selection::List(items) => {
            if items.iter().any(|item| composed(&item.expr)) {
                return Err(Refusal::ComposedAggregate.into());
            }
            let kind = |expr: &Expr| rewrite::aggregate(expr).map(|(kind, _)| kind);
            let named = rewrite::named(items).into_iter();
            info.aliases.extend(named.map(|(name, expr)| (name, kind(expr))));
        }
        Selection::All(_) => {}
    }
    Ok(())
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
    if select.from.is_none() {
        return;
    }
    info.top = select.top.as_ref().and(block.counts.top);
    info.offset = select.page.as_ref().and(block.counts.offset);
    info.limit = select.page.as_ref().and(block.counts.limit);
}

fn order_by(select: &Select) -> Vec<(String, Direction)> {
    let Some(order) = &select.order_by else { return Vec::new() };
    let OrderKeys::Items(items) = &order.keys else { return Vec::new() };
    let direction = |direction: Option<Direction>| direction.unwrap_or(Direction::Ascending);
    items.iter().map(|item| (item.expr.to_string(), direction(item.direction))).collect()
}

/// Equal rows are neighbours only where the row itself is the sort key.
fn distinct_type(select: &Select) -> DistinctType {
    if !select.distinct {
        return DistinctType::None;
    }
    let keys = select.order_by.as_ref().map(|order| &order.keys);
    match (&select.selection, keys) {
        (Selection::Value(value), Some(OrderKeys::Items(items))) if matches!(items.as_slice(), [item] if item.expr == *value) => {
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
        && select.top.is_none()
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
    let counts = matches!(rewrite::aggregate(expr), Some((AggregateKind::Count, _)));
    (plain && counts && inner.distinct && inner.from.is_some()).then_some((&**inner, alias))
}

fn counted(select: &Select, inner: &Select, alias: String) -> QueryInfo {
    QueryInfo {
        distinct: distinct_type(inner),
        rewritten: inner.to_string(),
        has_select_value: matches!(select.selection, Selection::Value(_)),
        distinct_count: Some(alias),
        ..QueryInfo::default()
    }
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
            ("hasNonStreamingOrderBy", Value::from(false)),
        ];
        Object::from_iter(members).into()
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

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Ascending => "Ascending",
        Direction::Descending => "Descending",
    }
}
