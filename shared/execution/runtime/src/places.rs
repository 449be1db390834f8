//! How workflows share the places of a worker. A scope keeps its place while its call is in flight, so long calls of
//! one workflow could occupy all places. A workflow gets another place only while it has at most eight times as many as
//! would be left. So a single workflow can have eight ninths of all places, two workflows eight seventeenths each, and
//! some are always left for a new one. When many workflows have taken nearly all places, workflows with less than half
//! of an equal share still get extra places, up to half as many again.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::channel::oneshot;

const TIMES_LEFT: usize = 8;

pub struct Places {
    all: usize,
    state: Mutex<State>,
}

struct State {
    all: usize,
    /// Negative while there are extra places in use.
    free: isize,
    workflows: HashMap<Arc<str>, Usage>,
}

#[derive(Default)]
struct Usage {
    used: usize,
    waiting: VecDeque<oneshot::Sender<()>>,
}

/// A place of a workflow, until it is dropped.
pub struct Place {
    places: Arc<Places>,
    workflow: Arc<str>,
}

impl Places {
    /// Creates this many places for a workflow that is alone, and an eighth more for others.
    pub fn new(of_one: usize) -> Arc<Places> {
        let of_one = of_one.max(1);
        let all = of_one + of_one.div_ceil(TIMES_LEFT);
        Arc::new(Places {
            all,
            state: Mutex::new(State {
                all,
                free: isize::try_from(all).unwrap_or(isize::MAX),
                workflows: HashMap::new(),
            }),
        })
    }

    /// The number of places that can be in use together, including extra ones. Beyond it, only a workflow without any
    /// place gets one.
    pub fn most(&self) -> usize {
        self.all + self.all / 2
    }

    /// Returns a place, unless the workflow has its share. `in_any_case` gives it one even then.
    pub fn enter(self: &Arc<Places>, workflow: &Arc<str>, in_any_case: bool) -> Option<Place> {
        let mut state = self.locked();
        if !in_any_case && !state.may_enter(workflow) {
            return None;
        }
        state.free -= 1;
        state.workflows.entry(workflow.clone()).or_default().used += 1;
        Some(Place {
            places: self.clone(),
            workflow: workflow.clone(),
        })
    }

    /// Completes when the workflow may have another place. Another caller may be faster, so ask again then.
    pub fn room(&self, workflow: &Arc<str>) -> oneshot::Receiver<()> {
        let (sender, notified) = oneshot::channel();
        let mut state = self.locked();
        if state.may_enter(workflow) {
            // The caller is notified through the channel.
            let _ = sender.send(());
        } else {
            let usage = state.workflows.entry(workflow.clone()).or_default();
            usage.waiting.retain(|waiting| !waiting.is_canceled());
            usage.waiting.push_back(sender);
        }
        notified
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn may_enter(&self, workflow: &Arc<str>) -> bool {
        let used = self.workflows.get(workflow).map_or(0, |usage| usage.used);
        let left = usize::try_from(self.free - 1).unwrap_or(0);
        let half_of_equal = self.all / (2 * self.workflows.len().max(1));
        let is_over = self.free.unsigned_abs() >= self.all / 2 && self.free < 0;
        used == 0 || used < TIMES_LEFT * left || used < half_of_equal && !is_over
    }

    /// Among the workflows that may enter, notifies the first waiter of the one with the fewest places.
    fn notify_next(&mut self) {
        let waiting = self.workflows.iter();
        let mut waiting: Vec<_> = waiting
            .filter(|(_, usage)| !usage.waiting.is_empty())
            .map(|(workflow, usage)| (usage.used, workflow.clone()))
            .collect();
        waiting.sort();
        for (_, workflow) in waiting {
            if !self.may_enter(&workflow) {
                continue;
            }
            let Some(usage) = self.workflows.get_mut(&workflow) else {
                continue;
            };
            while let Some(next) = usage.waiting.pop_front() {
                if next.send(()).is_ok() {
                    return;
                }
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.places.locked();
        state.free += 1;
        if let Some(usage) = state.workflows.get_mut(&self.workflow) {
            usage.used = usage.used.saturating_sub(1);
            usage.waiting.retain(|waiting| !waiting.is_canceled());
        }
        state.notify_next();
        let is_idle = |usage: &Usage| usage.used == 0 && usage.waiting.is_empty();
        if state.workflows.get(&self.workflow).is_some_and(is_idle) {
            state.workflows.remove(&self.workflow);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test")]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn take(places: &Arc<Places>, workflow: &str, most: usize) -> Vec<Place> {
        let workflow = Arc::from(workflow);
        (0..most)
            .map_while(|_| places.enter(&workflow, false))
            .collect()
    }

    #[test]
    fn one_workflow_has_the_set_number_and_others_find_room() {
        for set in [1, 2, 3, 4, 8, 100, 1024] {
            let places = Places::new(set);
            let slow = take(&places, "slow", 10_000);
            assert_eq!(slow.len(), set, "of {set}");
            assert_eq!(take(&places, "quick", 1).len(), 1, "of {set}");
        }
    }

    #[test]
    fn busy_workflows_converge_to_equal_numbers() {
        let places = Places::new(1024);
        let mut slow = take(&places, "slow", 10_000);
        let mut other = take(&places, "other", 10_000);
        for _ in 0..2_000 {
            slow.pop();
            other.extend(take(&places, "other", 1));
            slow.extend(take(&places, "slow", 1));
        }
        assert!(
            slow.len().abs_diff(other.len()) <= 9,
            "{} {}",
            slow.len(),
            other.len()
        );
        assert!(!take(&places, "third", 1).is_empty());
    }

    #[test]
    fn every_workflow_gets_a_few_places() {
        let places = Places::new(1024);
        let names: Vec<String> = (0..9).map(|n| format!("flood {n}")).collect();
        let mut floods: Vec<_> = names.iter().map(|_| Vec::new()).collect();
        for _ in 0..1_200 {
            for (flood, name) in floods.iter_mut().zip(&names) {
                flood.extend(take(&places, name, 1));
            }
        }
        let taken: usize = floods.iter().map(Vec::len).sum();
        assert!(taken <= 1024 + 128, "{taken}");
        let small = take(&places, "small", 1_000);
        assert!((50..200).contains(&small.len()), "{}", small.len());
        for flood in &floods {
            assert!(flood.len() >= small.len(), "{}", flood.len());
        }
        // New workflows get extra places, but only up to a limit. Beyond it each has one.
        let more: Vec<_> = (0..200)
            .map(|n| take(&places, &format!("more {n}"), 1_000))
            .collect();
        let taken = taken + small.len() + more.iter().map(Vec::len).sum::<usize>();
        assert!(taken <= places.most() + more.len(), "{taken}");
        assert!(more.iter().all(|places| !places.is_empty()));
        // All places are returned.
        drop((floods, small, more));
        assert_eq!(take(&places, "slow", 10_000).len(), 1024);
    }

    #[test]
    fn waiting_callers_are_notified() {
        let places = Places::new(2);
        let slow = Arc::from("slow");
        assert!(places.room(&slow).now_or_never().is_some(), "there is room");
        let mut held = take(&places, "slow", 2);
        let gone = places.room(&slow);
        let mut first = places.room(&slow);
        let mut second = places.room(&slow);
        drop(gone);
        assert!((&mut first).now_or_never().is_none());
        held.pop();
        assert!(first.now_or_never().unwrap().is_ok());
        assert!(
            (&mut second).now_or_never().is_none(),
            "one free place notifies one caller"
        );
        held.pop();
        assert!(second.now_or_never().unwrap().is_ok());
        let cancelled = places.enter(&slow, true);
        assert!(cancelled.is_some());
        drop(cancelled);
        assert!(places.locked().workflows.is_empty(), "no state is left");
    }
}
