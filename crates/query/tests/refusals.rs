//! Every refusal is given where the table says: by plans, by runs, or by both.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::sync::Arc;

use model::partition_key::PartitionKeyDefinition;
use query::{
    AND_MAX, Code, Context, Door, Features, IN_ITEMS_MAX, JOINS_MAX, KeyShape, OR_MAX, Parameters,
    PlanOptions, QUERY_BYTES_MAX, Query, QueryError, Refusal, UDF_CALLS_MAX,
};

/// A query for each code.
fn example(code: Code) -> String {
    let chain = |part: &str, joint: &str, count: usize| vec![part; count].join(joint);
    match code {
        Code::SYNTAX => "SELECT SELECT".to_owned(),
        Code::END_OF_TEXT => "SELECT".to_owned(),
        Code::INVALID_CHARACTER => "SELECT #".to_owned(),
        Code::INVALID_NUMBER => "SELECT 1a".to_owned(),
        Code::INVALID_STRING => "SELECT 'a".to_owned(),
        Code::STAR_WITHOUT_FROM => "SELECT *".to_owned(),
        Code::TOO_COMPLEX => format!("SELECT {}1", "[".repeat(5_000)),
        Code::UNRESOLVED => "SELECT a".to_owned(),
        Code::UNKNOWN_FUNCTION => "SELECT f(1)".to_owned(),
        Code::DUPLICATE_SOURCE => "SELECT 1 FROM c JOIN c.a c".to_owned(),
        Code::DUPLICATE_NAME => "SELECT 1 AS a, 2 AS a".to_owned(),
        Code::DUPLICATE_DEFINITION => "SELECT (LET a = 1 IN (LET a = 2 IN a))".to_owned(),
        Code::STAR_WITH_AGGREGATE => "SELECT * FROM c ORDER BY COUNT(1)".to_owned(),
        Code::STAR_WITH_GROUP_BY => "SELECT * FROM c GROUP BY c.a".to_owned(),
        Code::STAR_WITH_JOIN => "SELECT * FROM c JOIN x IN c.a".to_owned(),
        Code::ARGUMENT_COUNT => "SELECT ABS()".to_owned(),
        Code::HASH_MODULO => "SELECT HASH(1, 0)".to_owned(),
        Code::HASH_SEED => "SELECT HASH(1, 1, 'a')".to_owned(),
        Code::TIME_SPAN => "SELECT AGO('d')".to_owned(),
        Code::TOP_COUNT => "SELECT TOP @p 1 FROM c".to_owned(),
        Code::LIMIT_COUNT => "SELECT 1 FROM c OFFSET 1 LIMIT @p".to_owned(),
        Code::OFFSET_COUNT => "SELECT 1 FROM c OFFSET @p LIMIT 1".to_owned(),
        Code::LET_IN_GROUP_BY => "SELECT 1 FROM c GROUP BY (LET a = c.a IN a)".to_owned(),
        Code::LET_IN_ORDER_BY => "SELECT 1 FROM c ORDER BY (LET a = c.a IN a)".to_owned(),
        Code::NESTED_AGGREGATE => "SELECT COUNT(COUNT(1)) FROM c".to_owned(),
        Code::NOT_GROUPED => "SELECT c.a FROM c GROUP BY c.b".to_owned(),
        Code::NOT_ORDERED => "SELECT 1 FROM c GROUP BY c.a ORDER BY c.b".to_owned(),
        Code::AGGREGATE_IN_FILTER => "SELECT 1 FROM c WHERE COUNT(1) = 1".to_owned(),
        Code::UNREFERRING_GROUP_KEY => "SELECT 1 FROM c GROUP BY 1".to_owned(),
        Code::GROUP_KEY => "SELECT 1 FROM c GROUP BY (SELECT VALUE c.a)".to_owned(),
        Code::CARDINALITY => "SELECT (SELECT VALUE x FROM x IN c.a) FROM c".to_owned(),
        Code::ORDER_BY_IN_SUBQUERY => "SELECT (SELECT 1 ORDER BY c.a) FROM c".to_owned(),
        Code::TOP_IN_SUBQUERY => "SELECT (SELECT TOP 1 1) FROM c".to_owned(),
        Code::OFFSET_IN_SUBQUERY => "SELECT (SELECT 1 OFFSET 0 LIMIT 1) FROM c".to_owned(),
        Code::TOP_WITH_OFFSET => "SELECT TOP 1 1 FROM c OFFSET 0 LIMIT 1".to_owned(),
        Code::ESCAPE_CHARACTER => "SELECT 'a' LIKE 'a' ESCAPE '!!'".to_owned(),
        Code::RANK_FUNCTION => "SELECT 1 FROM c ORDER BY RANK ABS(1)".to_owned(),
        Code::RANK_WITH_IN => rank("x IN c.a"),
        Code::RANK_WITH_JOIN => rank("c JOIN x IN c.a"),
        Code::RANK_WITH_SUBQUERY => rank("(SELECT VALUE c FROM c) c"),
        Code::RANK_IN_SUBQUERY => format!("SELECT ({}) FROM c", rank("c x")),
        Code::SCORE_OUTSIDE_RANK => "SELECT FullTextScore(c.t, 'a') FROM c".to_owned(),
        Code::NOT_SUPPORTED => "SELECT c[true] FROM c".to_owned(),
        Code::TEXT_LENGTH => format!("SELECT 1{}", " ".repeat(QUERY_BYTES_MAX)),
        Code::JOIN_COUNT => {
            let joins = (0..=JOINS_MAX).map(|at| format!(" JOIN x{at} IN c.a"));
            format!("SELECT 1 FROM c{}", joins.collect::<String>())
        }
        Code::AND_COUNT => format!("SELECT {}", chain("true", " AND ", AND_MAX + 2)),
        Code::OR_COUNT => format!("SELECT {}", chain("true", " OR ", OR_MAX + 2)),
        Code::UDF_COUNT => format!("SELECT {}", chain("udf.f(1)", ", ", UDF_CALLS_MAX + 1)),
        Code::IN_ITEM_COUNT => format!("SELECT 1 IN ({})", chain("1", ",", IN_ITEMS_MAX + 1)),
        code => panic!("there is no example of {code}"),
    }
}

fn rank(from: &str) -> String {
    format!("SELECT 1 FROM {from} ORDER BY RANK FullTextScore(c.t, 'a')")
}

/// What plans and runs refuse, in this order.
fn refused(text: &str) -> [Option<QueryError>; 2] {
    let parameters = Parameters::none().with("@p", "x");
    let query = match Query::parse(text) {
        Ok(query) => query,
        Err(error) => return [Some(error.clone()), Some(error)],
    };
    let (context, definition) = (Arc::new(Context::default()), PartitionKeyDefinition::none());
    let shape = KeyShape::from(&definition);
    let wanted = (&Features::all(), PlanOptions::default());
    let plan = query.plan_with(&parameters, &context, &shape, wanted);
    [plan.err(), query.bind_in(&parameters, &context).err()]
}

fn doors(door: Door) -> [bool; 2] {
    match door {
        Door::Plan => [true, false],
        Door::Run => [false, true],
        Door::Both => [true, true],
    }
}

#[test]
fn codes_are_given_where_the_table_says() {
    for (code, door) in Code::ALL {
        let text = example(*code);
        let has = |error: &Option<QueryError>| {
            let errors = match error {
                Some(QueryError::Invalid(errors)) => errors.as_slice(),
                _ => &[],
            };
            errors.iter().any(|error| error.code == *code)
        };
        let found = refused(&text);
        assert_eq!(found.each_ref().map(has), doors(*door), "{code}: {found:?}");
    }
}

#[test]
fn other_refusals_are_given_where_the_table_says() {
    let name = || "_MASK".to_owned();
    for (refusal, text) in [
        (Refusal::OrderByExpression, "SELECT 1 FROM c ORDER BY c.a + 1"),
        (Refusal::OrderByElements, "SELECT 1 FROM c JOIN x IN c.a ORDER BY x"),
        (Refusal::ComposedAggregate, "SELECT VALUE COUNT(1) + 1 FROM c"),
        (Refusal::InternalFunction { name: name() }, "SELECT _OBJECTTOARRAY(c.a) FROM c"),
    ] {
        let same = |error: &Option<QueryError>| match error {
            Some(QueryError::Refused(own)) => {
                std::mem::discriminant(own) == std::mem::discriminant(&refusal)
            }
            _ => false,
        };
        let found = refused(text);
        assert_eq!(found.each_ref().map(same), doors(refusal.door()), "{text}: {found:?}");
    }
}

#[test]
fn parameters_are_refused_before_either() {
    for (list, refusal) in [
        ("{}", Refusal::Input),
        (r#"[{"name":"p"}]"#, Refusal::ParameterName { name: "p".to_owned() }),
        (r#"[{"name":"@p"},{"name":"@p"}]"#, Refusal::DuplicateParameter { name: "@p".to_owned() }),
    ] {
        let list = model::json::parse(list.as_bytes()).unwrap();
        assert_eq!(Parameters::from_list(&list).unwrap_err(), refusal.clone().into());
        assert_eq!(refusal.door(), Door::Both);
    }
}

#[test]
fn what_a_client_cannot_do_is_refused_by_plans_only() {
    let (context, shape) = (Arc::default(), KeyShape::from(&PartitionKeyDefinition::none()));
    let none = Parameters::none();
    let query = Query::parse("SELECT COUNT(1) AS n FROM c").unwrap();
    let options = PlanOptions { non_value_aggregates: false, ..PlanOptions::default() };
    let plan = query.plan_with(&none, &context, &shape, (&Features::all(), options));
    assert_eq!(plan.unwrap_err(), Refusal::NonValueAggregate.into());
    assert_eq!(Refusal::NonValueAggregate.door(), Door::Plan);
    let query = Query::parse("SELECT DISTINCT c.a FROM c").unwrap();
    let plan = query.plan(&none, &context, &shape, &Features::parse(""));
    let Err(QueryError::Refused(refusal @ Refusal::UnsupportedFeatures { .. })) = plan else {
        panic!("{plan:?}");
    };
    assert_eq!(refusal.door(), Door::Plan);
    assert!(query.bind_in(&none, &context).is_ok());
    assert_eq!(Refusal::ComputedProperty.door(), Door::Run);
}
