//! How workflows share the processors of a process. A turn of a scope needs a permit, of which there is a limited
//! number. A workflow with expensive turns leaves one of them to others, and of several waiting workflows, the one that
//! has had the least goes first. So the instances of an expensive workflow wait for each other, and others hardly wait.
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
    permits: usize,
    aside: Option<Aside>,
    state: Mutex<State>,
}

/// Runs work that may take long, once, so that the other tasks of this thread needn't wait for it.
pub type Aside = fn(&mut dyn FnMut());

#[derive(Default)]
struct State {
    /// All turns cost the same.
    equal: bool,
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
    waiting: VecDeque<oneshot::Sender<Permit>>,
}

/// The right to compute, until it is dropped.
pub struct Permit {
    shares: Arc<Shares>,
    workflow: Arc<str>,
    admitted: Admitted,
    waited: bool,
    /// In steps of the meter; `None`: nothing was computed.
    cost: Cell<Option<u64>>,
}

/// The state of a workflow when it got a permit.
#[derive(Clone, Copy)]
struct Admitted {
    is_new: bool,
    is_heavy: bool,
    /// The expected cost. It counts at once: the next turns go to other workflows before this one ends.
    charged: u64,
}

impl Permit {
    /// Adds the cost of a computation, in steps of the meter.
    pub fn spend(&self, cost: u64) {
        let before = self.cost.get().unwrap_or(0);
        self.cost.set(Some(before.saturating_add(cost)));
    }

    /// Computes, and counts the cost.
    pub fn compute<T>(&self, spent: fn() -> u64, compute: impl FnOnce() -> T) -> T {
        let counting = || {
            let before = spent();
            let computed = compute();
            self.spend(spent().saturating_sub(before));
            computed
        };
        let Some(aside) = self.shares.aside.filter(|_| self.may_take_long()) else {
            return counting();
        };
        let (mut counting, mut computed) = (Some(counting), None);
        aside(&mut || {
            if let Some(counting) = counting.take() {
                computed = Some(counting());
            }
        });
        match (computed, counting) {
            (Some(computed), _) => computed,
            (None, Some(counting)) => counting(),
            (None, None) => unreachable!("it is taken to be computed"),
        }
    }

    /// Whether nothing is known of its workflow's turns, or that they are expensive.
    pub fn may_take_long(&self) -> bool {
        self.admitted.is_new || self.admitted.is_heavy
    }

    /// Whether others came first.
    pub fn waited(&self) -> bool {
        self.waited
    }
}

impl Shares {
    /// For a process with this many threads: one is left to others if there are at least two.
    pub fn new(threads: usize) -> Arc<Shares> {
        Shares::with(threads, None, false)
    }

    /// As many permits; all turns cost the same.
    pub fn equal(permits: usize) -> Arc<Shares> {
        Shares::with(permits, None, true)
    }

    /// The same; turns that may take long are computed by `aside`.
    pub fn aside(threads: usize, aside: Aside) -> Arc<Shares> {
        Shares::with(threads, Some(aside), false)
    }

    fn with(threads: usize, aside: Option<Aside>, equal: bool) -> Arc<Shares> {
        Arc::new(Shares {
            permits: threads.max(1),
            aside,
            state: Mutex::new(State {
                equal,
                ..State::default()
            }),
        })
    }

    /// Waits for a permit.
    pub async fn enter(self: &Arc<Shares>, workflow: &Arc<str>) -> Permit {
        loop {
            let mut permit = {
                let mut state = self.locked();
                match state.let_in_at_once(self.permits, workflow) {
                    Some(admitted) => return self.permit(workflow.clone(), admitted, false),
                    None => state.wait(workflow),
                }
            };
            self.let_in();
            // Others may wait for a reason that doesn't hold for this workflow.
            if let Ok(Some(mut permit)) = permit.try_recv() {
                permit.waited = false;
                return permit;
            }
            // It is dropped without an answer only with the shares.
            if let Ok(permit) = permit.await {
                return permit;
            }
        }
    }

    /// Whether the turns of a workflow are known to be short.
    pub fn are_short(&self, workflow: &Arc<str>) -> bool {
        let state = self.locked();
        let usage = state.workflows.get(workflow);
        usage.is_some_and(|usage| !usage.is_new && !usage.is_heavy())
    }

    fn permit(self: &Arc<Shares>, workflow: Arc<str>, admitted: Admitted, waited: bool) -> Permit {
        Permit {
            shares: self.clone(),
            workflow,
            admitted,
            waited,
            cost: Cell::new(None),
        }
    }

    fn let_in(self: &Arc<Shares>) {
        loop {
            let next = self.locked().next(self.permits);
            let Some((workflow, admitted, waiting)) = next else {
                return;
            };
            // If it is no longer awaited, it comes back at once.
            drop(waiting.send(self.permit(workflow, admitted, true)));
        }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn usage(&mut self, workflow: &Arc<str>) -> &mut Usage {
        let (level, is_new) = (self.level, !self.equal);
        let usage = self.workflows.entry(workflow.clone());
        let usage = usage.or_insert_with(|| Usage {
            is_new,
            ..Usage::default()
        });
        if usage.running == 0 && usage.waiting.is_empty() {
            usage.had = usage.had.max(level);
        }
        usage
    }

    /// For the case that nobody waits.
    fn let_in_at_once(&mut self, permits: usize, workflow: &Arc<str>) -> Option<Admitted> {
        if !self.queue.is_empty() || self.running >= permits {
            return None;
        }
        let heavy = self.heavy;
        let usage = self.usage(workflow);
        if !usage.may_run(permits, heavy) {
            return None;
        }
        let had = usage.had;
        let admitted = usage.admit();
        self.count(admitted.is_heavy, had);
        Some(admitted)
    }

    fn wait(&mut self, workflow: &Arc<str>) -> oneshot::Receiver<Permit> {
        let (waiting, permit) = oneshot::channel();
        let usage = self.usage(workflow);
        usage.waiting.push_back(waiting);
        let place = (usage.had, workflow.clone());
        self.queue.insert(place);
        permit
    }

    /// The next one that may compute, if there is one.
    fn next(&mut self, permits: usize) -> Option<(Arc<str>, Admitted, oneshot::Sender<Permit>)> {
        if self.running >= permits {
            return None;
        }
        let (place, waiting) = loop {
            let may = |(_, workflow): &&(u64, Arc<str>)| {
                let usage = self.workflows.get(workflow);
                usage.is_some_and(|usage| usage.may_run(permits, self.heavy))
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
        let (had, workflow) = place;
        let usage = self.workflows.get_mut(&workflow)?;
        let admitted = usage.admit();
        let now = usage.had;
        self.requeue(had, now, &workflow);
        self.count(admitted.is_heavy, had);
        Some((workflow, admitted, waiting))
    }

    /// The amount that a workflow had has changed; it may be waiting.
    fn requeue(&mut self, before: u64, now: u64, workflow: &Arc<str>) {
        if before != now && self.queue.remove(&(before, workflow.clone())) {
            self.queue.insert((now, workflow.clone()));
        }
    }

    fn count(&mut self, is_heavy: bool, had: u64) {
        self.level = self.level.max(had);
        self.running += 1;
        self.heavy += usize::from(is_heavy);
    }

    fn give_back(&mut self, permit: &Permit) {
        self.running = self.running.saturating_sub(1);
        let Admitted {
            is_heavy, charged, ..
        } = permit.admitted;
        self.heavy = self.heavy.saturating_sub(usize::from(is_heavy));
        if let Some(usage) = self.workflows.get_mut(&permit.workflow) {
            usage.running = usage.running.saturating_sub(1);
            let before = usage.had;
            if !self.equal {
                usage.settle(charged, permit.cost.get());
            }
            let now = usage.had;
            self.requeue(before, now, &permit.workflow);
        }
        if self.workflows.len() > KNOWN_MAX {
            self.workflows
                .retain(|_, usage| usage.running > 0 || !usage.waiting.is_empty());
        }
    }
}

impl Usage {
    /// Leaves out those that were abandoned.
    fn next_waiting(&mut self) -> Option<oneshot::Sender<Permit>> {
        while let Some(waiting) = self.waiting.pop_front() {
            if !waiting.is_canceled() {
                return Some(waiting);
            }
        }
        None
    }

    /// `heavy`: permits that heavy ones have.
    fn may_run(&self, permits: usize, heavy: usize) -> bool {
        match (self.is_new, self.is_heavy()) {
            (true, _) => self.running == 0,
            (false, true) => heavy < permits.saturating_sub(1).max(1),
            (false, false) => true,
        }
    }

    fn is_heavy(&self) -> bool {
        self.average > LIGHT_MAX
    }

    /// Replaces the expected cost by the actual one.
    fn settle(&mut self, charged: u64, cost: Option<u64>) {
        self.had = self.had.saturating_sub(charged);
        let Some(cost) = cost else { return };
        self.had = self.had.saturating_add(cost).saturating_add(1);
        self.average = match self.is_new {
            true => cost,
            false => self.average - self.average / AVERAGED + cost / AVERAGED,
        };
        self.is_new = false;
    }

    fn admit(&mut self) -> Admitted {
        let charged = self.average.saturating_add(1);
        self.running += 1;
        self.had = self.had.saturating_add(charged);
        Admitted {
            is_new: self.is_new,
            is_heavy: self.is_heavy(),
            charged,
        }
    }
}

impl Drop for Permit {
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

    fn enter<'a>(shares: &'a Arc<Shares>, workflow: &str) -> BoxFuture<'a, Permit> {
        let (shares, workflow) = (shares.clone(), Arc::from(workflow));
        async move { shares.enter(&workflow).await }.boxed()
    }

    fn spend(turn: Permit, cost: u64) {
        turn.spend(cost);
    }

    /// The first of these that has its turn.
    fn first(waiting: &mut Vec<BoxFuture<'_, Permit>>) -> Option<Permit> {
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
        assert!(!shares.are_short(&"heavy".into()));
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
        assert!(!shares.are_short(&"new".into()));
        assert!(first(&mut new).is_none());
        let other = enter(&shares, "other").now_or_never().unwrap();
        spend(other, 100);
        // It is light: all threads are for it.
        spend(one, 100);
        assert!(shares.are_short(&"new".into()));
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
    fn turns_count_when_they_begin() {
        let shares = Shares::equal(6);
        let held: Vec<_> = (0..6)
            .map(|_| enter(&shares, "gate").now_or_never().unwrap())
            .collect();
        let mut waiting: Vec<_> = (0..20).map(|_| enter(&shares, "many")).collect();
        waiting.extend((0..3).map(|_| enter(&shares, "few")));
        assert!(first(&mut waiting).is_none(), "all wait");
        drop(held);
        // None of these has ended.
        let turns: Vec<_> = std::iter::from_fn(|| first(&mut waiting)).collect();
        let few = turns.iter().filter(|turn| &*turn.workflow == "few").count();
        assert_eq!((turns.len(), few), (6, 3));
        assert!(turns.iter().all(Permit::waited));
    }

    #[test]
    fn one_that_is_admitted_at_once_has_not_waited() {
        let shares = Shares::new(2);
        spend(enter(&shares, "heavy").now_or_never().unwrap(), MUCH);
        let running = enter(&shares, "heavy").now_or_never().unwrap();
        let mut heavy = enter(&shares, "heavy");
        assert!((&mut heavy).now_or_never().is_none());
        let light = enter(&shares, "light").now_or_never().unwrap();
        assert!(!light.waited());
        spend(light, 1);
        spend(running, MUCH);
        assert!(heavy.now_or_never().unwrap().waited());
    }

    #[test]
    fn only_what_may_take_long_is_computed_aside() {
        thread_local! { static ASIDE: Cell<u32> = const { Cell::new(0) } }
        let shares = Shares::aside(2, |work| {
            ASIDE.set(ASIDE.get() + 1);
            work();
        });
        let compute = |workflow: &str, cost: u64| {
            thread_local! { static SPENT: Cell<u64> = const { Cell::new(0) } }
            let turn = enter(&shares, workflow).now_or_never().unwrap();
            turn.compute(|| SPENT.get(), || SPENT.set(SPENT.get() + cost));
            ASIDE.replace(0)
        };
        assert_eq!(compute("light", 1), 1, "nobody knows yet");
        assert_eq!(compute("light", 1), 0);
        assert_eq!(compute("heavy", MUCH), 1);
        assert_eq!(compute("heavy", MUCH), 1);
        // An aside that forgets the work loses nothing.
        let shares = Shares::aside(2, |_| ());
        let turn = enter(&shares, "light").now_or_never().unwrap();
        assert_eq!(turn.compute(|| 0, || 7), 7);
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
