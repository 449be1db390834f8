//! Clients that wait for the end of an instance. They are notified when the end is on disk, so that no answer is ahead
//! of it.

use std::collections::HashMap;

use futures::channel::oneshot::{Receiver, Sender, channel};
use swirl_model::ids::InstanceId;

use crate::Embedded;
use crate::key::Seq;

#[derive(Default)]
pub(crate) struct Watchers {
    waiting: HashMap<Seq, Vec<Sender<()>>>,
    /// Their instances have ended in memory.
    due: Vec<Sender<()>>,
}

impl Watchers {
    fn add(&mut self, seq: Seq) -> Receiver<()> {
        let (sender, notified) = channel();
        self.waiting.entry(seq).or_default().push(sender);
        notified
    }

    fn forget_cancelled(&mut self, seq: Seq) {
        if let Some(all) = self.waiting.get_mut(&seq) {
            all.retain(|sender| !sender.is_canceled());
            if all.is_empty() {
                self.waiting.remove(&seq);
            }
        }
    }

    /// An instance has ended, or is gone.
    pub fn end(&mut self, seq: Seq) {
        self.due
            .extend(self.waiting.remove(&seq).unwrap_or_default());
    }

    /// Those to notify once the present changes are on disk.
    pub fn take_due(&mut self) -> Vec<Sender<()>> {
        std::mem::take(&mut self.due)
    }
}

pub(crate) fn notify(watchers: Vec<Sender<()>>) {
    for watcher in watchers {
        // A client that has gone needs nothing.
        let _ = watcher.send(());
    }
}

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
