//! Binding queries: sources, select list, order, counts.
//!
//! The clauses are bound in the order in which the service reports what is wrong with
//! them: FROM, WHERE, GROUP BY, ORDER BY, SELECT, then the counts of rows.

use std::collections::BTreeSet;

use super::check::{has_aggregate, is_path};
use super::{Binder, Clause, GroupedBy, Path, PathStep, Rows};
use crate::bound::{
    Aggregate, Block, Constant, Counts, Expr, GroupKey, GroupOrder, Grouping, Key, OrderKey,
    Origin, Source,
};
use crate::error::{Code, Refusal, Span};
use crate::syntax::{
    self, Collection, Count, ExprKind, OrderBy, OrderItem, OrderKeys, Select, Selection,
    SortDirection, Step,
};

/// A query that is bound, and how many rows it may give for one row around it.
pub(super) struct BoundBlock {
    pub(super) block: Block,
    pub(super) several: bool,
    /// There would be several if they were not put together.
    pub(super) gathers: bool,
}

/// A source that is bound, and whether it may give several rows for one, or would if
/// they were not put together.
struct BoundSource {
    source: Source,
    several: bool,
    gathers: bool,
}

/// The sources of a query, and the same of them together.
#[derive(Default)]
struct SourceRows {
    sources: Vec<Source>,
    many: bool,
    gathers: bool,
}

impl<'q> Binder<'q> {
    /// Binds a query; the names it brings are out of scope afterwards.
    pub(super) fn block(&mut self, select: &'q Select) -> BoundBlock {
        let scope = self.names.len();
        let (outer_clause, outer_rows) = (self.clause, self.rows);
        let (outer_aggregates, outer_keys) = (self.aggregates.take(), self.group_keys.len());
        let (told, sets) = (self.several.len(), self.sets.len());
        self.check_counts_together(select);
        self.clause = Clause::From;
        let SourceRows { sources, many, gathers } = self.sources(select);
        let within = self.subqueries > 0 && !gathers && (scope > 0 || outer_clause != Clause::From);
        let grouped = outer_rows.grouped;
        self.rows = Rows { many, within, grouped, ..Rows::default() };
        self.clause = Clause::Filter;
        let filter = select.filter.as_ref().map(|filter| self.expression(filter));
        let keys = self.group_keys(select);
        let grouped = !keys.is_empty() || is_aggregated(select);
        (self.rows.grouped, self.rows.gathered) = (self.rows.grouped || !keys.is_empty(), grouped);
        // One row is one group.
        let several_in_groups = many || self.rows.multiplied || (gathers && keys.is_empty());
        let ordered = self.order(select, &keys);
        self.clause = Clause::Select;
        self.aggregates = Some(Vec::new());
        let output = self.output(select, &sources);
        let aggregates = self.aggregates.take().unwrap_or_default();
        self.group_keys.truncate(outer_keys);
        let several = many || self.rows.multiplied;
        // Nobody looks at groups where names are wrong already.
        let checks = grouped && self.errors.is_empty();
        if checks && several_in_groups {
            self.check_grouping(select);
        } else if checks && !keys.is_empty() {
            self.tell_several(told);
        }
        if !keys.is_empty() {
            self.several.truncate(told);
        }
        let one_row = (checks || outer_keys > 0) && grouped && keys.is_empty();
        let order = if grouped { Vec::new() } else { ordered.keys };
        let grouping = grouped.then(|| grouping(keys, aggregates, ordered.groups));
        let counts = self.counts(select, !grouped || checks || (within && !many));
        self.names.truncate(scope);
        self.sets.truncate(sets);
        self.aggregates = outer_aggregates;
        (self.clause, self.rows) = (outer_clause, outer_rows);
        let distinct = select.distinct;
        let block = Block { sources, filter, grouping, output, distinct, order, counts };
        BoundBlock { block, several: several && !one_row, gathers: several && one_row }
    }

    /// Binds what the query groups by, and lets the clauses behind it know.
    fn group_keys(&mut self, select: &'q Select) -> Vec<GroupKey> {
        self.clause = Clause::GroupBy;
        let mut keys = Vec::with_capacity(select.group_by.len());
        let mut known = Vec::with_capacity(select.group_by.len());
        for expr in &select.group_by {
            let key = GroupKey { expr: self.expression(expr), slot: self.new_slot() };
            if self.check_group_key(expr) {
                known.push(GroupedBy { expr, slot: key.slot, meaning: self.meaning(expr) });
            }
            keys.push(key);
        }
        self.group_keys.extend(known);
        keys
    }

    fn sources(&mut self, select: &'q Select) -> SourceRows {
        let mut rows = SourceRows::default();
        let Some(from) = &select.from else {
            self.container = false;
            return rows;
        };
        self.check_rank_sources(select, from);
        for source in from.sources() {
            self.check_rank_source(select, source);
            let unresolved = self.is_unresolved(source);
            let BoundSource { source: bound, several, gathers } = self.source(source);
            self.container = false;
            if !unresolved {
                self.check_source_name(source);
            }
            if let Some(name) = source.name() {
                self.names.push((name, bound.slot));
            }
            if !renames(&bound) {
                self.sets.push(bound.slot);
            }
            rows.sources.push(bound);
            rows.many |= several;
            rows.gathers |= gathers;
        }
        rows
    }

    /// Whether a source is a name alone that means nothing.
    fn is_unresolved(&self, source: &syntax::Source) -> bool {
        let Collection::Path { root, steps } = &source.collection else { return false };
        let alone = steps.is_empty() && !source.iterates;
        alone && !self.container && self.resolve(&root.text).is_none()
    }

    fn source(&mut self, source: &'q syntax::Source) -> BoundSource {
        let (mut several, mut gathers) = (source.iterates, false);
        let (origin, steps, path) = match &source.collection {
            Collection::Subquery(select) => {
                // Without rows of its own, what comes first is there for each document.
                several |= self.container && select.from.is_none() && !is_aggregated(select);
                self.subqueries += 1;
                let inner = self.block(select);
                self.subqueries -= 1;
                several |= inner.several;
                gathers = inner.gathers;
                let path = self.path_of_block(&inner.block);
                (Origin::Block(Box::new(inner.block)), Vec::new(), path)
            }
            Collection::Path { root, steps } => {
                let (origin, path) = match self.resolve(&root.text) {
                    Some(slot) => (Origin::Slot(slot), self.paths.get(&slot).cloned()),
                    None => {
                        if !self.container {
                            self.unresolved(&root.text, root.span);
                        }
                        several |= self.container;
                        (Origin::Container, Some(Path::default()))
                    }
                };
                (origin, steps.iter().filter_map(key).collect(), path)
            }
        };
        let slot = self.new_slot();
        let each = source.iterates.then_some(PathStep::Each);
        let inside = |path: Path| {
            steps.iter().map(PathStep::from).chain(each).fold(path, |path, step| path.to(step))
        };
        if let Some(path) = path.map(inside) {
            self.paths.insert(slot, path);
        }
        let source = Source { origin, steps, iterates: source.iterates, slot };
        BoundSource { source, several, gathers }
    }

    fn output(&mut self, select: &'q Select, sources: &[Source]) -> Expr {
        match &select.selection {
            Selection::Value(expr) => self.expression(expr),
            Selection::List(items) => self.list(items),
            Selection::All(star) => self.star(select, sources, *star),
        }
    }

    fn star(&mut self, select: &'q Select, sources: &[Source], star: Span) -> Expr {
        // Of groups there is no whole, which is looked at later.
        let grouped = !select.group_by.is_empty() || is_aggregated(select);
        let of_subquery = |source: &Source| matches!(source.origin, Origin::Block(_));
        match (sources, self.sets.as_slice()) {
            ([only], _) if !(only.iterates && of_subquery(only)) => return Expr::Slot(only.slot),
            ([], [only]) if self.subqueries > 0 => return Expr::Slot(*only),
            ([], []) if self.subqueries > 0 => {}
            ([], _) if self.subqueries == 0 => {
                let message = "Syntax error, 'SELECT *' is not valid if FROM clause is omitted.";
                self.error(Code::STAR_WITHOUT_FROM, star, message);
            }
            // A subquery that names a source around it again goes on from there.
            ([first, ..], _) if self.subqueries > 0 && (grouped || renames(first)) => {}
            _ if grouped => {}
            _ => {
                let message = "'SELECT *' is only valid with a single input set.";
                self.error(Code::STAR_WITH_JOIN, star, message);
            }
        }
        // A subquery may be asked for nothing but its rows.
        let names = select.from.iter().flat_map(syntax::From::sources).zip(sources);
        let members = names.filter_map(|(source, bound)| {
            Some((source.name()?.to_owned(), Expr::Slot(bound.slot)))
        });
        Expr::Object(members.collect())
    }

    pub(super) fn star_of_groups(&mut self, select: &Select, star: Span) {
        if select.group_by.is_empty() {
            let message = "'SELECT *' is not allowed with aggregate functions.";
            self.error(Code::STAR_WITH_AGGREGATE, star, message);
        } else {
            let message = "'SELECT *' is not allowed with GROUP BY.";
            self.error(Code::STAR_WITH_GROUP_BY, star, message);
        }
    }

    fn list(&mut self, items: &'q [syntax::SelectItem]) -> Expr {
        let mut names = BTreeSet::new();
        let mut members: Vec<(String, Expr)> = Vec::new();
        let mut unnamed = 0;
        for item in items {
            let value = self.expression(&item.expr);
            let name = match item.named() {
                Some((name, span)) => {
                    if names.contains(name) {
                        self.repeated_member(name, span);
                    }
                    name.to_owned()
                }
                None => {
                    unnamed += 1;
                    format!("${unnamed}")
                }
            };
            match members.iter_mut().find(|(own, _)| *own == name) {
                Some((_, earlier)) if names.contains(&name) => *earlier = value,
                _ => members.push((name.clone(), value)),
            }
            names.insert(name);
        }
        Expr::Object(members)
    }

    pub(super) fn repeated_member(&mut self, name: &str, span: Span) {
        let message =
            format!("Object creation error, property name '{name}' specified more than once.");
        self.error(Code::DUPLICATE_NAME, span, message);
    }

    fn order(&mut self, select: &'q Select, keys: &[GroupKey]) -> Ordered {
        let Some(order) = &select.order_by else { return Ordered::default() };
        self.clause = Clause::OrderBy;
        self.check_order_in_subquery(order);
        let items = match &order.keys {
            OrderKeys::Items(items) => items,
            OrderKeys::Rank(item) => {
                self.rank(order, item);
                return Ordered::default();
            }
        };
        // One row needs no order, and groups are not ordered by aggregates: those that
        // stand here are not computed.
        self.aggregates = Some(Vec::new());
        let mut ordered = Ordered::default();
        for item in items {
            let expr = self.expression(&item.expr);
            let descending = item.direction == Some(SortDirection::Descending);
            if !select.group_by.is_empty() {
                if !is_path(&item.expr) || self.is_made(&expr, keys) {
                    self.refusal.get_or_insert(Refusal::OrderByExpression);
                }
                ordered.groups.push(GroupOrder { expr, descending });
            } else if !is_aggregated(select) {
                ordered.keys.push(self.order_key(select, expr, item, items.len()));
            }
        }
        self.aggregates = None;
        ordered
    }

    /// Whether groups are ordered by a key that stands for no place in documents.
    fn is_made(&self, expr: &Expr, keys: &[GroupKey]) -> bool {
        let Expr::Slot(slot) = expr else { return false };
        let key = keys.iter().find(|key| key.slot == *slot);
        key.is_some_and(|key| self.path_of(&key.expr).is_none())
    }

    fn order_key(
        &mut self,
        select: &Select,
        expr: Expr,
        item: &'q OrderItem,
        keys: usize,
    ) -> OrderKey {
        let path = self.path_of(&expr);
        let computed = select.from.is_none() || (keys == 1 && is_distance(&item.expr));
        if path.is_none() && !computed {
            self.refusal.get_or_insert(Refusal::OrderByExpression);
        }
        let over_elements =
            |path: &Path| path.steps().iter().any(|step| matches!(step, PathStep::Each));
        let joins = select.from.as_ref().is_some_and(|from| !from.joins.is_empty());
        let refused = path.as_ref().is_some_and(over_elements) || (joins && keys > 1);
        if refused {
            self.run_refusal.get_or_insert(Refusal::OrderByElements);
        } else if path.is_none() && select.from.is_some() {
            self.run_refusal.get_or_insert(Refusal::OrderByExpression);
        }
        let descending = item.direction == Some(SortDirection::Descending);
        OrderKey { expr, path: path.unwrap_or_default(), descending }
    }

    fn rank(&mut self, order: &OrderBy, item: &syntax::OrderItem) {
        if !super::check::is_score(&item.expr) {
            let message = "The ORDER BY RANK clause must be followed by a VectorDistance and/or \
                           a FullTextScore function call.";
            self.error(Code::RANK_FUNCTION, order.span, message);
        }
        self.unsupported("ORDER BY RANK");
    }

    /// `with_top` if the count of TOP is looked at, too.
    fn counts(&mut self, select: &'q Select, with_top: bool) -> Counts {
        let mut counts = Counts::default();
        if let Some(top) = select.top.as_ref().filter(|_| with_top) {
            self.check_top_in_subquery(top);
            let message = "The count value provided for a TOP clause must be an integer.";
            counts.top = Some(self.count(&top.count, Code::TOP_COUNT, message));
        }
        if let Some(page) = &select.page {
            self.check_page_in_subquery(page);
            let message = "The OFFSET count value exceeds the maximum allowed value.";
            counts.offset = Some(self.count(&page.offset, Code::OFFSET_COUNT, message));
            let message = "The LIMIT count value exceeds the maximum allowed value.";
            counts.limit = Some(self.count(&page.limit, Code::LIMIT_COUNT, message));
        }
        counts
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
    fn count(&mut self, count: &'q Count, code: Code, message: &str) -> u32 {
        let (rows, span) = match count {
            Count::Number(number, span) => (Count::rows(*number), *span),
            Count::Parameter(name) => match self.parameter(&name.text) {
                Constant::Number(number) => (Count::rows(number), name.span),
                _ => (None, name.span),
            },
        };
        if rows.is_none() {
            self.error(code, span, message);
        }
        rows.unwrap_or(0)
    }
}

/// What a query orders by: rows, or groups of them.
#[derive(Default)]
struct Ordered {
    keys: Vec<OrderKey>,
    groups: Vec<GroupOrder>,
}

/// Whether a source only names another again.
fn renames(source: &Source) -> bool {
    matches!(source.origin, Origin::Slot(_)) && source.steps.is_empty() && !source.iterates
}

/// Groups come in the order that the query asks for, then in that of their keys.
fn grouping(keys: Vec<GroupKey>, aggregates: Vec<Aggregate>, asked: Vec<GroupOrder>) -> Grouping {
    let (is_ordered, mut order) = (!asked.is_empty(), asked);
    for GroupKey { slot, .. } in &keys {
        if !order.iter().any(|own| matches!(&own.expr, Expr::Slot(own) if own == slot)) {
            order.push(GroupOrder { expr: Expr::Slot(*slot), descending: false });
        }
    }
    Grouping { keys, aggregates, order, is_ordered }
}

fn key(step: &Step) -> Option<Key> {
    match step {
        Step::Name(property) => Some(Key::Name(property.name.clone())),
        Step::Index(index) => usize::try_from(*index).ok().map(Key::Index),
    }
}

/// Whether an aggregate of this query stands in its select list or order.
pub(crate) fn is_aggregated(select: &Select) -> bool {
    let selected = match &select.selection {
        Selection::All(_) => false,
        Selection::Value(expr) => has_aggregate(expr),
        Selection::List(items) => items.iter().any(|item| has_aggregate(&item.expr)),
    };
    let ordered = match select.order_by.as_ref().map(|order| &order.keys) {
        Some(OrderKeys::Items(items)) => items.iter().any(|item| has_aggregate(&item.expr)),
        Some(OrderKeys::Rank(_)) | None => false,
    };
    selected || ordered
}

/// Whether rows can be ordered by the call although no index has its value.
fn is_distance(expr: &syntax::Expr) -> bool {
    let ExprKind::Call { name, .. } = expr.kind() else { return false };
    ["VectorDistance", "ST_DISTANCE"].iter().any(|own| name.text.eq_ignore_ascii_case(own))
}
