//! Changing layouts in the background: splits for throughput that was asked for and
//! for data that has grown, and merges where they are wanted.

use std::sync::Arc;
use std::time::Duration;

use service::{Maintenance, ServiceError};

use crate::front::Front;
use crate::stop::Stop;

/// After a failure.
const AGAIN: Duration = Duration::from_secs(10);

/// How often partitions are looked at that could be merged.
const LOOK: Duration = Duration::from_secs(1);

/// Works after the start and whenever there is something to do, until told to stop.
pub(crate) async fn run(front: Arc<Front>, merge_after: Option<Duration>, mut stop: Stop) {
    let Some(open) = front.open.get() else { return };
    let maintenance = open.service.maintenance();
    loop {
        let work = async {
            match change(maintenance, merge_after).await {
                Ok(0) => tokio::select! {
                    () = maintenance.scaling_wanted() => {}
                    () = maintenance.relief_wanted() => {}
                    () = tokio::time::sleep(LOOK), if merge_after.is_some() => {}
                },
                Ok(changes) => tracing::info!(changes, "scaled"),
                Err(error) => {
                    tracing::warn!(%error, "a layout could not be changed");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        };
        tokio::select! {
            biased;
            () = stop.raised() => return,
            () = work => {}
        }
    }
}

async fn change(
    maintenance: Maintenance<'_>,
    merge_after: Option<Duration>,
) -> Result<usize, ServiceError> {
    let (for_throughput, for_storage) = (maintenance.scale().await, maintenance.relieve().await);
    let merges = match merge_after {
        Some(quiet) => maintenance.merge_cold(quiet).await?,
        None => 0,
    };
    Ok(for_throughput? + for_storage? + merges)
}
