//! Messages between processes: they may be lost, duplicated and delayed, and are never ordered.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use swirl_model::ids::ScopeRef;
use swirl_model::time::Timestamp;
use swirl_ports::{Clock, Queue};
use swirl_virtual_time::VirtualClock;

use super::faults::Faults;
use crate::random::Random;

pub struct Messages {
    clock: Arc<VirtualClock>,
    inner: Mutex<Inner>,
}

struct Inner {
    faults: Faults,
    random: Random,
    /// With the time from which they are available.
    under_way: Vec<(Timestamp, Message)>,
}

#[derive(Debug, Clone)]
pub enum Message {
    Task(ScopeRef),
    Join(ScopeRef),
}

impl Messages {
    pub fn new(clock: Arc<VirtualClock>, faults: Faults) -> Messages {
        let inner = Inner {
            random: Random::new(faults.seed ^ 0x9e0e),
            faults,
            under_way: Vec::new(),
        };
        Messages {
            clock,
            inner: Mutex::new(inner),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_faults(&self, faults: Faults) {
        self.inner().faults = faults;
    }

    /// All messages under way are lost.
    pub fn wipe(&self) {
        self.inner().under_way.clear();
    }

    /// The number of messages that are available now.
    pub fn due(&self) -> usize {
        let now = self.clock.now();
        let inner = self.inner();
        inner.under_way.iter().filter(|(at, _)| *at <= now).count()
    }

    /// The time at which the next message is available.
    pub fn next(&self) -> Option<Timestamp> {
        self.inner().under_way.iter().map(|(at, _)| *at).min()
    }

    /// Takes the available message at this position.
    pub fn take(&self, place: usize) -> Option<Message> {
        let now = self.clock.now();
        let mut inner = self.inner();
        let mut due = inner.under_way.iter().enumerate();
        let mut due = due.by_ref().filter(|(_, (at, _))| *at <= now);
        let index = due.nth(place).map(|(index, _)| index)?;
        Some(inner.under_way.remove(index).1)
    }
}

#[async_trait]
impl Queue for Messages {
    async fn push(&self, tasks: Vec<ScopeRef>) {
        self.send(tasks.into_iter().map(Message::Task));
    }

    async fn push_joins(&self, scopes: Vec<ScopeRef>) {
        self.send(scopes.into_iter().map(Message::Join));
    }
}

impl Messages {
    fn send(&self, messages: impl Iterator<Item = Message>) {
        let now = self.clock.now();
        let mut inner = self.inner();
        let inner = &mut *inner;
        let mut chance = |chance: usize| inner.random.below(1000) < chance;
        for message in messages {
            if chance(inner.faults.lost) {
                continue;
            }
            let times = 1 + usize::from(chance(inner.faults.doubled));
            for _ in 0..times {
                let late = match chance(inner.faults.delayed) {
                    true => 1 + chance(500) as u64 * 4000 + chance(500) as u64 * 37,
                    false => 0,
                };
                inner.under_way.push((now.plus_ms(late), message.clone()));
            }
        }
    }
}
