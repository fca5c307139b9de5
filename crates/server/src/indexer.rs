//! Indexing items anew in the background when an indexing policy was changed.

use std::sync::Arc;
use std::time::Duration;

use crate::front::Front;
use crate::stop::Stop;

/// After a failure.
const AGAIN: Duration = Duration::from_secs(10);

/// Works after the start and whenever a policy was changed, until told to stop.
pub(crate) async fn run(front: Arc<Front>, mut stop: Stop) {
    let Some(open) = front.open.get() else { return };
    loop {
        let work = async {
            match open.service.maintenance().reindex().await {
                Ok(0) => open.service.maintenance().reindexing_wanted().await,
                Ok(containers) => tracing::info!(containers, "indexed anew"),
                Err(error) => {
                    tracing::warn!(%error, "a container could not be indexed anew");
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
