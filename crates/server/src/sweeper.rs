//! Removing what drops leave behind, in the background.

use std::sync::Arc;
use std::time::Duration;

use crate::front::Front;
use crate::stop::Stop;

/// Drops often come in bursts, as tests tidy up: one sweep serves them all.
const SETTLE: Duration = Duration::from_secs(1);

/// After a failure, and to find what no notice was given of.
const AGAIN: Duration = Duration::from_secs(60);

/// Sweeps after the start, after drops and now and then, until told to stop.
pub(crate) async fn run(front: Arc<Front>, mut stop: Stop) {
    loop {
        tokio::select! {
            () = sweep(&front) => {}
            () = stop.raised() => return,
        }
        let wanted = async {
            let _told_or_not = tokio::time::timeout(AGAIN, front.dropped.notified()).await;
            tokio::time::sleep(SETTLE).await;
        };
        tokio::select! {
            () = wanted => {}
            () = stop.raised() => return,
        }
    }
}

async fn sweep(front: &Front) {
    let Some(open) = front.open.get() else { return };
    match open.service.sweep().await {
        Ok(swept) if swept.resources + swept.containers + swept.buckets > 0 => {
            tracing::info!(swept.resources, swept.containers, swept.buckets, swept.keys, "swept");
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(%error, "what drops left could not be removed"),
    }
}
