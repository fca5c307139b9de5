//! A page of rows becomes an answer: the one place where that happens.
//!
//! It takes time for each row and byte. A short page is put together where its request is
//! served, as handing it over would cost more; any other on a query thread, where its rows
//! are freed as well.

use bytes::Bytes;
use http::StatusCode;
use model::json::write_string;
use service::ServiceError;

use crate::gateway::Call;
use crate::reply::{Answer, ITEM_COUNT};
use protocol::error::WireError;

/// Rows of a short page: half of what an async worker may handle at once, as a request
/// handles records of the catalogue, too.
const SHORT_PAGE_ROWS: usize = runtime::SHORT_WORK_ROWS_MAX / 2;

/// Bytes of a short page, which are copied in some microseconds.
const SHORT_PAGE_BYTES: usize = 64 << 10;

/// What an envelope has besides its rows, at most in general.
const ENVELOPE_BYTES: usize = 96;

/// Some rows, as the service returned them.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) owner_rid: String,
    /// The name of the array in the envelope.
    pub(crate) name: &'static str,
    pub(crate) rows: Vec<T>,
}

/// What becomes a row of a page.
pub(crate) trait Row: Send + 'static {
    /// About as many bytes as it has in an answer.
    fn bytes(&self) -> usize;
}

impl Row for Bytes {
    fn bytes(&self) -> usize {
        self.len()
    }
}

impl<T: Row> Page<T> {
    /// The answer with all rows, each as `shown` makes it of them: JSON text.
    pub(crate) async fn answer(
        self,
        call: &Call<'_>,
        shown: impl Fn(T) -> Bytes + Send + 'static,
    ) -> Result<Answer, WireError> {
        let (count, bytes) = (self.rows.len(), self.rows.iter().map(T::bytes).sum::<usize>());
        let body = if count <= SHORT_PAGE_ROWS && bytes <= SHORT_PAGE_BYTES {
            self.write(bytes, shown, &|| Ok(()))?
        } else {
            let writing = move |give_way: &GiveWay<'_>| self.write(bytes, shown, give_way);
            call.service().shape_page(writing).await?
        };
        let mut answer = Answer::json(StatusCode::OK, body);
        answer.set(ITEM_COUNT, &count.to_string());
        Ok(answer)
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
        let page = Page { owner_rid: "a\"b".to_owned(), name: "Rows", rows: vec![row; rows] };
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
