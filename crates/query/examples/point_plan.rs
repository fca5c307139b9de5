//! Parses, binds and plans a point query a number of times: what a profiler that counts
//! instructions is run on.
//!
//! `valgrind --tool=callgrind point_plan 1000`, and again with another number: the
//! difference is the queries' own.

use std::hint::black_box;
use std::sync::Arc;

use model::partition_key::KeyKind;
use query::{Context, Features, KeyShape, Parameters, Query};

fn main() {
    let times: usize =
        std::env::args().nth(1).map_or(1_000, |text| text.parse().expect("a number"));
    let text = "SELECT * FROM c WHERE c.pk = @pk AND c.id = @id";
    let parameters = Parameters::none().with("@pk", "tenant-17").with("@id", "order-4711");
    let shape = KeyShape { kind: KeyKind::Hash, paths: vec![vec!["pk".to_owned()]] };
    let (context, features) = (Arc::new(Context::default()), Features::all());
    for _ in 0..times {
        let query = Query::parse(black_box(text)).expect("the text is right");
        let plan = query.plan(&parameters, &context, &shape, &features);
        assert!(black_box(plan).is_ok());
        let bound = query.bind_in(&parameters, &context).expect("it can be run");
        black_box(bound.key_ranges(&shape));
        black_box(bound.filter());
    }
}
