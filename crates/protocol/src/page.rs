//! A page of rows becomes the body of an answer: the one place where that happens.
//!
//! It takes time for each row and byte. A short page is put together where its request is
//! served, as handing it over would cost more; any other on a query thread, where its rows
//! are freed as well.

use bytes::Bytes;
use model::json::write_string;
use service::{Change, ItemVersion, RangeInfo, Service, ServiceError};

use crate::error::WireError;

/// Rows of a short page: half of what an async worker may handle at once, as a request
/// handles records of the catalogue, too.
const SHORT_PAGE_ROWS: usize = runtime::SHORT_WORK_ROWS_MAX / 2;

/// Bytes of a short page, which are copied in some microseconds.
const SHORT_PAGE_BYTES: usize = 64 << 10;

/// What an envelope has besides its rows, at most in general.
const ENVELOPE_BYTES: usize = 96;

/// What a range has in an answer, roughly.
const RANGE_BYTES: usize = 400;

/// Some rows, as the service returned them.
#[derive(Debug)]
pub struct Envelope<T> {
    pub owner_rid: String,
    /// The name of the array in the envelope.
    pub name: &'static str,
    pub rows: Vec<T>,
}

/// What becomes a row of a page.
pub trait EnvelopeRow: Send + 'static {
    /// About as many bytes as it has in an answer.
    fn bytes(&self) -> usize;
}

impl EnvelopeRow for Bytes {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl EnvelopeRow for Change {
    fn bytes(&self) -> usize {
        self.text.len()
    }
}

impl EnvelopeRow for ItemVersion {
    fn bytes(&self) -> usize {
        self.image.as_ref().map_or(0, Bytes::len)
    }
}

impl EnvelopeRow for RangeInfo {
    fn bytes(&self) -> usize {
        RANGE_BYTES
    }
}

impl<T: EnvelopeRow> Envelope<T> {
    /// The body with all rows, each as `shown` makes it of them: JSON text.
    pub async fn body(
        self,
        service: &Service,
        shown: impl Fn(T) -> Bytes + Send + 'static,
    ) -> Result<String, WireError> {
        let (count, bytes) = (self.rows.len(), self.rows.iter().map(T::bytes).sum::<usize>());
        if count <= SHORT_PAGE_ROWS && bytes <= SHORT_PAGE_BYTES {
            return Ok(self.write(bytes, shown, &|| Ok(()))?);
        }
        let writing = move |give_way: &GiveWay<'_>| self.write(bytes, shown, give_way);
        Ok(service.shape_page(writing).await?)
    }

    /// `{"_rid":…,"<name>":[…],"_count":n}`.
    fn write(
        self,
        bytes: usize,
        shown: impl Fn(T) -> Bytes,
        give_way: &GiveWay<'_>,
    ) -> Result<String, ServiceError> {
        let count = self.rows.len();
        runtime::short_work(count);
        let mut out = String::with_capacity(bytes + count + ENVELOPE_BYTES);
        out.push_str("{\"_rid\":");
        write_string(&mut out, &self.owner_rid);
        out.push_str(",\"");
        out.push_str(self.name);
        out.push_str("\":[");
        for (at, row) in self.rows.into_iter().enumerate() {
            out.push_str(if at == 0 { "" } else { "," });
            out.push_str(std::str::from_utf8(&shown(row)).unwrap_or("null"));
            give_way()?;
        }
        out.push_str(&format!("],\"_count\":{count}}}"));
        Ok(out)
    }
}

/// Lets others run. Fails when the work has to end.
type GiveWay<'a> = dyn Fn() -> Result<(), ServiceError> + 'a;

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use runtime::on_async_worker;

    use super::*;

    /// Writes a page of that many rows where requests are served.
    fn written(rows: usize) -> String {
        let row = Bytes::from_static(b"{}");
        let page = Envelope { owner_rid: "a\"b".to_owned(), name: "Rows", rows: vec![row; rows] };
        let writing = async { page.write(0, |row| row, &|| Ok(())).unwrap() };
        let mut context = Context::from_waker(Waker::noop());
        match pin!(on_async_worker(writing)).poll(&mut context) {
            Poll::Ready(text) => text,
            Poll::Pending => unreachable!("it waits for nothing"),
        }
    }

    #[test]
    fn rows_are_counted_and_the_owner_is_named() {
        assert_eq!(written(0), r#"{"_rid":"a\"b","Rows":[],"_count":0}"#);
        assert_eq!(written(2), r#"{"_rid":"a\"b","Rows":[{},{}],"_count":2}"#);
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "rows handled on an async worker")]
    fn a_long_page_is_never_written_where_requests_are_served() {
        written(runtime::SHORT_WORK_ROWS_MAX + 1);
    }
}
