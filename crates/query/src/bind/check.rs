//! What the service refuses although the grammar allows it.

use super::{Binder, Clause, Several};
use crate::error::{Code, Span};
use crate::execute::AggregateKind;
use crate::functions::{self, Lookup};
use crate::syntax::{
    Child, Collection, Expr, ExprKind, From, OrderBy, OrderKeys, Page, Select, Selection, Source,
    Step, Top,
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
    /// subquery may, and a source that is only named again has the same rows.
    pub(super) fn check_source_name(&mut self, source: &Source) {
        let given = match (&source.alias, &source.collection) {
            (Some(_), Collection::Subquery(_)) if !source.iterates => None,
            // A name for itself is no second one.
            (Some(alias), Collection::Path { root, steps })
                if steps.is_empty() && !source.iterates && root.text == alias.text =>
            {
                None
            }
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

    /// A group key must say something about rows.
    pub(super) fn check_group_key(&mut self, key: &Expr) -> bool {
        let refers = self.refers(key);
        if !refers {
            self.unreferring_key(key.span());
        }
        refers
    }

    /// Tells of scalar subqueries of several rows in an aggregate, which may be about rows
    /// otherwise.
    fn several_rows_in(&mut self, call: Span) {
        let call = call.range();
        let inside = |own: &&Several| {
            let range = own.subquery.range();
            !own.gathers && call.start <= range.start && range.end <= call.end
        };
        let spans: Vec<Span> = self.several.iter().filter(inside).map(|own| own.span).collect();
        spans.into_iter().for_each(|span| self.several_rows(span));
    }

    /// Tells of scalar subqueries of several rows where there are no groups to look at.
    pub(super) fn tell_several(&mut self, from: usize) {
        let later = self.several.split_off(from);
        for Several { span, .. } in later.into_iter().filter(|own| !own.gathers) {
            self.several_rows(span);
        }
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
            ExprKind::Index(_, index) if !is_index(index) => return false,
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

    /// Where rows are gathered into groups, the select list and the order may use group
    /// keys and aggregates, and nothing of single rows.
    pub(super) fn check_grouping(&mut self, select: &'q Select) {
        let own = self.names.iter().map(|(name, _)| *name).collect();
        let clause = Clause::OrderBy;
        let mut check = GroupCheck { select, own, clause, hidden: Vec::new(), depth: 0 };
        if let Some(OrderKeys::Items(items)) = select.order_by.as_ref().map(|order| &order.keys) {
            for item in items {
                // One row is in any order of paths.
                if !select.group_by.is_empty() || !items.iter().all(|item| is_path(&item.expr)) {
                    // Groups are not ordered by elements, even if those are their keys.
                    let mut expr = &item.expr;
                    while let ExprKind::Index(base, _) = expr.kind() {
                        expr = base;
                    }
                    check.expression(self, expr, None);
                }
            }
        }
        check.clause = Clause::Select;
        check.selection(self, &select.selection);
    }
}

/// Looks for what is about single rows where there are groups.
struct GroupCheck<'q> {
    select: &'q Select,
    /// The names of the rows, and of those around them.
    own: Vec<&'q str>,
    clause: Clause,
    /// Names that mean something else in the subqueries around the current place.
    hidden: Vec<&'q str>,
    /// Subqueries around the current place; their aggregates are about rows of their own.
    depth: usize,
}

impl<'q> GroupCheck<'q> {
    fn selection(&mut self, binder: &mut Binder<'q>, selection: &'q Selection) {
        match selection {
            Selection::All(star) if self.depth == 0 => binder.star_of_groups(self.select, *star),
            Selection::All(_) => {}
            Selection::Value(expr) => self.expression(binder, expr, None),
            Selection::List(items) => {
                items.iter().for_each(|item| self.expression(binder, &item.expr, None));
            }
        }
    }

    /// `path` is the longest property reference that the expression begins; trailing
    /// indexes are no part of it.
    #[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
    fn expression(&mut self, binder: &mut Binder<'q>, expr: &'q Expr, path: Option<Span>) {
        if self.clause == Clause::Select && self.select.group_by.contains(expr) {
            return;
        }
        match expr.kind() {
            ExprKind::Member(_, property) if !binder.plans && property.name == "_rid" => {}
            ExprKind::Member(base, _) => {
                if !self.is_grouped_path(expr) {
                    self.expression(binder, base, Some(path.unwrap_or(expr.span())));
                }
            }
            ExprKind::Index(base, _) => {
                if !self.is_grouped_path(expr) {
                    self.expression(binder, base, path);
                }
            }
            ExprKind::Identifier(name) => {
                if !self.is_grouped_path(expr) && self.is_own(name) {
                    self.not_grouped(binder, path.unwrap_or(expr.span()));
                }
            }
            ExprKind::Subquery(_, select) => self.subquery(binder, select),
            ExprKind::Call { .. } if self.depth == 0 && is_aggregate(expr) => {
                binder.several_rows_in(expr.span());
            }
            kind => kind.for_each_child(&mut |child| {
                if let Child::Expr(child) = child {
                    self.expression(binder, child, None);
                }
            }),
        }
    }

    fn is_own(&self, name: &str) -> bool {
        self.own.contains(&name) && !self.hidden.contains(&name)
    }

    fn is_grouped_path(&self, expr: &Expr) -> bool {
        is_path(expr) && self.select.group_by.contains(expr)
    }

    fn subquery(&mut self, binder: &mut Binder<'q>, select: &'q Select) {
        let (hidden, clause) = (self.hidden.len(), self.clause);
        self.clause = Clause::Select;
        self.depth += 1;
        self.sources(binder, select);
        select.filter.iter().for_each(|filter| self.expression(binder, filter, None));
        for key in &select.group_by {
            let errors = binder.errors.len();
            self.expression(binder, key, None);
            if binder.errors.len() > errors {
                binder.unreferring_key(key.span());
            }
        }
        self.selection(binder, &select.selection);
        self.hidden.truncate(hidden);
        self.depth -= 1;
        self.clause = clause;
        let range = select.span.range();
        let found = binder.several.iter().find(|own| own.subquery.range() == range);
        let found = found.filter(|own| !own.gathers || !binder.errors.is_empty());
        if let Some(span) = found.map(|own| own.span) {
            binder.several_rows(span);
        }
    }

    fn sources(&mut self, binder: &mut Binder<'q>, select: &'q Select) {
        for source in select.from.iter().flat_map(From::sources) {
            match &source.collection {
                Collection::Subquery(inner) => self.subquery(binder, inner),
                Collection::Path { root, steps } => {
                    let grouped = self.select.group_by.iter().any(|key| begins(key, root, steps));
                    if self.is_own(&root.text) && !grouped {
                        self.not_grouped(binder, source.collection_span);
                    }
                }
            }
            self.hidden.extend(source.name());
        }
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
fn begins(key: &Expr, root: &crate::syntax::Name, steps: &[Step]) -> bool {
    let Some(names) = path_steps(key) else { return false };
    let [first, rest @ ..] = names.as_slice() else { return false };
    let same = |(own, step): (&PathPart<'_>, &Step)| match (own, step) {
        (PathPart::Name(own), Step::Name(property)) => *own == property.name,
        (PathPart::Index(own), Step::Index(index)) => own.as_i64() == Some(i64::from(*index)),
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

/// Whether the expression is a name and steps from there.
#[expect(clippy::wildcard_enum_match_arm, reason = "only these forms matter here")]
pub(super) fn is_path(expr: &Expr) -> bool {
    match expr.kind() {
        ExprKind::Identifier(_) => true,
        ExprKind::Member(base, _) | ExprKind::Index(base, _) => is_path(base),
        _ => false,
    }
}

/// Whether there is a function of that name with so many arguments.
fn is_callable(name: &str, arguments: usize) -> bool {
    match functions::find(name) {
        Lookup::Found(function) => function.arity.allows(arguments),
        Lookup::Later(arity) => arity.allows(arguments),
        Lookup::Unknown => AggregateKind::find(name).is_some() && arguments == 1,
    }
}

fn is_index(index: &Expr) -> bool {
    matches!(index.kind(), ExprKind::Number(_) | ExprKind::String(_) | ExprKind::Parameter(_))
}

fn is_aggregate(expr: &Expr) -> bool {
    let ExprKind::Call { name, .. } = expr.kind() else { return false };
    AggregateKind::find(&name.text).is_some()
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
