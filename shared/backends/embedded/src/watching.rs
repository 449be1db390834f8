//! Waiting for the end of an instance.

use futures::channel::oneshot::Receiver;
use swirl_model::ids::InstanceId;

use crate::Embedded;
use crate::key::Seq;

/// A client that waits, until it is dropped.
struct Watching<'a> {
    store: &'a Embedded,
    seq: Seq,
    notified: Receiver<()>,
}

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.notified.close();
        // A store that has stopped notifies nobody.
        let _ = self
            .store
            .read(|state| state.watchers.forget_cancelled(self.seq));
    }
}

impl Embedded {
    /// Returns when an instance has ended and this is on disk, or when there is no such instance.
    pub(crate) async fn watch(&self, id: &InstanceId) {
        let watched = self.read(|state| {
            let (seq, inst) = state.find(id)?;
            let is_running = !inst.status().ended();
            is_running.then(|| (seq, state.watchers.add(seq)))
        });
        if let Ok(Some((seq, notified))) = watched {
            let mut watching = Watching {
                store: self,
                seq,
                notified,
            };
            // Cancelled: whoever ended the instance was dropped before its change was on disk.
            if (&mut watching.notified).await.is_ok() {
                return;
            }
        }
        // The journal writes in order: after this change the end is on disk too. An error shows when the caller looks.
        let _ = self.write(|_| ()).await;
    }
}
