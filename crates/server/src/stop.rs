//! The shutdown signal.

use tokio::sync::watch;

/// Raises the signal; dropping it does so, too.
#[derive(Debug)]
pub(crate) struct Stopper {
    sender: watch::Sender<bool>,
}

/// Receives the signal.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    receiver: watch::Receiver<bool>,
}

pub(crate) fn stop() -> (Stopper, Stop) {
    let (sender, receiver) = watch::channel(false);
    (Stopper { sender }, Stop { receiver })
}

impl Stopper {
    pub(crate) fn raise(&self) {
        self.sender.send_replace(true);
    }
}

impl Stop {
    pub(crate) fn is_raised(&self) -> bool {
        *self.receiver.borrow()
    }

    /// Returns when the signal has been raised, however long ago.
    pub(crate) async fn raised(&mut self) {
        // An error means that the sender is gone: everything is ending.
        let _raised = self.receiver.wait_for(|raised| *raised).await;
    }
}
