//! Binding queries: sources, select list, order, counts.

use std::collections::BTreeSet;

use super::{Binder, GroupedBy, Path, PathStep};
use crate::bound::{
    Block, Constant, Counts, Expr, GroupKey, Grouping, Key, OrderKey, Origin, Slot, Source,
};
use crate::error::{Code, Refusal, Span};
use crate::syntax::{
    self, Collection, Count, Direction, ExprKind, OrderBy, OrderKeys, Select, Selection, Step,
};

impl<'q> Binder<'q> {
    /// Binds a query; the names it brings are out of scope afterwards.
    pub(super) fn block(&mut self, select: &'q Select) -> Block {
        let scope = self.names.len();
        let (outer_aggregates, outer_keys) = (self.aggregates.take(), self.group_keys.len());
        let sources = self.sources(select);
        let filter = select.filter.as_ref().map(|filter| self.expression(filter));
        let keys = self.group_keys(select);
        self.aggregates = Some(Vec::new());
        let output = self.output(select, &sources);
        let aggregates = self.aggregates.take().unwrap_or_default();
        self.group_keys.truncate(outer_keys);
        let grouped = !keys.is_empty() || !aggregates.is_empty();
        self.check_grouping(select, grouped, scope);
        let grouping = grouped.then_some(Grouping { keys, aggregates });
        let order = self.order(select);
        self.check_subquery(select);
        let counts = self.counts(select);
        self.names.truncate(scope);
        self.aggregates = outer_aggregates;
        Block { sources, filter, grouping, output, distinct: select.distinct, order, counts }
    }

    /// Binds what the query groups by, and lets the select list know.
    fn group_keys(&mut self, select: &'q Select) -> Vec<GroupKey> {
        let mut keys = Vec::with_capacity(select.group_by.len());
        let mut known = Vec::with_capacity(select.group_by.len());
        for expr in &select.group_by {
            let key = GroupKey { expr: self.expression(expr), slot: self.new_slot() };
            known.push(GroupedBy { expr, slot: key.slot, meaning: self.meaning(expr) });
            keys.push(key);
        }
        self.group_keys.extend(known);
        keys
    }

    fn sources(&mut self, select: &'q Select) -> Vec<Source> {
        let Some(from) = &select.from else {
            self.container = false;
            return Vec::new();
        };
        self.check_rank_sources(select, from);
        let mut names = BTreeSet::new();
        let mut sources = Vec::new();
        for source in from.sources() {
            self.check_rank_source(select, source);
            let bound = self.source(source);
            self.container = false;
            if let Some(name) = source.name() {
                if !names.insert(name) {
                    let message = format!("The alias '{name}' is used for two sources.");
                    self.error(Code::NOT_SUPPORTED, source.span, message);
                }
                self.names.push((name, bound.slot));
            }
            sources.push(bound);
        }
        sources
    }

    fn source(&mut self, source: &'q syntax::Source) -> Source {
        let (origin, steps, path) = match &source.collection {
            Collection::Subquery(select) => {
                self.subqueries += 1;
                let block = self.block(select);
                self.subqueries -= 1;
                let path = self.path_of_block(&block);
                (Origin::Block(Box::new(block)), Vec::new(), path)
            }
            Collection::Path { root, steps } => {
                let (origin, path) = match self.resolve(&root.text) {
                    Some(slot) => (Origin::Slot(slot), self.paths.get(&slot).cloned()),
                    None => {
                        if !self.container {
                            self.unresolved(&root.text, root.span);
                        }
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
        Source { origin, steps, iterates: source.iterates, slot }
    }

    fn output(&mut self, select: &'q Select, sources: &[Source]) -> Expr {
        match &select.selection {
            Selection::Value(expr) => self.expression(expr),
            Selection::List(items) => self.list(items),
            Selection::All(star) => self.star(select, sources, *star),
        }
    }

    fn star(&mut self, select: &Select, sources: &[Source], star: Span) -> Expr {
        if !select.group_by.is_empty() {
            let message = "'SELECT *' is not allowed with GROUP BY.";
            self.error(Code::STAR_WITH_GROUP_BY, star, message);
        }
        match sources {
            [only] => Expr::Slot(only.slot),
            [] => {
                let message = "'SELECT *' is not valid if FROM clause is omitted.";
                self.error(Code::STAR_WITHOUT_FROM, star, message);
                Expr::UNDEFINED
            }
            _ => {
                let message = "'SELECT *' is only valid with a single input set.";
                self.error(Code::STAR_WITH_JOIN, star, message);
                Expr::UNDEFINED
            }
        }
    }

    fn list(&mut self, items: &'q [syntax::Item]) -> Expr {
        let mut names = BTreeSet::new();
        let mut members = Vec::new();
        let mut unnamed = 0;
        for item in items {
            let value = self.expression(&item.expr);
            let name = item.name().map_or_else(
                || {
                    unnamed += 1;
                    format!("${unnamed}")
                },
                str::to_owned,
            );
            if !names.insert(name.clone()) {
                let message = format!("The name '{name}' is used for two values.");
                self.error(Code::DUPLICATE_NAME, item.expr.span(), message);
            }
            members.push((name, value));
        }
        Expr::Object(members)
    }

    fn order(&mut self, select: &'q Select) -> Vec<OrderKey> {
        let Some(order) = &select.order_by else { return Vec::new() };
        match &order.keys {
            OrderKeys::Rank(item) => {
                self.rank(order, item);
                Vec::new()
            }
            OrderKeys::Items(items) => {
                if !select.group_by.is_empty() {
                    self.unsupported("ORDER BY together with GROUP BY");
                }
                items.iter().map(|item| self.order_key(item)).collect()
            }
        }
    }

    fn order_key(&mut self, item: &'q syntax::OrderItem) -> OrderKey {
        let descending = item.direction == Some(Direction::Descending);
        let expr = self.expression(&item.expr);
        let path = self.path_of(&expr);
        if path.is_none() && !is_vector_distance(&item.expr) {
            self.refusal.get_or_insert(Refusal::OrderByExpression);
        }
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

    fn counts(&mut self, select: &'q Select) -> Counts {
        let mut counts = Counts::default();
        if let Some(top) = &select.top {
            let message = "The count value provided for a TOP clause must be an integer.";
            counts.top = Some(self.count(&top.count, Code::TOP_COUNT, message));
        }
        if let Some(page) = &select.page {
            let message = "The OFFSET count value exceeds the maximum allowed value.";
            counts.offset = Some(self.count(&page.offset, Code::OFFSET_COUNT, message));
            let message = "The LIMIT count value exceeds the maximum allowed value.";
            counts.limit = Some(self.count(&page.limit, Code::LIMIT_COUNT, message));
        }
        counts
    }

    fn count(&mut self, count: &'q Count, code: Code, message: &str) -> u32 {
        let name = match count {
            Count::Rows(rows) => return *rows,
            Count::Parameter(name) => name,
        };
        let Some(constant) = self.parameter(&name.text, name.span) else { return 0 };
        let rows = whole_number(&constant);
        if rows.is_none() {
            self.error(code, name.span, message);
        }
        rows.unwrap_or(0)
    }

    /// The slots of names that a query brought itself.
    pub(super) fn own_names(&self, scope: usize) -> impl Iterator<Item = (&'q str, Slot)> {
        self.names.iter().skip(scope).copied()
    }
}

fn whole_number(constant: &Constant) -> Option<u32> {
    let Constant::Number(number) = constant else { return None };
    u32::try_from(number.as_i64()?).ok()
}

fn key(step: &Step) -> Option<Key> {
    match step {
        Step::Name(property) => Some(Key::Name(property.name.clone())),
        Step::Index(index) => usize::try_from(*index).ok().map(Key::Index),
    }
}

fn is_vector_distance(expr: &syntax::Expr) -> bool {
    let ExprKind::Call { name, .. } = expr.kind() else { return false };
    name.text.eq_ignore_ascii_case("VectorDistance")
}
