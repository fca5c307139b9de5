//! Sizes of buckets and logical partitions: the input of split decisions.

use model::epk::Epk;
use storage::{Direction, KeyRange, ScanLimit, View};

use crate::command::PartitionError;
use crate::config::Bucket;
use crate::key::{self, Group};
use crate::read::Reader;
use crate::record::{Head, KeyStatistics, RecordError};

impl Reader {
    /// Each bucket with its head, in the order of the ring.
    pub fn bucket_sizes(&self, view: &dyn View) -> Result<Vec<(Bucket, Head)>, PartitionError> {
        let with_head = |bucket: &Bucket| Ok((bucket.clone(), self.head(view, bucket)?));
        self.config().buckets.iter().map(with_head).collect()
    }

    /// Calls `visit` with each logical partition of a bucket and its size, in the
    /// order of the ring, until it returns false.
    pub fn each_key(
        &self,
        view: &dyn View,
        bucket: &Bucket,
        mut visit: impl FnMut(Epk, KeyStatistics) -> bool,
    ) -> Result<(), PartitionError> {
        let keys = self.config().keys_of(bucket.number);
        let mut range = KeyRange::prefix(&keys.group(Group::Statistics));
        loop {
            let chunk = view.scan(&range, Direction::Forward, ScanLimit::default())?;
            for (key, value) in &chunk.rows {
                let epk = key::split(key).and_then(|(_, _, _, rest)| key::take_epk(rest));
                let (epk, _) = epk.ok_or(RecordError::Malformed { what: "statistics key" })?;
                if !visit(epk, KeyStatistics::decode(value)?) {
                    return Ok(());
                }
            }
            match chunk.rest {
                Some(rest) => range = rest,
                None => return Ok(()),
            }
        }
    }
}
