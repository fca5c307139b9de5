//! Carrying out changes of throughput that take splits, in the background.

use std::sync::Arc;
use std::time::Duration;

use crate::front::Front;
use crate::stop::Stop;

/// After a failure.
const AGAIN: Duration = Duration::from_secs(10);

/// Scales after the start and whenever an offer waits for it, until told to stop.
pub(crate) async fn run(front: Arc<Front>, mut stop: Stop) {
    let Some(open) = front.open.get() else { return };
    loop {
        let scale = async {
            match open.service.scale().await {
                Ok(0) => open.service.scaling_wanted().await,
                Ok(splits) => tracing::info!(splits, "scaled"),
                Err(error) => {
                    tracing::warn!(%error, "a change of throughput could not be carried out");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        };
        tokio::select! {
            () = scale => {}
            () = stop.raised() => return,
        }
    }
}
