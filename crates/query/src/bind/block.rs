//! Binding queries: sources, select list, order, counts.
//!
//! The clauses are bound in the order in which the service reports what is wrong with
//! them: FROM, WHERE, GROUP BY, ORDER BY, SELECT, then the counts of rows.

use std::collections::BTreeSet;

use super::check::{has_aggregate, is_path};
use super::{Binder, Clause, GroupedBy, Path, PathStep, Rows};
use crate::bound::{
    Aggregate, Block, Constant, Counts, Expr, GroupKey, GroupOrder, Grouping, Key, OrderKey,
    Origin, Slot, Source,
};
use crate::error::{Code, Refusal, Span};
use crate::number::Numeric;
use crate::syntax::{
    self, Collection, Count, ExprKind, OrderBy, OrderItem, OrderKeys, Select, Selection,
    SortDirection, Step,
};

/// A query that is bound, and how many rows it may give for one row around it.
pub(super) struct BoundBlock {
    pub(super) block: Block,
    pub(super) rows: Rows,
    /// It has a set that counts beside those of the query around it.
    pub(super) brings_set: bool,
}

/// The sources of a query.
struct Sources {
    bound: Vec<Source>,
    /// How many rows they have together.
    rows: Rows,
    /// One of them is a subquery with a set that counts outside of it.
    bring_set: bool,
}

/// One source.
struct BoundSource {
    source: Source,
    rows: Rows,
    brings_set: bool,
}

/// What is known of a query around the current place.
struct Outer {
    names: usize,
    sets: usize,
    keys: usize,
    clause: Clause,
    rows: Rows,
    gathering: usize,
    aggregating: usize,
    defers: bool,
    aggregates: Option<Vec<Aggregate>>,
}

/// How many sets there are around a query, and how many its sources bring.
#[derive(Clone, Copy)]
struct Sets {
    around: usize,
    own: usize,
}

impl<'q> Binder<'q> {
    /// Binds a query; the names it brings are out of scope afterwards. `start` are the rows
    /// that it has without a source.
    pub(super) fn block(&mut self, select: &'q Select, start: Rows) -> BoundBlock {
        let mut outer = self.enter();
        self.check_counts_together(select);
        self.clause = Clause::From;
        let Sources { bound: sources, rows: own_rows, bring_set } = self.sources(select, start);
        let sets = Sets { around: outer.sets, own: self.sets.len() - outer.sets };
        self.rows = own_rows;
        self.clause = Clause::Filter;
        let filter = select.filter.as_ref().map(|filter| self.expression(filter));
        let keys = self.group_keys(select);
        // One row is one group.
        let keyed = !keys.is_empty() && self.rows.are_several();
        self.defers |= keyed;
        let ordered = self.order(select, &keys);
        self.clause = Clause::Select;
        self.aggregates = Some(Vec::new());
        let output = self.output(select, &sources, sets);
        let aggregates = self.aggregates.take().unwrap_or_default();
        let gathers = keyed || self.gathering > 0;
        // Groups are not checked where names are wrong already.
        let checks = gathers && self.errors.is_empty();
        let rows = match self.rows {
            rows if checks => {
                let rows = if keyed { rows } else { rows.gathered(start) };
                self.check_grouping(select, rows, (keyed, outer.defers))
            }
            rows if rows.are_several() => rows,
            _ => own_rows,
        };
        let grouped = !keys.is_empty() || is_aggregated(select);
        let order = if grouped { Vec::new() } else { ordered.keys };
        let grouping = grouped.then(|| grouping(keys, aggregates, ordered.groups));
        let counts = self.counts(select, !gathers || checks);
        let brings_set = bring_set
            || leaves_set(select, &sources, sets)
            || self.sets.iter().skip(outer.sets).any(Option::is_none);
        if gathers && !checks {
            self.keep_open(&mut outer, sets);
        }
        // One row of all documents is a set beside what is made of it.
        let beside = (start, own_rows) == (Rows::Documents, Rows::One) && self.subqueries > 0;
        self.leave(outer);
        if beside {
            self.sets.push(None);
        }
        let distinct = select.distinct;
        let block = Block { sources, filter, grouping, output, distinct, order, counts };
        BoundBlock { block, rows, brings_set }
    }

    fn enter(&mut self) -> Outer {
        Outer {
            names: self.names.len(),
            sets: self.sets.len(),
            keys: self.group_keys.len(),
            clause: self.clause,
            rows: self.rows,
            gathering: std::mem::take(&mut self.gathering),
            aggregating: std::mem::take(&mut self.aggregating),
            defers: self.defers,
            aggregates: self.aggregates.take(),
        }
    }

    /// Where groups were not checked, all that a query names but the last stays in scope.
    fn keep_open(&mut self, outer: &mut Outer, sets: Sets) {
        if self.sets.len() <= outer.sets + sets.own {
            self.names.pop();
        }
        self.sets.pop();
        (outer.names, outer.sets) =
            (outer.names.max(self.names.len()), outer.sets.max(self.sets.len()));
    }

    fn leave(&mut self, outer: Outer) {
        self.names.truncate(outer.names);
        self.sets.truncate(outer.sets);
        self.group_keys.truncate(outer.keys);
        (self.clause, self.rows) = (outer.clause, outer.rows);
        (self.gathering, self.aggregating) = (outer.gathering, outer.aggregating);
        (self.defers, self.aggregates) = (outer.defers, outer.aggregates);
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

    fn sources(&mut self, select: &'q Select, start: Rows) -> Sources {
        let (mut bound, mut bring_set) = (Vec::new(), false);
        let Some(from) = &select.from else {
            self.container = false;
            return Sources { bound, rows: start, bring_set };
        };
        let (mut all, around) = (Rows::Around, self.beside);
        self.check_rank_sources(select, from);
        for source in from.sources() {
            self.check_rank_source(select, source);
            let unresolved = self.is_unresolved(source);
            // What comes later has the rows of those before it around it.
            let start = if bound.is_empty() { start } else { Rows::Around };
            self.beside = around.joined(all);
            let BoundSource { source: own, rows, brings_set } = self.source(source, start);
            bring_set |= brings_set;
            self.container = false;
            if !unresolved {
                self.check_source_name(source, &own, rows);
            } else if source.name().is_some_and(|name| self.resolve(name).is_some()) {
                // Nothing by a name that means something already is that.
                continue;
            }
            if let Some(name) = source.name() {
                self.names.push((name, own.slot));
            }
            // Another name goes on from the row around it, unless it stands beside rows.
            if !renames(&own) || (self.beside > Rows::Around && !source.is_itself()) {
                self.sets.push(Some(own.slot));
            }
            all = all.joined(rows);
            if around.joined(all) == Rows::Around
                && let Some(place) = self.place_of_source(&own)
            {
                self.places.insert(own.slot, place);
            }
            bound.push(own);
        }
        self.beside = around;
        Sources { bound, rows: all, bring_set }
    }

    /// Whether a source is a name alone that means nothing.
    fn is_unresolved(&self, source: &syntax::Source) -> bool {
        let Collection::Path { root, steps } = &source.collection else { return false };
        let alone = steps.is_empty() && !source.iterates;
        alone && !self.container && self.resolve(&root.text).is_none()
    }

    fn source(&mut self, source: &'q syntax::Source, start: Rows) -> BoundSource {
        let mut rows = if source.iterates { Rows::Many } else { Rows::Around };
        let mut brings_set = false;
        let (origin, steps, path) = match &source.collection {
            Collection::Subquery(select) => {
                self.subqueries += 1;
                let inner = self.block(select, start);
                self.subqueries -= 1;
                rows = rows.max(inner.rows);
                brings_set = inner.brings_set || is_ordered(select) || is_counted(select);
                let path = self.path_of_block(&inner.block);
                (Origin::Block(Box::new(inner.block)), Vec::new(), path)
            }
            Collection::Path { root, steps } => {
                let (origin, path) = match self.resolve(&root.text) {
                    Some(slot) => (Origin::Slot(slot), self.paths.get(&slot).cloned()),
                    None => {
                        if self.container {
                            rows = rows.max(Rows::Documents);
                        } else {
                            self.unresolved(&root.text, root.span);
                        }
                        (Origin::Container, Some(Path::default()))
                    }
                };
                (origin, steps.iter().map(key).collect(), path)
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
        BoundSource { source, rows, brings_set }
    }

    fn output(&mut self, select: &'q Select, sources: &[Source], sets: Sets) -> Expr {
        match &select.selection {
            Selection::Value(expr) => self.expression(expr),
            Selection::List(items) => self.list(items),
            Selection::All(star) => self.star(select, (sources, sets), *star),
        }
    }

    fn star(&mut self, select: &'q Select, (sources, sets): (&[Source], Sets), star: Span) -> Expr {
        // Of groups there is no whole, which is looked at later.
        let grouped = !select.group_by.is_empty() || is_aggregated(select);
        let of_subquery = |source: &Source| matches!(source.origin, Origin::Block(_));
        if let Some(again) = named_again(select, sources) {
            return Expr::Slot(again);
        }
        match (sources, self.sets.get(..sets.around).unwrap_or_default()) {
            ([only], _) if sets.own <= 1 && !(only.iterates && of_subquery(only)) => {
                return Expr::Slot(only.slot);
            }
            ([], [Some(only)]) if self.subqueries > 0 => return Expr::Slot(*only),
            ([], [] | [None]) if self.subqueries > 0 => {}
            ([], _) if self.subqueries == 0 => {
                let message = "Syntax error, 'SELECT *' is not valid if FROM clause is omitted.";
                self.error(Code::STAR_WITHOUT_FROM, star, message);
            }
            // A subquery that names a source around it again goes on from there.
            ([first, ..], _) if self.subqueries > 0 && (grouped || renames(first)) => {}
            // Where there are groups around it, their parts are the sets.
            _ if grouped => {}
            ([], _) if self.defers || select.order_by.is_some() => {}
            // Rows that a subquery in its filter brings are its own set.
            ([], _) if self.sets.len() > sets.around => {}
            _ => self.star_of_several(star),
        }
        // A subquery may be asked for nothing but its rows.
        let names = select.from.iter().flat_map(syntax::From::sources).zip(sources);
        let members = names.filter_map(|(source, bound)| {
            Some((source.name()?.to_owned(), Expr::Slot(bound.slot)))
        });
        Expr::Object(members.collect())
    }

    pub(super) fn star_of_several(&mut self, star: Span) {
        let message = "'SELECT *' is only valid with a single input set.";
        self.error(Code::STAR_WITH_JOIN, star, message);
    }

    pub(super) fn star_of_groups(&mut self, keyed: bool, star: Span) {
        if keyed {
            let message = "'SELECT *' is not allowed with GROUP BY.";
            self.error(Code::STAR_WITH_GROUP_BY, star, message);
        } else {
            let message = "'SELECT *' is not allowed with aggregate functions.";
            self.error(Code::STAR_WITH_AGGREGATE, star, message);
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

/// Whether a query keeps a set of its own where it is a subquery: one that is in an order, or
/// of which only some rows are counted, is not put in place of the set around it. Another
/// name for that one is still the same in any order.
fn leaves_set(select: &Select, sources: &[Source], sets: Sets) -> bool {
    let named = |source: &syntax::Source| !source.is_itself();
    let own = sets.own > 0;
    let other =
        || !sources.is_empty() && select.from.iter().flat_map(syntax::From::sources).any(named);
    (own && is_ordered(select)) || (is_counted(select) && (own || other()))
}

fn is_ordered(select: &Select) -> bool {
    select.order_by.is_some()
}

/// Whether a query gives a part of its rows only.
fn is_counted(select: &Select) -> bool {
    select.top.is_some() || select.page.is_some()
}

/// A source that names the one before it again, by the name that it has: the others are
/// not looked at then.
fn named_again(select: &Select, sources: &[Source]) -> Option<Slot> {
    let names = select.from.iter().flat_map(syntax::From::sources).map(syntax::Source::name);
    let named: Vec<(&str, &Source)> =
        names.zip(sources).filter_map(|(name, source)| Some((name?, source))).collect();
    let again = named.windows(2).find(|pair| match pair {
        [(before, first), (name, source)] => before == name && gives(source, first.slot),
        _ => false,
    });
    again.and_then(|pair| pair.last()).map(|(_, source)| source.slot)
}

/// Whether a source gives the rows of another.
pub(super) fn gives(source: &Source, slot: Slot) -> bool {
    match &source.origin {
        Origin::Slot(own) => renames(source) && *own == slot,
        Origin::Block(block) => matches!(block.output, Expr::Slot(own) if own == slot),
        Origin::Container => false,
    }
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

/// The element of an array that an index is about. No array is so long that it has one
/// where there is no place for it.
pub(super) fn place(index: Numeric) -> usize {
    index.as_i64().and_then(|index| usize::try_from(index).ok()).unwrap_or(usize::MAX)
}

pub(super) fn key(step: &Step) -> Key {
    match step {
        Step::Name(property) => Key::Name(property.name.clone()),
        Step::Index(index) => Key::Index(place(*index)),
    }
}

/// Whether an aggregate of this query stands in its select list or order.
pub(crate) fn is_aggregated(select: &Select) -> bool {
    let selected = select.selection.exprs().any(has_aggregate);
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
