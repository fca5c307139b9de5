//! Removing what drops leave behind, in the background.

use std::sync::Arc;
use std::time::Duration;

use service::Service;

use crate::front::Front;
use crate::stop::Stop;

/// Drops often come in bursts, as tests tidy up: one sweep serves them all.
const SETTLE: Duration = Duration::from_secs(1);

/// To find what no notice was given of.
const AGAIN: Duration = Duration::from_secs(60);

/// After a failure: on a full disk others wait for what a sweep gives back.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// Sweeps after the start, after drops and now and then, until told to stop.
pub(crate) async fn run(front: Arc<Front>, mut stop: Stop) {
    let Some(open) = front.open.get() else { return };
    let mut garbage = 0;
    loop {
        let again = tokio::select! {
            biased;
            () = stop.raised() => return,
            again = sweep(&open.service, &mut garbage) => again,
        };
        let wanted = async {
            let _told_or_not =
                tokio::time::timeout(again, open.service.maintenance().sweep_wanted()).await;
            tokio::time::sleep(SETTLE).await;
        };
        tokio::select! {
            () = wanted => {}
            () = stop.raised() => return,
        }
    }
}

/// Sweeps, and has the space given back once that is worth it. Counts in `garbage` what
/// was deleted but is on the disk still. How long to wait before the next time.
async fn sweep(service: &Service, garbage: &mut u64) -> Duration {
    let mut again = AGAIN;
    match service.maintenance().sweep().await {
        Ok(swept) if swept.resources + swept.containers + swept.buckets > 0 => {
            tracing::info!(swept.resources, swept.containers, swept.buckets, swept.keys, "swept");
            *garbage += swept.bytes;
        }
        Ok(_) => {}
        Err(error) => {
            tracing::warn!(%error, "what drops left could not be removed");
            again = AFTER_FAILURE;
        }
    }
    match service.maintenance().reclaim(*garbage).await {
        Ok(true) => {
            tracing::info!(deleted_bytes = *garbage, "gave back the space of what drops left");
            *garbage = 0;
        }
        Ok(false) => {}
        Err(error) => {
            tracing::warn!(%error, "the space of what drops left was not given back");
            // Not tried again before there is as much again: it may be a full disk.
            *garbage = 0;
        }
    }
    again
}
