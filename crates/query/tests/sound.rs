//! What is said of a query beforehand holds for every item: a key range that is left out
//! has no match, a filter that is called never true holds for none, and what is called
//! always undefined is undefined. Random queries are asked of random items, by the
//! evaluator and by the analysis; the seed is printed.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]
#![allow(clippy::print_stdout, reason = "the seed and the figures are told")]

#[path = "sound/make.rs"]
mod make;

use std::sync::Arc;

use make::{Maker, Pool, Random};
use model::epk::{Epk, EpkRange};
use model::json::{Raw, Value};
use model::partition_key::{HashVersion, KeyKind, KeyPath, PartitionKeyDefinition};
use query::{
    Bound, Context, Features, KeyRanges, KeyShape, Parameters, Plan, Query, QueryError, RingRange,
};

/// Pairs of a query and an item; `ORRERY_SOUND_PAIRS` asks for more.
const PAIRS: u64 = 20_000;

/// Items that each query is asked about.
const ITEMS: u64 = 20;

/// Partitions that the ring is cut into.
const PARTITIONS: [u32; 3] = [1, 5, 20];

/// What queries take for the time when they are run; they are planned in 1970.
const LATER_TICKS: i64 = 17_000_000_000_000_000;

/// Steps that one query may take with one item: some repeat texts a million times.
const STEPS: usize = 200_000;

#[derive(Debug, Default)]
struct Figures {
    pairs: u64,
    /// Pairs in which the item makes a difference to what the query gives.
    matches: u64,
    /// Of these, those that the query would have missed with no partition asked.
    narrowed_matches: u64,
    narrowed: u64,
    nothing: u64,
    refused: u64,
}

fn definitions() -> Vec<PartitionKeyDefinition> {
    let shapes: [(&[&str], KeyKind, HashVersion); 5] = [
        (&["/pk"], KeyKind::Hash, HashVersion::V1),
        (&["/pk"], KeyKind::Hash, HashVersion::V2),
        (&["/a/b"], KeyKind::Hash, HashVersion::V2),
        (&["/pk", "/a/b"], KeyKind::MultiHash, HashVersion::V2),
        (&["/t", "/pk", "/a/b"], KeyKind::MultiHash, HashVersion::V2),
    ];
    let definition = |(paths, kind, version): (&[&str], KeyKind, HashVersion)| {
        let paths = paths.iter().map(|path| KeyPath::parse(path).unwrap()).collect();
        PartitionKeyDefinition::new(paths, kind, version).unwrap()
    };
    shapes.into_iter().map(definition).collect()
}

#[test]
fn nothing_is_left_out() {
    let number = |name: &str, usual: u64| {
        std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
    };
    let seed = number("ORRERY_SEED", 0x9E37_79B9_7F4A_7C15);
    let pairs = number("ORRERY_SOUND_PAIRS", PAIRS);
    println!("seed {seed}");
    let (mut random, definitions) = (Random(seed), definitions());
    let mut figures = Figures::default();
    while figures.pairs < pairs {
        let definition = &definitions[random.below(definitions.len())];
        try_query(&mut random, definition, &mut figures);
    }
    println!("{figures:?}");
    // Where nothing matches and nothing is narrowed down, nothing was tried.
    assert!(figures.narrowed > pairs / ITEMS / 5, "{figures:?}");
    assert!(figures.narrowed_matches > pairs / 100, "{figures:?}");
}

/// Makes a query and asks it about some items.
fn try_query(random: &mut Random, definition: &PartitionKeyDefinition, figures: &mut Figures) {
    let pool = Pool::new(random);
    let text = Maker { random, pool: &pool, rows: Vec::new() }.query();
    let given = pool.parameter(random);
    let parameters = given.into_iter().fold(Parameters::none(), |own, p| own.with("@p", p));
    let Some(tried) = Tried::new(text, &parameters, definition) else {
        figures.refused += 1;
        return;
    };
    figures.narrowed += u64::from(tried.plan.ranges != KeyRanges::Everything);
    figures.nothing += u64::from(tried.plan.ranges == KeyRanges::Nothing);
    for _ in 0..ITEMS {
        figures.pairs += 1;
        tried.ask(&pool.document(random), figures);
    }
}

/// A query, what is said of it, and what it gives without any item.
struct Tried<'d> {
    text: String,
    definition: &'d PartitionKeyDefinition,
    plan: Plan,
    /// What whoever runs it would say.
    run: KeyRanges,
    bound: Bound,
    of_none: Result<Vec<Value>, QueryError>,
}

impl<'d> Tried<'d> {
    /// None for what is refused.
    fn new(
        text: String,
        parameters: &Parameters,
        definition: &'d PartitionKeyDefinition,
    ) -> Option<Tried<'d>> {
        let shape = KeyShape::from(definition);
        let query = Query::parse(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        let (now, features) = (Arc::new(Context::default()), Features::all());
        let later = Arc::new(Context { now_ticks: LATER_TICKS, seed: 7, ..Context::default() });
        let plan = query.plan(parameters, &now, &shape, &features).ok()?;
        let bound = query.bind_in(parameters, &later).ok()?;
        let run = bound.key_ranges(&shape);
        let of_none = rows(&bound, None);
        Some(Tried { text, definition, plan, run, bound, of_none })
    }

    /// Asks about an item, and looks for it where the query would have looked.
    fn ask(&self, document: &str, figures: &mut Figures) {
        let raw = Raw::trusted(document);
        let rows = rows(&self.bound, Some(raw));
        if rows == self.of_none || rows.is_err() {
            return;
        }
        // Some values are no keys, and no item has them.
        let Ok(key) = self.definition.extract(raw) else { return };
        let position = self.definition.locate(&key).unwrap();
        let epk = self.definition.epk(&key).unwrap();
        figures.matches += 1;
        figures.narrowed_matches += u64::from(self.plan.ranges != KeyRanges::Everything);
        for (who, ranges) in [("plan", &self.plan.ranges), ("run", &self.run)] {
            let left_out = || {
                let (text, definition) = (&self.text, self.definition);
                format!("{text}\nleaves out {document}\n{who}: {ranges:?}\n{definition:?}")
            };
            assert!(*ranges != KeyRanges::Nothing, "{}", left_out());
            let ring = ranges.on_ring(self.definition);
            assert!(ring.iter().any(|range| reaches(range, &epk)), "{}", left_out());
            let positions = ranges.positions(self.definition);
            assert!(positions.iter().any(|own| own.contains(&position)), "{}", left_out());
            for count in PARTITIONS {
                let cut = self.definition.boundaries(count);
                let home = cut.iter().find(|own| own.contains(&epk)).unwrap();
                let asked = ring.iter().any(|range| touches(range, home));
                assert!(asked, "{} on {count} partitions", left_out());
            }
        }
    }
}

/// What a query gives of an item, or of none.
fn rows(bound: &Bound, item: Option<Raw<'_>>) -> Result<Vec<Value>, QueryError> {
    bound.execute_within(item.into_iter(), STEPS)
}

/// Whether a range that clients know has a place.
fn reaches(range: &RingRange, epk: &Epk) -> bool {
    range.min <= *epk && (*epk < range.max || (range.max_inclusive && *epk == range.max))
}

/// Whether clients ask a partition for a range.
fn touches(range: &RingRange, partition: &EpkRange) -> bool {
    let ends_before =
        range.max < partition.min || (range.max == partition.min && !range.max_inclusive);
    !ends_before && range.min < partition.max
}
