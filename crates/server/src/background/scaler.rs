//! Changing layouts in the background: splits for throughput that was asked for and
//! for data that has grown, and merges where they are wanted.

use std::sync::Arc;
use std::time::Duration;

use service::{Service, ServiceError};

use crate::http::service::HttpService;
use crate::stop::Stop;

/// After a failure.
const AGAIN: Duration = Duration::from_secs(10);

/// How often partitions are looked at that could be merged.
const LOOK: Duration = Duration::from_secs(1);

/// Works after the start and whenever there is something to do, until told to stop.
pub(crate) async fn run(http: Arc<HttpService>, merge_after: Option<Duration>, mut stop: Stop) {
    let Some(open) = http.open.get() else { return };
    loop {
        let work = async {
            match change(&open.service, merge_after).await {
                Ok(0) => tokio::select! {
                    () = open.service.scaling_wanted() => {}
                    () = open.service.relief_wanted() => {}
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

async fn change(service: &Service, merge_after: Option<Duration>) -> Result<usize, ServiceError> {
    let (for_throughput, for_storage) = (service.scale().await, service.relieve().await);
    let merges = match merge_after {
        Some(quiet) => service.merge_cold(quiet).await?,
        None => 0,
    };
    Ok(for_throughput? + for_storage? + merges)
}
