//! The last step of every request: what it is charged for.
//!
//! Partitions count their work and [`Tariff`] prices it. What is left is the catalogue,
//! whose records clients do not know as items. Changing a resource is charged as writing
//! one small item, whatever its size and however many records that takes, reading one as
//! reading it, a list as one read of everything it returns.

use bytes::Bytes;
use model::charge::{Charge, Scanned, Tariff, Work, Written};
use partition::EffectKind;

use crate::error::{Remedy, ServiceError};
use crate::pipeline::meta::ResponseMeta;
use crate::response::{Failure, Feed, ResourceReply, ResourceRest, Response};

/// The last step of every request, successful or not: the answer gets what is known of it.
/// Internal errors are logged here, once.
pub(crate) fn account<R>(
    done: Result<R, ServiceError>,
    meta: ResponseMeta,
) -> Result<Response<R>, Failure> {
    match done {
        Ok(reply) => Ok(Response { reply, meta }),
        Err(error) => {
            report(&error);
            Err(Failure { error, meta: Box::new(meta) })
        }
    }
}

/// Logs an internal error.
pub(crate) fn report(error: &ServiceError) {
    if let ServiceError::Internal { source } = error {
        tracing::error!(%error, source = %source, "request failed");
    }
}

/// What one operation in one partition costs.
pub(crate) fn charge(work: &Work) -> Charge {
    Tariff::YEAR_2026.charge(work)
}

/// What a request is charged for that was refused before it reached its partition: the
/// attempt, as if the partition had refused it, but not internal errors.
pub(crate) fn refused(error: &ServiceError, attempt: Work) -> Work {
    match error.remedy() {
        Remedy::Correct | Remedy::Reread => attempt,
        Remedy::Refresh | Remedy::Retry | Remedy::Operator => Work::Nothing,
    }
}

/// What a verb on one resource is charged for.
pub(crate) fn resource(writes: bool, done: &Result<ResourceReply, ServiceError>) -> Work {
    let attempt = if writes { Work::RefusedWrite } else { Work::Probe };
    match done {
        Err(error) => refused(error, attempt),
        Ok(reply) => resource_work(reply.kind, reply.body.as_ref().map_or(0, Bytes::len)),
    }
}

/// What a list of resources is charged for.
pub(crate) fn resource_list(done: &Result<Feed<ResourceRest>, ServiceError>) -> Work {
    match done {
        Err(error) => refused(error, Work::Probe),
        Ok(feed) => Work::Read { bytes: bytes_of(&feed.bodies) },
    }
}

/// What a query on resources is charged for.
pub(crate) fn resource_query(done: &Result<Feed<ResourceRest>, ServiceError>) -> Work {
    match done {
        Err(error) => refused(error, Work::Probe),
        Ok(Feed { bodies, .. }) => {
            let (items, output_bytes) = (bodies.len() as u64, bytes_of(bodies));
            Work::Query(Scanned { items, entries: 0, output_bytes })
        }
    }
}

fn bytes_of(bodies: &[Bytes]) -> u64 {
    bodies.iter().map(Bytes::len).sum::<usize>() as u64
}

/// A change counts as one of the smallest item with one term, its name.
fn resource_work(kind: EffectKind, bytes: usize) -> Work {
    let (smallest, term) = (Some(0), 1);
    match kind {
        EffectKind::NotModified => Work::Probe,
        EffectKind::Read => Work::Read { bytes: bytes as u64 },
        EffectKind::Created => {
            Work::Write(Written { added: smallest, terms_added: term, ..Written::default() })
        }
        EffectKind::Replaced => {
            Work::Write(Written { removed: smallest, added: smallest, ..Written::default() })
        }
        EffectKind::Deleted => {
            Work::Write(Written { removed: smallest, terms_removed: term, ..Written::default() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(kind: EffectKind) -> String {
        charge(&resource_work(kind, 400)).to_string()
    }

    #[test]
    fn changing_a_resource_costs_what_writing_a_small_item_costs() {
        assert_eq!(shown(EffectKind::Created), "4.9523809523809526");
        assert_eq!(shown(EffectKind::Deleted), shown(EffectKind::Created));
        assert_eq!(shown(EffectKind::Replaced), "9.5238095238095237");
        assert_eq!(shown(EffectKind::Read), "1");
    }

    #[test]
    fn our_troubles_are_free() {
        let cost = |error: &ServiceError| charge(&refused(error, Work::RefusedWrite)).units();
        assert_eq!(cost(&ServiceError::NotFound), 26);
        assert_eq!(cost(&ServiceError::KeyMismatch), 26);
        for error in [ServiceError::Busy, ServiceError::internal("a fault")] {
            assert_eq!(cost(&error), 0, "{error}");
        }
    }
}
