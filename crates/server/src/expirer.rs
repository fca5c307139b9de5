//! Giving back the space of items that have expired, in the background.

use std::sync::Arc;
use std::time::Duration;

use crate::front::Front;
use crate::stop::Stop;

/// How often expired items are looked for. Nobody sees them meanwhile.
const LOOK: Duration = Duration::from_secs(5);

/// Looks for them until told to stop.
pub(crate) async fn run(front: Arc<Front>, mut stop: Stop) {
    let Some(open) = front.open.get() else { return };
    loop {
        let work = async {
            match open.service.maintenance().expire().await {
                Ok(0) => {}
                Ok(items) => tracing::info!(items, "removed expired items"),
                Err(error) => tracing::warn!(%error, "expired items could not be removed"),
            }
            tokio::time::sleep(LOOK).await;
        };
        tokio::select! {
            biased;
            () = stop.raised() => return,
            () = work => {}
        }
    }
}
