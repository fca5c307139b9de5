//! Queries on the resources of the catalogue, with the one query engine.
//!
//! Resources are few, so every page reads all of them. If each gives a row of its own, a
//! page continues after the name of the last one, whatever was created or deleted
//! meanwhile; a result that depends on several resources is computed again, and continues
//! after a number of rows.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use model::json::Raw;
use model::limits::Limits;
use query::{Bound, Context, Query, QueryError, QueryLimits, Run, STEPS_MAX};

use crate::catalogue::{Stored, giving_way};
use crate::error::ServiceError;
use crate::items::queries::{parse_parameters, refused};
use crate::pipeline::account;
use crate::pipeline::limits::PAGE_ITEMS_MAX;
use crate::pipeline::meta::ResponseMeta;
use crate::request::QueryResources;
use crate::response::{Feed, ResourceRest};
use crate::service::Service;
use crate::verb::{Facts, Subject, Verb};

/// Resources that one catalogue query reads.
const QUERY_RECORDS_MAX: usize = 10_000;

/// How large they may be together, in answers of the largest size: all of them are in
/// memory meanwhile.
const QUERY_ANSWERS_MAX: u64 = 4;

/// A resource by its name, as clients read it.
type Named = (String, Bytes);

impl Verb for QueryResources {
    type Reply = Feed<ResourceRest>;
    type Target = ();

    fn facts(&self) -> Facts<'_> {
        Facts { writes: false, subject: Subject::Inside(&self.parent, self.kind) }
    }

    async fn resolve(&mut self, _: &Service, _: &mut ResponseMeta) -> Result<(), ServiceError> {
        Ok(())
    }

    async fn perform(
        self,
        service: &Service,
        (): (),
        meta: &mut ResponseMeta,
    ) -> Result<Feed<ResourceRest>, ServiceError> {
        let done = service.query(self, meta).await;
        meta.worked(&account::resource_query(&done));
        done
    }
}

impl Service {
    async fn query(
        &self,
        query: QueryResources,
        meta: &mut ResponseMeta,
    ) -> Result<Feed<ResourceRest>, ServiceError> {
        let parent = self.parent(&query.parent, query.kind, meta).await?;
        let after = match &query.after {
            Some(ResourceRest::AfterName(name)) => Some(name.as_str()),
            Some(ResourceRest::AfterRows(_)) | None => None,
        };
        let records = self.records(query.kind, parent.rid())?.after(after);
        let bytes_max = self.limits.response_bytes_max.saturating_mul(QUERY_ANSWERS_MAX);
        let page = PageBuilder::new(query.items_max, &self.limits);
        let page = self.cluster.take_turns(move |turn| {
            let records = queried(giving_way(records, turn), query.shown, bytes_max)?;
            let context = Arc::new(Context { watch: Some(turn.watch()), ..Context::default() });
            let bind = || -> Result<Bound, QueryError> {
                let parameters = parse_parameters(&query.parameters)?;
                let query = Query::parse_within(&query.text, QueryLimits::service())?;
                query.bind_in(&parameters, &context)
            };
            let failed = |error: QueryError| refused(&error, &query.text);
            let bound = bind().map_err(failed)?;
            match (is_row_by_row(&bound), &query.after) {
                (true, None | Some(ResourceRest::AfterName(_))) => {
                    row_by_row(&bound, &records, page).map_err(failed)
                }
                (false, None) => whole(&bound, &records, 0, page).map_err(failed),
                (false, Some(ResourceRest::AfterRows(given))) => {
                    whole(&bound, &records, *given, page).map_err(failed)
                }
                (_, Some(_)) => Err(ServiceError::bad_continuation()),
            }
        });
        let (bodies, rest) = page.await.map_err(ServiceError::from).flatten()?;
        Ok(Feed { owner_rid: parent.rid().to_owned(), bodies, rest })
    }
}

/// The resources that a query is about, as its client sees them.
fn queried(
    records: impl Iterator<Item = Result<Stored, ServiceError>>,
    shown: fn(Bytes) -> Bytes,
    bytes_max: u64,
) -> Result<Vec<Named>, ServiceError> {
    let (mut named, mut bytes) = (Vec::new(), 0);
    for stored in records {
        let stored = stored?;
        let text = shown(stored.render());
        bytes += text.len() as u64;
        if named.len() == QUERY_RECORDS_MAX || bytes > bytes_max {
            let message = format!(
                "The query covers more than {QUERY_RECORDS_MAX} resources, or {bytes_max} bytes of them."
            );
            return Err(ServiceError::Quota { message });
        }
        named.push((stored.record.name().to_owned(), text));
    }
    Ok(named)
}

/// The rows of a page, and where the next one begins.
type Page = (Vec<Bytes>, Option<ResourceRest>);

/// A page that is being filled.
pub(super) struct PageBuilder {
    pub(super) rows: Vec<Bytes>,
    bytes: usize,
    rows_max: usize,
    bytes_max: usize,
}

impl PageBuilder {
    pub(super) fn new(items_max: usize, limits: &Limits) -> PageBuilder {
        PageBuilder {
            rows: Vec::new(),
            bytes: 0,
            rows_max: items_max.clamp(1, PAGE_ITEMS_MAX),
            bytes_max: usize::try_from(limits.response_bytes_max).unwrap_or(usize::MAX),
        }
    }

    /// Adds a row, if it fits. The first one always does.
    pub(super) fn takes(&mut self, row: impl Into<Bytes>) -> bool {
        let row = row.into();
        let fits = self.rows.len() < self.rows_max && self.bytes + row.len() <= self.bytes_max;
        let taken = fits || self.rows.is_empty();
        if taken {
            self.bytes += row.len();
            self.rows.push(row);
        }
        taken
    }
}

/// Whether each resource gives a row of its own, or none.
fn is_row_by_row(bound: &Bound) -> bool {
    const NO_WINDOW: (usize, usize) = (0, usize::MAX);
    bound.is_rowwise()
        && bound.order().is_empty()
        && !bound.is_distinct()
        && bound.window() == NO_WINDOW
}

fn row_by_row(bound: &Bound, records: &[Named], mut page: PageBuilder) -> Result<Page, QueryError> {
    let mut run = Run::new(bound, STEPS_MAX);
    let mut last = None;
    for (name, text) in records {
        let mut row = None;
        let _ = run.document(raw(text).into(), &mut |made| {
            row = made.text()?;
            Ok(ControlFlow::Continue(()))
        })?;
        let Some(row) = row else { continue };
        if !page.takes(row) {
            return Ok((page.rows, last.map(ResourceRest::AfterName)));
        }
        last = Some(name.clone());
    }
    Ok((page.rows, None))
}

fn whole(
    bound: &Bound,
    records: &[Named],
    given: u64,
    mut page: PageBuilder,
) -> Result<Page, QueryError> {
    let rows = bound.execute(records.iter().map(|(_, text)| raw(text)))?;
    let skipped = usize::try_from(given).unwrap_or(usize::MAX);
    for row in rows.into_iter().skip(skipped) {
        if !page.takes(row.to_string()) {
            let given = given.saturating_add(page.rows.len() as u64);
            return Ok((page.rows, Some(ResourceRest::AfterRows(given))));
        }
    }
    Ok((page.rows, None))
}

fn raw(text: &Bytes) -> Raw<'_> {
    Raw::trusted(std::str::from_utf8(text).unwrap_or_default())
}
