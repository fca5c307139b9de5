use super::*;
use crate::histories::{CycleKind, Edge};

/// Groups of transactions: those of a group at the same time, the groups one after another.
/// `x+1` appends 1 to x, `x=1,2` reads it, `!` is refused and `?` is not answered.
fn history(groups: &[&[&str]]) -> History {
    let mut history = History::default();
    for group in groups {
        let texts = group.iter().map(|text| parse(text));
        let begun: Vec<_> = texts
            .map(|(steps, outcome)| (history.begin(appends(&steps)), steps, outcome))
            .collect();
        for (id, steps, outcome) in begun {
            match outcome {
                Outcome::Committed => history.end(id, outcome, steps),
                Outcome::Aborted => history.end(id, outcome, appends(&steps)),
                Outcome::Unknown => {}
            }
        }
    }
    history
}

fn parse(text: &str) -> (Vec<Step>, Outcome) {
    let (mut steps, mut outcome) = (Vec::new(), Outcome::Committed);
    for word in text.split(' ') {
        let list = u32::from(word.bytes().next().unwrap());
        if let Some((_, value)) = word.split_once('+') {
            steps.push(Step::Append { list, value: value.parse().unwrap() });
        } else if let Some((_, values)) = word.split_once('=') {
            let values = values.split(',').filter(|value| !value.is_empty());
            steps.push(Step::Read { list, found: values.map(|it| it.parse().unwrap()).collect() });
        } else {
            outcome = if word == "!" { Outcome::Aborted } else { Outcome::Unknown };
        }
    }
    (steps, outcome)
}

fn appends(steps: &[Step]) -> Vec<Step> {
    steps.iter().filter(|step| matches!(step, Step::Append { .. })).cloned().collect()
}

fn judge(groups: &[&[&str]]) -> Verdict {
    check(&history(groups))
}

#[track_caller]
fn clean(groups: &[&[&str]]) -> Verdict {
    let verdict = judge(groups);
    assert!(verdict.is_clean(), "{verdict:?}");
    verdict
}

/// The kinds of the cycles, where lists alone make sense.
#[track_caller]
fn cycles(groups: &[&[&str]]) -> Vec<CycleKind> {
    let verdict = judge(groups);
    assert_eq!(verdict.contradictions, []);
    verdict.cycles.iter().map(Cycle::kind).collect()
}

#[test]
fn what_snapshot_isolation_allows_is_clean() {
    clean(&[]);
    clean(&[&["x+1", "x+2"], &["x=1,2"]]);
    clean(&[&["x+1", "x=", "x=1"], &["x=1"]]);
    clean(&[&["x=1 x+2 x=1,2", "x+1"], &["x=1,2 y="]]);
    // A refused append was not done; one without an answer may have been.
    clean(&[&["x+1 !", "x+2 ?", "x+3 ?"], &["x=2"]]);
    let verdict = clean(&[&["x+1 !", "x+2 ?", "x+3"], &["x=3"]]);
    assert_eq!((verdict.committed, verdict.aborted, verdict.unknown), (2, 1, 1));
}

#[test]
fn write_skew_is_allowed_and_counted() {
    let verdict = clean(&[&["x= y= x+1", "x= y= y+2"], &["x=1 y=2"]]);
    assert_eq!(verdict.write_skews, 1);
    // Between three of them, too.
    let verdict = clean(&[&["x= y+1", "y= z+2", "z= x+3"], &["x=3 y=1 z=2"]]);
    assert_eq!(verdict.write_skews, 0);
}

#[test]
fn lost_updates() {
    // Both replaced the empty list, and a later reader misses the first value.
    assert_eq!(cycles(&[&["x= x+1", "x= x+2"], &["x=2"]]), [CycleKind::ReadSkew; 2]);
    // Both are there, and yet each had read the list without the other's.
    assert_eq!(cycles(&[&["x= x+1", "x= x+2"], &["x=1,2"]]), [CycleKind::ReadSkew]);
    // An acknowledged append that a later reader does not find.
    assert_eq!(cycles(&[&["x+1"], &["x="]]), [CycleKind::ReadSkew]);
    // The same after another value, and if the last reader finds it.
    assert_eq!(cycles(&[&["x+1"], &["x+2"], &["x=1"], &["x=1,2"]]), [CycleKind::ReadSkew]);
}

#[test]
fn fractured_reads() {
    assert_eq!(cycles(&[&["x+1 y+1", "x=1 y="]]), [CycleKind::ReadSkew]);
    assert_eq!(cycles(&[&["x+1 y+1", "y= x=1"]]), [CycleKind::ReadSkew]);
    // A list that changes between two reads of one transaction.
    assert_eq!(cycles(&[&["x+1", "x= x=1"]]), [CycleKind::ReadSkew]);
    // By way of another transaction.
    assert_eq!(cycles(&[&["x+1", "x=1 y+2", "y=2 x="]]), [CycleKind::ReadSkew]);
}

#[test]
fn reads_that_disagree_on_an_order() {
    let groups: &[&[&str]] = &[&["x+1", "y+2", "x=1 y=", "x= y=2"]];
    assert_eq!(cycles(groups), [CycleKind::LongFork]);
    let cycle = &judge(groups).cycles[0];
    let edges: Vec<Edge> = cycle.steps.iter().map(|(_, edge)| *edge).collect();
    assert!(
        edges == [Edge::Read, Edge::Missed, Edge::Read, Edge::Missed]
            || edges == [Edge::Missed, Edge::Read, Edge::Missed, Edge::Read],
        "{edges:?}"
    );
}

#[test]
fn cycles_without_missed_writes() {
    assert_eq!(cycles(&[&["x+1 y+1", "y+2 x+2"], &["x=1,2 y=2,1"]]), [CycleKind::DirtyWrite]);
    assert_eq!(cycles(&[&["x+1 y=2", "y+2 x=1"]]), [CycleKind::CircularInformation]);
    // What was read before it was asked for.
    assert_eq!(cycles(&[&["x=1"], &["x+1"]]), [CycleKind::CircularInformation]);
}

#[test]
fn lists_that_make_no_sense() {
    let contradictions = |groups| judge(groups).contradictions;
    let (x, reader) = (u32::from(b'x'), TransactionId(1));
    assert_eq!(
        contradictions(&[&["x+1 !", "x=1"]]),
        [Contradiction::AbortedRead { writer: TransactionId(0), list: x, value: 1 }]
    );
    assert_eq!(
        contradictions(&[&["x+1 x+2", "x=1"], &["x=1,2"]]),
        [Contradiction::IntermediateRead { reader, list: x }]
    );
    assert_eq!(contradictions(&[&["x=7"]]), [Contradiction::Invented { list: x, value: 7 }]);
    assert_eq!(
        contradictions(&[&["x+7", "x=7,7"]]),
        [Contradiction::Repeated { list: x, value: 7 }]
    );
    assert_eq!(
        contradictions(&[&["x+1"], &["x=1"], &["x+2"], &["x=2"]]),
        [Contradiction::Forked { reader: TransactionId(3), list: x }]
    );
    assert_eq!(
        contradictions(&[&["x+1"], &["x+2 x=1"]]),
        [Contradiction::Internal { reader, list: x }]
    );
    assert_eq!(
        contradictions(&[&["x+1", "y+1 x+1"]]),
        [Contradiction::AppendedTwice { list: x, value: 1 }]
    );
}

/// The search is without recursion: a history is longer than the stack.
#[test]
fn long_histories() {
    const TRANSACTIONS: u64 = 20_000;
    let mut history = History::default();
    for value in 0..TRANSACTIONS {
        let append = vec![Step::Append { list: 1, value }];
        let id = history.begin(append.clone());
        history.end(id, Outcome::Committed, append);
    }
    let everything = vec![Step::Read { list: 1, found: (0..TRANSACTIONS).collect() }];
    let id = history.begin(Vec::new());
    history.end(id, Outcome::Committed, everything);
    assert!(check(&history).is_clean());
}
