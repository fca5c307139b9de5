//! The two schemas of batches: an operation, and what came of it.

use crate::Result;
use crate::layout::{Column, RowLayout, Storage};
use crate::record::{RecordWriter, Records};
use crate::row::HybridRow;
use crate::value::{Kind, RowValue};

/// The names of columns, shared by the tables below and the code that asks for a value.
mod column {
    pub(super) const OPERATION_TYPE: &str = "operationType";
    pub(super) const RESOURCE_TYPE: &str = "resourceType";
    pub(super) const PARTITION_KEY: &str = "partitionKey";
    pub(super) const EFFECTIVE_PARTITION_KEY: &str = "effectivePartitionKey";
    pub(super) const ID: &str = "id";
    pub(super) const BINARY_ID: &str = "binaryId";
    pub(super) const RESOURCE_BODY: &str = "resourceBody";
    pub(super) const INDEXING_DIRECTIVE: &str = "indexingDirective";
    pub(super) const IF_MATCH: &str = "ifMatch";
    pub(super) const IF_NONE_MATCH: &str = "ifNoneMatch";
    pub(super) const TIME_TO_LIVE: &str = "timeToLiveInSeconds";
    pub(super) const MINIMAL: &str = "minimalReturnPreference";
    pub(super) const STATUS: &str = "statusCode";
    pub(super) const SUB_STATUS: &str = "subStatusCode";
    pub(super) const ETAG: &str = "eTag";
    pub(super) const RETRY_AFTER: &str = "retryAfterMilliseconds";
    pub(super) const CHARGE: &str = "requestCharge";
}

/// The rows of a request.
pub static BATCH_OPERATION: RowLayout = RowLayout::new(
    2_145_473_648,
    &[
        Column::new(column::OPERATION_TYPE, Kind::I32, Storage::Fixed),
        Column::new(column::RESOURCE_TYPE, Kind::I32, Storage::Fixed),
        Column::new(column::PARTITION_KEY, Kind::Text, Storage::Variable),
        Column::new(column::EFFECTIVE_PARTITION_KEY, Kind::Binary, Storage::Variable),
        Column::new(column::ID, Kind::Text, Storage::Variable),
        Column::new(column::BINARY_ID, Kind::Binary, Storage::Variable),
        Column::new(column::RESOURCE_BODY, Kind::Binary, Storage::Variable),
        Column::new(column::INDEXING_DIRECTIVE, Kind::Text, Storage::Sparse),
        Column::new(column::IF_MATCH, Kind::Text, Storage::Sparse),
        Column::new(column::IF_NONE_MATCH, Kind::Text, Storage::Sparse),
        Column::new(column::TIME_TO_LIVE, Kind::I32, Storage::Sparse),
        Column::new(column::MINIMAL, Kind::Bool, Storage::Sparse),
    ],
);

/// The rows of an answer.
pub static BATCH_RESULT: RowLayout = RowLayout::new(
    2_145_473_649,
    &[
        Column::new(column::STATUS, Kind::I32, Storage::Fixed),
        Column::new(column::SUB_STATUS, Kind::I32, Storage::Fixed),
        Column::new(column::ETAG, Kind::Text, Storage::Variable),
        Column::new(column::RESOURCE_BODY, Kind::Binary, Storage::Variable),
        Column::new(column::RETRY_AFTER, Kind::U32, Storage::Sparse),
        Column::new(column::CHARGE, Kind::F64, Storage::Sparse),
    ],
);

/// The type of an operation, by its number.
pub mod operation_type {
    pub const CREATE: i32 = 0;
    pub const PATCH: i32 = 1;
    pub const READ: i32 = 2;
    pub const DELETE: i32 = 4;
    pub const REPLACE: i32 = 5;
    pub const UPSERT: i32 = 20;
}

/// The type of resource that batches are made of.
pub const DOCUMENT: i32 = 2;

/// One operation of a request. Fields are `None` where the client said nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BatchOperation<'a> {
    pub operation_type: Option<i32>,
    pub resource_type: Option<i32>,
    /// A JSON array, in requests of several keys.
    pub partition_key: Option<&'a str>,
    pub effective_partition_key: Option<&'a [u8]>,
    pub id: Option<&'a str>,
    pub binary_id: Option<&'a [u8]>,
    pub resource_body: Option<&'a [u8]>,
    pub indexing_directive: Option<&'a str>,
    pub if_match: Option<&'a str>,
    pub if_none_match: Option<&'a str>,
    pub time_to_live_secs: Option<i32>,
    pub minimal: Option<bool>,
}

/// What came of one operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperationResult<'a> {
    pub status: Option<i32>,
    pub sub_status: Option<i32>,
    pub etag: Option<&'a str>,
    pub resource_body: Option<&'a [u8]>,
    pub retry_after_ms: Option<u32>,
    pub request_charge: Option<f64>,
}

/// The operations of a request, one at a time.
pub fn operations(body: &[u8]) -> impl Iterator<Item = Result<BatchOperation<'_>>> {
    let rows = Records::new(body).map(|row| HybridRow::read(&BATCH_OPERATION, row?));
    rows.map(|row| row.map(|row| BatchOperation::from(&row)))
}

/// The results, one at a time.
pub fn outcomes(body: &[u8]) -> impl Iterator<Item = Result<OperationResult<'_>>> {
    let rows = Records::new(body).map(|row| HybridRow::read(&BATCH_RESULT, row?));
    rows.map(|row| row.map(|row| OperationResult::from(&row)))
}

/// A stream of rows, of operations or of results.
///
/// # Errors
/// A row that is too long for a record.
pub fn write<'a>(rows: impl IntoIterator<Item = HybridRow<'a>>, bytes: usize) -> Result<Vec<u8>> {
    let rows = rows.into_iter();
    let mut out = RecordWriter::with_capacity(rows.size_hint().0, bytes);
    for row in rows {
        out.push(&row)?;
    }
    Ok(out.finish())
}

impl<'a> From<&HybridRow<'a>> for BatchOperation<'a> {
    fn from(row: &HybridRow<'a>) -> BatchOperation<'a> {
        BatchOperation {
            operation_type: row.i32(column::OPERATION_TYPE),
            resource_type: row.i32(column::RESOURCE_TYPE),
            partition_key: row.text(column::PARTITION_KEY),
            effective_partition_key: row.binary(column::EFFECTIVE_PARTITION_KEY),
            id: row.text(column::ID),
            binary_id: row.binary(column::BINARY_ID),
            resource_body: row.binary(column::RESOURCE_BODY),
            indexing_directive: row.text(column::INDEXING_DIRECTIVE),
            if_match: row.text(column::IF_MATCH),
            if_none_match: row.text(column::IF_NONE_MATCH),
            time_to_live_secs: row.i32(column::TIME_TO_LIVE),
            minimal: row.bool(column::MINIMAL),
        }
    }
}

impl<'a> From<&BatchOperation<'a>> for HybridRow<'a> {
    fn from(operation: &BatchOperation<'a>) -> HybridRow<'a> {
        let mut row = HybridRow::new(&BATCH_OPERATION);
        row.put(column::OPERATION_TYPE, operation.operation_type.map(RowValue::I32));
        row.put(column::RESOURCE_TYPE, operation.resource_type.map(RowValue::I32));
        row.put(column::PARTITION_KEY, operation.partition_key.map(RowValue::Text));
        let effective = operation.effective_partition_key.map(RowValue::Binary);
        row.put(column::EFFECTIVE_PARTITION_KEY, effective);
        row.put(column::ID, operation.id.map(RowValue::Text));
        row.put(column::BINARY_ID, operation.binary_id.map(RowValue::Binary));
        row.put(column::RESOURCE_BODY, operation.resource_body.map(RowValue::Binary));
        row.put(column::INDEXING_DIRECTIVE, operation.indexing_directive.map(RowValue::Text));
        row.put(column::IF_MATCH, operation.if_match.map(RowValue::Text));
        row.put(column::IF_NONE_MATCH, operation.if_none_match.map(RowValue::Text));
        row.put(column::TIME_TO_LIVE, operation.time_to_live_secs.map(RowValue::I32));
        row.put(column::MINIMAL, operation.minimal.map(RowValue::Bool));
        row
    }
}

impl<'a> From<&HybridRow<'a>> for OperationResult<'a> {
    fn from(row: &HybridRow<'a>) -> OperationResult<'a> {
        OperationResult {
            status: row.i32(column::STATUS),
            sub_status: row.i32(column::SUB_STATUS),
            etag: row.text(column::ETAG),
            resource_body: row.binary(column::RESOURCE_BODY),
            retry_after_ms: row.u32(column::RETRY_AFTER),
            request_charge: row.f64(column::CHARGE),
        }
    }
}

impl<'a> From<&OperationResult<'a>> for HybridRow<'a> {
    fn from(outcome: &OperationResult<'a>) -> HybridRow<'a> {
        let mut row = HybridRow::new(&BATCH_RESULT);
        row.put(column::STATUS, outcome.status.map(RowValue::I32));
        row.put(column::SUB_STATUS, outcome.sub_status.map(RowValue::I32));
        row.put(column::ETAG, outcome.etag.map(RowValue::Text));
        row.put(column::RESOURCE_BODY, outcome.resource_body.map(RowValue::Binary));
        row.put(column::RETRY_AFTER, outcome.retry_after_ms.map(RowValue::U32));
        row.put(column::CHARGE, outcome.request_charge.map(RowValue::F64));
        row
    }
}

/// Columns by name and type. The tables above say which column has which type, and rows
/// were checked against them when they were read.
impl<'a> HybridRow<'a> {
    fn put(&mut self, name: &'static str, value: Option<RowValue<'a>>) {
        if let Some(value) = value {
            self.set(name, value).expect("the table has this column with this type");
        }
    }

    fn i32(&self, name: &str) -> Option<i32> {
        if let Some(RowValue::I32(value)) = self.get(name) { Some(value) } else { None }
    }

    fn u32(&self, name: &str) -> Option<u32> {
        if let Some(RowValue::U32(value)) = self.get(name) { Some(value) } else { None }
    }

    fn f64(&self, name: &str) -> Option<f64> {
        if let Some(RowValue::F64(value)) = self.get(name) { Some(value) } else { None }
    }

    fn bool(&self, name: &str) -> Option<bool> {
        if let Some(RowValue::Bool(value)) = self.get(name) { Some(value) } else { None }
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        if let Some(RowValue::Text(value)) = self.get(name) { Some(value) } else { None }
    }

    fn binary(&self, name: &str) -> Option<&'a [u8]> {
        if let Some(RowValue::Binary(value)) = self.get(name) { Some(value) } else { None }
    }
}
