//! How workflows share the processors of a process. Only a limited number of turns is computed at a time. A workflow
//! with expensive turns leaves one of them to others, and of several waiting workflows, the one that has had the least
//! goes first. So the instances of an expensive workflow wait for each other, and others hardly wait.
//!
//! Costs are counted in steps of the expressions' meter, not in time: the same work gives the same shares on any machine.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::channel::oneshot;

/// The maximum average cost of a turn in a workflow that doesn't burden others: some ten milliseconds.
const LIGHT_MAX: u64 = 300_000;
/// The number of turns in the average.
const AVERAGED: u64 = 8;
/// Workflows that are remembered while nothing of them is under way.
const KNOWN_MAX: usize = 1_000;

pub struct Shares {
    /// The number that compute at a time.
    turns: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: usize,
    /// Those of expensive workflows.
    heavy: usize,
    /// The amount that the last admitted workflow had had: a new one is not ahead of it.
    level: u64,
    workflows: HashMap<Arc<str>, Usage>,
    /// Workflows that wait, by how much they had.
    queue: BTreeSet<(u64, Arc<str>)>,
}

#[derive(Default)]
struct Usage {
    /// The cost of a turn is still unknown.
    is_new: bool,
    average: u64,
    had: u64,
    running: usize,
    waiting: VecDeque<oneshot::Sender<Turn>>,
}

/// The right to compute, until it is dropped.
pub struct Turn {
    shares: Arc<Shares>,
    workflow: Arc<str>,
    is_heavy: bool,
    waited: bool,
    /// In steps of the meter; `None`: nothing was computed.
    cost: Cell<Option<u64>>,
}

impl Turn {
    /// Adds the cost of a computation, in steps of the meter.
    pub fn spend(&self, cost: u64) {
        let before = self.cost.get().unwrap_or(0);
        self.cost.set(Some(before.saturating_add(cost)));
    }

    /// Whether others came first.
    pub fn waited(&self) -> bool {
        self.waited
    }
}

impl Shares {
    /// For a process with this many threads: one is left to others if there are at least two.
    pub fn new(threads: usize) -> Arc<Shares> {
        Arc::new(Shares {
            turns: threads.max(1),
            state: Mutex::default(),
        })
    }

    /// Waits for a turn.
    pub async fn enter(self: &Arc<Shares>, workflow: &Arc<str>) -> Turn {
        loop {
            let turn = {
                let mut state = self.locked();
                match state.let_in_at_once(self.turns, workflow) {
                    Some(is_heavy) => return self.turn(workflow.clone(), is_heavy, false),
                    None => state.wait(workflow),
                }
            };
            self.let_in();
            // It is dropped without an answer only with the shares.
            if let Ok(turn) = turn.await {
                return turn;
            }
        }
    }

    fn turn(self: &Arc<Shares>, workflow: Arc<str>, is_heavy: bool, waited: bool) -> Turn {
        Turn {
            shares: self.clone(),
            workflow,
            is_heavy,
            waited,
            cost: Cell::new(None),
        }
    }

    fn let_in(self: &Arc<Shares>) {
        loop {
            let next = self.locked().next(self.turns);
            let Some((workflow, is_heavy, waiting)) = next else {
                return;
            };
            // If it is no longer awaited, it comes back at once.
            drop(waiting.send(self.turn(workflow, is_heavy, true)));
        }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn usage(&mut self, workflow: &Arc<str>) -> &mut Usage {
        let level = self.level;
        let usage = self.workflows.entry(workflow.clone());
        let usage = usage.or_insert_with(|| Usage {
            is_new: true,
            ..Usage::default()
        });
        if usage.running == 0 && usage.waiting.is_empty() {
            usage.had = usage.had.max(level);
        }
        usage
    }

    /// For the case that nobody waits. Returns whether it is a heavy one.
    fn let_in_at_once(&mut self, turns: usize, workflow: &Arc<str>) -> Option<bool> {
        if !self.queue.is_empty() || self.running >= turns {
            return None;
        }
        let heavy = self.heavy;
        let usage = self.usage(workflow);
        if !usage.may_run(turns, heavy) {
            return None;
        }
        let (is_heavy, had) = (usage.is_heavy(), usage.had);
        usage.running += 1;
        self.count(is_heavy, had);
        Some(is_heavy)
    }

    fn wait(&mut self, workflow: &Arc<str>) -> oneshot::Receiver<Turn> {
        let (waiting, turn) = oneshot::channel();
        let usage = self.usage(workflow);
        usage.waiting.push_back(waiting);
        let place = (usage.had, workflow.clone());
        self.queue.insert(place);
        turn
    }

    /// The next one that may compute, if there is one.
    fn next(&mut self, turns: usize) -> Option<(Arc<str>, bool, oneshot::Sender<Turn>)> {
        if self.running >= turns {
            return None;
        }
        let (place, waiting) = loop {
            let may = |(_, workflow): &&(u64, Arc<str>)| {
                let usage = self.workflows.get(workflow);
                usage.is_some_and(|usage| usage.may_run(turns, self.heavy))
            };
            let place = self.queue.iter().find(may).cloned()?;
            let usage = self.workflows.get_mut(&place.1)?;
            let waiting = usage.next_waiting();
            if usage.waiting.is_empty() {
                self.queue.remove(&place);
            }
            if let Some(waiting) = waiting {
                break (place, waiting);
            }
        };
        let usage = self.workflows.get_mut(&place.1)?;
        let (is_heavy, had) = (usage.is_heavy(), usage.had);
        usage.running += 1;
        self.count(is_heavy, had);
        Some((place.1, is_heavy, waiting))
    }

    fn count(&mut self, is_heavy: bool, had: u64) {
        self.level = self.level.max(had);
        self.running += 1;
        self.heavy += usize::from(is_heavy);
    }

    fn give_back(&mut self, turn: &Turn) {
        self.running = self.running.saturating_sub(1);
        self.heavy = self.heavy.saturating_sub(usize::from(turn.is_heavy));
        if let Some(usage) = self.workflows.get_mut(&turn.workflow) {
            usage.running = usage.running.saturating_sub(1);
            let before = usage.had;
            if let Some(cost) = turn.cost.get() {
                usage.had = before.saturating_add(cost).saturating_add(1);
                usage.average = match usage.is_new {
                    true => cost,
                    false => usage.average - usage.average / AVERAGED + cost / AVERAGED,
                };
                usage.is_new = false;
            }
            if self.queue.remove(&(before, turn.workflow.clone())) {
                self.queue.insert((usage.had, turn.workflow.clone()));
            }
        }
        if self.workflows.len() > KNOWN_MAX {
            self.workflows
                .retain(|_, usage| usage.running > 0 || !usage.waiting.is_empty());
        }
    }
}

impl Usage {
    /// Leaves out those that were abandoned.
    fn next_waiting(&mut self) -> Option<oneshot::Sender<Turn>> {
        while let Some(waiting) = self.waiting.pop_front() {
            if !waiting.is_canceled() {
                return Some(waiting);
            }
        }
        None
    }

    /// `heavy`: turns that heavy ones have.
    fn may_run(&self, turns: usize, heavy: usize) -> bool {
        match (self.is_new, self.is_heavy()) {
            (true, _) => self.running == 0,
            (false, true) => heavy < turns.saturating_sub(1).max(1),
            (false, false) => true,
        }
    }

    fn is_heavy(&self) -> bool {
        self.average > LIGHT_MAX
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let waits = {
            let mut state = self.shares.locked();
            state.give_back(self);
            !state.queue.is_empty()
        };
        if waits {
            self.shares.let_in();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::future::BoxFuture;

    use super::*;

    const MUCH: u64 = 30_000_000;

    fn enter<'a>(shares: &'a Arc<Shares>, workflow: &str) -> BoxFuture<'a, Turn> {
        let (shares, workflow) = (shares.clone(), Arc::from(workflow));
        async move { shares.enter(&workflow).await }.boxed()
    }

    fn spend(turn: Turn, cost: u64) {
        turn.spend(cost);
    }

    /// The first of these that has its turn.
    fn first(waiting: &mut Vec<BoxFuture<'_, Turn>>) -> Option<Turn> {
        let found =
            (0..waiting.len()).find_map(|at| Some((at, (&mut waiting[at]).now_or_never()?)));
        found.map(|(at, turn)| {
            drop(waiting.remove(at));
            turn
        })
    }

    #[test]
    fn what_costs_much_leaves_a_turn_to_others() {
        let shares = Shares::new(2);
        spend(enter(&shares, "heavy").now_or_never().unwrap(), MUCH);
        let mut heavy: Vec<_> = (0..16).map(|_| enter(&shares, "heavy")).collect();
        let one = first(&mut heavy).unwrap();
        assert!(first(&mut heavy).is_none(), "two at once");
        // With any number of them waiting, and any position of the one.
        for _ in 0..100 {
            spend(enter(&shares, "light").now_or_never().unwrap(), 100);
        }
        assert!(first(&mut heavy).is_none());
        spend(one, MUCH);
        assert!(first(&mut heavy).is_some());
    }

    #[test]
    fn nobody_knows_what_a_new_one_costs() {
        let shares = Shares::new(2);
        let mut new: Vec<_> = (0..16).map(|_| enter(&shares, "new")).collect();
        let one = first(&mut new).unwrap();
        assert!(first(&mut new).is_none());
        let other = enter(&shares, "other").now_or_never().unwrap();
        spend(other, 100);
        // It is light: all threads are for it.
        spend(one, 100);
        let both = (first(&mut new).unwrap(), first(&mut new).unwrap());
        assert!(first(&mut new).is_none(), "{} turns", 2);
        drop(both);
    }

    #[test]
    fn who_had_least_goes_first() {
        let shares = Shares::new(1);
        let mut counts = [0, 0];
        let gate = enter(&shares, "gate").now_or_never().unwrap();
        let mut waiting: Vec<_> = (0..20)
            .flat_map(|_| [enter(&shares, "costly"), enter(&shares, "cheap")])
            .collect();
        assert!(first(&mut waiting).is_none(), "all wait");
        spend(gate, 1);
        let mut turns = Vec::new();
        while let Some(turn) = first(&mut waiting) {
            let is_cheap = &*turn.workflow == "cheap";
            counts[usize::from(is_cheap)] += 1;
            turns.push(is_cheap);
            spend(turn, if is_cheap { MUCH / 10 } else { MUCH });
        }
        assert_eq!(counts, [20, 20]);
        // Ten turns of the one cost as much as one of the other.
        let cheap = turns[..12].iter().filter(|is_cheap| **is_cheap).count();
        assert!((9..=11).contains(&cheap), "{turns:?}");
        // A workflow that was away has saved nothing.
        spend(enter(&shares, "idle").now_or_never().unwrap(), 1);
        let gate = enter(&shares, "gate").now_or_never().unwrap();
        let mut waiting: Vec<_> = (0..4)
            .flat_map(|_| [enter(&shares, "idle"), enter(&shares, "cheap")])
            .collect();
        assert!(first(&mut waiting).is_none(), "all wait");
        spend(gate, 1);
        let mut idle = 0;
        for _ in 0..4 {
            let turn = first(&mut waiting).unwrap();
            idle += usize::from(&*turn.workflow == "idle");
            spend(turn, MUCH);
        }
        assert_eq!(idle, 2);
    }

    #[test]
    fn who_waits_no_more_holds_nothing() {
        let shares = Shares::new(1);
        let one = enter(&shares, "a").now_or_never().unwrap();
        let mut gone = enter(&shares, "b");
        assert!((&mut gone).now_or_never().is_none());
        let mut kept = enter(&shares, "c");
        assert!((&mut kept).now_or_never().is_none());
        drop(gone);
        drop(one);
        let turn = kept.now_or_never().unwrap();
        // One that was given and never used.
        let mut unseen = enter(&shares, "b");
        assert!((&mut unseen).now_or_never().is_none());
        drop(turn);
        drop(unseen);
        assert!(enter(&shares, "d").now_or_never().is_some());
        for n in 0..2 * KNOWN_MAX {
            drop(enter(&shares, &format!("w{n}")).now_or_never().unwrap());
        }
        assert!(shares.locked().workflows.len() <= KNOWN_MAX + 1);
    }
}
