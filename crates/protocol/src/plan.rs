//! The plan of a query as clients read it.

use model::json::{Object, Value};
use service::{QueryPlan, RingRange};

/// The form of plans that clients read.
const VERSION: u32 = 2;

pub fn value(plan: &QueryPlan) -> Value {
    let range = |range: &RingRange| {
        let mut object = Object::new();
        object.insert("min", range.min.to_string());
        object.insert("max", range.max.to_string());
        object.insert("isMinInclusive", true);
        object.insert("isMaxInclusive", range.max_inclusive);
        Value::from(object)
    };
    let ranges: Vec<Value> = plan.ranges.iter().map(range).collect();
    let mut value = Object::new();
    value.insert("partitionedQueryExecutionInfoVersion", VERSION);
    value.insert("queryInfo", plan.info.to_value());
    value.insert("queryRanges", ranges);
    value.into()
}
