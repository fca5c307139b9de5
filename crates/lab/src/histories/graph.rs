//! The graph of a history, and its cycles.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::check::outside_reads;
use super::order::{ListOrder, Orders};
use super::{History, TransactionId};

/// Why a transaction comes before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Edge {
    Overwritten,
    Read,
    /// Its end was seen before the other began.
    Earlier,
    Missed,
}

/// What a forbidden cycle is called, by the weakest condition under which it is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CycleKind {
    /// Writes that are mixed (G0).
    DirtyWrite,
    /// Transactions that have seen each other (G1c).
    CircularInformation,
    /// One edge is `Missed` (G-single): a lost update, or a fractured or stale read.
    ReadSkew,
    /// Several are, no two of them together: reads that disagree on an order (long fork).
    LongFork,
}

/// Transactions each of which comes before the next one, and the last before the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    pub steps: Vec<(TransactionId, Edge)>,
}

impl Cycle {
    #[must_use]
    pub fn kind(&self) -> CycleKind {
        let count = |edge: Edge| self.steps.iter().filter(|(_, it)| *it == edge).count();
        match (count(Edge::Missed), count(Edge::Read) + count(Edge::Earlier)) {
            (0, 0) => CycleKind::DirtyWrite,
            (0, _) => CycleKind::CircularInformation,
            (1, _) => CycleKind::ReadSkew,
            _ => CycleKind::LongFork,
        }
    }
}

/// A transaction, or a moment between them: a moment comes after all that ended before it,
/// and before all that began after it. So there are as many edges of time as events, not as
/// pairs of transactions.
type Node = usize;

/// Transactions first, then moments.
#[derive(Debug)]
pub(super) struct Graph {
    edges: Vec<Vec<(Node, Edge)>>,
    transactions: usize,
}

impl Graph {
    pub(super) fn of(history: &History, orders: &Orders) -> Graph {
        let transactions = history.transactions.len();
        let mut graph = Graph { edges: vec![Vec::new(); transactions], transactions };
        for (list, order) in &orders.lists {
            let writers: Vec<Node> = order
                .values
                .iter()
                .filter_map(|value| orders.writer(*list, *value))
                .map(|writer| writer.0)
                .collect();
            graph.add_writers(&writers, order);
        }
        for (reader, transaction) in history.transactions.iter().enumerate() {
            for read in outside_reads(&transaction.steps) {
                let (Some(found), Some(order)) = (read.found, orders.lists.get(&read.list)) else {
                    continue;
                };
                let writer_at = |at: usize| {
                    let value = order.values.get(at)?;
                    orders.writer(read.list, *value).map(|writer| writer.0)
                };
                if let Some(writer) = found.len().checked_sub(1).and_then(writer_at) {
                    graph.add(writer, reader, Edge::Read);
                }
                match writer_at(found.len()) {
                    Some(writer) => graph.add(reader, writer, Edge::Missed),
                    None => graph.add_unseen(reader, order, Edge::Missed),
                }
            }
        }
        graph.add_time(history);
        graph
    }

    /// Those that wrote a list, one after another, and those that no read has shown.
    fn add_writers(&mut self, writers: &[Node], order: &ListOrder) {
        for pair in writers.windows(2) {
            if let [before, after] = pair {
                self.add(*before, *after, Edge::Overwritten);
            }
        }
        if let Some(last) = writers.last() {
            self.add_unseen(*last, order, Edge::Overwritten);
        }
    }

    fn add_unseen(&mut self, before: Node, order: &ListOrder, edge: Edge) {
        for unseen in &order.unseen {
            self.add(before, unseen.0, edge);
        }
    }

    fn add_time(&mut self, history: &History) {
        let mut events = BTreeMap::new();
        for (at, transaction) in history.transactions.iter().enumerate() {
            events.insert(transaction.begun, (at, false));
            events.extend(transaction.ended.map(|ended| (ended, (at, true))));
        }
        let mut latest: Option<Node> = None;
        for (at, is_end) in events.into_values() {
            if is_end {
                let moment = self.edges.len();
                self.edges.push(Vec::new());
                if let Some(latest) = latest {
                    self.add(latest, moment, Edge::Earlier);
                }
                self.add(at, moment, Edge::Earlier);
                latest = Some(moment);
            } else if let Some(latest) = latest {
                self.add(latest, at, Edge::Earlier);
            }
        }
    }

    /// Within a transaction there is no before.
    fn add(&mut self, before: Node, after: Node, edge: Edge) {
        if before != after
            && let Some(edges) = self.edges.get_mut(before)
        {
            edges.push((after, edge));
        }
    }

    fn edges(&self, node: Node) -> &[(Node, Edge)] {
        self.edges.get(node).map(Vec::as_slice).unwrap_or_default()
    }

    fn is_transaction(&self, node: Node) -> bool {
        node < self.transactions
    }
}

/// A node, and whether it was reached by an edge `Missed`: the next one must be another
/// then. A way through these that comes back to where it began is a forbidden cycle.
type Place = (Node, bool);

fn next(graph: &Graph, (node, missed): Place) -> impl Iterator<Item = (Place, Edge)> {
    let edges = graph.edges(node).iter().copied();
    let allowed = edges.filter(move |(_, edge)| !(missed && *edge == Edge::Missed));
    allowed.map(|(after, edge)| ((after, edge == Edge::Missed), edge))
}

/// A shortest forbidden cycle of each strongly connected part of the graph.
pub(super) fn forbidden_cycles(graph: &Graph) -> Vec<Cycle> {
    let mut cycles = Vec::new();
    for part in connected_parts(graph) {
        let within: BTreeSet<Place> = part.into_iter().collect();
        // A cycle has an edge that is not `Missed`, and so a place reached by one.
        let starts = within.iter().filter(|(node, missed)| !missed && graph.is_transaction(*node));
        let shortest = starts
            .filter_map(|start| cycle_from(graph, *start, &within))
            .min_by_key(|cycle| cycle.steps.len());
        cycles.extend(shortest);
    }
    cycles
}

/// A shortest way from a place back to it. Moments are left out of it.
fn cycle_from(graph: &Graph, start: Place, within: &BTreeSet<Place>) -> Option<Cycle> {
    let mut reached: BTreeMap<Place, (Place, Edge)> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(place) = queue.pop_front() {
        for (after, edge) in next(graph, place).filter(|(after, _)| within.contains(after)) {
            if reached.contains_key(&after) {
                continue;
            }
            reached.insert(after, (place, edge));
            if after == start {
                return Some(way_back(graph, start, &reached));
            }
            queue.push_back(after);
        }
    }
    None
}

fn way_back(graph: &Graph, start: Place, reached: &BTreeMap<Place, (Place, Edge)>) -> Cycle {
    let (mut steps, mut place) = (Vec::new(), start);
    while let Some(((node, missed), edge)) = reached.get(&place).copied() {
        if graph.is_transaction(node) {
            steps.push((TransactionId(node), edge));
        }
        place = (node, missed);
        if place == start {
            break;
        }
    }
    steps.reverse();
    Cycle { steps }
}

/// Groups of more than one place each of which is reached from each other (Tarjan, without
/// recursion: histories are longer than the stack).
fn connected_parts(graph: &Graph) -> Vec<Vec<Place>> {
    let mut search = Search::default();
    for node in 0..graph.edges.len() {
        for missed in [false, true] {
            search.from(graph, (node, missed));
        }
    }
    search.parts
}

#[derive(Default)]
struct Search {
    /// When a place was found, and the earliest that it is known to reach.
    found: BTreeMap<Place, (usize, usize)>,
    /// Found, and not part of a group yet.
    open: Vec<Place>,
    is_open: BTreeSet<Place>,
    parts: Vec<Vec<Place>>,
}

impl Search {
    fn from(&mut self, graph: &Graph, start: Place) {
        if self.found.contains_key(&start) {
            return;
        }
        let mut path = vec![self.enter(graph, start)];
        while let Some((place, left)) = path.last_mut() {
            let place = *place;
            match left.pop() {
                Some(after) if !self.found.contains_key(&after) => {
                    path.push(self.enter(graph, after));
                }
                Some(after) if self.is_open.contains(&after) => {
                    self.reaches(place, self.time_of(after));
                }
                Some(_) => {}
                None => {
                    path.pop();
                    self.leave(place);
                    if let Some((parent, _)) = path.last() {
                        let earliest = self.found.get(&place).map_or(usize::MAX, |it| it.1);
                        self.reaches(*parent, earliest);
                    }
                }
            }
        }
    }

    fn enter(&mut self, graph: &Graph, place: Place) -> (Place, Vec<Place>) {
        let time = self.found.len();
        self.found.insert(place, (time, time));
        self.open.push(place);
        self.is_open.insert(place);
        (place, next(graph, place).map(|(after, _)| after).collect())
    }

    /// Closes the group of a place that reaches nothing earlier.
    fn leave(&mut self, place: Place) {
        if self.found.get(&place).is_none_or(|(time, earliest)| time != earliest) {
            return;
        }
        let mut part = Vec::new();
        while let Some(member) = self.open.pop() {
            self.is_open.remove(&member);
            part.push(member);
            if member == place {
                break;
            }
        }
        if part.len() > 1 {
            self.parts.push(part);
        }
    }

    fn time_of(&self, place: Place) -> usize {
        self.found.get(&place).map_or(usize::MAX, |(time, _)| *time)
    }

    fn reaches(&mut self, place: Place, time: usize) {
        if let Some((_, earliest)) = self.found.get_mut(&place) {
            *earliest = time.min(*earliest);
        }
    }
}

/// Pairs of transactions that missed each other's writes.
pub(super) fn write_skews(graph: &Graph) -> usize {
    let missed: BTreeSet<(Node, Node)> = (0..graph.transactions)
        .flat_map(|node| graph.edges(node).iter().map(move |edge| (node, *edge)))
        .filter(|(_, (_, edge))| *edge == Edge::Missed)
        .map(|(node, (after, _))| (node, after))
        .collect();
    missed.iter().filter(|(a, b)| a < b && missed.contains(&(*b, *a))).count()
}
