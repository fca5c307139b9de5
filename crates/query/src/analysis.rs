//! What can be said of a query before any document is read.
//!
//! Two walks over the bound tree. One goes forward: which values can an expression
//! have ([`Analysis::values`])? The other goes backward: what must hold of a document so
//! that an expression has one of these values ([`Analysis::demand`])? Queries that
//! cannot give a row and the partition keys that a query can be about follow from what
//! the second finds.
//!
//! Both may say too much and never too little: a value that is left out is one that the
//! evaluator does not give, and what is demanded holds for every document that gives a
//! row. Where arithmetic rounds or letters have several cases, nothing is left out.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what is not named says nothing, and that is true of every form"
)]

mod backward;
mod constraint;
mod domain;
mod forward;
mod inverse;
mod plain;
mod signature;

pub(crate) use constraint::{Constraint, Root, ValuePath, member_domain};
pub(crate) use domain::{Domain, Span, Values};

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::bound::{Aggregate, Block, Constant, Expr, Key, Origin, Slot, Source};
use crate::execute::AggregateKind;

/// Nodes that one analysis may look at; what lies beyond is taken for anything. A query
/// of the greatest length has fewer, unless its parts are looked at again and again.
const STEPS_MAX: usize = 100_000;

/// Levels of expressions and of documents that are looked into: filters that people and programs write
/// have fewer, and each takes some kilobytes of stack.
const DEPTH_MAX: usize = 40;

/// What a slot stands for.
#[derive(Clone, Debug)]
enum Meaning<'p> {
    Path(ValuePath),
    Expr(&'p Expr),
    Values(Domain),
}

/// What is known of the slots of a query.
pub(crate) struct Analysis<'p> {
    meanings: RefCell<BTreeMap<Slot, Meaning<'p>>>,
    steps: Cell<usize>,
    /// Levels of expressions around the current one.
    depth: Cell<usize>,
}

/// One level deeper, for as long as it is there.
struct Deeper<'a>(&'a Cell<usize>);

impl Drop for Deeper<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

/// What a query demands of a document that makes a row.
pub(crate) struct Demands {
    /// Of a document that is counted or that gives a row.
    pub(crate) rows: Constraint,
    /// Whether the query as a whole gives nothing that its rows decide.
    pub(crate) is_empty: bool,
}

/// What a whole query demands.
pub(crate) fn demands(block: &Block) -> Demands {
    if let Some(rows) = plain::equalities(block) {
        return Demands { rows, is_empty: false };
    }
    let (meanings, steps) = (RefCell::default(), Cell::new(STEPS_MAX));
    let analysis = Analysis { meanings, steps, depth: Cell::new(0) };
    let rows = analysis.of_block(block).reduced();
    let empty = rows == Constraint::Never || analysis.aggregates_nothing(block, &rows);
    Demands { rows, is_empty: empty }
}

impl<'p> Analysis<'p> {
    /// Pays for looking at a node; false if there was enough of that.
    fn step(&self) -> bool {
        let left = self.steps.get();
        self.steps.set(left.saturating_sub(1));
        left > 0
    }

    /// Goes one level deeper; `None` where that is deep or long enough.
    fn deeper(&self) -> Option<Deeper<'_>> {
        let depth = self.depth.get();
        if depth >= DEPTH_MAX || !self.step() {
            return None;
        }
        self.depth.set(depth + 1);
        Some(Deeper(&self.depth))
    }

    fn mean(&self, slot: Slot, meaning: Meaning<'p>) {
        self.meanings.borrow_mut().insert(slot, meaning);
    }

    fn meaning(&self, slot: Slot) -> Option<Meaning<'p>> {
        self.meanings.borrow().get(&slot).cloned()
    }

    /// What must hold so that the block gives a row.
    fn of_block(&self, block: &'p Block) -> Constraint {
        let mut parts: Vec<Constraint> =
            block.sources.iter().map(|source| self.of_source(source)).collect();
        if let Some(filter) = &block.filter {
            parts.push(self.demand(filter, &Domain::TRUE));
        }
        let Some(grouping) = &block.grouping else {
            parts.push(self.demand(&block.output, &Domain::defined()));
            return Constraint::all(parts);
        };
        for key in &grouping.keys {
            self.mean(key.slot, Meaning::Expr(&key.expr));
        }
        let rows = Constraint::all(parts.clone()).reduced();
        for aggregate in &grouping.aggregates {
            self.mean(aggregate.slot, Meaning::Values(self.results(aggregate, &rows)));
        }
        if grouping.keys.is_empty() {
            let nothing = !self.values(&block.output).is_defined_somewhere();
            return if nothing { Constraint::Never } else { rows };
        }
        parts.push(self.demand(&block.output, &Domain::defined()));
        Constraint::all(parts)
    }

    /// Whether the expression may have one of some values in one of the rows.
    fn is_in_rows(&self, expr: &'p Expr, wanted: &Domain, rows: &Constraint) -> bool {
        let demand = self.demand(expr, wanted);
        Constraint::all(vec![rows.clone(), demand]).reduced() != Constraint::Never
    }

    /// Whether there is one group, and no row can change what it gives.
    fn aggregates_nothing(&self, block: &'p Block, rows: &Constraint) -> bool {
        let Some(grouping) = &block.grouping else { return false };
        let ignores = |aggregate: &'p Aggregate| match aggregate.kind {
            AggregateKind::CountIf => !self.is_in_rows(&aggregate.argument, &Domain::TRUE, rows),
            AggregateKind::Count => !self.is_in_rows(&aggregate.argument, &Domain::defined(), rows),
            AggregateKind::Sum
            | AggregateKind::Average
            | AggregateKind::Min
            | AggregateKind::Max
            | AggregateKind::MakeList
            | AggregateKind::MakeSet => false,
        };
        grouping.keys.is_empty()
            && !grouping.aggregates.is_empty()
            && grouping.aggregates.iter().all(ignores)
    }

    fn of_source(&self, source: &'p Source) -> Constraint {
        let own =
            |place: ValuePath| source.steps.iter().fold(place, |place, key| place.to(key.clone()));
        let place = match &source.origin {
            Origin::Container => own(ValuePath::new(Root::Document)),
            Origin::Slot(slot) => match self.meaning(*slot) {
                Some(Meaning::Path(place)) => own(place),
                meaning => return self.of_value(source, meaning),
            },
            Origin::Block(block) => return self.of_rows(source, block),
        };
        if source.iterates {
            self.mean(source.slot, Meaning::Path(ValuePath::new(Root::Slot(source.slot))));
            return Constraint::at(place, Domain::arrays());
        }
        self.mean(source.slot, Meaning::Path(place.clone()));
        if place.is_document() {
            Constraint::Anything
        } else {
            Constraint::at(place, Domain::defined())
        }
    }

    /// A source that is a row around it which was computed.
    fn of_value(&self, source: &Source, meaning: Option<Meaning<'p>>) -> Constraint {
        match meaning.clone() {
            Some(meaning) if source.steps.is_empty() && !source.iterates => {
                self.mean(source.slot, meaning);
                return Constraint::Anything;
            }
            _ => self.mean(source.slot, Meaning::Path(ValuePath::new(Root::Slot(source.slot)))),
        }
        match meaning {
            Some(Meaning::Expr(expr)) if source.steps.is_empty() => {
                self.demand(expr, &Domain::arrays())
            }
            _ => Constraint::Anything,
        }
    }

    /// A source that is a subquery.
    fn of_rows(&self, source: &'p Source, block: &'p Block) -> Constraint {
        // What documents come to as a whole does not depend on where they are looked for.
        let rows =
            if reads_documents(block) { self.of_block(block) } else { self.of_subquery(block) };
        if source.iterates {
            self.mean(source.slot, Meaning::Path(ValuePath::new(Root::Slot(source.slot))));
            if !self.gives_row(block) {
                return rows;
            }
            let arrays = self.demand(&block.output, &Domain::arrays());
            return Constraint::all(vec![rows, arrays]);
        }
        self.mean(source.slot, Meaning::Expr(&block.output));
        rows
    }

    /// What must hold so that a subquery gives a row. An aggregate without groups gives
    /// one in any case, of no rows if need be, unless that is undefined.
    fn of_subquery(&self, block: &'p Block) -> Constraint {
        let rows = self.of_block(block);
        let always = block.grouping.as_ref().is_some_and(|grouping| grouping.keys.is_empty());
        if always && self.values(&block.output).is_defined_somewhere() {
            Constraint::Anything
        } else {
            rows
        }
    }

    /// What an aggregate over rows can come to.
    fn results(&self, aggregate: &'p Aggregate, rows: &Constraint) -> Domain {
        if *rows == Constraint::Never {
            return Domain::of(&of_no_rows(aggregate.kind));
        }
        match aggregate.kind {
            AggregateKind::Count | AggregateKind::CountIf => Domain::numbers(),
            AggregateKind::Sum | AggregateKind::Average => Domain::numbers().or(Domain::UNDEFINED),
            AggregateKind::Min | AggregateKind::Max => {
                if self.is_in_rows(&aggregate.argument, &Domain::defined(), rows) {
                    self.values(&aggregate.argument).or(Domain::UNDEFINED)
                } else {
                    Domain::UNDEFINED
                }
            }
            AggregateKind::MakeList | AggregateKind::MakeSet => Domain::arrays(),
        }
    }

    /// The place that an expression stands for, unless that is far down.
    fn place(&self, expr: &'p Expr) -> Option<ValuePath> {
        match self.target(expr) {
            Expr::Slot(slot) => match self.meaning(*slot)? {
                Meaning::Path(place) => Some(place),
                Meaning::Expr(_) | Meaning::Values(_) => None,
            },
            Expr::Member(base, key) => {
                let base = self.place(base).filter(|base| base.steps.len() < DEPTH_MAX)?;
                Some(base.to(key.clone()))
            }
            _ => None,
        }
    }

    /// Looks through names of expressions, members of objects that are written out and
    /// choices between a place and the same place.
    fn target(&self, expr: &'p Expr) -> &'p Expr {
        let mut expr = expr;
        loop {
            if !self.step() {
                return expr;
            }
            expr = match expr {
                Expr::Slot(slot) => match self.meaning(*slot) {
                    Some(Meaning::Expr(inner)) => inner,
                    _ => return expr,
                },
                Expr::Member(base, Key::Name(name)) => match self.target(base) {
                    Expr::Object(members) => match members.iter().find(|(own, _)| own == name) {
                        Some((_, value)) => value,
                        None => return &Expr::UNDEFINED,
                    },
                    _ => return expr,
                },
                Expr::Let { slot, parts } => {
                    let [value, body] = &**parts;
                    self.mean(*slot, Meaning::Expr(value));
                    body
                }
                Expr::Conditional(parts) if self.is_one_place(&parts[1], &parts[2]) => &parts[1],
                Expr::Call(function, arguments) => match arguments.as_slice() {
                    [_, yes, no] if function.name() == "IIF" && self.is_one_place(yes, no) => yes,
                    _ => return expr,
                },
                _ => return expr,
            };
        }
    }

    fn is_one_place(&self, one: &'p Expr, other: &'p Expr) -> bool {
        self.place(one).is_some_and(|place| self.place(other) == Some(place))
    }
}

/// Whether the documents of the container are among the sources.
fn reads_documents(block: &Block) -> bool {
    block.sources.iter().any(|source| match &source.origin {
        Origin::Container => true,
        Origin::Slot(_) => false,
        Origin::Block(inner) => reads_documents(inner),
    })
}

/// What an aggregate gives where there is no row.
fn of_no_rows(kind: AggregateKind) -> Constant {
    match kind {
        AggregateKind::Count | AggregateKind::CountIf | AggregateKind::Sum => {
            Constant::Number(0.0.into())
        }
        AggregateKind::Average | AggregateKind::Min | AggregateKind::Max => Constant::Undefined,
        AggregateKind::MakeList | AggregateKind::MakeSet => Constant::Json("[]".into()),
    }
}
