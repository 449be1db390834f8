//! Tells work in progress whether its outcome is still awaited.

use tokio::sync::watch;

/// Passed to the work. By default the outcome is always wanted.
#[derive(Debug, Clone, Default)]
pub struct Wanted(Option<watch::Receiver<()>>);

/// Held by the waiting caller. When it is dropped, the work may stop.
#[derive(Debug)]
pub struct Waiting {
    _held: watch::Sender<()>,
}

impl Waiting {
    pub fn begin() -> (Waiting, Wanted) {
        let (sender, receiver) = watch::channel(());
        (Waiting { _held: sender }, Wanted(Some(receiver)))
    }
}

impl Wanted {
    pub fn is_over(&self) -> bool {
        let receiver = self.0.as_ref();
        receiver.is_some_and(|receiver| receiver.has_changed().is_err())
    }

    /// Returns when the outcome is no longer awaited.
    pub async fn over(&self) {
        match self.0.clone() {
            Some(mut receiver) => while receiver.changed().await.is_ok() {},
            None => std::future::pending().await,
        }
    }
}
