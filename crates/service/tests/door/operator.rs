//! Operators take the same steps as every request.

use std::time::Duration;

use service::{Halve, Link, PartitionId, Principal, Redistribution, ServiceError, Throughput};
use testkit::wait::block_on;

use crate::fixture::Fixture;

/// Every operator verb, as the error for a principal that may not use it.
fn refusals(fixture: &Fixture, principal: &Principal) -> Vec<Option<ServiceError>> {
    let link = Link::parse("dbs/d/colls/c").unwrap();
    let operator = fixture.service.operator(principal.clone());
    vec![
        block_on(operator.partitions(&link)).err(),
        operator.moves(&link).err(),
        block_on(operator.split(&link, PartitionId(0), Halve::Hashes)).err(),
        block_on(operator.merge(&link, &[PartitionId(0), PartitionId(1)])).err(),
        block_on(operator.throughput(&link, None)).err(),
        block_on(operator.redistribute(&link, &Redistribution::Equal)).err(),
        block_on(operator.set_throughput_buckets(&link, Vec::new())).err(),
        block_on(operator.statistics(&link, 1)).err(),
        block_on(operator.usage()).err(),
        operator.check(|_| {}).err(),
        operator.ahead().err(),
        block_on(operator.reset_time()).err(),
        operator.backup_source().err(),
        operator.time().err(),
        block_on(operator.advance_time(Duration::from_secs(1))).err(),
    ]
}

#[test]
fn only_the_account_key_makes_an_operator() {
    let fixture = Fixture::new();
    fixture.create_container("c", 2, Throughput::Manual(400));
    let before = fixture.ranges("c");
    for refusal in refusals(&fixture, &Principal::Anonymous) {
        assert!(matches!(refusal, Some(ServiceError::Unauthorised)), "{refusal:?}");
    }
    for refusal in refusals(&fixture, &Principal::Reader) {
        assert!(matches!(refusal, Some(ServiceError::NotPermitted)), "{refusal:?}");
    }
    assert_eq!(fixture.ranges("c"), before, "nothing was done for them");
    for refusal in refusals(&fixture, &Principal::Account) {
        assert!(
            !matches!(refusal, Some(ServiceError::Unauthorised | ServiceError::NotPermitted)),
            "{refusal:?}"
        );
    }
}
