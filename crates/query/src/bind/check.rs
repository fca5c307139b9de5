//! What the service refuses although the grammar allows it.

use super::block::{gives, key};
use super::place::Place;
use super::{Binder, Clause, Rows};
use crate::bound::{self, Constant, Key};
use crate::error::{Code, Span};
use crate::execute::AggregateKind;
use crate::functions::{self, Lookup};
use crate::syntax::{
    Child, Collection, Expr, ExprKind, From, Name, OrderBy, OrderKeys, Page, Select, Selection,
    Source, Step, SubqueryKind, Top,
};

impl<'q> Binder<'q> {
    pub(super) fn check_counts_together(&mut self, select: &Select) {
        if select.top.is_some() && select.page.is_some() {
            let message = "A TOP cannot be used in the same query or subquery as an OFFSET.";
            self.error(Code::TOP_WITH_OFFSET, select.span, message);
        }
    }

    /// Order and counts make sense in the outermost query only.
    pub(super) fn check_order_in_subquery(&mut self, order: &OrderBy) {
        if self.subqueries == 0 {
            return;
        }
        match &order.keys {
            OrderKeys::Rank(_) => {
                let message = "The ORDER BY RANK clause is not supported in subqueries.";
                self.error(Code::RANK_IN_SUBQUERY, order.span, message);
            }
            OrderKeys::Items(_) => {
                let message = "'ORDER BY' is not supported in subqueries.";
                self.error(Code::ORDER_BY_IN_SUBQUERY, order.span, message);
            }
        }
    }

    pub(super) fn check_top_in_subquery(&mut self, top: &Top) {
        if self.subqueries > 0 {
            let message = "'TOP' is not supported in subqueries.";
            self.error(Code::TOP_IN_SUBQUERY, top.span, message);
        }
    }

    pub(super) fn check_page_in_subquery(&mut self, page: &Page) {
        if self.subqueries > 0 {
            let message = "'OFFSET LIMIT' clause is not supported in subqueries.";
            self.error(Code::OFFSET_IN_SUBQUERY, page.span, message);
        }
    }

    pub(super) fn check_rank_sources(&mut self, select: &Select, from: &From) {
        if is_ranked(select) && !from.joins.is_empty() {
            let message = "The JOIN operator is not allowed with the ORDER BY RANK clause.";
            self.error(Code::RANK_WITH_JOIN, from.span, message);
        }
    }

    pub(super) fn check_rank_source(&mut self, select: &Select, source: &Source) {
        if !is_ranked(select) {
            return;
        }
        if source.iterates {
            let message = "The FROM clause with the IN operator is not allowed with the ORDER BY RANK clause.";
            self.error(Code::RANK_WITH_IN, source.span, message);
        }
        if matches!(source.collection, Collection::Subquery(_)) {
            let message =
                "Subqueries in the FROM clause are not allowed with the ORDER BY RANK clause.";
            self.error(Code::RANK_WITH_SUBQUERY, source.collection_span, message);
        }
    }

    /// A source may not take a name that means something already. The name of a
    /// subquery that has rows of its own may, and a source that is only named again has
    /// the same rows.
    pub(super) fn check_source_name(&mut self, source: &Source, own: &bound::Source, rows: Rows) {
        let given = match (&source.alias, &source.collection) {
            (Some(alias), Collection::Subquery(_))
                if !source.iterates && (rows > Rows::Around || self.is_given(own, &alias.text)) =>
            {
                None
            }
            // A name for itself is no second one.
            (Some(_), Collection::Path { .. }) if source.is_itself() => None,
            (Some(alias), _) => Some((alias.text.as_str(), alias.span)),
            (None, Collection::Path { steps, .. }) => match steps.last() {
                Some(Step::Name(property)) => Some((property.name.as_str(), property.span)),
                Some(Step::Index(_)) | None => None,
            },
            (None, Collection::Subquery(_)) => None,
        };
        let Some((name, span)) = given else { return };
        if self.resolve(name).is_some() {
            let message = format!(
                "The input set name or alias '{name}' is specified more than once in the FROM \
                 clause."
            );
            self.error(Code::DUPLICATE_SOURCE, span, message);
        }
    }

    /// Whether a source gives what the name means already.
    fn is_given(&self, source: &bound::Source, name: &str) -> bool {
        self.resolve(name).is_some_and(|slot| gives(source, slot))
    }

    /// A group key must say something about rows.
    pub(super) fn check_group_key(&mut self, key: &Expr) -> bool {
        let refers = self.refers(key);
        if !refers {
            self.unreferring_key(key.span());
        }
        refers
    }

    fn unreferring_key(&mut self, key: Span) {
        let message = "Each GROUP BY expression must contain at least one property reference.";
        self.error(Code::UNREFERRING_GROUP_KEY, key, message);
    }

    /// Whether a name in the expression stands for something, outside of subqueries,
    /// definitions and what is wrong by itself.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
    fn refers(&self, expr: &Expr) -> bool {
        match expr.kind() {
            ExprKind::Identifier(name) => return self.resolve(name).is_some(),
            ExprKind::Subquery(..) | ExprKind::Let { .. } => return false,
            ExprKind::Call { name, arguments } if !is_callable(&name.text, arguments.len()) => {
                return false;
            }
            ExprKind::Index(_, index) if !self.is_index(index) => return false,
            _ => {}
        }
        let mut refers = false;
        expr.kind().for_each_child(&mut |child| {
            if let Child::Expr(child) = child {
                refers = refers || self.refers(child);
            }
        });
        refers
    }

    /// Whether an expression can be an index.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
    fn is_index(&self, index: &Expr) -> bool {
        match index.kind() {
            ExprKind::Number(_) | ExprKind::String(_) => true,
            ExprKind::Parameter(name) => {
                let given = self.parameters.get(name).map(Constant::from);
                matches!(given, Some(Constant::Number(_) | Constant::String(_)))
            }
            _ => false,
        }
    }

    /// Where rows are gathered into groups, the select list and the order may use group
    /// keys and aggregates, and nothing of single rows.
    ///
    /// Takes how many groups there are, and tells how many rows come of them. `keyed` if
    /// there is one for each value of the keys, `deferred` if one around it looks at what
    /// aggregates are about.
    pub(super) fn check_grouping(
        &mut self,
        select: &'q Select,
        rows: Rows,
        (keyed, deferred): (bool, bool),
    ) -> Rows {
        let keys: &[Expr] = if keyed { &select.group_by } else { &[] };
        let mut check = GroupCheck::new(keys, rows);
        check.places = keys.iter().filter_map(|key| self.place_of_path(key)).collect();
        let order = match select.order_by.as_ref().map(|order| &order.keys) {
            Some(OrderKeys::Items(items)) => items.as_slice(),
            Some(OrderKeys::Rank(_)) | None => &[],
        };
        if keyed && !deferred {
            // Aggregates are about rows, which are looked at first.
            order.iter().for_each(|item| check.arguments(self, &item.expr));
            select.selection.exprs().for_each(|expr| check.arguments(self, expr));
        }
        check.sets = keys.len() + self.gathering;
        check.own = self.names.iter().map(|(name, _)| *name).collect();
        check.clause = Clause::OrderBy;
        // One row is in any order of paths.
        if keyed || !order.iter().all(|item| is_path(&item.expr)) {
            for item in order {
                // Groups are not ordered by elements, even if those are their keys.
                let mut expr = &item.expr;
                while let ExprKind::Index(base, _) = expr.kind() {
                    expr = base;
                }
                check.expression(self, expr, None);
            }
        }
        check.clause = Clause::Select;
        if let Selection::All(star) = select.selection {
            self.star_of_groups(keyed, star);
        }
        select.selection.exprs().for_each(|expr| check.expression(self, expr, None));
        if check.rows.are_several() { check.rows } else { rows }
    }
}

/// Looks for what is about single rows where there are groups.
struct GroupCheck<'q> {
    keys: &'q [Expr],
    /// What those of them stand for that are paths.
    places: Vec<Place>,
    /// The names of the rows, and of those around them.
    own: Vec<&'q str>,
    clause: Clause,
    /// Names that mean something else in the subqueries around the current place.
    hidden: Vec<&'q str>,
    /// Subqueries around the current place; their aggregates are about rows of their own.
    depth: usize,
    /// How many rows the innermost query has.
    rows: Rows,
    /// An aggregate of the innermost query gathers them.
    gathers: bool,
    /// The parts of groups, and sets beside them.
    sets: usize,
    /// A subquery around the current place has groups of its own: the rows around those are
    /// out of sight.
    regrouped: bool,
}

impl<'q> GroupCheck<'q> {
    fn new(keys: &'q [Expr], rows: Rows) -> GroupCheck<'q> {
        let (own, hidden, clause) = (Vec::new(), Vec::new(), Clause::Select);
        let (places, gathers, regrouped) = (Vec::new(), false, false);
        let sets = 0;
        GroupCheck { keys, places, own, clause, hidden, depth: 0, rows, gathers, sets, regrouped }
    }

    /// Looks at what aggregates are about.
    fn arguments(&mut self, binder: &mut Binder<'q>, expr: &'q Expr) {
        let gathers = is_aggregate(expr);
        expr.kind().for_each_child(&mut |child| match child {
            Child::Expr(child) if gathers => self.expression(binder, child, None),
            Child::Expr(child) => self.arguments(binder, child),
            Child::Select(_) => {}
        });
    }

    /// `path` is the longest property reference that the expression begins; trailing
    /// indexes are no part of it.
    fn expression(&mut self, binder: &mut Binder<'q>, expr: &'q Expr, path: Option<Span>) {
        if self.is_key(binder, expr) {
            return;
        }
        self.parts(binder, expr, path);
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
    fn parts(&mut self, binder: &mut Binder<'q>, expr: &'q Expr, path: Option<Span>) {
        match expr.kind() {
            ExprKind::Member(_, property) if !binder.plans && property.name == "_rid" => {}
            ExprKind::Member(base, _) => {
                let (errors, whole) = (binder.errors.len(), path.unwrap_or(expr.span()));
                self.expression(binder, base, Some(whole));
                // Whatever is wrong in what it is a member of is told of the whole.
                if binder.errors.len() > errors && !is_path(base) && !self.regrouped {
                    binder.errors.truncate(errors);
                    self.not_grouped(binder, whole);
                }
            }
            ExprKind::Index(base, _) => self.expression(binder, base, path),
            ExprKind::Identifier(name) if self.is_own(name) => {
                if self.regrouped {
                    binder.unresolved(name, expr.span());
                } else {
                    self.not_grouped(binder, path.unwrap_or(expr.span()));
                }
            }
            ExprKind::Conditional(parts)
                if self.chooses_key(binder, [&parts[0], &parts[1], &parts[2]]) => {}
            ExprKind::Call { name, arguments }
                if name.text.eq_ignore_ascii_case("IIF")
                    && matches!(arguments.as_slice(), [condition, yes, no]
                    if self.chooses_key(binder, [condition, yes, no])) => {}
            ExprKind::Subquery(SubqueryKind::Scalar, select)
                if select.is_bare_star() && self.keys.iter().any(is_name) => {}
            ExprKind::Subquery(kind, select) => {
                let rows = self.subquery(binder, select);
                self.use_rows(binder, *kind, rows, expr.span());
            }
            ExprKind::Call { .. } if self.depth == 0 && is_aggregate(expr) => {}
            kind => {
                kind.for_each_child(&mut |child| {
                    if let Child::Expr(child) = child {
                        self.expression(binder, child, None);
                    }
                });
                self.gathers |= is_aggregate(expr) && self.rows.are_several();
            }
        }
    }

    /// Whether a conditional is the key that it chooses: its condition is a constant, or a
    /// subquery with rows of its own, which the planner takes for untrue here, or the choice
    /// makes no difference.
    fn chooses_key(&self, binder: &Binder<'q>, [condition, yes, no]: [&Expr; 3]) -> bool {
        let is_true = *condition.kind() == ExprKind::Bool(true);
        let is_never_true = !is_true && (is_literal(condition) || has_own_rows(condition));
        let chosen = if is_never_true { no } else { yes };
        let is_same = is_name(yes) && yes == no;
        (is_true || is_never_true || is_same) && self.is_key(binder, chosen)
    }

    /// As [`Binder::use_rows`].
    fn use_rows(&mut self, binder: &mut Binder<'q>, kind: SubqueryKind, rows: Rows, span: Span) {
        let rows = if kind == SubqueryKind::Scalar { rows } else { rows.min(Rows::One) };
        if rows.are_several() && self.rows != Rows::Around && !self.regrouped {
            binder.several_rows(span);
        }
        self.sets += usize::from(rows > Rows::Around);
        self.rows = self.rows.joined(rows);
    }

    fn is_own(&self, name: &str) -> bool {
        self.own.contains(&name) && !self.hidden.contains(&name)
    }

    /// Orders are by paths only, and rows that are out of sight have no keys.
    fn is_key(&self, binder: &Binder<'q>, expr: &Expr) -> bool {
        !self.regrouped
            && (self.clause == Clause::Select || is_path(expr))
            && (self.keys.contains(expr) || self.is_place_of_key(binder, expr))
    }

    /// Whether it is a key by another name.
    fn is_place_of_key(&self, binder: &Binder<'q>, expr: &Expr) -> bool {
        !binder.places.is_empty()
            && root(expr).is_some_and(|name| self.is_own(name))
            && binder.place_of_path(expr).is_some_and(|place| self.places.contains(&place))
    }

    /// Whether the path of a source begins with a key.
    fn begins_with_key(&self, binder: &Binder<'q>, root: &Name, steps: &[Step]) -> bool {
        let steps_of: Vec<Key> = steps.iter().map(key).collect();
        let row = binder.resolve(&root.text);
        let is_within = |place: &Place| row.is_some_and(|row| place.begins(row, &steps_of));
        self.keys.iter().any(|key| begins(key, root, steps)) || self.places.iter().any(is_within)
    }

    /// Looks at a subquery; how many rows it gives.
    fn subquery(&mut self, binder: &mut Binder<'q>, select: &'q Select) -> Rows {
        let (hidden, clause, rows) = (self.hidden.len(), self.clause, self.rows);
        let (gathers, sets, regrouped) = (self.gathers, self.sets, self.regrouped);
        (self.clause, self.gathers) = (Clause::Select, false);
        self.depth += 1;
        let own_rows = self.sources(binder, select);
        self.rows = own_rows;
        select.filter.iter().for_each(|filter| self.expression(binder, filter, None));
        for key in &select.group_by {
            let errors = binder.errors.len();
            // A key is not known by being one of the groups around it.
            self.parts(binder, key, None);
            if binder.errors.len() > errors {
                binder.unreferring_key(key.span());
            }
        }
        let keyed = !select.group_by.is_empty() && self.rows.are_several();
        self.regrouped |= keyed;
        match select.selection {
            Selection::All(star)
                if select.from.is_none() && select.order_by.is_none() && sets > 1 =>
            {
                binder.star_of_several(star);
            }
            Selection::All(_) | Selection::Value(_) | Selection::List(_) => {}
        }
        select.selection.exprs().for_each(|expr| self.expression(binder, expr, None));
        if keyed && !regrouped && binder.errors.is_empty() {
            self.regrouped = false;
            let own = std::mem::take(&mut self.own);
            select.selection.exprs().for_each(|expr| self.arguments(binder, expr));
            self.own = own;
        }
        let given = match self.rows {
            rows if self.gathers && !keyed && binder.errors.is_empty() => {
                rows.gathered(Rows::Around)
            }
            rows if rows.are_several() => rows,
            _ => own_rows,
        };
        self.hidden.truncate(hidden);
        self.depth -= 1;
        (self.clause, self.rows) = (clause, rows);
        (self.gathers, self.sets, self.regrouped) = (gathers, sets, regrouped);
        given
    }

    /// Looks at sources; how many rows they have together.
    fn sources(&mut self, binder: &mut Binder<'q>, select: &'q Select) -> Rows {
        let mut all = Rows::Around;
        for source in select.from.iter().flat_map(From::sources) {
            match &source.collection {
                Collection::Subquery(inner) => all = all.joined(self.subquery(binder, inner)),
                Collection::Path { root, steps } if self.is_own(&root.text) => {
                    if self.regrouped {
                        binder.unresolved(&root.text, root.span);
                    } else if !self.begins_with_key(binder, root, steps) {
                        self.not_grouped(binder, source.collection_span);
                    }
                }
                Collection::Path { .. } => {}
            }
            if source.iterates {
                all = Rows::Many;
            }
            self.sets += usize::from(!source.is_itself());
            self.hidden.extend(source.name());
        }
        all
    }

    fn not_grouped(&self, binder: &mut Binder<'q>, reference: Span) {
        let (code, place) = match self.clause {
            Clause::OrderBy => (Code::NOT_ORDERED, "ORDER BY clause"),
            Clause::From | Clause::Filter | Clause::GroupBy | Clause::Select => {
                (Code::NOT_GROUPED, "select list")
            }
        };
        let message = format!(
            "Property reference '{}' is invalid in the {place} because it is not contained in \
             either an aggregate function or the GROUP BY clause.",
            reference.slice(binder.text)
        );
        binder.error(code, reference, message);
    }
}

/// Whether the path of a source begins with the path that a group key is. What is in a
/// row that is grouped by as a whole is not known by that.
fn begins(key: &Expr, root: &Name, steps: &[Step]) -> bool {
    let Some(names) = path_steps(key) else { return false };
    let [first, rest @ ..] = names.as_slice() else { return false };
    let same = |(own, step): (&PathPart<'_>, &Step)| match (own, step) {
        (PathPart::Name(own), Step::Name(property)) => *own == property.name,
        (PathPart::Index(own), Step::Index(index)) => own == index,
        _ => false,
    };
    matches!(first, PathPart::Name(name) if *name == root.text)
        && !rest.is_empty()
        && rest.len() <= steps.len()
        && rest.iter().zip(steps).all(same)
}

enum PathPart<'e> {
    Name(&'e str),
    Index(crate::number::Numeric),
}

/// The steps of a path, its root first.
#[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
fn path_steps(expr: &Expr) -> Option<Vec<PathPart<'_>>> {
    let mut parts = Vec::new();
    let mut at = expr;
    loop {
        match at.kind() {
            ExprKind::Identifier(name) => {
                parts.push(PathPart::Name(name));
                parts.reverse();
                return Some(parts);
            }
            ExprKind::Member(base, property) => {
                parts.push(PathPart::Name(&property.name));
                at = base;
            }
            ExprKind::Index(base, index) => {
                let ExprKind::Number(number) = index.kind() else { return None };
                parts.push(PathPart::Index(*number));
                at = base;
            }
            _ => return None,
        }
    }
}

/// The name that a path begins with.
#[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
fn root(expr: &Expr) -> Option<&str> {
    match expr.kind() {
        ExprKind::Identifier(name) => Some(name),
        ExprKind::Member(base, _) | ExprKind::Index(base, _) => root(base),
        _ => None,
    }
}

fn is_name(expr: &Expr) -> bool {
    matches!(expr.kind(), ExprKind::Identifier(_))
}

/// Whether the expression is a name and steps from there.
#[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
pub(super) fn is_path(expr: &Expr) -> bool {
    match expr.kind() {
        ExprKind::Identifier(_) => true,
        ExprKind::Member(base, _) | ExprKind::Index(base, _) => is_path(base),
        _ => false,
    }
}

/// Whether there is a function of that name that takes this number of arguments.
fn is_callable(name: &str, arguments: usize) -> bool {
    match functions::find(name) {
        Lookup::Found(function) => function.arity.allows(arguments),
        Lookup::Later(arity) => arity.allows(arguments),
        Lookup::Unknown => AggregateKind::find(name).is_some() && arguments == 1,
    }
}

fn is_aggregate(expr: &Expr) -> bool {
    let ExprKind::Call { name, .. } = expr.kind() else { return false };
    AggregateKind::find(&name.text).is_some()
}

fn is_literal(expr: &Expr) -> bool {
    matches!(
        expr.kind(),
        ExprKind::Null | ExprKind::Bool(_) | ExprKind::Number(_) | ExprKind::String(_)
    )
}

/// Whether it is a subquery with a row for each element of an array.
fn has_own_rows(expr: &Expr) -> bool {
    let ExprKind::Subquery(_, select) = expr.kind() else { return false };
    let from = select.from.iter();
    from.flat_map(|from| [&from.first].into_iter().chain(&from.joins)).any(|from| from.iterates)
}

fn is_ranked(select: &Select) -> bool {
    matches!(select.order_by.as_ref().map(|order| &order.keys), Some(OrderKeys::Rank(_)))
}

/// Whether a call can rank: a score, or a fusion of two or more.
pub(super) fn is_score(expr: &Expr) -> bool {
    let ExprKind::Call { name, arguments } = expr.kind() else { return false };
    let is = |own: &str| name.text.eq_ignore_ascii_case(own);
    let scores = || arguments.iter().filter(|argument| is_score(argument)).count();
    is("FullTextScore") || is("VectorDistance") || (is("RRF") && scores() >= 2)
}

/// Whether an aggregate stands somewhere in the expression, subqueries apart.
pub(super) fn has_aggregate(expr: &Expr) -> bool {
    let mut found = is_aggregate(expr);
    expr.kind().for_each_child(&mut |child| {
        if let Child::Expr(child) = child {
            found = found || has_aggregate(child);
        }
    });
    found
}
