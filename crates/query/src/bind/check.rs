//! What the service refuses although the grammar allows it.

use super::Binder;
use crate::error::{Code, Span};
use crate::execute::AggregateKind;
use crate::syntax::{
    Child, Collection, Expr, ExprKind, From, OrderKeys, Select, Selection, Source,
};

impl<'q> Binder<'q> {
    /// Order and counts make sense in the outermost query only.
    pub(super) fn check_subquery(&mut self, select: &Select) {
        if self.subqueries == 0 {
            return;
        }
        match select.order_by.as_ref().map(|order| (&order.keys, order.span)) {
            None => {}
            Some((OrderKeys::Rank(_), span)) => {
                let message = "The ORDER BY RANK clause is not supported in subqueries.";
                self.error(Code::RANK_IN_SUBQUERY, span, message);
            }
            Some((OrderKeys::Items(_), span)) => {
                let message = "'ORDER BY' is not supported in subqueries.";
                self.error(Code::ORDER_BY_IN_SUBQUERY, span, message);
            }
        }
        if let Some(top) = &select.top {
            let message = "'TOP' is not supported in subqueries.";
            self.error(Code::TOP_IN_SUBQUERY, top.span, message);
        }
        if let Some(page) = &select.page {
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

    /// Where rows are gathered into groups, the select list may use group keys
    /// and aggregates, and nothing of single rows.
    pub(super) fn check_grouping(&mut self, select: &'q Select, grouped: bool, scope: usize) {
        if !grouped {
            return;
        }
        match &select.selection {
            Selection::All(_) => {}
            Selection::Value(expr) => self.check_grouped(select, expr, scope, None),
            Selection::List(items) => {
                for item in items {
                    self.check_grouped(select, &item.expr, scope, None);
                }
            }
        }
    }

    /// `path` is the longest property reference that the expression begins.
    fn check_grouped(
        &mut self,
        select: &'q Select,
        expr: &'q Expr,
        scope: usize,
        path: Option<Span>,
    ) {
        if select.group_by.contains(expr) {
            return;
        }
        let kind = expr.kind();
        if let ExprKind::Member(base, _) | ExprKind::Index(base, _) = kind {
            self.check_grouped(select, base, scope, Some(path.unwrap_or(expr.span())));
        } else if let ExprKind::Identifier(name) = kind {
            if self.own_names(scope).any(|(own, _)| own == name) {
                self.not_grouped(path.unwrap_or(expr.span()));
            }
        } else if !is_aggregate(expr) {
            kind.for_each_child(&mut |child| {
                if let Child::Expr(child) = child {
                    self.check_grouped(select, child, scope, None);
                }
            });
        }
    }

    fn not_grouped(&mut self, reference: Span) {
        let message = format!(
            "Property reference '{}' is invalid in the select list because it is not \
             contained in either an aggregate function or the GROUP BY clause.",
            reference.slice(self.text)
        );
        self.error(Code::NOT_GROUPED, reference, message);
    }
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

/// Whether an aggregate or a subquery stands somewhere in the expression.
pub(super) fn has_aggregate_or_subquery(expr: &Expr) -> bool {
    let mut found = is_aggregate(expr);
    expr.kind().for_each_child(&mut |child| {
        found = found
            || match child {
                Child::Expr(child) => has_aggregate_or_subquery(child),
                Child::Select(_) => true,
            };
    });
    found
}
