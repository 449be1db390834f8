//! Clients that wait for the end of an instance. They are notified when the end is on disk, so that no answer is ahead
//! of it.

use std::collections::HashMap;

use futures::channel::oneshot::{Receiver, Sender, channel};

use crate::key::Seq;

#[derive(Default)]
pub(crate) struct Watchers {
    waiting: HashMap<Seq, Vec<Sender<()>>>,
    /// Their instances have ended in memory.
    due: Vec<Sender<()>>,
}

impl Watchers {
    pub fn add(&mut self, seq: Seq) -> Receiver<()> {
        let (sender, notified) = channel();
        self.waiting.entry(seq).or_default().push(sender);
        notified
    }

    pub fn forget_cancelled(&mut self, seq: Seq) {
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
