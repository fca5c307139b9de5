//! Splitting partitions in the background: for throughput that was asked for, and
//! for data that has grown.

use std::sync::Arc;
use std::time::Duration;

use service::{Service, ServiceError};

use crate::front::Front;
use crate::stop::Stop;

/// After a failure.
const AGAIN: Duration = Duration::from_secs(10);

/// Works after the start and whenever there is something to split, until told to stop.
pub(crate) async fn run(front: Arc<Front>, mut stop: Stop) {
    let Some(open) = front.open.get() else { return };
    loop {
        let work = async {
            match split(&open.service).await {
                Ok(0) => tokio::select! {
                    () = open.service.scaling_wanted() => {}
                    () = open.service.relief_wanted() => {}
                },
                Ok(splits) => tracing::info!(splits, "scaled"),
                Err(error) => {
                    tracing::warn!(%error, "partitions could not be split");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        };
        tokio::select! {
            () = work => {}
            () = stop.raised() => return,
        }
    }
}

async fn split(service: &Service) -> Result<usize, ServiceError> {
    let (for_throughput, for_storage) = (service.scale().await, service.relieve().await);
    Ok(for_throughput? + for_storage?)
}
